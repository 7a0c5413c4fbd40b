"""What the READMEs of the gallery say would happen: a kernel with one line taken away or changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import ir
from ptxlab.kernels import copy, pipelined, registers, vector_addition, warp_reduction
from ptxlab.measure import Launch
from tests.claims.asking import machine_code, needs_disassembler


def changed(launch: Launch, old: str, new: str = "", *, times: int = 1) -> list[str]:
    """What is wrong with a launch after `old` became `new`."""
    kernel = launch.kernel
    assert isinstance(kernel, ir.Function)
    assert kernel.module is not None
    text = ptxlab.format(kernel.module)
    assert old in text
    other = ptxlab.parse(text.replace(old, new, times))[kernel.name]
    try:
        result = other.launch(launch.grid, launch.block, launch.args, device="cpu", on_error="collect")
    except ptxlab.KernelError as wrong:
        return [one.code for one in wrong.diagnostics]
    return [one.code for one in result.diagnostics]


def series(stages: int) -> tuple[Launch, Any, Any]:
    """Five tiles for two blocks."""
    x, y = np.linspace(-0.9, 0.9, 5 * pipelined.TILE, dtype=np.float32), np.zeros(5 * pipelined.TILE, np.float32)
    return pipelined.pipelined(x, y, terms=3, blocks=2, stages=stages), x, y


def test_vector_addition_without_its_guard_leaves_the_arrays() -> None:
    launch = vector_addition.one_element(*(np.zeros(1000, np.float32) for _ in range(3)))
    assert changed(launch, "@%beyond ret;") == ["out-of-bounds"]


@pytest.mark.parametrize("stages", [2, 4])
def test_a_pipeline_that_does_not_wait_is_a_race(stages: int) -> None:
    launch, _, _ = series(stages)
    assert "data-race" in changed(launch, f"cp.async.wait_group {stages - 1};")


def test_a_pipeline_without_empty_groups_waits_too_little() -> None:
    launch, _, _ = series(2)
    commit = "cp.async.commit_group;"
    assert changed(launch, commit, f"@%there {commit}")[:1] == ["data-race"]


def test_each_step_through_shared_memory_needs_the_lanes_to_meet() -> None:
    x, sums = np.ones((8, 32), np.float32), np.zeros(8, np.float32)
    launch = warp_reduction.sum_rows(x, sums, way="shared")
    assert "data-race" in changed(launch, "bar.warp.sync 0xffffffff;")


def test_hints_do_not_change_what_is_copied() -> None:
    x = np.arange(2000, dtype=np.float32)
    for hints in copy.HINTS.values():
        y = np.zeros_like(x)
        copy.by_vectors(x, y, hints).run(device="cpu")
        assert (x == y).all()


@needs_disassembler
def test_a_bound_above_what_is_needed_changes_nothing() -> None:
    assert machine_code(registers.text(".maxnreg 128")) == machine_code(registers.text(""))
