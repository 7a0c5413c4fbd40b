"""Small matrices between shared memory and the registers of a warp: ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5).

Each lane holds one register a matrix of 8x8 16-bit or 16x8 8-bit elements, two registers a matrix of 16x16 bytes.
"""

from collections.abc import Iterator

from ..extent import addresses
from ..form import Modifiers, Slots, form, unknown
from ..held import Held, holds
from ..machine import AddressValue, Machine, Value
from ..undefined import Following
from ..units.layouts import Layout
from ..units.layouts_rows import eight_rows, memory_rows, sixteen_columns, sixteen_rows
from ..units.rearrangement import rearrange
from ..units.warp_mma import ALL_LANES
from ..vocabulary import SHARED

BLACKWELL = "8.6 sm_100a sm_101a sm_120a | 8.8 sm_100f sm_101f sm_120f"
EXPANDED: Slots = {"to": "b8x16", "from": "b6x16_p32 b4x16_p64"}


def one_each(m: Modifiers) -> str:
    """One register a matrix."""
    return f"{m.num} b32"


def two_each(m: Modifiers) -> str:
    """Two registers a matrix."""
    return f"{2 * int(m.num[1:])} b32"


def rows(m: Modifiers) -> str:
    """The addresses of rows; ptxas copies a generic one to a register of its width."""
    return m.space or "full"


def move(k: Machine, values: tuple[Value, ...], source: Layout, target: Layout, registers: int) -> tuple[Value, ...]:
    """Bring what `values` hold as `source` to `registers` that hold it as `target`."""
    count = len(target.positions)
    statics = (count, source.bits, target.bits, source.positions, target.after(len(values)))
    following = Following(rearrange, statics, len(values), registers, parts=True)
    results = ["b32"] * registers
    return k.collect(rearrange, ALL_LANES, values, results, statics=statics, aligned=True, following=following)


def loaded(m: Modifiers) -> Layout:
    """Which lane gets which element from a load."""
    count = int(m.num[1:])
    if m.m16n16:
        return sixteen_rows(count)
    return eight_rows(8 if m.b16 else 16, 16 if m.b16 else 8, count, bool(m.trans))


def stored(m: Modifiers) -> Layout:
    """Which lane gives which element to a store."""
    count = int(m.num[1:])
    return sixteen_columns(count) if m.m16n8 else eight_rows(8, 16, count, bool(m.trans))


def rows_of(operand: str, verb: str, layout: Layout) -> Iterator[Held]:
    """Matrices whose rows are in memory, at addresses that lanes give."""
    owners = memory_rows(layout.rows, layout.columns, layout.bits, layout.copies)
    yield Held(operand, f"{verb} the row that the named lane points to", layout, owners=owners)


def transposed(m: Modifiers) -> Iterator[Held]:
    """A matrix before and after it is transposed."""
    yield Held("a", "A, 8x8 b16", eight_rows(8, 16, 1))
    yield Held("d", "D, the same elements turned", eight_rows(8, 16, 1, transposed=True))


# Matrices of which each lane gets one register, and those of which it gets two.
ONE_EACH: Slots = {
    "num": "x1 x2 x4", "space": SHARED, "types": {"d": lambda m: f"{one_each(m)} sink", "p": rows},
}  # fmt: skip
TWO_EACH: Slots = {
    "num": "x1 x2", "space": SHARED, "types": {"d": lambda m: f"{two_each(m)} sink", "p": rows},
}  # fmt: skip


@form("ldmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 d, [p]", **ONE_EACH, since="6.5 sm_75")
@form("ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8 d, [p]", **TWO_EACH, since=BLACKWELL)
@form("ldmatrix.sync.aligned.m16n16.num.trans{.space}.to.from d, [p]", **TWO_EACH, **EXPANDED, since=BLACKWELL)
@form("ldmatrix.sync.aligned.m8n16.num{.space}.to.from d, [p]", **ONE_EACH, **EXPANDED, since=BLACKWELL)
@holds(lambda m: rows_of("d", "read from", loaded(m)))
def ldmatrix(k: Machine, m: Modifiers, p: AddressValue) -> tuple[Value, ...]:
    """Read 8x8, 16x16 or 8x16 matrices from shared memory; each lane gives the address of one row.

    The lanes of a row share its elements; with `.trans` they share a column. Elements of 4 and 6 bits become bytes.
    """
    count = int(m.num[1:])
    bits = {None: 16 if m.b16 else 8, "b6x16_p32": 6, "b4x16_p64": 4}[getattr(m, "from")]
    target, registers = loaded(m), 2 * count if m.m16n16 else count
    source = memory_rows(target.rows, target.columns, bits, count)
    row = k.load(p, "b32", 4, when=k.lane < target.rows * count)
    return move(k, row, source, target, registers)


@form("ldmatrix.sync.aligned.m8n16.num{.space}.s8.s4 d, [p]", **ONE_EACH, since="9.4 sm_100f sm_101f sm_120f")
@unknown("what is in the registers after it is not written down anywhere yet")
@addresses(p="16")
def ldmatrix_signed() -> None:
    """Read 8x16 matrices of 4-bit integers from shared memory as 8-bit ones."""


@form(
    "stmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 [p], a",
    num="x1 x2 x4",
    space=SHARED,
    types={"a": lambda m: f"{one_each(m)} special reg", "p": rows},
    since="7.8 sm_90",
)
@form(
    "stmatrix.sync.aligned.m16n8.num.trans{.space}.b8 [p], a",
    num="x1 x2 x4",
    space=SHARED,
    types={"a": lambda m: f"{one_each(m)} reg", "p": rows},
    since=BLACKWELL,
)
@holds(lambda m: rows_of("a", "written to", stored(m)))
def stmatrix(k: Machine, m: Modifiers, p: AddressValue, a: tuple[Value, ...]) -> None:
    """Write 8x8 or 16x8 matrices to shared memory; each lane gives the address of one row.

    16x8 matrices are written by columns.
    """
    count = int(m.num[1:])
    source = stored(m)
    row = move(k, a, source, memory_rows(8, source.columns, source.bits, count), 4)
    k.store(p, row, when=k.lane < 8 * count)


@form("movmatrix.sync.aligned.m8n8.trans.b16 d, a", types={"d": "b32", "a": "b32 reg"}, since="7.8 sm_75")
@holds(transposed)
def movmatrix(k: Machine, m: Modifiers, a: Value) -> Value:
    """Transpose an 8x8 matrix of 16-bit elements in the registers of a warp."""
    (d,) = move(k, (a,), eight_rows(8, 16, 1), eight_rows(8, 16, 1, transposed=True), 1)
    return d
