"""Video instructions: arithmetic on bytes and halves chosen from 32-bit registers (PTX ISA 9.7.18).

A scalar one works on a part of `a` and of `b` and can then combine the result with `c`: by a second operation, or by
putting it into the part of `c` that `d` selects. A SIMD one works on two halves or four bytes, and writes the lanes
that `d` selects over those of `c`, or adds all of them up with `c`.
"""

from typing import Any

from .form import form

SIGNS = "u32 s32"
SECOND = "add min max"
ORDER = "eq ne lt le gt ge"

SCALAR = {"d": "dtype", "a": "atype select(part)", "b": "btype select(part)"}
# What the forms of an instruction have in common: alone, with a second operation, merged into a part of `c`.
ALONE: dict[str, Any] = {"dtype": SIGNS, "atype": SIGNS, "btype": SIGNS, "types": SCALAR, "since": "2.0 sm_20"}
THEN: dict[str, Any] = {**ALONE, "op2": SECOND, "types": {**SCALAR, "c": "dtype"}}
INTO: dict[str, Any] = {**ALONE, "types": {**SCALAR, "d": "dtype select(part)", "c": "dtype"}}
# And of the SIMD ones, on halves and on bytes.
LANES: dict[str, Any] = {"dtype": SIGNS, "atype": SIGNS, "btype": SIGNS, "since": "3.0 sm_30"}
HALVES: dict[str, Any] = {**LANES, "types": {
    "d": "dtype select(half_mask)", "a": "atype select(halves) reg", "b": "btype select(halves) reg", "c": "dtype reg",
}}  # fmt: skip
BYTES: dict[str, Any] = {**LANES, "types": {
    "d": "dtype select(byte_mask)", "a": "atype select(bytes) reg", "b": "btype select(bytes) reg", "c": "dtype reg",
}}  # fmt: skip


@form("vadd.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vadd.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vadd.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vadd() -> None:
    """Add a part of `a` and a part of `b`."""


@form("vsub.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vsub.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vsub.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vsub() -> None:
    """Subtract a part of `b` from a part of `a`."""


@form("vabsdiff.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vabsdiff.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vabsdiff.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vabsdiff() -> None:
    """Give the absolute difference of a part of `a` and a part of `b`."""


@form("vmin.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vmin.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vmin.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vmin() -> None:
    """Give the smaller of a part of `a` and a part of `b`."""


@form("vmax.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vmax.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vmax.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vmax() -> None:
    """Give the larger of a part of `a` and a part of `b`."""


SHIFT: dict[str, Any] = {"btype": "u32", "mode": "clamp wrap"}


@form("vshl.dtype.atype.btype{.sat}.mode d, a, b", **ALONE | SHIFT)
@form("vshl.dtype.atype.btype{.sat}.mode.op2 d, a, b, c", **THEN | SHIFT)
@form("vshl.dtype.atype.btype{.sat}.mode d, a, b, c", **INTO | SHIFT)
def vshl() -> None:
    """Shift a part of `a` left by a part of `b`, a count that is clamped to 32 or wraps around."""


@form("vshr.dtype.atype.btype{.sat}.mode d, a, b", **ALONE | SHIFT)
@form("vshr.dtype.atype.btype{.sat}.mode.op2 d, a, b, c", **THEN | SHIFT)
@form("vshr.dtype.atype.btype{.sat}.mode d, a, b, c", **INTO | SHIFT)
def vshr() -> None:
    """Shift a part of `a` right by a part of `b`, a count that is clamped to 32 or wraps around."""


SCALE: dict[str, Any] = {**ALONE, "scale": "shr7 shr15"}
# ptxas takes a minus sign on the product or on `c`, not on both.
# The manual lets either the product or `c` be negated; ptxas takes any of the signs.
SIGNED = {"d": "dtype", "a": "atype select(part) minus", "b": "btype select(part) minus", "c": "dtype minus"}


@form("vmad.dtype.atype.btype{.sat}{.scale} d, a, b, c", **SCALE | {"types": SIGNED})
@form("vmad.dtype.atype.btype.po{.sat}{.scale} d, a, b, c", **SCALE | {"types": {**SCALAR, "c": "dtype"}})
def vmad() -> None:
    """Multiply a part of `a` by a part of `b`, add `c` (and 1 with `.po`), and shift the sum right by 7 or 15 bits."""


TEST: dict[str, Any] = {"cmp": ORDER, "atype": SIGNS, "btype": SIGNS}
PARTS = {"d": "u32", "a": "atype select(part)", "b": "btype select(part)"}


@form("vset.atype.btype.cmp d, a, b", types=PARTS, since="2.0 sm_20", **TEST)
@form("vset.atype.btype.cmp.op2 d, a, b, c", op2=SECOND, types={**PARTS, "c": "u32"}, since="2.0 sm_20", **TEST)
@form(
    "vset.atype.btype.cmp d, a, b, c", types={**PARTS, "d": "u32 select(part)", "c": "u32"}, since="2.0 sm_20", **TEST
)
def vset() -> None:
    """Compare a part of `a` with a part of `b`: 1 if it holds, else 0."""


@form("vadd2.dtype.atype.btype{.sat} d, a, b, c", **HALVES)
@form("vadd2.dtype.atype.btype.add d, a, b, c", **HALVES)
def vadd2() -> None:
    """Add two pairs of halves."""


@form("vsub2.dtype.atype.btype{.sat} d, a, b, c", **HALVES)
@form("vsub2.dtype.atype.btype.add d, a, b, c", **HALVES)
def vsub2() -> None:
    """Subtract two pairs of halves."""


@form("vavrg2.dtype.atype.btype{.sat} d, a, b, c", **HALVES)
@form("vavrg2.dtype.atype.btype.add d, a, b, c", **HALVES)
def vavrg2() -> None:
    """Give the averages of two pairs of halves, rounded away from zero."""


@form("vabsdiff2.dtype.atype.btype{.sat} d, a, b, c", **HALVES)
@form("vabsdiff2.dtype.atype.btype.add d, a, b, c", **HALVES)
def vabsdiff2() -> None:
    """Give the absolute differences of two pairs of halves."""


@form("vmin2.dtype.atype.btype{.sat} d, a, b, c", **HALVES)
@form("vmin2.dtype.atype.btype.add d, a, b, c", **HALVES)
def vmin2() -> None:
    """Give the smaller ones of two pairs of halves."""


@form("vmax2.dtype.atype.btype{.sat} d, a, b, c", **HALVES)
@form("vmax2.dtype.atype.btype.add d, a, b, c", **HALVES)
def vmax2() -> None:
    """Give the larger ones of two pairs of halves."""


TEST_HALVES: dict[str, Any] = {**TEST, "since": "3.0 sm_30", "types": {
    "d": "u32 select(half_mask)", "a": "atype select(halves) reg", "b": "btype select(halves) reg", "c": "u32 reg",
}}  # fmt: skip
TEST_BYTES: dict[str, Any] = {**TEST, "since": "3.0 sm_30", "types": {
    "d": "u32 select(byte_mask)", "a": "atype select(bytes) reg", "b": "btype select(bytes) reg", "c": "u32 reg",
}}  # fmt: skip


@form("vset2.atype.btype.cmp d, a, b, c", **TEST_HALVES)
@form("vset2.atype.btype.cmp.add d, a, b, c", **TEST_HALVES)
def vset2() -> None:
    """Compare two pairs of halves: 1 in each half where it holds, else 0."""


@form("vadd4.dtype.atype.btype{.sat} d, a, b, c", **BYTES)
@form("vadd4.dtype.atype.btype.add d, a, b, c", **BYTES)
def vadd4() -> None:
    """Add four pairs of bytes."""


@form("vsub4.dtype.atype.btype{.sat} d, a, b, c", **BYTES)
@form("vsub4.dtype.atype.btype.add d, a, b, c", **BYTES)
def vsub4() -> None:
    """Subtract four pairs of bytes."""


@form("vavrg4.dtype.atype.btype{.sat} d, a, b, c", **BYTES)
@form("vavrg4.dtype.atype.btype.add d, a, b, c", **BYTES)
def vavrg4() -> None:
    """Give the averages of four pairs of bytes, rounded away from zero."""


@form("vabsdiff4.dtype.atype.btype{.sat} d, a, b, c", **BYTES)
@form("vabsdiff4.dtype.atype.btype.add d, a, b, c", **BYTES)
def vabsdiff4() -> None:
    """Give the absolute differences of four pairs of bytes; with `.add`, their sum is what block matching needs."""


@form("vmin4.dtype.atype.btype{.sat} d, a, b, c", **BYTES)
@form("vmin4.dtype.atype.btype.add d, a, b, c", **BYTES)
def vmin4() -> None:
    """Give the smaller ones of four pairs of bytes."""


@form("vmax4.dtype.atype.btype{.sat} d, a, b, c", **BYTES)
@form("vmax4.dtype.atype.btype.add d, a, b, c", **BYTES)
def vmax4() -> None:
    """Give the larger ones of four pairs of bytes."""


@form("vset4.atype.btype.cmp d, a, b, c", **TEST_BYTES)
@form("vset4.atype.btype.cmp.add d, a, b, c", **TEST_BYTES)
def vset4() -> None:
    """Compare four pairs of bytes: 1 in each byte where it holds, else 0."""
