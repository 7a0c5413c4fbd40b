"""Weights of 4 and 8 bits: how they are quantized, packed and decoded; what `quantized_matvec` takes and refuses."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import Quantized, quantize, quantized_matvec
from ptxlab.kernels.quantized_gemv.formats import FORMATS
from ptxlab.kernels.quantized_gemv.quantizing import E2M1_VALUES

BF16 = ml_dtypes.bfloat16


def normal(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_packed_is_decoded(format: str) -> None:
    """As the instructions do it: shifts, an exclusive or, and the mask."""
    codes, rng = FORMATS[format].codes, np.random.default_rng(0)
    for _ in range(20):
        unit, given = 0, rng.integers(0, 1 << codes.bits, 2 * len(codes.pairs))
        for number, code in enumerate(given):
            unit ^= codes.tables()[number][code]
        words = [unit >> 32 * number & 0xFFFFFFFF for number in range(codes.words)]
        for number, terms in enumerate(codes.pairs):
            pair = 0
            for word, shift in terms:
                pair ^= words[word] << shift if shift > 0 else words[word] >> -shift
            for half in range(2):
                bits = [pair >> 16 * half + position & 1 for position in codes.positions]
                assert sum(bit << at for at, bit in enumerate(bits)) == given[2 * number + half]


@pytest.mark.parametrize(("format", "most"), [("nvfp4", 0.11), ("mxfp4", 0.13), ("int4", 0.12), ("fp8", 0.03)])
def test_quantized_weights_are_near(format: str, most: float) -> None:
    matrix = normal(5, 512)
    matrix[2, 256:512] = 0
    found = quantize(matrix, format).values()
    assert np.linalg.norm(found - matrix) < most * np.linalg.norm(matrix)
    assert not found[2, 256:512].any()


def test_codes_are_the_nearest() -> None:
    groups = np.zeros((256, 32))
    groups[:, 0], groups[:, 1] = 6, np.linspace(-6, 6, 256)  # a scale of 1 for all
    found = quantize(groups.reshape(32, 256), "mxfp4").values().reshape(256, 32)[:, 1]
    values = np.concatenate([E2M1_VALUES, np.negative(E2M1_VALUES)])
    assert np.allclose(abs(found - groups[:, 1]), abs(groups[:, 1:2] - values).min(1))


@pytest.mark.parametrize("format", ["nvfp4", "mxfp4"])
def test_every_code_is_exact_with_every_kind_of_scale(format: str) -> None:
    """A vector that is 1 at one place has the weights there."""
    codes = np.repeat(np.arange(16, dtype=np.uint8)[:, None] * 17, 128, 1)
    patterns = [0, 1, 7, 8, 56, 63, 119, 126] if format == "nvfp4" else [60, 61, 100, 126, 127, 128, 150, 190]
    scales = np.resize(np.array(patterns, np.uint8), (16, 256 // FORMATS[format].group))
    x = np.zeros((4, 256), BF16)
    places = [0, 37, 150, 255]
    x[range(4), places] = 1
    weights = Quantized(format, codes, scales)
    assert np.array_equal(quantized_matvec(weights.pack(), x).astype(np.float64), weights.values()[:, places].T)


def test_it_takes_vectors_in_any_dimensions_and_writes_into_out() -> None:
    weights, x = quantize(normal(9, 256), "int4"), normal(2, 3, 256).astype(BF16)
    out = np.zeros((2, 3, 9), BF16)
    assert quantized_matvec(weights.pack(), x, out=out) is out
    wanted = x.astype(np.float64) @ weights.values().T
    assert np.linalg.norm(out.astype(np.float64) - wanted) < 4e-3 * np.linalg.norm(wanted)
    assert quantized_matvec(weights.pack(), x[:0]).shape == (0, 3, 9)


def test_a_factor_scales_all_weights() -> None:
    weights, x = quantize(normal(8, 128), "fp8"), np.ones(128, BF16)
    twice = Quantized("fp8", weights.codes, weights.scales, factor=2.0)
    once = quantized_matvec(weights.pack(), x)
    assert np.array_equal(quantized_matvec(twice.pack(), x), once * BF16(2))


INT4 = quantize(normal(4, 256), "int4")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Quantized("int3", INT4.codes, INT4.scales), "format='int3': expected one of 'nvfp4', 'mxfp4', 'int4', 'fp8'"),
        (Quantized("int4", INT4.codes[:, :100], INT4.scales), "4 by 200 weights: int4 needs rows of a multiple of 128"),
        (Quantized("int4", INT4.codes[:0], INT4.scales), "0 by 256 weights: int4 needs rows of a multiple of 128"),
        (Quantized("int4", INT4.codes, INT4.scales), "`zeros` of 4 by 256 weights are missing, and must be (4, 2)"),
        (Quantized("int4", INT4.codes, INT4.scales[:2], INT4.zeros), "`scales` of 4 by 256 weights are (2, 2)"),
        (Quantized("int4", INT4.codes, INT4.scales, INT4.zeros + 16), "some of `zeros` are above 15"),
        (Quantized("int4", INT4.codes.astype(np.int32), INT4.scales, INT4.zeros), "`codes` are of type s32"),
        (Quantized("mxfp4", INT4.codes, np.full((4, 8), 250, np.uint8)), "`scales` are beyond 2^-67 or 2^63"),
        (Quantized("nvfp4", INT4.codes, np.full((4, 16), 200, np.uint8)), "some of `scales` are negative or NaN"),
        (Quantized("mxfp4", INT4.codes, np.ones((4, 8))), "`scales` are of type f64, and must be u8"),
    ],
)
def test_weights_that_are_refused(wrong: Quantized, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        wrong.pack()
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("x", "out", "message"),
    [
        (np.zeros(128, BF16), None, "`x` is 128 long, and rows of the matrix have 256 weights"),
        (np.zeros(256, np.float16), None, "`x` has elements of type float16: this kernel is for bfloat16"),
        (
            np.zeros((256, 2), BF16).T,
            None,
            "`x` has gaps between its elements, or is transposed: pass a contiguous array",
        ),
        (np.zeros(257, BF16)[1:], None, "`x` does not begin at a multiple of 16 bytes"),
        (np.zeros(256, BF16), np.zeros(5, BF16), "`out` is 5 long, and must be 4 long"),
        ([1.0], None, "`x` is a list, not an array of torch, CuPy, JAX or NumPy"),
    ],
)
def test_vectors_that_are_refused(x: Any, out: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        quantized_matvec(INT4.pack(), x, out=out)
    assert str(raised.value).startswith(message)


def test_it_does_not_write_over_what_it_reads() -> None:
    memory = np.zeros(256, BF16)
    with pytest.raises(ValueError, match="`out` overlaps `x`: what is written would be read"):
        quantized_matvec(INT4.pack(), memory, out=memory[:4])


def test_floats_are_not_packed() -> None:
    with pytest.raises(TypeError, match="`matrix` is a Quantized: pass what"):
        quantized_matvec(INT4, np.zeros(256, BF16))  # type: ignore[arg-type]
