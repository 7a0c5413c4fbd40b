"""mma and mma.sp against what an H200 computed, and against products written out."""

import json
import random
from base64 import b85decode
from pathlib import Path
from typing import Any
from zlib import decompress

import pytest

from ptxlab.isa.pattern import Pattern
from ptxlab.isa.units.fragment import extents
from ptxlab.isa.units.layouts import fragments, metadata

from .warps import Registers, execute, vector

MEASURED = json.loads((Path(__file__).parent / "h200_products.json").read_text())["products"]


def _words(text: str) -> Registers:
    data = decompress(b85decode(text))
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
    return [words[at : at + 32] for at in range(0, len(words), 32)]


def _identity(case: dict[str, Any]) -> str:
    return str(case["opcode"]).replace(".sync.aligned", "")


def _operands(case: dict[str, Any]) -> dict[str, Any]:
    """The registers of A, B and C (and metadata) as operands."""
    words = _words(case["registers"])
    sparse = case["selector"] is not None
    parts = case["opcode"].split(".")
    shape = next(part for part in parts if part[0] == "m" and part[1].isdigit())
    types = [part for part in parts if part in "f16 f32 f64 bf16 tf32 s32 u8 s8 u4 s4 b1 e4m3 e5m2".split()]
    dtype, atype, btype, ctype = types
    layouts = fragments(shape, atype, btype, ctype, dtype, sparse=sparse)
    operands: dict[str, Any] = {}
    for name, layout in (("a", layouts.a), ("b", layouts.b), ("c", layouts.c)):
        registers, words = words[: layout.registers], words[layout.registers :]
        if atype == "f64":
            pairs = zip(registers[::2], registers[1::2], strict=True)
            wide = [[low | high << 32 for low, high in zip(*pair, strict=True)] for pair in pairs]
            operands[name] = vector(wide, "b64")
        else:
            operands[name] = vector(registers)
    if sparse:
        (indices,) = words
        operands["e"] = lambda lane: Pattern.of("b32", indices[lane])
        operands["f"] = case["selector"]
    return operands


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("case", MEASURED, ids=_identity)
def test_a_product_is_what_the_hardware_computes(case: dict[str, Any]) -> None:
    (result,) = execute(case["opcode"], _operands(case))
    assert result == _words(case["result"])


def _put(registers: Registers, position: tuple[int, int, int], value: int) -> None:
    register, lane, bit = position
    registers[register][lane] |= value << bit


@pytest.mark.parametrize(
    ("shape", "type"),
    [("m16n8k32", "s8"), ("m16n8k64", "s8"), ("m16n8k64", "s4"), ("m16n8k128", "s4")],
)
def test_a_sparse_product_is_the_dense_one_of_what_is_stored(shape: str, type: str) -> None:
    rng = random.Random(shape + type)
    m, n, k = extents(shape)
    bits = int(type[1:])
    layouts = fragments(shape, type, type, "s32", "s32", sparse=True)
    choices = metadata(shape, type)
    a, b, c, e = ([[0] * 32 for _ in range(count)] for count in (layouts.a.registers, layouts.b.registers, 4, 1))
    dense = [[0] * k for _ in range(m)]
    together = 2 if type == "s4" else 1  # neighbours that share an index
    chunk = 4 * together
    for row in range(m):
        for start in range(0, k, chunk):
            kept = sorted(rng.sample(range(4), 2))
            for number, index in enumerate(kept):
                for inside in range(together):
                    value = rng.randrange(-(1 << bits - 1), 1 << bits - 1)
                    dense[row][start + index * together + inside] = value
                    stored = start // 2 + number * together + inside
                    _put(a, layouts.a.position(row, stored), value % (1 << bits))
                    if inside == 0:
                        _put(e, choices.position(row, stored), index)
    other = [[rng.randrange(-(1 << bits - 1), 1 << bits - 1) for _ in range(k)] for _ in range(n)]
    for column in range(n):
        for row in range(k):
            _put(b, layouts.b.position(column, row), other[column][row] % (1 << bits))
    opcode = f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.s32.{type}.{type}.s32"
    operands = {"a": vector(a), "b": vector(b), "c": vector(c, "s32"), "e": lambda lane: Pattern.of("b32", e[0][lane])}
    (result,) = execute(opcode, operands | {"f": 0})
    for row in range(m):
        for column in range(n):
            register, lane, _ = layouts.d.position(row, column)
            wanted = sum(x * y for x, y in zip(dense[row], other[column], strict=True))
            assert result[register][lane] == wanted % (1 << 32)


def _scaled(kind: str, shape: str, type: str, stype: str, blocks: int, scales: tuple[int, int]) -> set[int]:
    """The elements of a product of ones, all of whose blocks have these scale factors."""
    bits = 8 if kind == "mxf8f6f4" else 4
    layouts = fragments(shape, type, type, "f32", "f32", bits=bits)
    one = {"e4m3": 0x38, "e2m1": 2, "e2m3": 8}[type]
    a, b, c = ([[0] * 32 for _ in range(count)] for count in (layouts.a.registers, layouts.b.registers, 4))
    for matrix, layout in ((a, layouts.a), (b, layouts.b)):
        for _, _, position in layout.elements():
            _put(matrix, position, one)
    vec = f".scale_vec::{blocks}X" if blocks > 1 else ""
    opcode = f"mma.sync.aligned.{shape}.row.col.kind::{kind}.block_scale{vec}.f32.{type}.{type}.f32.{stype}"
    first, second = (Pattern.of("b32", scale * 0x01010101) for scale in scales)
    chosen = vector([[0] * 32, [0] * 32], "u16")
    operands = {"a": vector(a), "b": vector(b), "c": vector(c, "f32")}
    more = {"scale_a": first, "select_a": chosen, "scale_b": second, "select_b": chosen}
    (result,) = execute(opcode, operands | more, target="sm_120a")
    return {word for register in result for word in register}


def test_scale_factors_multiply_their_blocks() -> None:
    assert _scaled("mxf8f6f4", "m16n8k32", "e4m3", "ue8m0", 1, (127, 127)) == {0x42000000}  # 32 ones
    assert _scaled("mxf8f6f4", "m16n8k32", "e2m1", "ue8m0", 1, (128, 129)) == {0x43800000}  # 32 * 2 * 4
    assert _scaled("mxf8f6f4", "m16n8k32", "e2m3", "ue8m0", 1, (126, 127)) == {0x41800000}  # 32 / 2
    assert _scaled("mxf4", "m16n8k64", "e2m1", "ue8m0", 1, (127, 128)) == {0x43000000}  # 64 * 2
    assert _scaled("mxf4nvf4", "m16n8k64", "e2m1", "ue4m3", 4, (0x3C, 0x30)) == {0x42400000}  # 64 * 1.5 / 2
    assert _scaled("mxf4nvf4", "m16n8k64", "e2m1", "ue4m3", 4, (0x7F, 0x38)) == {0x7FFFFFFF}
    assert _scaled("mxf8f6f4", "m16n8k32", "e4m3", "ue8m0", 1, (0xFF, 127)) == {0x7FFFFFFF}
