"""Products of groups: right and silent on the emulator, not silent where a line is left out; the function to call."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import grouped_matmul
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.wgmma_grouped_gemm import product
from ptxlab.kernels.wgmma_grouped_gemm.choice import Grouped, choose
from ptxlab.kernels.wgmma_grouped_gemm.groups import space_for
from ptxlab.kernels.wgmma_grouped_gemm.kernel import plan_of
from ptxlab.kernels.wgmma_grouped_gemm.measured import parts_of, rows_of
from ptxlab.measure import Launch
from tests.kernels.left_out import codes, without

TINY = Shape(groups=1, columns=16, stages=2)
MULTICAST = Shape(groups=1, columns=128, stages=2, cluster=2, buffers=1)
IN_TURNS = Shape(columns=16, stages=2, buffers=1, pingpong=True)
SWAPPED = Shape(groups=1, columns=16, stages=2, swap_ab=True)
ROWS = 0, 30, 70, 0, 1, 0
MANY = 30, 70, *[0] * 32, 1  # groups: more than a warp has lanes


def whole(*shape: int) -> Any:
    return np.random.default_rng(shape[0]).integers(-4, 5, shape).astype(np.float16)


def ends(*rows: int) -> Any:
    return np.cumsum(rows).astype(np.int32)


def multiplied(a: Any, b: Any, offsets: Any) -> Any:
    """What is right, NaN in rows of no group; `b` is groups by k by n."""
    d = np.full((len(a), b.shape[2]), np.nan, np.float16)
    for group, rows in parts_of(offsets):
        d[rows] = a[rows].astype(np.float32) @ b[group].astype(np.float32)
    return d


def prepare(
    rows: Sequence[int] = ROWS, shape: Shape = TINY, n: int = 24, across: bool = False
) -> tuple[Launch, Any, Any]:
    """The launch by as few blocks as there can be, what it writes, and what is right; three rows are of no group."""
    a, b, offsets = whole(sum(rows) + 3, 136), whole(len(rows), n, 136), ends(*rows)
    d = np.full((len(a), n), np.nan, np.float16)
    given = b.swapaxes(1, 2).copy().swapaxes(1, 2) if across else b
    made = product(a, given, offsets, d, shape, blocks=shape.cluster)
    return made, d, multiplied(a, b.swapaxes(1, 2), offsets)


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    ("shape", "n", "across"),
    [
        pytest.param(MULTICAST, 72, True, id="blocks of a cluster share a matrix that is across k"),
        pytest.param(IN_TURNS, 24, False, id="warpgroups in turns"),
        pytest.param(SWAPPED, 72, True, id="stored transposed, of matrices that are across k"),
        pytest.param(SWAPPED, 24, False, id="stored transposed"),
    ],
)
def test_variants_leave_other_rows_alone(shape: Shape, n: int, across: bool) -> None:
    made, d, expected = prepare(ROWS, shape, n, across)
    assert codes(made, seed=1) == []
    assert np.array_equal(d, expected, equal_nan=True)


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    ("lost", "number", "code"),
    [
        ("bar.sync 0", 1, "data-race"),  # tiles of groups are counted
        ("cp.async.bulk.wait_group.read", 0, "data-race"),
    ],
)
def test_what_is_lost_is_found(lost: str, number: int, code: str) -> None:
    made, _, _ = prepare(MANY, n=16)
    assert code in codes(without(made, lost, number))


def test_offsets_that_decrease_or_are_too_large_write_nothing_out_of_bounds() -> None:
    a, b, whole_of_d = whole(16, 8), whole(4, 16, 8), np.zeros((80, 16), np.float16)
    offsets = np.array([40, 20, -9, 99], np.int32)
    assert codes(product(a, b, offsets, whole_of_d[:16], TINY)) == []
    assert np.array_equal(whole_of_d[:16], a @ b[0].T)
    assert not whole_of_d[16:].any()


def test_the_function_takes_matrices_by_rows_and_by_columns_and_writes_into_a_part_of_an_array() -> None:
    a, b, offsets, whole_of_d = whole(20, 24), whole(3, 24, 16), ends(5, 0, 13), np.full((20, 40), np.nan, np.float16)
    expected, d = multiplied(a, b, offsets), whole_of_d[:, 8:24]
    assert grouped_matmul(a, b, offsets, out=d) is d
    assert np.array_equal(d, expected, equal_nan=True)
    assert np.isnan(whole_of_d[:, :8]).all()
    by_columns = b.swapaxes(1, 2).copy().swapaxes(1, 2)
    assert np.array_equal(grouped_matmul(a, by_columns, offsets)[:18], expected[:18])


@pytest.mark.parametrize("shape", [TINY, SWAPPED], ids=["rows first", "stored transposed"])
def test_it_multiplies_8_bit_floats_with_scales_of_rows_and_columns(shape: Shape) -> None:
    a, b, offsets = whole(70, 32), whole(3, 16, 32), ends(5, 0, 63)
    scales = by_row, by_column = [2.0 ** whole(*extents).astype(np.float32) for extents in ((70,), (3, 16))]
    bytes = [one.astype(ml_dtypes.float8_e4m3fn) for one in (a, b)]
    d = np.zeros((70, 16), ml_dtypes.bfloat16)
    assert codes(product(*bytes, offsets, d, shape, scales=tuple(scales))) == []
    expected = multiplied(a, b.swapaxes(1, 2), offsets)[:68] * by_row[:68, None]
    expected[:5] *= by_column[0]
    expected[5:] *= by_column[2]
    assert np.array_equal(d[:68], expected.astype(ml_dtypes.bfloat16))
    called = grouped_matmul(bytes[0], bytes[1].swapaxes(1, 2), offsets, scale_a=by_row, scale_b=by_column)
    assert np.array_equal(called[:68], d[:68])


def test_groups_along_k_have_results_of_their_own_and_are_added_to_what_is_there() -> None:
    a, b, offsets = whole(110, 72), whole(110, 24), ends(*ROWS)
    a[-4:] = np.inf  # of no group
    expected = np.zeros((len(ROWS), 72, 24), np.float32)
    for group, rows in parts_of(offsets):
        expected[group] = a[rows].T.astype(np.float32) @ b[rows]
    assert np.array_equal(grouped_matmul(np.ascontiguousarray(a.T), b, offsets), expected.astype(np.float16))
    d = whole(*expected.shape).astype(np.float32)
    expected += d
    assert grouped_matmul(a.T, b, offsets, out=d, accumulate=True) is d
    assert np.array_equal(d, expected)


def test_rows_of_no_group_are_cleared_if_that_is_wanted() -> None:
    a, b, offsets = whole(20, 24), whole(3, 24, 16), ends(5, 0, 13)
    d = np.full((20, 16), np.nan, np.float16)
    grouped_matmul(a, b, offsets, out=d, clear_rest=True)
    assert np.array_equal(d[:18], multiplied(a, b, offsets)[:18])
    assert not d[18:].any()


def test_nothing_is_computed_of_nothing() -> None:
    assert grouped_matmul(whole(0, 8), whole(2, 8, 8), ends(0, 0)).shape == (0, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((whole(3, 8), whole(8), ends(3)), "`b` is 8 long, and must have 3 dimensions"),
        ((whole(8, 3), whole(3, 9), ends(3)), "rows of `out` must be multiples of 16 bytes, at such addresses"),
        ((whole(8, 3), whole(4, 8), ends(3)), "`b` is 4 by 8, and must be 3 by 8"),
        ((whole(8, 3), whole(3, 8), ends(4)), "`offsets` decrease, or are not between 0 and 3, the columns of `a`"),
        ((whole(3, 8), whole(1, 16, 8), ends(3)), "`a` has 8 columns and matrices of `b` have 16 rows: a product"),
        ((whole(3, 8), whole(1, 8, 8), ends(3, 0)), "`offsets` has 2 elements and `b` has 1 matrices: each has a"),
        (
            (whole(3, 8), whole(1, 8, 8), np.array([3])),
            "`offsets` has elements of type int64: this kernel is for int32",
        ),
        ((whole(3, 9), whole(1, 9, 8), ends(3)), "rows of `a` must be multiples of 16 bytes, at such addresses"),
        ((whole(3, 8), whole(1, 8, 9), ends(3)), "rows of `out` must be multiples of 16 bytes, at such addresses"),
        ((whole(3, 8), whole(2, 8, 8), ends(3, -1)), "`offsets` decrease, or are not between 0 and 3, the rows of `a`"),
        ((whole(3, 8), whole(1100, 8, 8), ends(*[0] * 1100)), "1100 groups: there are 1024 at most"),
    ],
)
def test_what_it_refuses(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        grouped_matmul(*arguments)
    assert str(raised.value).startswith(message)


def test_the_result_has_its_extents() -> None:
    with pytest.raises(ValueError, match="`out` is 3 by 9, and must be 3 by 8"):
        grouped_matmul(whole(3, 8), whole(1, 16, 8)[:, ::2], ends(3)[::1], out=whole(3, 9))


def test_it_does_not_write_over_what_it_reads() -> None:
    a = whole(8, 8)
    with pytest.raises(ValueError, match="`out` overlaps `a`: what is written would be read"):
        grouped_matmul(a, whole(1, 8, 8), ends(8), out=a)


def test_skewed_groups_have_all_rows() -> None:
    assert sum(rows_of(64, 1000, 1.0)) == 1000
    assert rows_of(4, 8, 0) == [2, 2, 2, 2]
    assert 0 in rows_of(64, 1000, 0.5)


@pytest.mark.parametrize(
    ("groups", "rows", "along_k"),
    [(1, 1000, False), (33, 200, True), (256, 10, False), (257, 1000, False), (1024, 10, True)],
)
def test_variants_fit_into_shared_memory(groups: int, rows: int, along_k: bool) -> None:
    for n in (64, 4096):
        layout = Layout(right_along_k=along_k)
        for shape in Grouped(groups * rows, n, 640, True, along_k, groups=groups).shapes():
            tables, barriers = 8 * (space_for(groups) + 1), 16 * shape.stages
            before = -(-(tables + barriers) // 1024) * 1024  # stages start at a multiple of 1024
            dynamic = plan_of(Formats.of("bf16"), shape, layout).shared
            assert shape.occupancy * (before + dynamic + 1024) <= 233_472


def test_a_few_rows_more_take_the_same_variant() -> None:
    assert len({choose(8, m, 4096, 1024) for m in range(1921, 2049)}) == 1
    assert choose(2, 200, 1000, 8000).rows < choose(8, 8192, 4096, 8192).rows
