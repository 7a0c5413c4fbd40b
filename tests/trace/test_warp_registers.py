"""Registers of all lanes of a warp at once."""

from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.trace.warp_registers import WarpRegisters
from ptxlab.trace.warp_steps import WarpSteps
from tests.tools import header

from .recorded import SUMS, record


@pytest.mark.parametrize("lanes", [4, 16])  # few groups of lanes, and more than are inspected one by one
def test_lanes_that_left_a_loop_early_keep_what_they_wrote_in_it(lanes: int, tmp_path: Path) -> None:
    text = SUMS.replace("setp.lt.u32 %p1, %r4, %r2;", f"and.b32 %r8, %r1, {lanes - 1};\n    setp.le.u32 %p1, %r4, %r8;")
    steps = WarpSteps(record(tmp_path / "sums.ptxtrace", text))
    found = WarpRegisters(steps).named(0, ["%r4"], steps.count)
    assert found["%r4"].tolist() == [lane % lanes + 1 for lane in range(32)]


def test_a_block_may_end_within_a_warp() -> None:
    text = header("8.0", "sm_80") + ".entry k() { .reg .b32 %r; mov.u32 %r, %tid.x; ret; }"
    for threads, expected in ((33, [0, 0, 1, 2, 2, 3]), (64, [0, 0, 1, 2, 2, 3]), (1, [0, 1])):
        trace = ptxlab.parse(text)["k"].launch(2, threads, [], record=ptxlab.Record()).trace
        assert trace is not None
        asked = [at + block * threads for block in range(2) for at in sorted({0, min(31, threads - 1), threads - 1})]
        assert WarpSteps(trace).warps_of(np.array(asked)).tolist() == expected
        assert [WarpSteps(trace).warp_of(one) for one in asked] == expected
