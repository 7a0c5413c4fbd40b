"""`ptxlab explain 0x4000404000010040`: descriptors and tensor maps in words, and what is wrong with them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import ptxlab
from ptxlab.cli.group import ptxlab as command
from ptxlab.isa.units.descriptor import TENSOR_MODES, Descriptor, chunk_offset, tensor_chunk_offset
from ptxlab.isa.units.instruction_descriptor import KINDS, InstructionDescriptor
from ptxlab.isa.units.tensor_map import SWIZZLES
from tests.golden import compare


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(command, ["explain", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def texts(said: Any) -> dict[str, str]:
    return {field.name: field.says for field in said.fields}


def test_a_matrix_descriptor() -> None:
    result = run("0x4000404000010040")
    assert result.exit_code == 0
    assert (
        result.stdout
        == """\
matrix descriptor of tcgen05 (sm_100a): 0x4000404000010040
read for sm_100a, because bit 46 is set: descriptors of tcgen05 have it, those of wgmma do not

 bits  field          value  what it says
 0-13  start address   0x40  0x400 in shared memory
16-29  LBO              0x1  16 bytes: MN-major, from 128 bytes along m or n to the next; K-major,
                             only where K is 96
32-45  SBO             0x40  1024 bytes: K-major, from 8 rows to the next 8; MN-major, from 8 of k
                             to the next 8
46-48  constant         0x1  1 in all descriptors of tcgen05
49-51  base offset      0x0  the pattern of the swizzle starts at a multiple of 1024 bytes
   52  LBO mode         0x0  LBO is an offset
53-60  constant         0x0  0 in all descriptors of tcgen05
61-63  swizzle          0x2  128B: pieces of 16 bytes in rows of 128

no constraint is violated
"""
    )


def test_the_same_number_for_another_target() -> None:
    result = run("0x4000404000010040", "--target", "sm_90a")
    assert result.exit_code == 1
    assert "violated: bit 46 must be 0" in result.stdout
    assert "assumed" not in result.stdout


# A change of a right descriptor, and what is then violated.
WGMMA = Descriptor(0x400, 16, 1024, "128B").encode()
TCGEN05 = Descriptor(0x400, 16, 1024, "128B").encode_for_tcgen05()


@pytest.mark.parametrize(
    ("bits", "target", "wanted"),
    [
        (WGMMA, None, []),
        (TCGEN05, None, []),
        (WGMMA + 2, None, []),  # 32 bytes further along a row, as for the next k
        (WGMMA, "sm_100a", ["bits 46 to 48 must be 1"]),
        (TCGEN05, "sm_90a", ["bit 46 must be 0"]),
        (TCGEN05 | 1 << 47, None, ["bit 47 must be 0: no field is there"]),
        (WGMMA | 3 << 14 | 1 << 60, None, ["bits 14-15 and 60 must be 0"]),
        (TCGEN05 | 1 << 55, None, ["bit 55 must be 0"]),
        (TCGEN05 | 1 << 52, None, ["only of sm_103a"]),
        (TCGEN05 | 1 << 52, "sm_103a", []),
        (TCGEN05 | 1 << 61, None, ["the swizzle mode 3 is reserved"]),
        (WGMMA + 8, None, ["the start address 0x480 is 128 bytes into the pattern", ]),
        (WGMMA + 8 | 1 << 49, None, []),
        (WGMMA | 1 << 49, None, ["the start address 0x400 is 896 bytes into the pattern"]),
        (Descriptor(0x480, 16, 512, "64B").encode() | 5 << 49, None, []),
        (Descriptor(0x400, 128, 256).encode() | 2 << 49, None, ["the base offset is 2 without a swizzle"]),
        (Descriptor(0x3A000, 128, 256).encode(), None, ["outside of shared memory: a block has at most 232448 bytes"]),
        (Descriptor(0x410, 128, 256).encode(), None, []),
    ],
)  # fmt: skip
def test_violated_constraints_of_matrix_descriptors(bits: int, target: str | None, wanted: list[str]) -> None:
    found = ptxlab.explain(bits, "descriptor", target=target).violations
    assert len(found) == len(wanted)
    assert all(text in violation for text, violation in zip(wanted, found, strict=True))


@pytest.mark.parametrize("mode", [mode for mode in TENSOR_MODES if mode != "128B/32B"])
@pytest.mark.parametrize("is_tensor", [False, True])
def test_what_lbo_and_sbo_are_said_to_lead_to_is_what_the_emulator_does(mode: str, is_tensor: bool) -> None:
    said = Descriptor(0, 4096, 8192, mode)
    bits = said.encode_for_tcgen05() if is_tensor else said.encode()
    where = tensor_chunk_offset if is_tensor else chunk_offset
    found = texts(ptxlab.explain(bits, "descriptor", target="sm_100a" if is_tensor else "sm_90a"))
    use = "only where K is 96" if is_tensor else "not used"
    chunks = {"none": 1, "32B": 2, "64B": 4, "128B": 8}[mode]
    if mode == "none":  # a chunk further is along k if the matrix is K-major, along m or n if not
        assert where(bits, 0, 1, 0) == where(bits, 8, 0, 1) == 4096
        assert where(bits, 8, 0, 0) == where(bits, 0, 1, 1) == 8192
        assert found["LBO"] == "4096 bytes from a core matrix to the next along k"
        assert found["SBO"] == "8192 bytes from a core matrix to the next along m or n"
        return
    assert where(bits, 8, 0, 0) == where(bits, 8, 0, 1) == 8192
    assert where(bits, 0, chunks, 1) == 4096
    assert found["LBO"] == f"4096 bytes: MN-major, from {16 * chunks} bytes along m or n to the next; K-major, {use}"
    assert found["SBO"] == "8192 bytes: K-major, from 8 rows to the next 8; MN-major, from 8 of k to the next 8"


def test_an_instruction_descriptor() -> None:
    bits = InstructionDescriptor("f16", 128, 64, "bf16", "bf16", transpose_b=True, negate_a=True).encode()
    said = ptxlab.explain(bits)
    assert said.form == "instruction"
    assert said.assumed == (
        "read as an instruction descriptor, because it has 32 bits; kind::f16 is assumed; "
        "kind::f8f6f4 would be legal, too"
    )
    found = texts(said)
    assert (found["M"], found["N"]) == ("128 rows of A and D", "64 columns of B and D")
    assert (found["type of A"], found["type of D"], found["negate A"]) == ("bf16", "f32", "yes")
    assert (found["transpose A"], found["transpose B"]) == ("A is K-major", "B is MN-major")
    assert not said.violations


def test_scale_factors_of_an_instruction_descriptor() -> None:
    bits = InstructionDescriptor("mxf4nvf4", 128, 64, "e2m1", "e2m1", scale="ue4m3", a_id=2).encode()
    found = texts(ptxlab.explain(bits, kind="mxf4nvf4"))
    assert found["scale factor type"] == "ue4m3"
    assert found["scale factor id of A"] == "byte 2 of a word of scale factors is the first"
    assert found["K"] == "64"


F16 = InstructionDescriptor("f16", 128, 64, "f16", "f16").encode()
MXF4 = InstructionDescriptor("mxf4", 128, 64, "e2m1", "e2m1").encode()


@pytest.mark.parametrize(
    ("bits", "how", "wanted"),
    [
        (F16, {"kind": "f16"}, []),
        (F16, {"kind": "tf32"}, ["this kind does not have the type of A or B"]),
        (F16 & ~(63 << 17), {"kind": "f16"}, ["columns come in eights"]),
        (F16 | 1 << 17, {"kind": "f16", "cta_group": 2}, ["two blocks multiply"]),
        (F16, {"kind": "f16", "ws": True}, []),
        (F16 | 16 << 24, {"kind": "f16", "cta_group": 1}, ["a block alone multiplies"]),
        (F16 | 1 << 6 | 1 << 29, {"kind": "f16"}, ["bits 6 and 29 must be 0"]),
        (F16 | 1 << 3, {"kind": "f16"}, ["saturation, is only of kind::i8"]),
        (F16 | 4 | 3, {"kind": "f16"}, ["the sparsity selector"]),
        (F16 | 2 << 7 | 1 << 23, {"kind": "f16"}, ["the type of A or B", "bit 23 must be 0"]),
        (MXF4, {"kind": "mxf4"}, []),
        (MXF4 & ~(1 << 23), {"kind": "mxf4"}, ["are ue8m0: bit 23 must be 1"]),
        (MXF4 | 1 << 29, {"kind": "mxf4"}, ["ids of kind::mxf4 are 0 or 2"]),
        (MXF4 | 1 << 31 | 1 << 29, {"kind": "mxf4"}, []),
        (MXF4 | 1 << 31 | 4, {"kind": "mxf4"}, ["a K of 96 goes with a dense A"]),
        (MXF4 | 1 << 15, {"kind": "mxf4"}, ["are not transposed"]),
        (MXF4 | 1 << 12, {"kind": "mxf4"}, ["bit 12 must be 0"]),
    ],
)
def test_violated_constraints_of_instruction_descriptors(bits: int, how: dict[str, Any], wanted: list[str]) -> None:
    found = ptxlab.explain(bits, "instruction", **how).violations
    assert len(found) == len(wanted), found
    assert all(text in violation for text, violation in zip(wanted, found, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_what_can_be_encoded_is_not_violated(kind: str) -> None:
    types = {"f16": "f16", "tf32": "tf32", "i8": "s8", "f8f6f4": "e4m3", "mxf8f6f4": "e3m2"}
    type = types.get(kind, "e2m1")
    bits = InstructionDescriptor(kind, 128, 64, type, type, "s32" if kind == "i8" else "f32").encode()
    said = ptxlab.explain(bits, kind=kind)
    assert not said.violations
    assert f"128x64x{InstructionDescriptor.decode(bits, kind).depth}" in said.title


def encoded(**how: Any) -> bytes:
    return ptxlab.tensor_map(np.zeros((1000, 256), np.float16), **{"box": (64, 64), **how}).encode(1 << 20)


def test_a_tensor_map() -> None:
    said = ptxlab.explain(encoded(swizzle="128B", l2_promotion="256B", element_strides=(2, 1)))
    found = texts(said)
    assert said.title == "tensor map for tiles"
    assert found["tensorDataType"] == "f16"
    assert (found["swizzle"], found["l2Promotion"], found["interleave"]) == ("128B", "256B", "none")
    assert (found["globalDim[0]"], found["globalDim[1]"]) == ("256 elements", "1000 elements")
    assert found["globalStrides[0]"] == "512 bytes from one to the next of dimension 1"
    assert (found["boxDim[0]"], found["elementStrides[1]"]) == ("64 elements of a box", "one of 2 elements is copied")
    assert said.notes == ("a copy moves 4096 bytes: what an mbarrier has to expect",)
    assert not said.violations


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_swizzles_of_tensor_maps(swizzle: str | None) -> None:
    said = ptxlab.explain(encoded(swizzle=swizzle, box=(8, 16)))
    assert texts(said)["swizzle"] == (swizzle or "none")
    assert not said.violations


def test_a_tensor_map_for_im2col() -> None:
    images = np.zeros((8, 14, 12, 64), np.float16)
    map = ptxlab.im2col_map(images, 64, 128, lower=(-1, -2), upper=(-3, 4), swizzle="128B")
    said = ptxlab.explain(map.encode(1 << 20))
    found = texts(said)
    assert (found["pixelsPerColumn"], found["channelsPerPixel"]) == ("128 pixels", "64 channels of a pixel")
    corners = [found[f"pixelBox{name}Corner[{number}]"] for name in ("Lower", "Upper") for number in (0, 1)]
    assert corners == ["-2 along w", "-1 along h", "4 along w", "-3 along h"]


def test_each_violated_constraint_of_a_tensor_map() -> None:
    wrong = bytearray(encoded(swizzle="128B"))
    wrong[0] = 8  # the address
    wrong[55] = 70  # a row of the box
    wrong[10] |= 1 << 3  # atomicity, with 0 for its upper bits
    wrong[10] |= 1 << 4 | 1 << 5
    found = ptxlab.explain(bytes(wrong)).violations
    assert [violation.split()[0] for violation in found] == ["`swizzle_atomicity`", "`globalAddress`", "a"]
    assert "a row of its box has 142 bytes; it must be a multiple of 16" in found[2]
    assert ptxlab.explain(bytes(128)).violations == ("all bytes are 0: this is not a tensor map",)
    wrong = bytearray(encoded())
    wrong[30] = wrong[53] = 0xFF
    assert ptxlab.explain(bytes(wrong)).violations == ("bits 240-247 and 431 must be 0: no field is there",)
    wrong = bytearray(encoded())
    wrong[11] = 0x80
    assert ptxlab.explain(bytes(wrong)).violations == ("bit 95 must be 0: no field is there",)


def test_tensor_maps_on_the_command_line(tmp_path: Path) -> None:
    map = encoded(swizzle="64B", box=(8, 32))
    words = " ".join(f"0x{int.from_bytes(map[at : at + 4], 'little'):08x}" for at in range(0, 128, 4))
    long_words = ", ".join(f"{int.from_bytes(map[at : at + 8], 'little'):016x}" for at in range(0, 128, 8))
    files = {
        "map.bin": map,
        "map.txt": map.hex().encode(),
        "words.txt": words.encode(),
        "long.txt": long_words.encode(),
    }
    shown = {run(map.hex()).stdout, run(f"0x{map.hex()}").stdout}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        shown.add(run(str(tmp_path / name)).stdout)
    assert len(shown) == 1
    assert "64B" in shown.pop()
    (tmp_path / "short").write_bytes(map[:100] + b"\xff")
    assert "has 101 bytes: a tensor map has 128" in run(str(tmp_path / "short")).stderr
    (tmp_path / "words").write_text("0x12 0x34")
    assert "is not a tensor map" in run(str(tmp_path / "words")).stderr


def test_json() -> None:
    result = run("0x4000004000010040", "--target", "sm_100a", "--format", "json")
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert said["form"] == "descriptor"
    assert said["fields"][0] == {
        "name": "start address", "bits": [0, 13], "value": 64, "says": "0x400 in shared memory"
    }  # fmt: skip
    assert len(said["violations"]) == 1


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("0xZZ", "`0xZZ` is not a number"),
        ("0x", "`0x` is not a number"),
        ("0x12345678901234567", "has 17 hexadecimal digits"),
        ("0x12 --as tensor-map", "a tensor map 256"),
        ("12 --as tensor-map", "does not fit: a tensor map has 256 hexadecimal digits"),
        ("0x4000404000010040 --as instruction", "does not fit: an instruction descriptor has 32 bits"),
        ("99999999999999999999999", "does not fit: a matrix descriptor has 64 bits"),
        ("nothing --as descriptor", "`nothing` is not a number"),
        ("0x10 --kind f17", "kind 'f17': expected one of f16"),
        ("0x10 --ws --cta-group 2", "`.ws` only with 1"),
    ],
)
def test_what_is_not_a_number_is_reported(words: str, wanted: str) -> None:
    result = run(*words.split())
    assert result.exit_code == 2
    assert wanted in result.stderr


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="form 'map': expected one of instruction, descriptor, tensor-map"):
        ptxlab.explain(0, "map")
    with pytest.raises(ValueError, match="a tensor map has 128 bytes, not 4"):
        ptxlab.explain(b"1234")
    with pytest.raises(ValueError, match="a tensor map is 128 bytes, not a number"):
        ptxlab.explain(0, "tensor-map")
    with pytest.raises(ValueError, match="that has 64 bits"):
        ptxlab.explain(1 << 64)
    with pytest.raises(ValueError, match="target 'sm_80'"):
        ptxlab.explain(1 << 40, target="sm_80")
    assert ptxlab.explain(TCGEN05.to_bytes(8, "little"), "descriptor") == ptxlab.explain(TCGEN05)


def test_each_bit_of_a_number_is_explained_as_before() -> None:
    """Of descriptors that are used, and of each that differs from one of them in one bit."""
    matrix = Descriptor(0x400, 2048, 1024, "128B")
    scaled = InstructionDescriptor("mxf4nvf4", 128, 64, "e2m1", "e2m1", scale="ue4m3", a_id=2)
    forms: list[tuple[int, int, str, dict[str, Any]]] = [
        (matrix.encode(), 64, "descriptor", {"target": "sm_90a"}),
        (replace(matrix, swizzle="none").encode(), 64, "descriptor", {"target": "sm_90a"}),
        (matrix.encode_for_tcgen05(), 64, "descriptor", {"target": "sm_100a"}),
        (replace(matrix, swizzle="none").encode_for_tcgen05(), 64, "descriptor", {"target": "sm_103a"}),
        (F16, 32, "instruction", {"kind": "f16", "cta_group": 2}),
        (F16 | 4, 32, "instruction", {"kind": "f8f6f4"}),
        (scaled.encode(), 32, "instruction", {"kind": "mxf4nvf4"}),
        (MXF4, 32, "instruction", {"kind": "mxf4"}),
    ]
    found: dict[str, object] = {
        f"{bits:#x} {how}": [str(ptxlab.explain(bits ^ flipped, form, **how)) for flipped in (0, *_each_bit(size))]
        for bits, size, form, how in forms
    }
    images = np.zeros((8, 14, 12, 64), np.float16)
    maps = {
        "tiles": encoded(swizzle="128B", l2_promotion="256B"),
        "im2col": ptxlab.im2col_map(images, 64, 128, lower=(-1, -2), upper=(-3, 4), swizzle="128B").encode(1 << 20),
    }
    for name, map in maps.items():
        whole = int.from_bytes(map, "little")
        changed = [(whole ^ 0x5A << at).to_bytes(128, "little") for at in range(0, 1024 - 8, 8)]
        found[name] = [str(ptxlab.explain(one)) for one in (map, *changed)]
    compare(Path(__file__).with_name("numbers.txt"), found)


def _each_bit(size: int) -> Iterator[int]:
    return (1 << at for at in range(size))
