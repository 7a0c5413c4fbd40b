"""Integer arithmetic instructions (PTX ISA 9.7.1)."""

from .form import form


@form("add.type d, a, b", type=("u16 u32 u64 s16 s32 s64", ("u16x2 s16x2", "8.0 sm_90")))
@form("add.sat.s32 d, a, b")
def add():
    """Add two values."""


@form("mul.wide.type d, a, b", type="u16 u32 s16 s32", types={"d": "2*type"})
def mul():
    """Multiply."""
