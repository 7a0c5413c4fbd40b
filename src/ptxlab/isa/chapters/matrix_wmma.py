"""Matrices whose layout in registers is left open: wmma.load, wmma.store, wmma.mma (PTX ISA 9.7.14.4).

A multiplicand of f16 takes eight registers in every shape; other fragments divide the matrix among the lanes of a warp.
Until PTX 6.3 `.aligned` was implied and could not be spelled.
"""

from collections.abc import Iterator

from ..extent import addresses
from ..form import Modifiers, Slots, Specification, form, unknown
from ..held import Held, extent, held_by_mma, holds
from ..machine import AddressValue, Machine, Value, Vector
from ..operation import computes
from ..targets import target_named
from ..types import type_named
from ..units.fragment import extents, registers
from ..units.fragment_memory import StridedMatrix, load, store
from ..units.layouts import FragmentLayouts, opaque_accumulator, opaque_fragments, opaque_multiplicand
from ..units.warp_mma import collect, mma_of
from ..vocabulary import SHARED
from .matrix import ANY_LAYOUT, F64, ROW_COL

LOAD_A = "wmma.load.a.sync.aligned.layout.shape{.space}.type d, [p]{, stride}"
LOAD_B = "wmma.load.b.sync.aligned.layout.shape{.space}.type d, [p]{, stride}"
LOAD_C = "wmma.load.c.sync.aligned.layout.shape{.space}.type d, [p]{, stride}"
STORE = "wmma.store.d.sync.aligned.layout.shape{.space}.type [p], a{, stride}"
HALF = "wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype d, a, b, c"
HALF_SATURATED = "wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype.satfinite d, a, b, c"
TYPED = "wmma.mma.sync.aligned.alayout.blayout.shape.dtype.atype.btype.ctype d, a, b, c"
INTEGER = "wmma.mma.sync.aligned.alayout.blayout.shape.dtype.atype.btype.ctype{.satfinite} d, a, b, c"
DOUBLE = "wmma.mma.sync.aligned.alayout.blayout.shape{.rnd}.dtype.atype.btype.ctype d, a, b, c"
SINGLE_BIT = "wmma.mma.operation.popc.sync.aligned.alayout.blayout.shape.dtype.atype.btype.ctype d, a, b, c"

SHAPES = "m16n16k16 m8n32k16 m32n8k16"
FIRST_SHAPES = ("m16n16k16", ("m8n32k16 m32n8k16", "6.1 sm_70"))
ALIGNED, IMPLIED = "6.3 sm_70", "6.0 sm_70 until 6.3 sm_70"
ACCESS: Slots = {"layout": "row col", "space": ("global", *SHARED)}
FIRST_ACCESS: Slots = ACCESS | {"space": "global shared"}
ROW: Slots = ACCESS | {"layout": "row"}
COL: Slots = ACCESS | {"layout": "col"}


def unaligned(syntax: str) -> str:
    """The syntax before PTX 6.3."""
    return syntax.replace(".aligned", "")


def fragment(matrix: str, shape: str, type: str) -> str:
    """The registers of a lane; ptxas is more particular about their types than it is in `mma`."""
    if matrix in "ab" and type == "f16":
        return "8 f16x2"
    count, held = registers(matrix, shape, type).split()
    return f"{count} {'u32' if type in ('u8', 's8') else 'f64' if type == 'f64' else held}"


def moved(matrix: str, operand: str = "d", more: str = "sink") -> Slots:
    """The operands of a load or store of `matrix`."""
    held: Specification = lambda m: f"{fragment(matrix, m.shape, m.type)} {more} apart"  # noqa: E731
    return {"types": {operand: held, "p": "space full", "stride": "u32"}}


def multiplied(a: str = "", c: str = "special") -> Slots:
    """The operands of a multiplication; without `.atype` the multiplicands are f16."""

    def held(matrix: str, more: str) -> Specification:
        return lambda m: f"{fragment(matrix, m.shape, vars(m).get(f'{matrix}type', 'f16'))} {more} apart"

    return {"types": {"d": held("d", "sink"), "a": held("a", a), "b": held("b", a), "c": held("c", c)}}


def one_type(m: Modifiers) -> str | None:
    """Both multiplicands have one type, unlike in `mma`."""
    return None if m.atype == m.btype else f"the multiplicands `.{m.atype}` and `.{m.btype}` must have one type"


def element_bytes(m: Modifiers) -> int:
    """The bytes of an element, or the one byte that several share."""
    return max(1, type_named(m.type).width // 8)


# Of a matrix only the first element is known to be at its address. The alignment is what an H200 was seen to need, less
# than the manual asks for: in shared memory, where each row or column starts, eight halves or a pair of accumulators.
def multiplicand(m: Modifiers) -> str:
    """How many bytes the address of a multiplicand is of."""
    align = 4 if m.type in ("f16", "bf16") else element_bytes(m)
    return f"{element_bytes(m)}/{multiplicand_line(m) or align}"


def stored(m: Modifiers) -> str:
    """How many bytes the address of a result is of."""
    return f"{element_bytes(m)}/{stored_line(m) or element_bytes(m)}"


def multiplicand_line(m: Modifiers) -> int:
    """How many bytes of a row or column are read at once, where that is more than a register."""
    return 16 if is_shared(m) and m.type in ("f16", "bf16") else 0


def stored_line(m: Modifiers) -> int:
    """How many bytes of a row or column are written at once, where that is more than a register."""
    return 8 if is_shared(m) and m.type == "f32" else 0


def is_shared(m: Modifiers) -> bool:
    return (m.space or "").startswith("shared")


def layouts_of(m: Modifiers) -> FragmentLayouts:
    """Which lane holds which element of the four matrices of a multiplication."""
    return opaque_fragments(m.shape, *types_of(m), m.ctype, m.dtype)


def types_of(m: Modifiers) -> tuple[str, str]:
    """The types of A and B."""
    return m.atype or "f16", m.btype or "f16"


REMARK = ", as an H200 has it; PTX leaves it open"


def moved_matrix(name: str, m: Modifiers) -> Iterator[Held]:
    """The matrix that a load or store holds."""
    layout = opaque_multiplicand(name, m.shape, m.type) if name in "ab" else opaque_accumulator(m.shape, m.type)
    shown = layout.transposed if name == "b" else layout
    yield Held(name, f"{name.upper()}, {extent(shown)} {m.type}{REMARK}", layout, is_transposed=name == "b")


def located(
    k: Machine, m: Modifiers, matrix: str, p: AddressValue, stride: Value | None, line: int = 0
) -> StridedMatrix:
    """The matrix that a load or store is about. B is laid out transposed, so its columns are rows."""
    rows, columns, depth = extents(m.shape)
    by_rows = m.layout == "row"
    if matrix == "c":
        layout = opaque_accumulator(m.shape, m.type)
        leading = columns if by_rows else rows
    else:
        layout = opaque_multiplicand(matrix, m.shape, m.type)
        across = rows if matrix == "a" else columns
        by_rows = by_rows == (matrix == "a")
        leading = depth if by_rows else across
    return StridedMatrix(k, p, layout, by_rows, leading if stride is None else stride, line)


@form(unaligned(LOAD_A), shape=FIRST_SHAPES, type="f16", **FIRST_ACCESS, **moved("a"), since=IMPLIED)
@form(LOAD_A, shape=SHAPES, type=("f16", ("u8 s8", "6.3 sm_72")), **ACCESS, **moved("a"), since=ALIGNED)
@form(LOAD_A, shape=SHAPES, type="bf16", **ACCESS, **moved("a"), since="7.0 sm_80")
@form(LOAD_A, shape="m16n16k8", type="tf32", **ACCESS, **moved("a"), since="7.0 sm_80")
@form(LOAD_A, shape="m8n8k4", type="f64", **ACCESS, **moved("a", more=""), since="7.0 sm_80")
@form(LOAD_A, shape="m8n8k32", type="s4 u4", **ROW, **moved("a", more=""), since="6.3 sm_75")
@form(LOAD_A, shape="m8n8k128", type="b1", **ROW, **moved("a", more=""), since="6.3 sm_75")
@addresses(p=multiplicand)
@holds(lambda m: moved_matrix("a", m))
def wmma_load_a(k: Machine, m: Modifiers, p: AddressValue, stride: Value | None) -> Vector:
    """Read the multiplicand A from memory into registers; `stride` elements are between its rows or columns."""
    return load(located(k, m, "a", p, stride, multiplicand_line(m)), int(fragment("a", m.shape, m.type).split()[0]))


@form(unaligned(LOAD_B), shape=FIRST_SHAPES, type="f16", **FIRST_ACCESS, **moved("b"), since=IMPLIED)
@form(LOAD_B, shape=SHAPES, type=("f16", ("u8 s8", "6.3 sm_72")), **ACCESS, **moved("b"), since=ALIGNED)
@form(LOAD_B, shape=SHAPES, type="bf16", **ACCESS, **moved("b"), since="7.0 sm_80")
@form(LOAD_B, shape="m16n16k8", type="tf32", **ACCESS, **moved("b"), since="7.0 sm_80")
@form(LOAD_B, shape="m8n8k4", type="f64", **ACCESS, **moved("b", more=""), since="7.0 sm_80")
@form(LOAD_B, shape="m8n8k32", type="s4 u4", **COL, **moved("b", more=""), since="6.3 sm_75")
@form(LOAD_B, shape="m8n8k128", type="b1", **COL, **moved("b", more=""), since="6.3 sm_75")
@addresses(p=multiplicand)
@holds(lambda m: moved_matrix("b", m))
def wmma_load_b(k: Machine, m: Modifiers, p: AddressValue, stride: Value | None) -> Vector:
    """Read the multiplicand B from memory into registers; `stride` elements are between its rows or columns."""
    return load(located(k, m, "b", p, stride, multiplicand_line(m)), int(fragment("b", m.shape, m.type).split()[0]))


@form(unaligned(LOAD_C), shape=FIRST_SHAPES, type="f16 f32", **FIRST_ACCESS, **moved("c"), since=IMPLIED)
@form(LOAD_C, shape=SHAPES, type=("f16 f32", ("s32", "6.3 sm_72")), **ACCESS, **moved("c"), since=ALIGNED)
@form(LOAD_C, shape="m16n16k8", type="f32", **ACCESS, **moved("c"), since="7.0 sm_80")
@form(LOAD_C, shape="m8n8k4", type="f64", **ACCESS, **moved("c"), since="7.0 sm_80")
@form(LOAD_C, shape="m8n8k32 m8n8k128", type="s32 f32", **ACCESS, **moved("c"), since="6.3 sm_75")  # f32: ptxas only
@addresses(p=lambda m: f"{element_bytes(m)}")
@holds(lambda m: moved_matrix("c", m))
def wmma_load_c(k: Machine, m: Modifiers, p: AddressValue, stride: Value | None) -> Vector:
    """Read the accumulator C from memory into registers; `stride` elements are between its rows or columns."""
    return load(located(k, m, "c", p, stride), int(fragment("c", m.shape, m.type).split()[0]))


@form(unaligned(STORE), shape=FIRST_SHAPES, type="f16 f32", **FIRST_ACCESS, **moved("d", "a", ""), since=IMPLIED)
@form(STORE, shape=SHAPES, type=("f16 f32", ("s32", "6.3 sm_72")), **ACCESS, **moved("d", "a", ""), since=ALIGNED)
@form(STORE, shape="m16n16k8", type="f32", **ACCESS, **moved("d", "a", ""), since="7.0 sm_80")
@form(STORE, shape="m8n8k4", type="f64", **ACCESS, **moved("d", "a", ""), since="7.0 sm_80")
@form(STORE, shape="m8n8k32 m8n8k128", type="s32 f32", **ACCESS, **moved("d", "a", ""), since="6.3 sm_75")
@addresses(p=stored)
@holds(lambda m: moved_matrix("d", m))
def wmma_store(k: Machine, m: Modifiers, p: AddressValue, a: Vector, stride: Value | None) -> None:
    """Write a matrix from the registers of a warp to memory; `stride` elements are between its rows or columns."""
    store(located(k, m, "c", p, stride, stored_line(m)), a)


FLOATS: Slots = {"dtype": "f16 f32", "ctype": "f16 f32"}
BYTES: Slots = {"dtype": "s32", "atype": "s8 u8", "btype": "s8 u8", "ctype": "s32", "where": one_type}
NIBBLES: Slots = {"dtype": "s32", "atype": "s4 u4", "btype": "s4 u4", "ctype": "s32", "where": one_type}
BFLOAT: Slots = {"dtype": "f32", "atype": "bf16", "btype": "bf16", "ctype": "f32"}
TF32: Slots = {"dtype": "f32", "atype": "tf32", "btype": "tf32", "ctype": "f32"}
BITS: Slots = {"dtype": "s32", "atype": "b1", "btype": "b1", "ctype": "s32"}


@form(unaligned(HALF), shape=FIRST_SHAPES, **ANY_LAYOUT, **FLOATS, **multiplied(), since=IMPLIED)
@form(HALF, shape=SHAPES, **ANY_LAYOUT, **FLOATS, **multiplied(), since=ALIGNED)
@form(INTEGER, shape=SHAPES, **ANY_LAYOUT, **BYTES, **multiplied(), since="6.3 sm_72")
@form(TYPED, shape=SHAPES, **ANY_LAYOUT, **BFLOAT, **multiplied(), since="7.0 sm_80")
@form(TYPED, shape="m16n16k8", **ANY_LAYOUT, **TF32, **multiplied(), since="7.0 sm_80")
@form(DOUBLE, shape="m8n8k4", rnd="rn rz rm rp", **ANY_LAYOUT, **F64, **multiplied(), since="7.0 sm_80")
@form(INTEGER, shape="m8n8k32", **ROW_COL, **NIBBLES, **multiplied(), since="6.3 sm_75")
@form(
    SINGLE_BIT,
    shape="m8n8k128",
    operation=("xor", ("and", "7.1 sm_80")),
    name="wmma.mma",
    **ROW_COL,
    **BITS,
    **multiplied(),
    since="6.3 sm_75",
)
@computes("opaque-mma")
@holds(lambda m: held_by_mma(layouts_of(m), *types_of(m), m.ctype, m.dtype, remark=REMARK))
def wmma_mma(k: Machine, m: Modifiers, a: Vector, b: Vector, c: Vector) -> Vector:
    """Multiply matrix `a` by `b` and add `c`, all as wmma.load put them into the registers of the warp."""
    longest = 4 if m.atype == "tf32" else None  # as ptxas has it: two instructions of shape m16n8k4
    return collect(k, mma_of(m, layouts_of(m), a, b, c, longest_step=longest), a, b, c)


@form(DOUBLE, shape="m16n16k8 m16n16k16", rnd="rn rz rm rp", **ANY_LAYOUT, **F64, **multiplied(), since="7.0 sm_80")
@unknown("it is not in the manual, and no load or store of it shows which element is where")
@computes("opaque-mma")
def wmma_mma_unloadable() -> None:
    """Multiply larger matrices of f64, for which there is no wmma.load: not in the manual."""


@form(unaligned(HALF_SATURATED), shape=FIRST_SHAPES, **ANY_LAYOUT, **FLOATS, **multiplied(), since=IMPLIED)
@form(HALF_SATURATED, shape=SHAPES, **ANY_LAYOUT, **FLOATS, **multiplied(), since="6.3 sm_70 until 6.5 sm_70")
@computes("opaque-mma")
@holds(lambda m: held_by_mma(layouts_of(m), *types_of(m), m.ctype, m.dtype, remark=REMARK))
def wmma_mma_saturated(k: Machine, m: Modifiers, a: Vector, b: Vector, c: Vector) -> Vector:
    """Multiply matrix `a` by `b` and add `c`; what would be infinite is the largest finite number, a NaN is zero.

    PTX 6.5 removed it; what it does is said where CUDA C++ has it, as `satf` of `mma_sync`. From sm_80 on ptxas leaves
    it out of the machine code, and on an H200 infinities and NaNs stay.
    """
    found = collect(k, mma_of(m, layouts_of(m), a, b, c), a, b, c)
    if target_named(k.target).number >= 80:
        return found
    return tuple(make_finite(k, value, m.dtype) for value in found)


def make_finite(k: Machine, value: Value, type: str) -> Value:
    """A register without infinities and NaNs: of one f32, or of two f16."""
    bits = k.reinterpret(value, "u32")
    if type == "f32":
        return k.reinterpret(_finite(k, bits, 0x7F800000), value.type.name)
    low, high = (_finite(k, bits >> shift & 0xFFFF, 0x7C00) for shift in (0, 16))
    return k.reinterpret(high << 16 | low, value.type.name)


def _finite(k: Machine, bits: Value, infinity: int) -> Value:
    sign = infinity + (infinity & -infinity)
    magnitude = bits & sign - 1
    clamped = k.select(magnitude == infinity, bits & sign | infinity - 1, bits)
    return k.select(magnitude > infinity, k.constant("u32", 0), clamped)
