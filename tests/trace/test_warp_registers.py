"""Registers of all lanes of a warp at once."""

from pathlib import Path

import pytest

from ptxlab.trace.warp_registers import WarpRegisters
from ptxlab.trace.warp_steps import WarpSteps

from .recorded import SUMS, record


@pytest.mark.parametrize("lanes", [4, 16])  # few groups of lanes, and more than are inspected one by one
def test_lanes_that_left_a_loop_early_keep_what_they_wrote_in_it(lanes: int, tmp_path: Path) -> None:
    text = SUMS.replace("setp.lt.u32 %p1, %r4, %r2;", f"and.b32 %r8, %r1, {lanes - 1};\n    setp.le.u32 %p1, %r4, %r8;")
    steps = WarpSteps(record(tmp_path / "sums.ptxtrace", text))
    found = WarpRegisters(steps).named(0, ["%r4"], steps.count)
    assert found["%r4"].tolist() == [lane % lanes + 1 for lane in range(32)]
