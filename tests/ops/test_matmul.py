"""`matmul` on arrays of the host, which run on the emulator, and what it refuses."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import gated_matmul, gemv, grouped_matmul, matmul
from ptxlab.kernels.gemv.kernel import Form


def whole(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(np.float16)


def wide(*shape: int) -> Any:
    return whole(*shape).astype(np.float32)


def bytes_of(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).integers(-128, 128, shape).astype(np.int8)


def test_the_product_of_int8_is_int32() -> None:
    a, b = bytes_of(3, 40), bytes_of(40, 5)
    assert np.array_equal(matmul(a, b), a.astype(np.int32) @ b.astype(np.int32))


def test_float32_is_rounded_to_tf32() -> None:
    a, b, bias = np.full((3, 9), 1 + 3 * 2**-12, np.float32), wide(9, 5), wide(5)
    found = matmul(a, b, bias=bias, allow_tf32=True)
    assert np.array_equal(found, np.full((3, 9), 1 + 2**-10, np.float32) @ b + bias)


def test_it_multiplies_rows_that_are_not_multiples_of_16_bytes() -> None:
    a, b, bias = whole(3, 9), whole(9, 5), whole(5)
    assert np.array_equal(matmul(a, b, bias=bias, activation="relu"), np.maximum(a @ b + bias, 0))


def test_it_takes_transposed_matrices_and_writes_into_a_part_of_another() -> None:
    a, b, whole_of_d = whole(16, 24).T, whole(8, 16).T, np.zeros((24, 11), np.float16)
    d = whole_of_d[:, 2:10]
    assert matmul(a, b, out=d) is d
    assert np.array_equal(d, a @ b)
    assert not whole_of_d[:, [0, 1, 10]].any()


@pytest.mark.parametrize("type", [np.float16, np.float32])
def test_a_product_is_added_to_what_is_there(type: Any) -> None:
    a, b, d = whole(24, 70).T, whole(24, 40), whole(70, 40).astype(type)
    expected = (a.astype(np.float32) @ b + d).astype(type)
    assert matmul(a, b, out=d, accumulate=True) is d
    assert np.array_equal(d, expected)


def test_one_row_is_multiplied_by_blocks_that_have_a_row_of_the_other_matrix_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forms: list[Form] = []
    by_rows = gemv.by_rows

    def counted(form: Form, *given: Any) -> Any:
        forms.append(form)
        return by_rows(form, *given)

    monkeypatch.setattr(gemv, "by_rows", counted)
    row, weights, other, bias, residual = whole(1, 40), whole(16, 40), whole(40, 16).T, whole(16), whole(1, 16)
    given = row.astype(np.float64) @ weights.T
    assert np.array_equal(matmul(row, weights.T), given)
    found = matmul(row, weights.T, bias=bias, activation="relu", residual=residual)
    assert np.array_equal(found, np.maximum(given + bias, 0) + residual)
    assert np.array_equal(matmul(row, weights.T, residual=residual), given + residual)
    assert [(form.bias, form.activation, form.residual) for form in forms] == [
        (False, None, False), (True, "relu", True), (False, None, True),
    ]  # fmt: skip
    gated = gated_matmul(row, weights.T, np.ascontiguousarray(other).T, "relu")
    assert forms[3:] == [Form("f16", activation="relu", gated=True, overlaps=True)]
    assert np.array_equal(gated, (np.maximum(given, 0) * (row.astype(np.float64) @ other.T)).astype(np.float16))
    wide_rows = np.zeros((16, 48), np.float16)
    wide_rows[:, :40] = weights
    assert np.array_equal(matmul(row, wide_rows[:, :40].T), given)
    assert len(forms) == 4  # rows with gaps are for tensor copies


@pytest.mark.parametrize(("rows", "n", "k"), [(8, 24, 72), (5, 16, 512), (2, 8, 8)])
def test_a_gated_product_of_few_rows_is_one_of_lanes(rows: int, n: int, k: int) -> None:
    x, gate, up = whole(rows, k), whole(n, k), whole(n, k)[::-1].copy()
    wanted = np.maximum(x.astype(np.float64) @ gate.T, 0) * (x.astype(np.float64) @ up.T)
    assert np.array_equal(gated_matmul(x, gate.T / 16, up.T, "relu"), (wanted / 16).astype(np.float16))


@pytest.mark.parametrize("ends", [[0, 1, 1, 3], [2], [0] * 33 + [1] * 7 + [3]])
def test_few_rows_in_groups_are_multiplied_one_by_one(ends: list[int]) -> None:
    a, b, found = whole(4, 40), whole(len(ends), 8, 40), np.full((4, 8), 7, np.float16)
    grouped_matmul(a, b.transpose(0, 2, 1), np.array(ends, np.int32), out=found)
    groups = np.searchsorted(ends, np.arange(ends[-1]), side="right")
    assert np.array_equal(found[: ends[-1]], np.einsum("mk,mnk->mn", a[: ends[-1]], b[groups]))
    assert (found[ends[-1] :] == 7).all()


def test_more_dimensions_are_rows() -> None:
    a, b = whole(2, 3, 8), whole(8, 8)
    assert np.array_equal(matmul(a, b), a @ b)


def test_nothing_times_something_is_nothing() -> None:
    assert matmul(whole(0, 8), whole(8, 4)).shape == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((whole(3, 4), whole(5, 6)), {}, "`a` has 4 columns and `b` has 5 rows: a product needs the same number"),
        ((whole(3, 0), whole(0, 4)), {}, "`a` has no columns: there is nothing to multiply"),
        ((whole(3), whole(3, 4)), {}, "`a` is 3 long: a matrix has two dimensions"),
        (
            (whole(3, 4), whole(4, 2)),
            {"activation": "tanh"},
            "activation='tanh': expected a function of a register, or one of 'relu', ",
        ),
        ((whole(3, 4), whole(4, 2)), {"bias": whole(3)}, "`bias` is 3 long, and must be 2 long"),
        ((whole(3, 4), whole(4, 2)), {"residual": whole(2, 3)}, "`residual` is 2 by 3, and must be 3 by 2"),
        ((whole(3, 4), whole(4, 2)), {"out": whole(2, 3).T}, "rows of `out` have gaps: pass a contiguous array"),
        (
            (whole(3, 4), whole(4, 2)),
            {"out": whole(3, 2)[::-1]},
            "elements of `out` run backwards: pass a contiguous array",
        ),
        (([1], [2]), {}, "`a` is a list, not an array of torch, CuPy, JAX or NumPy"),
        ((np.zeros((2, 2)), np.zeros((2, 2))), {}, "`a` has elements of type float64: this kernel is for float16, bfl"),
        ((wide(2, 2), wide(2, 2)), {}, "float32 is rounded to tf32 before it is multiplied: pass `allow_tf32=True` if"),
        ((bytes_of(2, 2), bytes_of(2, 2)), {"activation": "relu"}, "the product of int8 is int32: there is no bias, "),
        (
            (bytes_of(2, 2), bytes_of(2, 2)),
            {"out": wide(2, 2)},
            "`out` has elements of type float32: this kernel is for",
        ),
        ((whole(8, 8), whole(8, 8)), {"accumulate": True}, "`accumulate` adds to `out`: pass the array to add to"),
        (
            (whole(8, 8), whole(8, 3)),
            {"out": whole(8, 3), "accumulate": True},
            "rows of `out` must be multiples of 16 bytes",
        ),
        ((whole(2, 2), np.zeros((2, 2), ml_dtypes.bfloat16)), {}, "`b` is of type bf16, and `a` of f16"),
    ],
)
def test_what_it_refuses(arguments: Any, named: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        matmul(*arguments, **named)
    assert str(raised.value).startswith(message)


def test_it_does_not_write_over_what_it_reads() -> None:
    a = whole(8, 8)
    with pytest.raises(ValueError, match="`out` overlaps `a`: what is written would be read"):
        matmul(a, whole(8, 8), out=a)
