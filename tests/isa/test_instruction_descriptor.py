"""Instruction descriptors of `tcgen05.mma`: bits that CUTLASS makes, words, and what is refused."""

import pytest

from ptxlab.isa.units.descriptor import Descriptor
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor


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
