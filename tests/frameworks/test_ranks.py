"""Ranks of one program in one process: their turns, torch.distributed, symmetric memory and Triton's kernels."""

from __future__ import annotations

import os
from typing import Any

import pytest

import ptxlab
from ptxlab.frameworks.ranks.turns import Turns

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


def test_ranks_take_turns_where_they_wait() -> None:
    order: list[str] = []
    launched: list[int] = []
    turns = Turns(3, lambda: launched and (order.append(f"run {launched}") or launched.clear() or True))

    def work(rank: int) -> str:
        order.append(f"{rank} launches")
        launched.append(rank)
        turns.wait(lambda: not launched, "its kernels")
        order.append(f"{rank} ends")
        return os.environ["RANK"]

    assert turns.run(work) == ["0", "1", "2"]
    launches = [f"{rank} launches" for rank in range(3)]
    assert [*launches, "run [0, 1, 2]"] == order[:4]
    assert sorted(order[4:]) == [f"{rank} ends" for rank in range(3)]
    assert "RANK" not in os.environ


def test_ranks_that_wait_for_one_that_has_ended_are_named() -> None:
    turns = Turns(3, lambda: False)
    with pytest.raises(RuntimeError, match="rank 0 waits for `barrier`, rank 2 waits for `barrier`; rank 1 has ended"):
        turns.run(lambda rank: rank == 1 or turns.wait(lambda: False, "`barrier`"))


def test_a_rank_that_fails_ends_the_others() -> None:
    turns = Turns(2, lambda: False)

    def work(rank: int) -> None:
        if rank == 1:
            raise ValueError("rank 1 fails")
        turns.wait(lambda: False, "nothing")

    with pytest.raises(ValueError, match="rank 1 fails"):
        turns.run(work)


def exchange(has_barrier: bool) -> Any:
    """Each rank fills the memory of the next one, and copies its own once all have."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    from tests.frameworks.triton_kernels import copy_elements

    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    x = symmetric.empty(64, dtype=torch.float32, device="cuda")
    handle = symmetric.rendezvous(x, dist.group.WORLD)
    given = torch.full((64,), rank + 1.0, device="cuda")
    y = torch.empty(64, device="cuda")
    copy_elements[(1,)](handle.get_buffer((rank + 1) % world, (64,), torch.float32), given, 64, BLOCK=64)
    if has_barrier:
        handle.barrier()
    copy_elements[(1,)](y, x, 64, BLOCK=64)
    total = y.clone()
    dist.all_reduce(total)
    return y[63].item(), total[0].item(), y.device.index


def test_triton_kernels_reach_their_peers_through_symmetric_memory() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    with ptxlab.node(3).emulated(seed=2) as ranks:
        assert ranks.run(exchange, True) == [(3.0, 6.0, 0), (1.0, 6.0, 1), (2.0, 6.0, 2)]
    with pytest.raises(ptxlab.KernelError) as caught, ptxlab.node(3).emulated(seed=2) as ranks:
        ranks.run(exchange, False)
    found = caught.value.diagnostics[0]
    assert found.code == "data-race"
    assert found.helps[0].text.startswith("have all ranks wait for each other: `handle.barrier()`")
