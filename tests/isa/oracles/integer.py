"""What integer arithmetic must give."""

import math
from collections.abc import Callable

from ptxlab.isa.types import type_named

from ..cases import Case, number_of
from .table import clamp, lanes, oracle, wrap


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


@oracle("integer", "clmad.lo clmad.hi")
def clmad(case: Case) -> int:
    a, b, c = (int(case.bits[name]) for name in "abc")
    product = 0
    for position, digit in enumerate(reversed(f"{a:b}")):
        product ^= int(digit) * b << position
    return wrap(64, product >> (64 if case.form.name[-1] == "hi" else 0)) ^ c


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
