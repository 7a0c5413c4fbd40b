"""What instructions on integers, bits and predicates must give, said once more and in another way: on Python's numbers.

An oracle takes a case and returns the bits of its results; `ORACLES` finds it by the form's chapter and name.
"""

import math
import operator
import struct
from collections.abc import Callable, Mapping
from typing import Any

from ptxlab.isa.types import Type, type_named

from .cases import Bits, Case, number_of

Oracle = Callable[[Case], Any]
ORACLES: dict[tuple[str, str], Oracle] = {}


def oracle(chapter: str, names: str) -> Callable[[Oracle], Oracle]:
    def enter(function: Oracle) -> Oracle:
        for name in names.split():
            ORACLES[chapter, name] = function
        return function

    return enter


def expected_results(case: Case) -> tuple[Bits, ...]:
    """The bits of the results, without the carry."""
    found = ORACLES[case.form.chapter, ".".join(case.form.name)](case)
    return found if isinstance(found, tuple) else (found,)


def wrap(width: int, number: int) -> int:
    return number % 2**width


def limits(type: str) -> tuple[int, int]:
    width = int(type[1:])
    return (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if type[0] == "s" else (0, 2**width - 1)


def clamp(type: str, number: int) -> int:
    low, high = limits(type)
    return sorted((low, number, high))[1]


def lanes(type: Type, bits: int) -> list[int]:
    return [number_of(type, bits >> type.bits * lane & (2**type.bits - 1)) for lane in range(type.lanes)]


def by_lane(case: Case, function: Callable[..., int]) -> int:
    """The function of the lanes of all operands, each result wrapped into its lane."""
    type = case.type("d")
    pools = [lanes(case.type(name), bits) for name, bits in case.bits.items() if isinstance(bits, int)]
    results = [function(*pool) for pool in zip(*pools, strict=True)]
    return sum(wrap(type.bits, result) << type.bits * lane for lane, result in enumerate(results))


def fitted(case: Case, number: int) -> int:
    return clamp(case.type("d").kind + str(case.type("d").bits), number) if case.m.sat else number


@oracle("integer", "add")
def add(case: Case) -> int:
    return by_lane(case, lambda a, b: fitted(case, a + b))


@oracle("integer", "sub")
def sub(case: Case) -> int:
    return by_lane(case, lambda a, b: fitted(case, a - b))


@oracle("integer", "mul.lo mul.wide")
def mul(case: Case) -> int:
    return wrap(case.type("d").bits, case.number("a") * case.number("b"))


@oracle("integer", "mul.hi")
def mul_hi(case: Case) -> int:
    width = case.type("a").bits
    return wrap(width, case.number("a") * case.number("b") // 2**width)


@oracle("integer", "mad.lo mad.wide")
def mad(case: Case) -> int:
    return wrap(case.type("d").bits, case.number("a") * case.number("b") + case.number("c"))


@oracle("integer", "mad.hi")
def mad_hi(case: Case) -> int:
    width = case.type("a").bits
    return wrap(width, fitted(case, case.number("a") * case.number("b") // 2**width + case.number("c")))


def product_24(case: Case) -> int:
    kind = type_named("s32" if case.type("a").kind == "s" else "u32")
    a, b = (number_of(kind, int(case.bits[name]) << 8 & 0xFFFFFFFF) // 256 for name in "ab")
    return a * b


@oracle("integer", "mul24.lo mul24.hi")
def mul24(case: Case) -> int:
    return wrap(32, product_24(case) >> (16 if "hi" in case.form.name else 0))


@oracle("integer", "mad24.lo mad24.hi")
def mad24(case: Case) -> int:
    part = product_24(case) >> (16 if "hi" in case.form.name else 0)
    return wrap(32, fitted(case, number_of(case.type("d"), wrap(32, part)) + case.number("c")))


@oracle("integer", "sad")
def sad(case: Case) -> int:
    return wrap(case.type("d").bits, case.number("c") + abs(case.number("a") - case.number("b")))


@oracle("integer", "div")
def div(case: Case) -> int:
    a, b = case.number("a"), case.number("b")
    return wrap(case.type("d").bits, int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b)) if b else -1)


@oracle("integer", "rem")
def rem(case: Case) -> int:
    a, b = case.number("a"), case.number("b")
    return wrap(case.type("d").bits, (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else -1)


@oracle("integer", "abs")
def absolute(case: Case) -> int:
    return wrap(case.type("d").bits, abs(case.number("a")))


@oracle("integer", "neg")
def neg(case: Case) -> int:
    return by_lane(case, lambda a: -a)


@oracle("integer", "min max")
def extremum(case: Case) -> int:
    choose = min if case.form.name == ("min",) else max
    return by_lane(case, lambda a, b: max(0, choose(a, b)) if case.m.relu else choose(a, b))


def digits(case: Case, name: str) -> str:
    """The bits as text, the highest first."""
    return f"{case.bits[name]:0{case.type(name).width}b}"


@oracle("integer", "popc")
def popc(case: Case) -> int:
    return digits(case, "a").count("1")


@oracle("integer", "clz")
def clz(case: Case) -> int:
    return len(digits(case, "a").split("1")[0])


@oracle("integer", "brev")
def brev(case: Case) -> int:
    return int(digits(case, "a")[::-1], 2)


@oracle("integer", "bfind")
def bfind(case: Case) -> int:
    text = digits(case, "a")
    sought = "0" if case.type("a").kind == "s" and text[0] == "1" else "1"
    if sought not in text:
        return 0xFFFFFFFF
    return text.index(sought) if case.m.shiftamt else len(text) - 1 - text.index(sought)


@oracle("integer", "fns")
def fns(case: Case) -> int:
    mask, base = case.number("mask"), case.number("base")
    offset = number_of(type_named("s32"), case.bits["offset"])
    if offset == -(2**31):  # an H200 gives this for each mask and base; the manual has no such exception
        return 0
    if base > 31:
        return 0xFFFFFFFF
    upwards = [position for position in range(base, 32) if mask >> position & 1]
    downwards = [position for position in range(base, -1, -1) if mask >> position & 1]
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    sought = upwards if offset > 0 else downwards
    return sought[abs(offset) - 1] if abs(offset) <= len(sought) else 0xFFFFFFFF


@oracle("integer", "bfe")
def bfe(case: Case) -> int:
    type, position, length = case.type("a"), case.number("b") % 256, case.number("c") % 256
    if length == 0:
        return 0
    # An integer without an end, as Python has it, continues with its sign.
    field = case.number("a") >> position & (2**length - 1)
    if type.kind == "s" and field >> (length - 1):
        field -= 2**length
    return wrap(type.bits, field)


@oracle("integer", "bfi")
def bfi(case: Case) -> int:
    position, length = case.number("c") % 256, case.number("d") % 256
    field = (2**length - 1) << position
    return wrap(case.type("a").bits, case.number("b") & ~field | case.number("a") << position & field)


@oracle("integer", "szext")
def szext(case: Case) -> int:
    count = case.number("b") % 32 if case.m.mode == "wrap" else min(case.number("b"), 32)
    kept = case.number("a") % 2**count
    if case.m.type == "s32" and count and kept >= 2 ** (count - 1):
        kept -= 2**count
    return wrap(32, kept)


@oracle("integer", "bmsk")
def bmsk(case: Case) -> int:
    start, count = case.number("a"), case.number("b")
    if case.m.mode == "wrap":
        start, count = start % 32, count % 32
    return sum(1 << position for position in range(32) if start <= position < start + count)


def parts(case: Case, name: str, kind: str, bits: int) -> list[int]:
    """An operand cut into integers."""
    return lanes(Type("", kind, bits, 32 // bits), case.bits[name])


@oracle("integer", "dp4a")
def dp4a(case: Case) -> int:
    a, b = parts(case, "a", case.m.atype[0], 8), parts(case, "b", case.m.btype[0], 8)
    return wrap(32, case.number("c") + sum(map(operator.mul, a, b)))


@oracle("integer", "dp2a.lo dp2a.hi")
def dp2a(case: Case) -> int:
    a, b = parts(case, "a", case.m.atype[0], 16), parts(case, "b", case.m.btype[0], 8)
    return wrap(32, case.number("c") + sum(map(operator.mul, a, b[2:] if "hi" in case.form.name else b[:2])))


# Extended precision: the expected carry is the second result.


def summed(case: Case, *terms: int) -> tuple[int, int]:
    width = case.type("d").bits
    total = sum(terms)
    return wrap(width, total), int(total != wrap(width, total)) if case.m.cc else case.carry


@oracle("extended_precision", "add addc")
def add_carry(case: Case) -> tuple[int, int]:
    carry = case.carry if case.form.name == ("addc",) else 0
    return summed(case, case.bits["a"], case.bits["b"], carry)


@oracle("extended_precision", "sub subc")
def sub_borrow(case: Case) -> tuple[int, int]:
    # The flag says that nothing is borrowed.
    borrow = 1 - case.carry if case.form.name == ("subc",) else 0
    d, borrowed = summed(case, case.bits["a"], -case.bits["b"], -borrow)
    return d, 1 - borrowed if case.m.cc else case.carry


@oracle("extended_precision", "mad.lo mad.hi madc.lo madc.hi")
def mad_carry(case: Case) -> tuple[int, int]:
    width = case.type("d").bits
    product = case.number("a") * case.number("b")
    part = wrap(width, product >> (width if case.form.name[1] == "hi" else 0))
    return summed(case, part, case.bits["c"], case.carry if case.form.name[0] == "madc" else 0)


@oracle("logic", "and or xor not")
def logic(case: Case) -> int:
    rows = {"and": {"11"}, "or": {"01", "10", "11"}, "xor": {"01", "10"}, "not": {"0"}}[case.form.name[0]]
    columns = zip(*(digits(case, name) for name in case.bits), strict=True)
    return int("".join(str(int("".join(column) in rows)) for column in columns), 2)


@oracle("logic", "cnot")
def cnot(case: Case) -> int:
    return int(case.bits["a"] == 0)


@oracle("logic", "lop3")
def lop3(case: Case) -> int | tuple[int, int]:
    columns = zip(*(digits(case, name) for name in "abc"), strict=True)
    table = f"{case.bits['lut']:08b}"[::-1]
    d = int("".join(table[int("".join(column), 2)] for column in columns), 2)
    if case.m.bool is None:
        return d
    return d, int(bool(d) and case.bits["q"] == 1 if case.m.bool == "and" else bool(d) or case.bits["q"] == 1)


@oracle("logic", "shf.l shf.r")
def shf(case: Case) -> int:
    text = digits(case, "b") + digits(case, "a")
    count = case.number("c") % 32 if case.m.mode == "wrap" else min(case.number("c"), 32)
    return int(text[count : count + 32] if case.form.name[1] == "l" else text[32 - count : 64 - count], 2)


@oracle("logic", "shl")
def shl(case: Case) -> int:
    text = digits(case, "a")
    return int((text + "0" * min(case.number("b"), 99))[-len(text) :], 2)


@oracle("logic", "shr")
def shr(case: Case) -> int:
    text = digits(case, "a")
    fill = text[0] if case.type("a").kind == "s" else "0"
    return int((fill * min(case.number("b"), 99) + text)[: len(text)], 2)


# Comparison.

SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
           "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip


def to_float(type: str, bits: int, ftz: bool) -> float:
    """A float of any width as Python's."""
    if type == "bf16":
        type, bits = "f32", bits << 16
    layout, width, mantissa = {"f16": ("e", "H", 10), "f32": ("f", "I", 23), "f64": ("d", "Q", 52)}[type]
    if ftz and bits % 2 ** (struct.calcsize(width) * 8 - 1) < 2**mantissa:
        return 0.0
    return float(struct.unpack(layout, struct.pack(width, bits))[0])


def holds(case: Case, type: str, a: int, b: int) -> bool:
    name = case.m.cmp
    if type[0] in "fb" and type not in ("b16", "b32", "b64"):
        x, y = to_float(type, a, case.m.ftz), to_float(type, b, case.m.ftz)
        unordered = math.isnan(x) or math.isnan(y)
        if name in ("num", "nan"):
            return unordered == (name == "nan")
        if unordered:
            return bool(name.endswith("u") and name != "u")
        return bool(eval(f"x {SYMBOLS[name[:2]]} y", {"x": x, "y": y}))
    x, y = number_of(type_named(type), a), number_of(type_named(type), b)
    return bool(eval(f"x {SYMBOLS[name]} y", {"x": x, "y": y}))


def joined(case: Case, answer: bool) -> int:
    if case.m.bool is None:
        return int(answer)
    c = bool(case.bits["c"])
    return int({"and": answer and c, "or": answer or c, "xor": answer != c}[case.m.bool])


def answers(case: Case) -> list[bool]:
    """What the comparison says, of each half of a packed type."""
    type, a, b = case.type("a").name, int(case.bits["a"]), int(case.bits["b"])
    if not type.endswith("x2"):
        return [holds(case, type, a, b)]
    return [holds(case, type[:-2], a >> shift & 0xFFFF, b >> shift & 0xFFFF) for shift in (0, 16)]


@oracle("compare", "setp")
def setp(case: Case) -> tuple[int, ...]:
    found = answers(case)
    if len(found) == 1 and case.form.operands[0].second:
        found.append(not found[0])
    return tuple(joined(case, answer) for answer in found)


@oracle("compare", "set")
def set_(case: Case) -> int:
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}
    found = answers(case)
    width = 16 if len(found) == 2 or case.m.dtype in ("u16", "s16") else 32
    one = ones.get(case.m.dtype, 2**width - 1)
    return sum(joined(case, answer) * one << 16 * half for half, answer in enumerate(found))


@oracle("compare", "selp")
def selp(case: Case) -> Bits:
    return case.bits["a" if case.bits["c"] else "b"]


@oracle("compare", "slct")
def slct(case: Case) -> Bits:
    if case.m.ctype == "s32":
        return case.bits["a" if case.number("c") >= 0 else "b"]
    return case.bits["a" if to_float("f32", case.bits["c"], case.m.ftz) >= 0 else "b"]


# Moves.


@oracle("move", "mov")
def mov(case: Case) -> Any:
    a, to = case.bits["a"], case.operands["d"]
    if isinstance(a, tuple):
        if to.count:
            return (a,)
        whole = "".join(f"{part:0{case.type('a').width}b}" for part in reversed(a))
        return int(whole, 2)
    if to.count:
        width = case.type("a").width // to.count
        if width < 8:  # an H200 gives this; the manual has no vectors of a scalar
            return ((a, 0, 0, 0),)
        return (tuple(a >> width * index & (2**width - 1) for index in range(to.count)),)
    return a


# PTX ISA 9.7.9.7: the byte that goes to positions 3, 2, 1 and 0, for selectors 0 to 3.
PERMUTATIONS = {
    "f4e": "3210 4321 5432 6543",
    "b4e": "5670 6701 7012 0123",
    "rc8": "0000 1111 2222 3333",
    "ecl": "3210 3211 3222 3333",
    "ecr": "0000 1110 2210 3210",
    "rc16": "1010 3232 1010 3232",
}


@oracle("move", "prmt")
def prmt(case: Case) -> int:
    pool = b"".join(case.number(name).to_bytes(4, "little") for name in "ab")
    c = case.number("c")
    if case.m.mode:
        return int.from_bytes([pool[int(one)] for one in PERMUTATIONS[case.m.mode].split()[c % 4]], "big")
    chosen = [c >> 4 * position & 15 for position in range(4)]
    return int.from_bytes([(0xFF if pool[one - 8] > 127 else 0) if one > 7 else pool[one] for one in chosen], "little")


# Video.


def chosen_part(case: Case, name: str) -> int:
    kind, place = case.type(name).kind, case.selections.get(name)
    if place is None:
        return case.number(name)
    return parts(case, name, kind, 8 if place[0] == "b" else 16)[int(place[1])]


def shifted(case: Case, a: int, b: int) -> int:
    count = b % 32 if case.m.mode == "wrap" else min(b, 32)
    if case.form.name == ("vshr",):
        return a // 2**count
    # The manual wraps to 34 bits. The code of ptxas does so before it clamps, and else compares 64 bits with `c`.
    width = 34 if case.m.sat else 64
    return number_of(Type("", "s", width), wrap(width, a * 2**count))


VIDEO: Mapping[str, Callable[[Case, int, int], int]] = {
    "vadd": lambda _, a, b: a + b,
    "vsub": lambda _, a, b: a - b,
    "vabsdiff": lambda _, a, b: abs(a - b),
    "vmin": lambda _, a, b: min(a, b),
    "vmax": lambda _, a, b: max(a, b),
    "vshl": shifted,
    "vshr": shifted,
    "vset": lambda case, a, b: int(eval(f"a {SYMBOLS[case.m.cmp]} b", {"a": a, "b": b})),
    "vavrg": lambda _, a, b: (a + b + (a + b >= 0)) // 2,
}


# The scalar video instructions are what the code of ptxas 13.0 and 13.4 computes, as measured on an H200 (see
# `h200_integers.txt`); only of `d.h1` does ptxas 13.0 make something else.
@oracle("video", "vadd vsub vabsdiff vmin vmax vshl vshr vset")
def video(case: Case) -> int:
    name, place = case.form.name[0], case.selections.get("d")
    width = 32 if place is None else 8 if place[0] == "b" else 16
    result = VIDEO[name](case, chosen_part(case, "a"), chosen_part(case, "b"))
    if case.m.sat:
        result = video_clamp(case, width, result)
    if case.m.op2:
        return second_operation(case, result)
    if place is None:
        return wrap(32, result)
    into = bytearray(int(case.bits["c"]).to_bytes(4, "little"))
    first = int(place[1]) * width // 8
    into[first : first + width // 8] = wrap(width, result).to_bytes(width // 8, "little")
    return int.from_bytes(into, "little")


def video_clamp(case: Case, width: int, result: int) -> int:
    """What `.sat` makes of a result; the manual has it clamped to the range of what is written."""
    type = case.m.dtype
    if case.form.name[0] in ("vshl", "vshr"):
        return clamp(type, result)  # measured: to 32 bits, also where a part is written
    if width < 32:
        greatest = limits(f"{type[0]}{width}")[1]
        return result if result in range(greatest + 1) else greatest  # measured: 255 for -1, too
    return clamp(type, result) if type == "s32" else max(result, 0)  # measured: 0 for 2**32


def second_operation(case: Case, result: int) -> int:
    """The result and `c` added up, or one of them, whichever is less or greater when they are compared."""
    if case.m.op2 == "add":
        return wrap(32, result + int(case.bits["c"]))
    name = case.form.name[0]
    if name in ("vadd", "vsub") or (name in ("vshl", "vshr") and case.m.sat):
        result = number_of(type_named("s32"), wrap(32, result))  # measured: these are extended by bit 31
    # `vset` has no type of a result; measured: that of `a` is used.
    if (case.m.dtype or case.m.atype) == "s32":
        c = number_of(type_named("s32"), case.bits["c"])
    else:
        result, c = wrap(64, result), int(case.bits["c"])  # measured: -1 is the greatest of all
    return wrap(32, sorted((result, c))[case.m.op2 == "max"])


@oracle("video", "vmad")
def vmad(case: Case) -> int:
    minus = len(case.minus & {"a", "b"}) == 1
    signed = "s32" in (case.m.atype, case.m.btype) or minus or "c" in case.minus
    # Measured: whole registers are signed factors and addends, even those of u32.
    a, b, c = (number_of(type_named("s32"), wrap(32, one))
               for one in (chosen_part(case, "a"), chosen_part(case, "b"), int(case.bits["c"])))  # fmt: skip
    total = a * b * (-1 if minus else 1) + c * (-1 if "c" in case.minus else 1) + bool(case.m.po)
    scaled = (total if signed else wrap(64, total)) // 2 ** int((case.m.scale or "shr0")[3:])
    if case.m.sat:
        scaled = clamp("s32" if signed else "u32", number_of(type_named("s64"), wrap(64, scaled)))
    return wrap(32, scaled)


@oracle("video", " ".join(f"{name}{count}" for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")
                          for count in (2, 4)))  # fmt: skip
def video_lanes(case: Case) -> int:
    name, count = case.form.name[0][:-1], int(case.form.name[0][-1])
    width, kind = 32 // count, (case.m.dtype or "u32")[0]
    pools = {type: parts(case, "a", type, width) + parts(case, "b", type, width) for type in "us"}
    defaults = {"a": "3210"[-count:], "b": "32" if count == 2 else "7654", "d": "3210"[-count:]}
    picked = {one: case.selections.get(one, " " + defaults[one])[1:] for one in "abd"}
    d = case.number("c") if case.m.add else 0
    for lane in range(count):
        a, b = (pools[case.m.__dict__[f"{one}type"][0]][int(picked[one][-1 - lane])] for one in "ab")
        result = VIDEO[name](case, a, b)
        if case.m.sat:
            result = clamp(f"{kind}{width}", result)
        written = str(lane) in picked["d"]
        if case.m.add:
            d += result * written
        else:
            d |= wrap(width, result if written else parts(case, "c", kind, width)[lane]) << width * lane
    return wrap(32, d)
