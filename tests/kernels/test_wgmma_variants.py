"""Variants of the product by wgmma: right and silent on the emulator, and not silent where a line is left out."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.kernels.parts.finishing import Extras
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm import SMALL, launch, product, workspace_for
from ptxlab.kernels.wgmma_gemm.candidates import Problem, hints, shapes
from ptxlab.measure import Launch
from tests.kernels.left_out import codes, without


@dataclass(frozen=True)
class Case:
    shape: Shape
    extents: tuple[int, int, int]
    a_along_k: bool = True
    b_along_k: bool = True
    extras: Extras | None = None


MULTICAST = Case(Shape(1, 128, 2, cluster=2, early=1), (136, 136, 136), b_along_k=False)
SPLIT = Case(Shape(2, 32, 2, split_k=2), (100, 40, 200))
THROUGH_MEMORY = Case(Shape(1, 32, 2, cluster=2, split_k=2, clustered=False), (100, 40, 200))
IN_TURNS = Case(Shape(2, 16, 2, pingpong=True, buffers=1), (130, 24, 200))
ALL = Extras(bias=True, activation="relu", residual=True, paired=True)
AHEAD = Case(Shape(2, 16, 2, lead=1, buffers=1), (130, 32, 136), extras=ALL)
RESIDUAL = Case(Shape(2, 48, 2, buffers=1, pingpong=True), (130, 56, 72), extras=replace(ALL, in_ring=True))
CASES = {
    "in turns": IN_TURNS,
    "one warpgroup ahead of the other": AHEAD,
    "a residual through the ring": RESIDUAL,
    "one warpgroup ahead, blocks side by side": Case(
        Shape(2, 16, 2, lead=1, cluster=2, beside=2), (130, 40, 136), extras=ALL
    ),
    "a residual through the rings of two by two blocks": Case(
        Shape(1, 32, 2, cluster=4, beside=2), (136, 72, 136), extras=replace(ALL, in_ring=True)
    ),
    "boxes without a swizzle": Case(Shape(1, 48, 2, box=24, buffers=1), (60, 56, 72)),
    "multicast": MULTICAST,
    "split_k": SPLIT,
    "multicast and parts of k through memory": THROUGH_MEMORY,
    "narrow boxes, hints": Case(
        Shape(1, 96, 2, split_k=2, span=32, keep=("evict_last", "evict_first")), (60, 104, 136), b_along_k=False
    ),
    "multicast in parts of k, narrow boxes": Case(
        Shape(1, 96, 2, cluster=2, span=32), (136, 104, 136), b_along_k=False
    ),
    "a cluster of two by two": Case(Shape(1, 32, 2, cluster=4, beside=2), (136, 72, 136), b_along_k=False),
    "a cluster of two by two, columns of A, parts through memory": Case(
        Shape(1, 16, 2, cluster=4, beside=2, split_k=2, clustered=False, swap_ab=True), (40, 136, 136), a_along_k=False
    ),
    "a cluster of four that copies more columns than it multiplies": Case(Shape(1, 56, 2, cluster=4), (200, 120, 72)),
    "a cluster of four": Case(Shape(1, 32, 2, cluster=4), (200, 40, 72)),
    "multicast in parts of k, side by side": Case(Shape(1, 40, 2, cluster=2, beside=2), (56, 72, 136), a_along_k=False),
    "two stripes through one box": Case(Shape(1, 32, 2, tall=2, buffers=1), (200, 40, 72), a_along_k=False),
    "swapped, rows of any length": Case(Shape(1, 16, 2, split_k=3, swap_ab=True), (9, 37, 200), b_along_k=True),
    "bias and residual": Case(Shape(1, 16, 2, swap_ab=True), (20, 40, 72), extras=Extras(True, "relu", True)),
    "pairs of a bias": Case(Shape(1, 48, 2), (20, 40, 72), extras=Extras(True, "relu", True, paired=True)),
    "a bias in boxes, one out of bounds": Case(Shape(1, 128, 2), (20, 64, 72), extras=ALL),
}


def prepare(case: Case) -> tuple[Launch, Any, Any]:
    """The launch, by as few blocks as there can be, what it writes, and what is right."""
    rng = np.random.default_rng(0)
    m, n, k = case.extents
    a, b, bias, residual = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (n, k), n, (m, n)))
    expected = a.astype(np.float32) @ b.T.astype(np.float32)
    if case.extras is not None:
        expected = np.maximum(expected + bias, 0) + residual
    d = np.full((m, n), np.nan, np.float16)
    matrices = (a if case.a_along_k else a.T.copy(), b if case.b_along_k else b.T.copy(), d)
    workspace = workspace_for(Problem(*case.extents), case.shape, d)
    made = launch(
        "f16", matrices, case.extents, case.shape, a_along_k=case.a_along_k, b_along_k=case.b_along_k,
        blocks=case.shape.blocks, workspace=workspace, extras=case.extras, bias=bias, residual=residual,
    )  # fmt: skip
    return made, d, expected.astype(np.float16)


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    "case",
    [pytest.param(one, id=name, marks=[pytest.mark.bulk] * (at > 3)) for at, (name, one) in enumerate(CASES.items())],
)
def test_a_variant_is_right_and_silent(case: Case) -> None:
    made, d, expected = prepare(case)
    assert codes(made) == []
    assert np.array_equal(d, expected)


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(
    ("case", "lost", "number", "code"),
    [
        pytest.param(MULTICAST, "mbarrier.arrive.shared::cluster", 0, "hang", id="arrival in the other block"),
        pytest.param(MULTICAST, "mbarrier.try_wait", 1, "exited-block", id="arrivals of the other block are awaited"),
        pytest.param(SPLIT, "mbarrier.arrive.shared::cluster", 0, "hang", id="all blocks have read"),
        pytest.param(SPLIT, "mbarrier.arrive.expect_tx", 1, "hang", id="parts are expected"),
        pytest.param(IN_TURNS, "mbarrier.arrive.shared.b64", 1, "hang", id="the other's turn"),
        pytest.param(AHEAD, "barrier.arrive", 0, "hang", id="the second one may start"),
        pytest.param(RESIDUAL, "mbarrier.arrive.expect_tx", 1, "hang", id="bytes of a residual are expected"),
        pytest.param(THROUGH_MEMORY, "red.release", 0, "hang", id="parts are counted"),
        pytest.param(THROUGH_MEMORY, "barrier.sync.aligned 8", 1, "data-race", id="parts are written"),
    ],
)
def test_what_is_lost_is_found(case: Case, lost: str, number: int, code: str) -> None:
    made, _, _ = prepare(case)
    assert code in codes(without(made, lost, number))


@pytest.mark.parametrize(("lost", "found"), [(None, set()), ("griddepcontrol.wait", {"data-race"})])
def test_a_product_of_a_product_waits_for_it(lost: str | None, found: set[str]) -> None:
    a = np.eye(64, dtype=np.float16)
    b, first, second = np.full((64, 64), 2, np.float16), np.empty_like(a), np.empty_like(a)
    made = [product(a, b, first, SMALL), product(a, first, second, SMALL)]
    if lost is not None:
        made[1] = without(made[1], lost)
    grids = [(one.function, one.grid, one.block, one.args, {"shared": one.shared}) for one in made]
    results = ptxlab.launch_chain(*grids, device="cpu", on_error="collect")
    assert {one.code for result in results for one in result.diagnostics} == found
    assert lost is not None or np.array_equal(second, first.T)


@pytest.mark.parametrize("extents", [(1, 64, 64), (64, 8192, 8192), (512, 512, 16384), (4096, 4096, 4096)])
def test_variants_fit_into_shared_memory(extents: tuple[int, int, int]) -> None:
    problem = Problem(*extents)
    found = [*shapes(problem)]
    assert found
    assert all(one.occupancy * (one.shared(problem.layout(one)) + 1024) <= 233_472 for one in found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"stages": 1}, "`stages` is 1: 2 K tiles are held at a time"),
        ({"stages": 4, "lead": 4}, "`stages` is 4: 5 K tiles are held at a time with a `lead` of 4"),
        ({"stages": 2, "fresh": 4}, "`stages` is 2: 4 K tiles are held at a time"),
        ({"groups": 3, "lead": 1}, "`lead` is 1: it is for two warpgroups that multiply the rows of one tile"),
    ],
)
def test_a_variant_that_would_wait_forever_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match="^" + problem + "$"):
        Shape(**fields)


@pytest.mark.parametrize(
    ("m", "shape", "kept"),
    [
        (64, Shape(1, 128), ("evict_last", "evict_first")),
        (64, Shape(1, 64, swap_ab=True), ("evict_first", "evict_last")),
        (65, Shape(1, 128), ("evict_last", "")),
        (65, Shape(1, 64, swap_ab=True), ("", "evict_last")),
        (65, Shape(1, 128, cluster=2), ("evict_last", "evict_first")),
        (2048, Shape(), ("", "")),
    ],
)
def test_what_several_rows_of_tiles_read_is_not_evicted_first(m: int, shape: Shape, kept: tuple[str, str]) -> None:
    assert hints(Problem(m, 8192, 1024), shape) == kept
