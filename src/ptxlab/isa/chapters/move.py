"""Moves within the register file and between addresses of state spaces: mov, prmt, cvta, isspacep (PTX ISA 9.7.9)."""

from ..bits import larger, smaller
from ..form import Modifiers, form
from ..machine import Machine, Value
from ..operation import computes
from ..vocabulary import ANY_SHARED

# `cvta` and `isspacep` know the spaces that have a window in the generic address space.
_WINDOW = (
    "global local",
    *ANY_SHARED,
    ("const", "3.1"),
    ("param", "7.7 sm_70"),
    ("param::entry", "8.3 sm_70"),
)

_VECTOR_TYPE = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"


def _fits_a_vector(m: Modifiers) -> str | None:
    return "a vector holds at most 128 bits" if m.vec == "v4" and m.type[1:] == "64" else None


@form("mov.type d, a", type="b16 b32 b64 u16 u32 u64 s16 s32 s64", types={"a": "type special symbol"})
@form("mov.type d, a", type="f32 f64")
@form("mov.b128 d, a", types={"a": "b128 special symbol"}, since="8.3 sm_70")
@form("mov.pred d, {!}a", types={"a": "pred special"})
@form("mov.vec.type d, a", vec="v2 v4", type=_VECTOR_TYPE, where=_fits_a_vector,
      types={"d": "vec type sink integers", "a": "vec type special integers"})  # fmt: skip
@form("mov.vec.type d, a", vec="v2 v4", type=_VECTOR_TYPE, where=_fits_a_vector,
      types={"d": "vec type sink integers", "a": "type special symbol"})  # fmt: skip
# Packing and unpacking: a vector on one side, one register of the same total width on the other.
@form("mov.b16 d, a", types={"d": "b16", "a": "2 b8 special"})
@form("mov.b16 d, a", types={"d": "2 b8 sink", "a": "b16 special symbol"})
@form("mov.b32 d, a", types={"d": "b32", "a": "2 b16 special sink"})  # ptxas reads `_` here
@form("mov.b32 d, a", types={"d": "b32", "a": "4 b8 special sink"})
@form("mov.b32 d, a", types={"d": "2 b16 sink", "a": "b32 special symbol"})
@form("mov.b32 d, a", types={"d": "4 b8 sink", "a": "b32 special symbol"})
@form("mov.b64 d, a", types={"d": "b64", "a": "2 b32 special"})
@form("mov.b64 d, a", types={"d": "b64", "a": "4 b16 special"})
@form("mov.b64 d, a", types={"d": "2 b32 sink", "a": "b64 special symbol"})
@form("mov.b64 d, a", types={"d": "4 b16 sink", "a": "b64 special symbol"})
@form("mov.b128 d, a", types={"d": "b128", "a": "2 b64 special"}, since="8.3 sm_70")
@form("mov.b128 d, a", types={"d": "b128", "a": "4 b32 special"}, since="8.3 sm_70")
@form("mov.b128 d, a", types={"d": "2 b64 sink", "a": "b128 symbol"}, since="8.3 sm_70")
@form("mov.b128 d, a", types={"d": "4 b32 sink", "a": "b128 symbol"}, since="8.3 sm_70")
@computes("copy")
def mov(k: Machine, m: Modifiers, a: Value | tuple[Value, ...]) -> Value | tuple[Value, ...]:
    """Copy a register, constant, special register or address; a vector on one side packs or unpacks the other."""
    if isinstance(a, tuple):
        return a if m.vec else k.pack(a, f"b{sum(part.type.width for part in a)}")
    if m.vec:  # ptxas cuts the register and puts each part into an element as wide as the register
        width = a.type.width
        if m.vec == "v4" and width == 16:  # there are no parts of four bits: it goes into the first element as it is
            return a, *(k.constant(f"b{width}", 0) for _ in range(3))
        parts = k.unpack(a, f"b{width // int(m.vec[1:])}")
        return tuple(k.cast(part, f"b{width}") for part in parts)
    return a


@form("prmt.b32{.mode} d, a, b, c", mode="f4e b4e rc8 ecl ecr rc16", since="2.0 sm_20")
@computes("permutation")
def prmt(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Build a word from any four of the eight bytes of `a` and `b`, as the selector `c` says."""
    pool = k.pack((a, b), "b64")
    if m.mode is None:
        return k.pack([_byte(k, pool, c >> 4 * position) for position in range(4)], "b32")
    start = c & 3
    sources = [_source(k, m.mode, start, k.constant("b32", position)) for position in range(4)]
    return k.pack([k.cast(pool >> source * 8, "b8") for source in sources], "b32")


def _byte(k: Machine, pool: Value, selector: Value) -> Value:
    """The byte of eight that bits 0 to 2 of the selector name, or with bit 3 eight copies of its sign."""
    byte = k.cast(pool >> (selector & 7) * 8, "s8")
    return k.select(selector & 8 != 0, byte >> 7, byte)


def _source(k: Machine, mode: str, start: Value, position: Value) -> Value:
    """The byte, 0 to 7, that a mode brings to a position of the result."""
    match mode:
        case "f4e":
            return start + position
        case "b4e":
            return start - position & 7
        case "rc8":
            return start
        case "ecl":
            return larger(k, start, position)
        case "ecr":
            return smaller(k, start, position)
        case _:  # rc16
            return (start & 1) * 2 + (position & 1)


# The manual also has .u32; ptxas 13 compiles for 64-bit addresses only.
@form("cvta.space.u64 p, a", space=_WINDOW, types={"a": "u64 space"}, writes="p", since="2.0 sm_20")
@computes("address")
def cvta(k: Machine, m: Modifiers, a: Value) -> Value:
    """Turn an address in a state space into a generic one."""
    return a + k.window(m.space)


@form("cvta.to.space.u64 p, a", space=_WINDOW, writes="p", since="2.0 sm_20")
@computes("address")
def cvta_to(k: Machine, m: Modifiers, a: Value) -> Value:
    """Turn a generic address into one in a state space."""
    return a - k.window(m.space)


@form("isspacep.space p, a", space=_WINDOW, types={"p": "pred", "a": "u32"}, writes="p", since="2.0 sm_20")
@form("isspacep.space p, a", space=_WINDOW, types={"p": "pred", "a": "u64"}, writes="p", since="2.0 sm_20")
def isspacep(k: Machine, m: Modifiers, a: Value) -> Value:
    """Return whether a generic address is in the window of a state space."""
    return k.is_in(m.space, k.cast(a, "u64"))
