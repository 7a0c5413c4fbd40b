"""Instructions that the lanes of a warp execute together: shfl, vote, match, redux, elect (PTX ISA 9.7.9, 9.7.13).

Where `membermask` names the lanes that take part, it is an integer: ptxas refuses a float register there, though it
takes one for the other `.b32` operands. It knows the `.sync` forms from PTX 5.1 on, the manual from 6.0.
"""

from .form import form

SHUFFLES = "up down bfly idx"
VOTES = "all any uni"
MASK = {"membermask": "u32"}


@form(
    "shfl.mode.b32 d{|p}, a, b, c",
    mode=SHUFFLES,
    types={"p": "pred sink"},
    writes="d p",
    since="3.0 sm_30 until 6.4 sm_70",
)
@form(
    "shfl.sync.mode.b32 d{|p}, a, b, c, membermask",
    mode=SHUFFLES,
    types={"p": "pred sink"} | MASK,
    writes="d p",
    since="5.1 sm_30",
)
def shfl() -> None:
    """Read `a` of another lane of the warp; `p` tells whether that lane was in range."""


@form(
    "vote.mode.pred d, {!}a",
    mode=VOTES,
    since="1.2 sm_12 until 6.4 sm_70",
)
@form("vote.ballot.b32 d, {!}a", types={"a": "pred"}, name="vote", since="2.0 sm_20 until 6.4 sm_70")
@form("vote.sync.mode.pred d, {!}a, membermask", mode=VOTES, types=MASK, since="5.1 sm_30")
@form("vote.sync.ballot.b32 d, {!}a, membermask", types={"a": "pred"} | MASK, name="vote", since="5.1 sm_30")
def vote() -> None:
    """Tell each lane whether `a` holds in all, in any or equally in all lanes; `.ballot` gives one bit a lane."""


@form(
    "match.any.sync.type d, a, membermask",
    type="b32 b64",
    types={"d": "u32"} | MASK,
    name="match",
    since="6.0 sm_70",
)
@form(
    "match.all.sync.type d{|p}, a, membermask",
    type="b32 b64",
    types={"d": "u32 sink", "p": "pred sink"} | MASK,
    writes="d p",
    name="match",
    since="6.0 sm_70",
)
def match() -> None:
    """Give the mask of lanes whose `a` equals this lane's; `.all` gives it only if all are equal, as `p` tells."""


@form("redux.sync.op.type d, a, membermask", op="add min max", type="u32 s32", types=MASK, since="7.0 sm_80")
@form("redux.sync.op.b32 d, a, membermask", op="and or xor", types={"d": "u32", "a": "u32"} | MASK, since="7.0 sm_80")
@form(
    "redux.sync.op{.abs}{.NaN}.f32 d, a, membermask",
    op="min max",
    types=MASK,
    since="8.6 sm_100a | 8.8 sm_100f",
)
def redux() -> None:
    """Reduce `a` over the lanes of `membermask` and give every one of them the result."""


@form("activemask.b32 d", since="6.2 sm_30")
def activemask() -> None:
    """Give the mask of the lanes that execute this instruction together right now."""


@form("elect.sync d|p, membermask", types={"d": "u32 sink", "p": "pred"} | MASK, writes="d p", since="8.0 sm_90")
def elect() -> None:
    """Choose one lane of `membermask`: `p` is true in it alone, `d` is its number."""
