"""What the READMEs of the gallery say would happen: a kernel with one line taken away or changed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.author import Kernel
from ptxlab.kernels import copy, pipelined, registers, sgemm, transpose, vector_addition, warp_reduction
from ptxlab.measure import Launch
from tests.claims.asking import machine_code, needs_disassembler


def changed(launch: Launch, old: str, new: str = "") -> list[str]:
    """What is wrong with a launch after `old` became `new`."""
    result = launch.changed((old, new)).run(device="cpu", on_error="collect")
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


def matrices(size: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(size)
    a, b = (random.integers(-4, 5, (size, size)).astype(np.float32) for _ in range(2))
    return a, b, np.zeros((size, size), np.float32)


def text_of(launch: Launch) -> str:
    kernel = launch.kernel.entry if isinstance(launch.kernel, Kernel) else launch.kernel
    assert kernel.module is not None
    return ptxlab.format(kernel.module)


def profiled(launch: Launch, text: str) -> tuple[dict[str, Any], list[str]]:
    """What a launch counts with another text, and the lines of that text."""
    (name,) = ptxlab.parse(text).entries
    result = ptxlab.parse(text)[name].launch(launch.grid, launch.block, launch.args, device="cpu", profile=True)
    return result.counters, text.splitlines()


def test_sgemm_without_the_guard_of_a_load_reads_outside() -> None:
    launch = sgemm.tiled_1d(*matrices(50))
    assert changed(launch, "@%inside ld.global.f32 %from_a", "ld.global.f32 %from_a") == ["out-of-bounds"]
    assert changed(launch, "@%inside ld.global.f32 %from_b", "ld.global.f32 %from_b") == ["out-of-bounds"]


@pytest.mark.parametrize("barrier", [0, 1])
def test_sgemm_in_shared_memory_needs_both_barriers(barrier: int) -> None:
    launch = sgemm.shared_memory(*matrices(64))
    parts = text_of(launch).split("bar.sync 0;")
    assert len(parts) == 3
    whole, lost = parts[0] + "bar.sync 0;" * (barrier == 1) + parts[1], "bar.sync 0;" * (barrier == 0) + parts[2]
    assert "data-race" in changed(launch, text_of(launch), whole + lost)


def test_sgemm_without_padding_has_an_8_way_bank_conflict() -> None:
    """68 numbers a column become 64, and the offsets of the columns follow."""
    a, b, c = matrices(64)
    launch = sgemm.tiled_1d(a, b, c)
    text = re.sub(r"\b68\b", "64", text_of(launch))
    text = re.sub(r"(?<=%a_rows\+)\d+", lambda found: str(int(found[0]) - 16 * (int(found[0]) // 272)), text)
    assert "%a_rows+256]" in text
    assert "%a_rows+1808]" in text
    padded, _ = profiled(launch, text_of(launch))
    assert padded["requests"]["wavefronts"] == padded["requests"]["ideal_wavefronts"]
    counters, lines = profiled(launch, text)
    assert (c == a @ b).all()
    (store,) = [number for number, line in enumerate(lines, 1) if "st.shared.f32 [%a_store]" in line]
    counted = counters["lines"][store]
    assert counted["wavefronts"] == 8 * counted["shared_requests"]


def test_a_transpose_without_its_spare_column_reads_one_bank() -> None:
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    y = np.zeros((64, 64), np.float32)
    launch = transpose.elements(x, y)
    text = text_of(launch).replace("132", "128")
    counters, _ = profiled(launch, text)
    assert (y == x.T).all()
    requests = counters["requests"]
    assert requests["wavefronts"] > 16 * requests["ideal_wavefronts"] / 2
