"""Parts of explanations by themselves: names of threads and blocks, reasons, space for what a trial may undo."""

from enum import IntEnum
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ptxlab.device.regions import Region
from ptxlab.emulate.abi import faults, findings
from ptxlab.emulate.explain.snapshots import ThreadSnapshot, companion, who
from ptxlab.emulate.host.needs import marks_offset, space_to_keep
from ptxlab.emulate.runtime.order import shadow
from tests.emulate.launching import launch

REASONS = [one for module in (faults, findings) for one in vars(module).values()
           if isinstance(one, type) and issubclass(one, IntEnum) and one is not IntEnum]  # fmt: skip


@pytest.mark.parametrize("reasons", REASONS, ids=lambda one: one.__name__)
def test_each_reason_has_a_number_of_its_own(reasons: type[IntEnum]) -> None:
    assert len(reasons) == len(reasons.__members__) > 0


def test_a_companion_is_in_the_cluster_of_a_block() -> None:
    """Of a grid whose blocks have numbers from 100 on, as one of several that run together."""
    grid: Any = SimpleNamespace(grid=(4, 4, 2), cluster=(2, 2, 2), number_in_grid=lambda number: number - 100)
    number = 100 + 3 + 4 * (1 + 4 * 1)  # block (3, 1, 1), in the cluster from (2, 0, 0) on
    expected = [100 + x + 4 * (y + 4 * z) for z in (0, 1) for y in (0, 1) for x in (2, 3)]
    assert [companion(grid, number, rank) for rank in range(8)] == expected


@pytest.mark.parametrize(
    ("numbers", "name"),
    [([7], "thread 7"), (range(32), "warp 0"), (range(64), "warps 0 and 1"),
     ([0, 1, 2, 9], "lanes 0 to 2 and 9 of warp 0"), ([5, 40], "threads 5 and 40"), (range(64, 80), "warp 2")],
)  # fmt: skip
def test_threads_are_named_by_warps_where_these_are_whole(numbers: list[int], name: str) -> None:
    """Of a block of 80 threads, whose last warp has 16."""
    block = [cast(ThreadSnapshot, SimpleNamespace(number=at, warp=at // 32, lane=at % 32)) for at in range(80)]
    assert who([block[at] for at in numbers], block) == name


def test_there_is_space_for_a_mark_of_each_page_of_a_region() -> None:
    size = 1000 * shadow.PAGE + 1
    kept = space_to_keep([Region(4096, size, 0, "a"), Region(1 << 40, size, 0, "b", writable=False)])
    assert kept is not None
    assert {at: len(one) for at, one in kept.items()} == {4096: marks_offset(size) + 4 * 1002}


def test_registers_of_the_environment_are_zero() -> None:
    out = np.full(32, 7, np.uint32)
    others = [number for number in range(32) if number not in (1, 2)]  # which cooperative launches use
    stores = "".join(f"mov.b32 %r1, %envreg{at}; st.global.u32 [%rd1+{4 * at}], %r1;\n" for at in others)
    launch(f"ld.param.u64 %rd1, [out];\n{stores}ret;", ".u64 out", [out])
    assert not out[others].any()
