"""What instructions on bits and bit fields must give, and dot products of bytes."""

import operator

from ptxlab.isa.types import Type, type_named

from ..cases import Case, number_of
from .table import lanes, oracle, wrap


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
