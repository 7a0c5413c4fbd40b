"""Small matrices between shared memory and the registers of a warp: ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5).

Each lane holds one register a matrix of 8x8 16-bit or 16x8 8-bit elements, two registers a matrix of 16x16 bytes.
"""

from .form import Modifiers, form
from .matrix import Slots
from .vocabulary import SHARED

BLACKWELL = "8.6 sm_100a sm_101a sm_120a | 8.8 sm_100f sm_101f sm_120f"
EXPANDED: Slots = {"to": "b8x16", "from": "b6x16_p32 b4x16_p64"}


def one_each(m: Modifiers) -> str:
    """One register a matrix."""
    return f"{m.num} b32"


def two_each(m: Modifiers) -> str:
    """Two registers a matrix."""
    return f"{2 * int(m.num[1:])} b32"


@form(
    "ldmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 d, [p]",
    num="x1 x2 x4",
    space=SHARED,
    types={"d": lambda m: f"{one_each(m)} sink"},
    since="6.5 sm_75",
)
@form(
    "ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8 d, [p]",
    num="x1 x2",
    space=SHARED,
    types={"d": two_each},
    since=BLACKWELL,
)
@form(
    "ldmatrix.sync.aligned.m16n16.num.trans{.space}.to.from d, [p]",
    num="x1 x2",
    space=SHARED,
    **EXPANDED,
    types={"d": two_each},
    since=BLACKWELL,
)
@form(
    "ldmatrix.sync.aligned.m8n16.num{.space}.to.from d, [p]",
    num="x1 x2 x4",
    space=SHARED,
    **EXPANDED,
    types={"d": one_each},
    since=BLACKWELL,
)
@form(
    "ldmatrix.sync.aligned.m8n16.num{.space}.s8.s4 d, [p]",
    num="x1 x2 x4",
    space=SHARED,
    types={"d": one_each},
    since="9.4 sm_100f sm_101f sm_120f",
)
def ldmatrix() -> None:
    """Read 8x8, 16x16 or 8x16 matrices from shared memory; each lane gives the address of one row."""


@form(
    "stmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 [p], a",
    num="x1 x2 x4",
    space=SHARED,
    types={"a": lambda m: f"{one_each(m)} special"},
    since="7.8 sm_90",
)
@form(
    "stmatrix.sync.aligned.m16n8.num.trans{.space}.b8 [p], a",
    num="x1 x2 x4",
    space=SHARED,
    types={"a": one_each},
    since=BLACKWELL,
)
def stmatrix() -> None:
    """Write 8x8 or 16x8 matrices to shared memory; each lane gives the address of one row."""


@form("movmatrix.sync.aligned.m8n8.trans.b16 d, a", types={"d": "b32", "a": "b32 reg"}, since="7.8 sm_75")
def movmatrix() -> None:
    """Transpose an 8x8 matrix of 16-bit elements that lies in the registers of a warp."""
