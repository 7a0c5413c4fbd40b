"""Instructions that the lanes of a warp execute together: shfl, vote, match, redux, elect (PTX ISA 9.7.9, 9.7.13).

Where `membermask` names the lanes that take part, it is an integer: ptxas refuses a float register there, though it
takes one for the other `.b32` operands. It knows the `.sync` forms from PTX 5.1 on, the manual from 6.0.
"""

from ptxlab.native import Pointer, boolean, native, trailing_zeros, u32

from ..form import Modifiers, Specification, form
from ..machine import Machine, Value
from ..operation import computes
from ..undefined import UNDEFINED, Following

SHUFFLES = "up down bfly idx"
VOTES = "all any uni"
MASK = {"membermask": "u32"}
# Named here, not by the slot: unlike other instructions on integers, `redux` takes no register of `.f16x2` for one.
INTEGERS: dict[str, Specification] = {"d": lambda m: m.type, "a": lambda m: m.type}


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
@computes("shuffle")
def shfl(
    k: Machine, m: Modifiers, a: Value, b: Value, c: Value, membermask: Value | None = None
) -> tuple[Value, Value]:
    """Read `a` of another lane of the warp; `p` is whether that lane was in range."""
    members = k.active_mask() if membermask is None else membermask
    statics = (SHUFFLES.split().index(m.mode),)
    following = Following(shuffle, statics, 1, 1)
    d, p = k.collect(shuffle, members, (a, b, c), ("b32", "pred"), statics=statics, following=following)
    return d, p


@native
def shuffle(exchange: Pointer[u32], members: u32, mode: u32) -> None:
    for lane in range(32):
        if members >> lane & 1 == 0:
            continue
        offset: u32 = exchange[32 + lane] & 31
        bound: u32 = exchange[64 + lane] & 31
        segment: u32 = exchange[64 + lane] >> 8 & 31
        first: u32 = lane & segment
        last: u32 = first | (bound & ~segment)
        source: u32 = first | (offset & ~segment)
        if mode == UP:
            source = u32(lane - offset)
        elif mode == DOWN:
            source = lane + offset
        elif mode == BUTTERFLY:
            source = lane ^ offset
        within: boolean = offset <= lane and source >= last if mode == UP else source <= last
        if not within:
            source = lane
        # PTX ISA 9.7.9.6 leaves open what comes from a lane that does not take part.
        exchange[96 + lane] = exchange[source] if members >> source & 1 != 0 else UNDEFINED
        exchange[128 + lane] = u32(within)


UP, DOWN, BUTTERFLY = range(3)  # as in SHUFFLES


@form(
    "vote.mode.pred d, {!}a",
    mode=VOTES,
    since="1.2 sm_12 until 6.4 sm_70",
    effects="uniform",
)
@form("vote.ballot.b32 d, {!}a", types={"a": "pred"}, name="vote", since="2.0 sm_20 until 6.4 sm_70",
      effects="uniform")  # fmt: skip
@form("vote.sync.mode.pred d, {!}a, membermask", mode=VOTES, types=MASK, since="5.1 sm_30", effects="uniform")
@form("vote.sync.ballot.b32 d, {!}a, membermask", types={"a": "pred"} | MASK, name="vote", since="5.1 sm_30",
      effects="uniform")  # fmt: skip
def vote(k: Machine, m: Modifiers, a: Value, membermask: Value | None = None) -> Value:
    """Return whether `a` holds in all, in any or equally in all lanes; `.ballot` gives one bit a lane."""
    members = k.active_mask() if membermask is None else membermask
    ballot, present = k.collect(cast_votes, members, (a,), ("b32", "b32"))
    match m.mode:
        case "all":
            return ballot == present
        case "any":
            return ballot != 0
        case "uni":
            return (ballot == present) | (ballot == 0)
        case _:
            return ballot


@native
def cast_votes(exchange: Pointer[u32], members: u32) -> None:
    """The predicates of all lanes as one word; beside it the lanes that voted."""
    ballot: u32 = 0
    for lane in range(32):
        if members >> lane & 1 != 0:
            ballot |= exchange[lane] << lane
    for lane in range(32):
        if members >> lane & 1 != 0:
            exchange[32 + lane] = ballot
            exchange[64 + lane] = members


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
    effects="uniform",
)
def match(k: Machine, m: Modifiers, a: Value, membermask: Value) -> Value | tuple[Value, Value]:
    """Give the mask of lanes whose `a` equals this lane's; `.all` gives it only if `p`: all are equal."""
    same, present = k.collect(find_equal, membermask, (a,), ("u32", "u32"), statics=(a.type.width // 32,))
    if m.any:
        return same
    return k.select(same == present, same, 0), same == present


@native
def find_equal(exchange: Pointer[u32], members: u32, words: u32) -> None:
    """For each lane those that have the same words as it has; beside it the lanes that take part."""
    for lane in range(32):
        if members >> lane & 1 == 0:
            continue
        equal: u32 = 0
        for other in range(32):
            same: boolean = members >> other & 1 != 0
            for word in range(words):
                same = same and exchange[32 * word + lane] == exchange[32 * word + other]
            if same:
                equal |= u32(1) << other
        exchange[32 * words + lane] = equal
        exchange[32 * words + 32 + lane] = members


@form("redux.sync.op.type d, a, membermask", op="add min max", type="u32 s32", types=INTEGERS | MASK, since="7.0 sm_80",
      effects="uniform")  # fmt: skip
@form("redux.sync.op.b32 d, a, membermask", op="and or xor", types={"d": "u32", "a": "u32"} | MASK, since="7.0 sm_80",
      effects="uniform")  # fmt: skip
@form(
    "redux.sync.op{.abs}{.NaN}.f32 d, a, membermask",
    op="min max",
    types=MASK,
    since="8.6 sm_100a | 8.8 sm_100f",
    effects="uniform",
)
def redux(k: Machine, m: Modifiers, a: Value, membermask: Value) -> Value:
    """Reduce `a` over the lanes of `membermask` and give every one of them the result."""
    key = _key(k, m, a)
    (found,) = k.collect(reduce, membermask, (key,), ("u32",), statics=(OPERATIONS.index(m.op),))
    return _unkey(k, m, found, a.type.name)


SIGN = 1 << 31
OPERATIONS = ("add", "and", "or", "xor", "min", "max")


def _key(k: Machine, m: Modifiers, a: Value) -> Value:
    """The bits of `a`; for `.min` and `.max`, of an unsigned integer that is ordered as `a` is.

    A NaN is put at the end where it loses, or with `.NaN` where it wins.
    """
    bits = k.reinterpret(a, "u32")
    if a.type.kind == "u" or m.op == "add":
        return bits
    if a.type.kind == "s":
        return bits ^ SIGN
    if m.abs:
        bits = bits & ~SIGN
    key = k.select(bits >= SIGN, ~bits, bits | SIGN)
    return k.select(a == a, key, -1 if (m.op == "max") == bool(m.nan) else 0)


def _unkey(k: Machine, m: Modifiers, key: Value, type: str) -> Value:
    """The value of a key; the canonical NaN for a key that no number has."""
    if type == "u32" or m.op == "add":
        return k.reinterpret(key, type)
    if type == "s32":
        return k.reinterpret(key ^ SIGN, type)
    number = k.reinterpret(k.select(key >= SIGN, key ^ SIGN, ~key), type)
    return k.select(number == number, number, k.constant(type, 0x7FFFFFFF))


@native
def reduce(exchange: Pointer[u32], members: u32, operation: u32) -> None:
    first: u32 = trailing_zeros(u32, members)
    result: u32 = exchange[first]
    for lane in range(first + 1, 32):
        if members >> lane & 1 == 0:
            continue
        value: u32 = exchange[lane]
        if operation == ADD:
            result = u32(result + value)
        elif operation == AND:
            result &= value
        elif operation == OR:
            result |= value
        elif operation == XOR:
            result ^= value
        elif operation == MIN:
            result = min(result, value)
        else:
            result = max(result, value)
    for lane in range(32):
        if members >> lane & 1 != 0:
            exchange[32 + lane] = result


ADD, AND, OR, XOR, MIN = range(5)  # as in OPERATIONS


@form("activemask.b32 d", since="6.2 sm_30", effects="uniform")
def activemask(k: Machine, m: Modifiers) -> Value:
    """Give the mask of the lanes that execute this instruction together right now."""
    return k.active_mask()


@form("elect.sync d|p, membermask", types={"d": "u32 sink", "p": "pred"} | MASK, writes="d p", since="8.0 sm_90",
      effects="elects")  # fmt: skip
def elect(k: Machine, m: Modifiers, membermask: Value) -> tuple[Value, Value]:
    """Choose one lane of `membermask`: `p` is true in it alone, `d` is its number."""
    # PTX ISA 9.7.13.14 only promises that the same lane is chosen every time: here the lowest one.
    (leader, chosen) = k.collect(choose, membermask, (), ("u32", "pred"))
    return leader, chosen


@native
def choose(exchange: Pointer[u32], members: u32) -> None:
    leader: u32 = trailing_zeros(u32, members)
    for lane in range(32):
        if members >> lane & 1 != 0:
            exchange[lane] = leader
            exchange[32 + lane] = u32(leader == lane)
