"""Instruction descriptors of `tcgen05.mma`: bits that CUTLASS makes, words, and what is refused."""

import random
from pathlib import Path

import pytest

from ptxlab.isa.units.descriptor import Descriptor
from ptxlab.isa.units.instruction_descriptor import (
    BAD_COLUMNS,
    BAD_TRANSPOSE,
    KINDS,
    PAIR,
    PLAIN,
    STATIONARY,
    InstructionDescriptor,
    reserved_bits,
    violation_of_transposes,
    violations_in,
)
from tests.golden import compare


def test_bits_as_cutlass_makes_them() -> None:
    # As `mma_sm100_desc.hpp` has it: c_format 4, a_format 7, b_format 10, a_major 15, b_major 16, n_dim 17, m_dim 24.
    said = InstructionDescriptor("f16", 128, 256, "bf16", "bf16", transpose_b=True)
    assert said.encode() == 1 << 4 | 1 << 7 | 1 << 10 | 1 << 16 | 32 << 17 | 8 << 24
    said = InstructionDescriptor("i8", 64, 32, "s8", "u8", "s32", saturate=True)
    assert said.encode() == 1 << 3 | 2 << 4 | 1 << 7 | 4 << 17 | 4 << 24
    # With scale factors: b_sf_id 4, scale_format 23, a_sf_id 29.
    said = InstructionDescriptor("mxf4nvf4", 128, 64, "e2m1", "e2m1", scale="ue4m3", a_id=0, b_id=2)
    assert said.encode() == 2 << 4 | 1 << 7 | 1 << 10 | 8 << 17 | 8 << 24


@pytest.mark.parametrize(
    "said",
    [
        InstructionDescriptor("f16", 64, 8, "f16", "f16", "f16", negate_b=True),
        InstructionDescriptor("tf32", 128, 240, "tf32", "tf32", transpose_a=True),
        InstructionDescriptor("f8f6f4", 128, 16, "e2m3", "e3m2"),
        InstructionDescriptor("mxf8f6f4", 128, 16, "e2m1", "e5m2", a_id=3, b_id=1),
        InstructionDescriptor("mxf4", 128, 16, "e2m1", "e2m1", a_id=2),
    ],
    ids=str,
)
def test_what_is_encoded_is_decoded(said: InstructionDescriptor) -> None:
    assert InstructionDescriptor.decode(said.encode(), said.kind) == said


def test_words() -> None:
    said = InstructionDescriptor("mxf8f6f4", 128, 16, "e2m1", "e5m2", negate_a=True, a_id=3, b_id=1)
    assert str(said) == "128x16x32: f32 += -e2m1 * e5m2, A K-major, B K-major, factors ue8m0 from bytes 3 and 1"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (InstructionDescriptor("f16", 256, 64, "f16", "f16"), "a block alone multiplies 64 or 128 rows"),
        (InstructionDescriptor("f16", 128, 12, "f16", "f16"), "columns come in eights"),
        (InstructionDescriptor("i8", 128, 40, "s8", "s8", "s32"), "columns come in eights"),
        (InstructionDescriptor("f16", 128, 64, "bf16", "f16", "f16"), "this kind does not have the type of D"),
        (InstructionDescriptor("f16", 128, 64, "e4m3", "f16"), "kind `f16` has no type `e4m3`, only f16, bf16"),
        (InstructionDescriptor("f8f6f4", 128, 64, "e2m1", "e4m3", transpose_a=True), "of four or six bits are not"),
        (InstructionDescriptor("mxf4", 64, 64, "e2m1", "e2m1"), "a block alone multiplies 64 or 128 rows"),
        (InstructionDescriptor("f32", 64, 64, "f32", "f32"), "there is no kind `f32`"),
    ],
)
def test_what_the_hardware_does_not_multiply(said: InstructionDescriptor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        said.encode()


def test_descriptors_of_shared_memory() -> None:
    said = Descriptor(1024, 16, 1024, "128B", 2)
    bits = said.encode_for_tcgen05()
    assert bits == 64 | 1 << 16 | 64 << 32 | 1 << 46 | 2 << 49 | 2 << 61
    assert Descriptor.decode_for_tcgen05(bits) == said
    assert Descriptor.decode_for_tcgen05(3 << 61).swizzle == "?"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transposed", range(4))
def test_operands_of_four_and_six_bits_are_not_transposed(kind: str, transposed: int) -> None:
    """One of A (bit 15) and B (bit 16) may be small where only the other one is transposed."""
    for first in range(6):
        for second in range(6):
            bits = first << 7 | second << 10 | transposed << 15 | 32 // 8 << 17
            small = (transposed & 1 and first > 1) or (transposed & 2 and second > 1)
            is_wrong = transposed and (kind.startswith("mxf4") or (small and kind not in ("f16", "tf32")))
            found = violation_of_transposes(bits, KINDS.index(kind), 0, 0)  # type: ignore[arg-type]
            assert found == (BAD_TRANSPOSE if is_wrong else 0), (first, second)


@pytest.mark.parametrize(
    ("kind", "form", "columns", "is_wrong"),
    [
        ("f8f6f4", 0, 16, False), ("f8f6f4", 0, 24, True), ("f8f6f4", PAIR, 48, True), ("f8f6f4", PAIR, 64, False),
        ("i8", 0, 24, True), ("f16", 0, 24, False), ("tf32", PAIR, 48, False),
    ],
)  # fmt: skip
def test_b_of_bytes_is_transposed_in_steps_of_columns(kind: str, form: int, columns: int, is_wrong: bool) -> None:
    for transposed in (1, 2):
        bits = transposed << 15 | columns // 8 << 17
        found = violation_of_transposes(bits, KINDS.index(kind), form, 0)  # type: ignore[arg-type]
        assert found == (BAD_COLUMNS if is_wrong and transposed == 2 else 0)


def test_all_that_is_wrong_with_random_bits() -> None:
    """A field of a right descriptor is any number, for each kind, of one block or two, dense or sparse."""
    choose, found = random.Random(3), {}
    fields = ((2, 1), (4, 2), (7, 3), (10, 3), (13, 1), (14, 1), (15, 1), (16, 1), (17, 6), (24, 5), (0, 2), (31, 1))
    for number, kind in enumerate(KINDS):
        said = []
        for _ in range(150):
            bits = 1 << 4 | 2 << 17 | (8 << 24 if number < 4 else 1 << 27)
            for at, width in choose.sample(fields, choose.choice((1, 2, 3))):
                bits = bits & ~((1 << width) - 1 << at) | choose.randrange(1 << width) << at
            for form in (PLAIN, STATIONARY, PAIR):
                said += [(bits, form, sparse, violations_in(bits, number, form, sparse)) for sparse in (0, 1)]
        found[kind] = said, reserved_bits(kind)
    compare(Path(__file__).with_name("instruction_descriptors.txt"), found)
