"""Integer arithmetic instructions (PTX ISA 9.7.1)."""

from .form import form

WORDS = "u16 u32 u64 s16 s32 s64"
PAIRS = ("u16x2 s16x2", "8.0 sm_90")
BYTES = ("u8x4 s8x4", "9.2 sm_120f")


@form("add.type d, a, b", type=(WORDS, PAIRS, BYTES))
@form("add.sat.type d, a, b", type=("s32", ("u32 u16x2 s16x2 u8x4 s8x4", "9.2 sm_120f")))
def add() -> None:
    """Add two integers; `.sat` clamps the sum to the range of the type instead of wrapping around."""


@form("sub.type d, a, b", type=(WORDS, BYTES))
@form("sub.sat.type d, a, b", type=("s32", BYTES))
def sub() -> None:
    """Subtract `b` from `a`; `.sat` clamps the difference to the range of the type instead of wrapping around."""


@form("mul.lo.type d, a, b", type=WORDS)
@form("mul.hi.type d, a, b", type=WORDS)
@form("mul.wide.type d, a, b", type="u16 u32 s16 s32", types={"d": "2*type"})
def mul() -> None:
    """Multiply; `.lo` and `.hi` keep that half of the product, `.wide` all of it in a register twice as wide."""


@form("mad.lo.type d, a, b, c", type=WORDS)
@form("mad.hi.type d, a, b, c", type=WORDS)
@form("mad.wide.type d, a, b, c", type="u16 u32 s16 s32", types={"d": "2*type", "c": "2*type"})
@form("mad.hi.sat.s32 d, a, b, c")
def mad() -> None:
    """Multiply `a` by `b`, keep the low half, the high half or all of the product, and add `c`."""


@form("mul24.lo.type d, a, b", type="u32 s32")
@form("mul24.hi.type d, a, b", type="u32 s32")
def mul24() -> None:
    """Multiply the low 24 bits of `a` and `b`; the 48-bit product gives its low or its high 32 bits."""


@form("mad24.lo.type d, a, b, c", type="u32 s32")
@form("mad24.hi.type d, a, b, c", type="u32 s32")
@form("mad24.hi.sat.s32 d, a, b, c")
def mad24() -> None:
    """Multiply the low 24 bits of `a` and `b`, keep the low or the high 32 bits of the product, and add `c`."""


@form("sad.type d, a, b, c", type=WORDS)
def sad() -> None:
    """Add the absolute difference of `a` and `b` to `c`."""


@form("div.type d, a, b", type=WORDS)
def div() -> None:
    """Divide `a` by `b`, rounding towards zero."""


@form("rem.type d, a, b", type=WORDS)
def rem() -> None:
    """Give the remainder of dividing `a` by `b`."""


@form("abs.type d, a", type="s16 s32 s64")
def abs() -> None:
    """Give the absolute value of `a`."""


@form("neg.type d, a", type=("s16 s32 s64", ("s8x4", "9.2 sm_120f")))
def neg() -> None:
    """Change the sign of `a`."""


@form("min.type d, a, b", type=(WORDS, PAIRS, BYTES))
@form("min.relu.type d, a, b", name="min", type="s32 s16x2", since="8.0 sm_90")
def min() -> None:
    """Give the smaller of two integers; `.relu` gives zero where that is negative."""


@form("max.type d, a, b", type=(WORDS, PAIRS, BYTES))
@form("max.relu.type d, a, b", name="max", type="s32 s16x2", since="8.0 sm_90")
def max() -> None:
    """Give the larger of two integers; `.relu` gives zero where that is negative."""


@form("popc.type d, a", type="b32 b64", types={"d": "u32"}, since="2.0 sm_20")
def popc() -> None:
    """Count the bits of `a` that are set."""


@form("clz.type d, a", type="b32 b64", types={"d": "u32"}, since="2.0 sm_20")
def clz() -> None:
    """Count the zero bits above the highest bit of `a` that is set."""


@form("bfind.type d, a", type="u32 u64 s32 s64", types={"d": "u32"}, since="2.0 sm_20")
@form("bfind.shiftamt.type d, a", name="bfind", type="u32 u64 s32 s64", types={"d": "u32"}, since="2.0 sm_20")
def bfind() -> None:
    """Give the position of the highest bit of `a` that is no copy of the sign, all ones where there is none.

    With `.shiftamt` it is how far to shift left to bring that bit to the top.
    """


@form("fns.b32 d, mask, base, offset", since="5.1 sm_30")  # the manual says 6.0
def fns() -> None:
    """Find the set bit of `mask` that is number `offset` counted from bit `base`, upwards or downwards."""


@form("brev.type d, a", type="b32 b64", since="2.0 sm_20")
def brev() -> None:
    """Reverse the order of the bits of `a`."""


COUNT = "u32 within(0..255)"


@form("bfe.type d, a, b, c", type="u32 u64 s32 s64", types={"b": COUNT, "c": COUNT}, since="2.0 sm_20")
def bfe() -> None:
    """Extract the field of `c` bits that begins at bit `b` of `a`, extended by zeros or by its sign."""


@form("bfi.type f, a, b, c, d", type="b32 b64", types={"c": COUNT, "d": COUNT}, writes="f", since="2.0 sm_20")
def bfi() -> None:
    """Insert the low `d` bits of `a` into `b`, beginning at bit `c`."""


@form("szext.mode.type d, a, b", mode="clamp wrap", type="u32 s32", types={"b": "u32"}, since="7.6 sm_70")
def szext() -> None:
    """Keep the low `b` bits of `a` and fill the rest with zeros or with the sign of what is kept."""


@form("bmsk.mode.b32 d, a, b", mode="clamp wrap", types={"d": "u32", "a": "u32", "b": "u32"}, since="7.6 sm_70")
def bmsk() -> None:
    """Make a mask of `b` set bits that begins at bit `a`."""


_DOT = {"d": "u32", "a": "atype", "b": "btype", "c": "u32"}


@form("dp4a.atype.btype d, a, b, c", atype="u32 s32", btype="u32 s32", types=_DOT, since="5.0 sm_61")
def dp4a() -> None:
    """Add to `c` the dot product of the four bytes of `a` with the four bytes of `b`."""


@form("dp2a.lo.atype.btype d, a, b, c", atype="u32 s32", btype="u32 s32", types=_DOT, since="5.0 sm_61")
@form("dp2a.hi.atype.btype d, a, b, c", atype="u32 s32", btype="u32 s32", types=_DOT, since="5.0 sm_61")
def dp2a() -> None:
    """Add to `c` the dot product of the two halves of `a` with the low or the high two bytes of `b`."""
