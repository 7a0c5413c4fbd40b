"""wgmma on the reference machine against what an H200 computed, and matrix descriptors against what it read."""

import json
import re
from base64 import b85decode
from pathlib import Path
from typing import Any
from zlib import crc32, decompress

import pytest

from ptxlab.isa.pattern import Pattern
from ptxlab.isa.units.descriptor import K_MAJOR, MN_MAJOR, Descriptor
from ptxlab.isa.units.fragment import ELEMENT_BITS, extents
from ptxlab.isa.units.layouts import accumulator, multiplicand
from ptxlab.isa.units.swizzle import SWIZZLES

from .warps import Registers, execute, vector

MEASURED = json.loads((Path(__file__).parent / "h200_warpgroups.json").read_text())
EIGHT = 8  # rows and columns that were kept of each product
A = Descriptor(start=0, leading=128, stride=256)
B = Descriptor(start=1024, leading=128, stride=512)

Matrix = list[list[int]]


def _cut(data: bytes, rows: int, columns: int, bits: int) -> tuple[Matrix, bytes]:
    """A matrix from the beginning of some bytes, and the rest of them."""
    size = rows * columns * bits // 8
    number, mask = int.from_bytes(data[:size], "little"), (1 << bits) - 1
    elements = [number >> at * bits & mask for at in range(rows * columns)]
    return [elements[at : at + columns] for at in range(0, len(elements), columns)], data[size:]


def _data(text: str) -> bytes:
    return decompress(b85decode(text))


def _store(memory: bytearray, descriptor: Descriptor, matrix: Matrix, bits: int) -> None:
    for row, elements in enumerate(matrix):
        for column, element in enumerate(elements):
            at = descriptor.offset(row, column, bits)
            if bits == 1:
                memory[at] |= element << column % 8
            else:
                memory[at : at + bits // 8] = element.to_bytes(bits // 8, "little")


def _registers(count: int, positions: Any, matrix: Matrix) -> Registers:
    found = [[0] * 32 for _ in range(count)]
    for row, elements in enumerate(matrix):
        for column, element in enumerate(elements):
            register, lane, bit = positions(row, column)
            found[register][lane] |= element << bit
    return found


def _identity(case: dict[str, Any]) -> str:
    more = [f"{name}={case[name]}" for name in ("registers", "selector", "scale_a", "scale_b") if name in case]
    return " ".join([case["opcode"].replace("wgmma.mma_async", "").replace(".sync.aligned", ""), *more])


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("case", MEASURED["products"], ids=_identity)
def test_a_product_is_what_the_hardware_computes(case: dict[str, Any]) -> None:
    parts = case["opcode"].split(".")
    shape = next(part for part in parts if part.startswith("m64"))
    dtype, atype, _ = (part for part in parts if part in ELEMENT_BITS)
    bits, (_, n, k), selector = ELEMENT_BITS[atype], extents(shape), case.get("selector")
    stored = k if selector is None else k // 2
    a, data = _cut(_data(case["matrices"]), EIGHT, stored, bits)
    b, data = _cut(data, EIGHT, k, bits)
    c, data = _cut(data, EIGHT, EIGHT, ELEMENT_BITS[dtype])
    layout = accumulator(16, n, dtype)
    memory = bytearray(8192)
    _store(memory, A, a, bits)
    _store(memory, B, b, bits)
    operands: dict[str, Any] = {
        "d": vector(_registers(layout.registers, layout.position, c)),
        "b_desc": Pattern.of("u64", B.encode()),
        "scale_d": Pattern.of("pred", case.get("scale_d", 1)),
        **{name: case.get(name, 1) for name in ("scale_a", "scale_b")},
    }
    if "registers" in case:
        held = multiplicand(16, stored, atype)
        patterns = [[element >> 13 for element in row] for row in a] if atype == "tf32" else a
        operands["a"] = vector(_registers(held.registers, held.position, patterns))
    else:
        operands["a_desc"] = Pattern.of("u64", A.encode())
    if selector is not None:
        words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, 128, 4)]
        operands |= {"sp_sel": selector, "sp_meta": lambda lane: Pattern.of("b32", words[lane])}
    (result,) = execute(case["opcode"], operands, memory, "sm_90a")
    wanted, _ = _cut(_data(case["result"]), EIGHT, EIGHT, ELEMENT_BITS[dtype])
    mask = (1 << ELEMENT_BITS[dtype]) - 1
    for row in range(EIGHT):
        for column in range(EIGHT):
            register, lane, bit = layout.position(row, column)
            assert result[register][lane] >> bit & mask == wanted[row][column], f"element ({row}, {column})"


@pytest.mark.parametrize("case", MEASURED["descriptors"], ids=lambda case: f"{case['swizzle']}-{case['major']}")
def test_elements_are_where_the_hardware_reads_them(case: dict[str, Any]) -> None:
    names = ("start", "leading", "stride", "swizzle", "base_offset")
    descriptor = Descriptor(**{name: case[name] for name in names})
    offsets = [descriptor.offset(row, k, 16, case["major"]) for row in range(case["rows"]) for k in range(16)]
    assert crc32(b"".join(at.to_bytes(4, "little") for at in offsets)) == case["checksum"]


@pytest.mark.parametrize("name", SWIZZLES)
def test_a_swizzled_tile_is_what_tensor_copies_write(name: str) -> None:
    """Rows as long as the swizzle, one below the other: the tile that a copy of a tensor brings."""
    width, swizzle = int(name[:-1]), SWIZZLES[name]
    descriptor = Descriptor(start=2048, stride=8 * width, swizzle=name)
    for row in range(64):
        for column in range(16):
            assert descriptor.offset(row, column, 16) == 2048 + swizzle.apply(row * width + column * 2)


def test_a_transposed_tile_continues_after_its_swizzle() -> None:
    descriptor = Descriptor(start=0, leading=4096, stride=1024, swizzle="128B")
    assert descriptor.offset(row=64, column=0, bits=16, major=MN_MAJOR) == 4096
    assert descriptor.offset(row=0, column=8, bits=16, major=MN_MAJOR) == 1024
    assert descriptor.offset(row=8, column=1, bits=16, major=MN_MAJOR) == 128  # chunk 1 of row 1 is where chunk 0 was


def test_a_descriptor_is_its_bits() -> None:
    descriptor = Descriptor(start=0x12340, leading=512, stride=1024, swizzle="64B", base_offset=5)
    assert descriptor.encode() == 0x1234 | 32 << 16 | 64 << 32 | 5 << 49 | 2 << 62
    assert Descriptor.decode(descriptor.encode()) == descriptor
    assert str(descriptor) == "start 0x12340, leading 512, stride 1024 bytes, 64B swizzle, base offset 5"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"start": 8}, "`start` is 8: it must be a multiple of 16 below 262144"),
        ({"start": 0, "stride": 1 << 18}, "`stride` is 262144: it must be a multiple of 16 below 262144"),
        ({"start": 0, "swizzle": "96B"}, "there is no swizzle `96B`, only none, 128B, 64B, 32B"),
        ({"start": 0, "base_offset": 8}, "`base_offset` is 8: it must be 0 to 7"),
    ],
)
def test_what_has_no_room_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Descriptor(**wrong).encode()


def test_majors_are_distinguished() -> None:
    assert (K_MAJOR, MN_MAJOR) == (0, 1)  # as `trans_a` and `trans_b` have them
