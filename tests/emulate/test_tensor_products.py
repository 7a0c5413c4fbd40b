"""`tcgen05.mma` against NumPy: every kind, shapes, layouts in shared memory, A in tensor memory, several steps."""

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.instruction_descriptor import STATIONARY
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor as Descriptor
from tests.emulate.tensor_kernels import Case, multiply

F16 = Descriptor("f16", 128, 64, "f16", "f16")
EXACT = [
    Case(F16),
    Case(F16, "128B", "64B", steps=2),
    Case(Descriptor("f16", 128, 8, "bf16", "f16"), "32B", "128B"),
    Case(Descriptor("f16", 64, 256, "f16", "bf16"), "64B", "none"),
    Case(Descriptor("f16", 64, 24, "f16", "f16"), "64B", "none", lane=16),
    Case(Descriptor("f16", 128, 64, "f16", "f16", "f16"), "128B", "32B", steps=2),
    Case(Descriptor("f16", 128, 64, "f16", "f16", transpose_a=True, transpose_b=True), "128B", "128B"),
    Case(Descriptor("f16", 128, 64, "f16", "f16", transpose_a=True), "none", "none", steps=2),
    Case(Descriptor("f16", 64, 64, "f16", "f16", transpose_b=True), "64B", "32B"),
    Case(Descriptor("f16", 128, 16, "f16", "f16", negate_a=True), steps=2),
    Case(F16, "none", "128B", steps=2, in_cells=True),
    Case(Descriptor("f16", 64, 32, "bf16", "bf16"), in_cells=True, lane=16),
    Case(Descriptor("tf32", 128, 64, "tf32", "tf32"), "128B", "none", steps=2),
    Case(Descriptor("tf32", 128, 32, "tf32", "tf32", transpose_a=True, transpose_b=True), "128B/32B", "128B/32B"),
    Case(Descriptor("tf32", 128, 8, "tf32", "tf32"), in_cells=True),
    Case(Descriptor("f8f6f4", 128, 64, "e4m3", "e5m2"), "128B", "none", steps=2),
    Case(Descriptor("f8f6f4", 128, 16, "e2m1", "e2m3"), "none", "64B"),
    Case(Descriptor("f8f6f4", 64, 32, "e3m2", "e4m3", "f16"), "32B", "none", steps=2),
    Case(Descriptor("f8f6f4", 128, 32, "e5m2", "e4m3", transpose_b=True), "128B", "32B"),
    Case(Descriptor("f8f6f4", 128, 32, "e4m3", "e2m1", negate_b=True), in_cells=True),
    Case(Descriptor("i8", 128, 64, "s8", "u8", "s32"), "128B", "64B", steps=2),
    Case(Descriptor("i8", 64, 24, "u8", "s8", "s32", saturate=True), in_cells=True),
    Case(Descriptor("i8", 128, 48, "s8", "s8", "s32", transpose_a=True, transpose_b=True), "none", "none"),
    Case(Descriptor("f16", 128, 64, "f16", "bf16", form=STATIONARY), "128B", "none", steps=2),
    Case(Descriptor("f16", 64, 128, "f16", "f16", form=STATIONARY), "none", "64B", steps=2),
    Case(Descriptor("f8f6f4", 32, 64, "e4m3", "e2m1", form=STATIONARY), "none", "128B"),
    Case(Descriptor("i8", 32, 128, "s8", "s8", "s32", form=STATIONARY), "64B", "none"),
]


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("case", EXACT, ids=str)
def test_integers_are_multiplied_exactly(case: Case) -> None:
    result, expected, _, found = multiply(case)
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(result, expected)


RANDOM = [
    Case(Descriptor("f16", 128, 32, "f16", "f16"), "64B", steps=3, exact=False),
    Case(Descriptor("tf32", 64, 32, "tf32", "tf32"), steps=2, exact=False),
    Case(Descriptor("f8f6f4", 128, 32, "e4m3", "e4m3"), steps=2, exact=False),
]


@pytest.mark.parametrize("case", RANDOM, ids=str)
def test_sums_are_near(case: Case) -> None:
    result, expected, magnitude, found = multiply(case)
    assert not found, ptxlab.report.render(found)
    assert (np.abs(result - expected) <= case.steps * 2.0**-22 * magnitude).all()


def test_what_d_held_is_scaled() -> None:
    result, *_ = multiply(Case(F16, steps=1))
    plain, *_ = multiply(Case(F16, steps=2))
    scaled, *_ = multiply(Case(F16, steps=2, more="3"))
    first, _, _, found = multiply(Case(F16, steps=1, more="3"))
    assert found == []
    assert np.array_equal(first, result)
    # The second step is the same in both; the first counts an eighth.
    other = scaled.astype(np.float64) - plain.astype(np.float64)
    halves = np.random.default_rng(0).integers(-8, 9, (128, 32)).astype(np.float64)
    columns = np.random.default_rng(0)
    columns.integers(-8, 9, (128, 32))
    right = columns.integers(-8, 9, (64, 32)).astype(np.float64)
    step = halves[:, :16] @ right[:, :16].T
    assert np.array_equal(other, step / 8 - step)


def test_lanes_that_are_not_written() -> None:
    result, expected, _, found = multiply(Case(F16, lanes="{1, 0, 0x80000000, 0}"))
    assert found == []
    kept = np.ones(128, bool)
    kept[[0, 95]] = False
    assert np.array_equal(result[kept], expected[kept])
    assert not result[~kept].any()
