"""Ranks of one program in one process: their turns, torch.distributed, symmetric memory and Triton's kernels."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.frameworks.ranks.session import Ranks
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


def reduced(name: str, dtype: str, side: bool) -> Any:
    """A sum over ranks of 300 elements within symmetric memory, whose last ones a kernel writes before."""
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    from tests.frameworks.triton_kernels import copy_elements

    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    whole = symmetric.empty(308, dtype=getattr(torch, dtype), device="cuda")
    whole.fill_(100)
    x = whole[8:]
    x.copy_(torch.arange(300, device="cuda") % 16 + rank)
    given = torch.full((4,), rank + 1, dtype=x.dtype, device="cuda")
    stream = torch.cuda.Stream() if side else torch.cuda.current_stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        copy_elements[(1,)](x[296:], given, 4, BLOCK=4)
    total = getattr(torch.ops.symm_mem, name)(x, "sum", dist.group.WORLD.group_name)
    expected = torch.arange(300) % 16 * world + sum(range(world))
    expected[296:] = sum(range(1, world + 1))
    torch.cuda.synchronize()
    return torch.equal(total.float(), expected.float()), whole[:8].tolist() == [100] * 8


REDUCTIONS = ("one_shot_all_reduce", "two_shot_all_reduce_", "multimem_all_reduce_", "multimem_one_shot_all_reduce")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_operators_of_symmetric_memory(name: str, dtype: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    with ptxlab.node(3).emulated(seed=3) as ranks:
        assert ranks.run(reduced, name, dtype, False) == [(True, True)] * 3
    if dtype == "float32":
        with pytest.raises(ptxlab.KernelError) as caught, ptxlab.node(3).emulated(seed=3) as ranks:
            ranks.run(reduced, name, dtype, True)
        assert {one.code for one in caught.value.diagnostics} == {"data-race"}


def test_operators_of_symmetric_memory_refuse_other_memory_and_ranks_that_stay_away() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")

    def other(*args: Any) -> None:
        torch.ops.symm_mem.one_shot_all_reduce(torch.ones(4, device="cuda"), "sum", "0")

    def away(*args: Any) -> None:
        import torch.distributed as dist
        import torch.distributed._symmetric_memory as symmetric

        x = symmetric.empty(4, dtype=torch.float32, device="cuda")
        symmetric.rendezvous(x, dist.group.WORLD)
        if dist.get_rank() == 0:
            torch.ops.symm_mem.one_shot_all_reduce(x, "sum", "0")

    with ptxlab.node(2).emulated() as ranks:
        with pytest.raises(RuntimeError, match="one_shot_all_reduce: input must be symmetric memory"):
            ranks.run(other)
        with pytest.raises(NotImplementedError, match=r"symm_mem.all_to_all_vdev is not there; one_shot_all_reduce, "):
            torch.ops.symm_mem.all_to_all_vdev()
    with pytest.raises(ptxlab.KernelError) as caught, ptxlab.node(2).emulated() as ranks:
        ranks.run(away)
    assert [one.code for one in caught.value.diagnostics] == ["hang"]


class Message:
    """What `send` and `recv` need of a tensor."""

    dtype = "float32"

    def __init__(self, *values: int) -> None:
        self.values = list(values)

    def clone(self) -> Message:
        return Message(*self.values)

    def numel(self) -> int:
        return len(self.values)

    def view_as(self, other: Message) -> Message:
        return self

    def copy_(self, other: Message) -> None:
        self.values = list(other.values)


def messages(work: Any) -> list[Any]:
    """What ranks return that are given `send`, `recv` and the like, and their number."""
    ranks = Ranks(ptxlab.node(2), "sm_90", {})
    calls = SimpleNamespace(**ranks.distributed._messages())
    found = ranks.turns.run(lambda rank: work(calls, rank))
    ranks.distributed.refuse_unreceived()
    return found


def test_ranks_send_each_other_messages() -> None:
    def both(calls: Any, rank: int) -> list[int]:
        got, more = Message(0), Message(0, 0)
        own = [calls.P2POp(calls.isend, Message(rank + 5), 1 - rank), calls.P2POp(calls.irecv, got, 1 - rank)]
        for one in calls.batch_isend_irecv(own):
            one.wait()
        if rank == 0:
            calls.send(Message(7, 8), 1, tag=3)
        else:
            assert calls.recv(more, tag=3) == 0
        return [*got.values, *more.values]

    assert messages(both) == [[6, 0, 0], [5, 7, 8]]


@pytest.mark.parametrize(
    ("to", "size", "problem"),
    [
        (None, 1, "no rank can continue: rank 0 waits for `recv` from rank 1; rank 1 has ended"),
        (0, 2, "rank 1 sends 2 of float32, and rank 0 receives 1 of float32"),
        (1, 1, "rank 1 sends to rank 1, which is not another one"),
    ],
)
def test_a_message_that_is_not_there_or_does_not_fit_is_named(to: int | None, size: int, problem: str) -> None:
    def one(calls: Any, rank: int) -> None:
        if rank == 0:
            calls.recv(Message(0), 1)
        elif to is not None:
            calls.send(Message(*range(size)), to)

    with pytest.raises((RuntimeError, ValueError), match=problem):
        messages(one)


def test_a_message_that_is_never_received_is_named() -> None:
    with pytest.raises(RuntimeError, match="rank 1 has sent what rank 0 did not receive"):
        messages(lambda calls, rank: calls.send(Message(1), 0) if rank else None)


def test_symmetric_memory_has_a_multicast_address() -> None:
    text = """.version 8.1
.target sm_90
.address_size 64
.visible .entry sum(.param .u64 all, .param .u64 out)
{
    .reg .b64 %all, %out;
    .reg .f32 %f;
    ld.param.u64 %all, [all];
    ld.param.u64 %out, [out];
    multimem.ld_reduce.relaxed.sys.global.add.f32 %f, [%all];
    st.global.f32 [%out], %f;
    ret;
}
"""
    node = ptxlab.node(2)
    x, out = [device.array(np.full(4, device.rank + 1, np.float32)) for device in node], node[1].zeros(1)
    address = node.memory.multicast(tuple(one.address for one in x), 16)
    assert address == node.memory.multicast(tuple(one.address for one in x), 16)
    kernel = ptxlab.parse(text, "sum.ptx")["sum"]
    node[1].launch(kernel, 1, 1, [address, out])
    assert out.numpy() == 3
    node[1].launch(kernel, 1, 1, [address + 16, out])
    assert [one.code for one in node.synchronize(on_error="collect").diagnostics] == ["bad-multicast"]
