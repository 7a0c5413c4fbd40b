"""The sum: order between blocks, the same answer each time, and a ticket that is ready again."""

from typing import Any

import numpy as np
import pytest

from ptxlab import KernelError, parse
from ptxlab.kernels.reduction import last_block


def problem(n: int) -> tuple[Any, Any, Any, Any]:
    x = np.random.default_rng(n).random(n, np.float32)
    return x, np.full(64, np.nan, np.float32), np.zeros(1, np.uint32), np.empty(1, np.float32)


def test_it_can_be_launched_again() -> None:
    x, sums, ticket, total = problem(70_000)
    found = set()
    for seed in range(4):
        total[0] = np.nan
        last_block(x, sums, ticket, total).run(device="cpu", seed=seed)
        assert ticket[0] == 0
        found.add(float(total[0]))
    assert len(found) == 1
    assert np.isclose(found.pop(), x.sum(dtype=np.float64), rtol=1e-6)


def test_no_more_blocks_than_there_is_room_for() -> None:
    x, sums, ticket, total = problem(70_000)
    launch = last_block(x, sums[:2], ticket, total)
    assert launch.grid == 2
    launch.run(device="cpu")
    assert np.isclose(total[0], x.sum(dtype=np.float64), rtol=1e-6)


def test_nothing_to_sum_is_explained() -> None:
    with pytest.raises(KernelError, match="grid"):
        last_block(*problem(0)).run(device="cpu")


def test_without_order_it_is_a_race() -> None:
    arguments = problem(70_000)
    launch = last_block(*arguments)
    module = parse(str(launch.kernel).replace("atom.acq_rel.gpu", "atom.relaxed.gpu"), "relaxed.ptx")
    with pytest.raises(KernelError) as caught:
        module[module.entries[0]].launch(launch.grid, launch.block, launch.args, device="cpu")
    assert [found.code for found in caught.value.diagnostics] == ["data-race"]
