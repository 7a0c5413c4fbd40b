"""ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store: which element goes where."""

import random
from typing import Any

import pytest

from ptxlab.isa.pattern import Pattern
from ptxlab.isa.units.fragment import ELEMENT_BITS, extents

from .warps import Registers, Where, execute, vector

RNG = random.Random(11)


def _memory(size: int = 1024) -> bytearray:
    return bytearray(RNG.randbytes(size))


def _row(lane: int) -> Where:
    """Where the row that a lane speaks for begins: rows are apart, and not in order."""
    return Where(32 * (lane * 5 % 32))


def _half(memory: bytearray, row: int, column: int) -> int:
    start = _row(row).offset + 2 * column
    return int.from_bytes(memory[start : start + 2], "little")


def _random_registers(count: int) -> Registers:
    return [[RNG.randrange(1 << 32) for _ in range(32)] for _ in range(count)]


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_four_lanes_a_row_or_a_column(count: int, trans: str) -> None:
    memory = _memory()
    (result,) = execute(f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", {"p": _row}, memory)
    for matrix in range(count):
        for lane in range(32):
            for half in range(2):
                row, column = lane // 4, lane % 4 * 2 + half
                if trans:
                    row, column = column, row
                assert result[matrix][lane] >> 16 * half & 0xFFFF == _half(memory, 8 * matrix + row, column)


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_writes_what_ldmatrix_reads(count: int, trans: str) -> None:
    memory, registers = _memory(), _random_registers(count)
    before = bytes(memory)
    execute(f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", {"p": _row, "a": vector(registers)}, memory)
    (result,) = execute(f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", {"p": _row}, memory)
    assert result == registers
    written = {_row(lane).offset + byte for lane in range(8 * count) for byte in range(16)}
    assert all(memory[at] == before[at] for at in range(1024) if at not in written)


def test_movmatrix_transposes() -> None:
    (register,) = _random_registers(1)
    (result,) = execute("movmatrix.sync.aligned.m8n8.trans.b16", {"a": lambda lane: Pattern.of("b32", register[lane])})
    for row in range(8):
        for column in range(8):
            source = register[row * 4 + column // 2] >> 16 * (column % 2) & 0xFFFF
            assert result[0][column * 4 + row // 2] >> 16 * (row % 2) & 0xFFFF == source


@pytest.mark.parametrize(("format", "bits"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_narrow_elements_become_bytes(format: str, bits: int) -> None:
    memory = _memory()
    opcode = f"ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.{format}"
    (result,) = execute(opcode, {"p": _row}, memory, target="sm_120a")
    for matrix in range(2):
        for lane in range(32):
            start = _row(8 * matrix + lane // 4).offset
            packed = int.from_bytes(memory[start : start + 16], "little")
            wanted = [packed >> bits * (lane % 4 * 4 + index) & ((1 << bits) - 1) for index in range(4)]
            assert list(result[matrix][lane].to_bytes(4, "little")) == wanted


def test_sixteen_rows_of_bytes_are_transposed() -> None:
    memory = _memory()
    (result,) = execute("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8", {"p": _row}, memory, target="sm_120a")
    for matrix in range(2):
        for lane in range(32):
            g, t = divmod(lane, 4)
            # Four rows of column g, the same four of column g + 8: CUTLASS (copy_sm100.hpp) exchanges bytes of such
            # registers to get what copy_traits_sm100.hpp says, and Triton gives them to `mma.sync` as they are.
            for half in range(2):
                wanted = [memory[_row(16 * matrix + 4 * t + row).offset + g + 8 * half] for row in range(4)]
                assert list(result[2 * matrix + half][lane].to_bytes(4, "little")) == wanted


def test_bytes_are_stored_by_columns() -> None:
    memory, registers = _memory(), _random_registers(2)
    operands = {"p": _row, "a": vector(registers)}
    execute("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8", operands, memory, target="sm_120a")
    for matrix in range(2):
        for row in range(16):
            for column in range(8):
                byte = registers[matrix][row % 8 * 4 + column // 2] >> 8 * (column % 2 + row // 8 * 2) & 0xFF
                assert memory[_row(8 * matrix + column).offset + row] == byte


SHAPES = "m16n16k16 m8n32k16 m32n8k16".split()
PRODUCTS = [
    *[(shape, "f16", "f32") for shape in SHAPES],
    *[(shape, "bf16", "f32") for shape in SHAPES],
    *[(shape, "s8", "s32") for shape in SHAPES],
    ("m16n16k16", "f16", "f16"),
    ("m16n16k8", "tf32", "f32"),
    ("m8n8k4", "f64", "f64"),
    ("m8n8k32", "u4", "s32"),
]
ONES = {"f16": 0x3C00, "bf16": 0x3F80, "tf32": 0x3F800000, "f32": 0x3F800000, "f64": 0x3FF0 << 48}


def _pattern(type: str, value: int) -> int:
    """0 or 1."""
    return ONES.get(type, 1) if value else 0


def _number(type: str, pattern: int) -> int:
    """The small natural number that a pattern is."""
    if type not in ONES:
        return pattern
    mantissa, bias = {"f16": (10, 15), "f32": (23, 127), "f64": (52, 1023)}[type]
    exponent = (pattern >> mantissa) - bias
    return 0 if not pattern else ((1 << mantissa) + pattern % (1 << mantissa)) >> (mantissa - exponent)


def _written(type: str, rows: list[list[int]], by_rows: bool, stride: int) -> bytearray:
    """A matrix in memory, `stride` elements from one row or column to the next."""
    bits, lines = ELEMENT_BITS[type], rows if by_rows else [list(column) for column in zip(*rows, strict=True)]
    number = 0
    for line, values in enumerate(lines):
        for index, value in enumerate(values):
            number |= _pattern(type, value) << (line * stride + index) * bits
    return bytearray(number.to_bytes(len(lines) * stride * bits // 8 + 64, "little"))


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("layouts", [("row", "col"), ("row", "row"), ("col", "row"), ("col", "col")], ids=".".join)
@pytest.mark.parametrize(("shape", "type", "wide"), PRODUCTS)
def test_wmma_loads_multiplies_and_stores(shape: str, type: str, wide: str, layouts: tuple[str, str]) -> None:
    if type == "u4" and layouts != ("row", "col"):
        return
    m, n, k = extents(shape)
    rng = random.Random(f"{shape}{type}{layouts}")
    a, b, c = (
        [[rng.randrange(2) for _ in range(width)] for _ in range(height)] for height, width in ((m, k), (k, n), (m, n))
    )
    first, second = layouts
    stride = 64
    given: dict[str, Any] = {"p": lambda lane: Where(0, None), "stride": Pattern.of("u32", stride)}

    def load(matrix: str, layout: str, kind: str, values: list[list[int]]) -> tuple[str, Registers]:
        memory = _written(kind, values, layout == "row", stride)
        (found,) = execute(f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.{kind}", given, memory)
        if kind != "f64":
            return vector(found)
        pairs = zip(found[::2], found[1::2], strict=True)
        return vector([[low | high << 32 for low, high in zip(*pair, strict=True)] for pair in pairs], "b64")

    operands = {"a": load("a", first, type, a), "b": load("b", second, type, b), "c": load("c", "col", wide, c)}
    types = f"{wide}.{wide}" if type == "f16" else f"{wide}.{type}.{type}.{wide}"
    (d,) = execute(f"wmma.mma.sync.aligned.{first}.{second}.{shape}.{types}", operands)
    if wide == "f64":
        pairs = zip(d[::2], d[1::2], strict=True)
        d = [[low | high << 32 for low, high in zip(*pair, strict=True)] for pair in pairs]
    memory = bytearray(m * n * 8)
    result = vector(d, "b64" if wide == "f64" else "b32")
    default = {"p": lambda lane: Where(0, None), "a": result, "stride": None}
    execute(f"wmma.store.d.sync.aligned.row.{shape}.{wide}", default, memory)
    size = ELEMENT_BITS[wide] // 8
    for row in range(m):
        for column in range(n):
            at = (row * n + column) * size
            wanted = c[row][column] + sum(a[row][index] * b[index][column] for index in range(k))
            assert _number(wide, int.from_bytes(memory[at : at + size], "little")) == wanted
