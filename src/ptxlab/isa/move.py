"""Moves within the register file and between addresses of state spaces: mov, prmt, cvta, isspacep (PTX ISA 9.7.9)."""

from .form import Modifiers, form
from .vocabulary import ANY_SHARED

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
@form("mov.vec.type d, a", vec="v2 v4", type=_VECTOR_TYPE, types={"d": "vec type sink", "a": "vec type special led"},
      where=_fits_a_vector)  # fmt: skip
@form("mov.vec.type d, a", vec="v2 v4", type=_VECTOR_TYPE, types={"d": "vec type sink", "a": "type special symbol"},
      where=_fits_a_vector)  # fmt: skip
# Packing and unpacking: a vector on one side, one register of the same total width on the other.
@form("mov.b16 d, a", types={"d": "b16", "a": "2 b8 special led"})
@form("mov.b16 d, a", types={"d": "2 b8 sink", "a": "b16 special symbol"})
@form("mov.b32 d, a", types={"d": "b32", "a": "2 b16 special led sink"})  # ptxas reads `_` here
@form("mov.b32 d, a", types={"d": "b32", "a": "4 b8 special led sink"})
@form("mov.b32 d, a", types={"d": "2 b16 sink", "a": "b32 special symbol"})
@form("mov.b32 d, a", types={"d": "4 b8 sink", "a": "b32 special symbol"})
@form("mov.b64 d, a", types={"d": "b64", "a": "2 b32 special led"})
@form("mov.b64 d, a", types={"d": "b64", "a": "4 b16 special led"})
@form("mov.b64 d, a", types={"d": "2 b32 sink", "a": "b64 special symbol"})
@form("mov.b64 d, a", types={"d": "4 b16 sink", "a": "b64 special symbol"})
@form("mov.b128 d, a", types={"d": "b128", "a": "2 b64 special led"}, since="8.3 sm_70")
@form("mov.b128 d, a", types={"d": "b128", "a": "4 b32 special led"}, since="8.3 sm_70")
@form("mov.b128 d, a", types={"d": "2 b64 sink", "a": "b128"}, since="8.3 sm_70")
@form("mov.b128 d, a", types={"d": "4 b32 sink", "a": "b128"}, since="8.3 sm_70")
def mov() -> None:
    """Copy a register, constant, special register or address; a vector on one side packs or unpacks the other."""


@form("prmt.b32{.mode} d, a, b, c", mode="f4e b4e rc8 ecl ecr rc16", since="2.0 sm_20")
def prmt() -> None:
    """Build a word from any four of the eight bytes of `a` and `b`, as the selector `c` says."""


# The manual also has .u32; ptxas 13 compiles for 64-bit addresses only.
@form("cvta.space.u64 p, a", space=_WINDOW, types={"a": "u64 space"}, writes="p", since="2.0 sm_20")
@form("cvta.to.space.u64 p, a", space=_WINDOW, writes="p", since="2.0 sm_20")
def cvta() -> None:
    """Turn an address in a state space into a generic one; `.to` turns a generic one back."""


@form("isspacep.space p, a", space=_WINDOW, types={"p": "pred", "a": "u32"}, writes="p", since="2.0 sm_20")
@form("isspacep.space p, a", space=_WINDOW, types={"p": "pred", "a": "u64"}, writes="p", since="2.0 sm_20")
def isspacep() -> None:
    """Tell whether a generic address lies in the window of a state space."""
