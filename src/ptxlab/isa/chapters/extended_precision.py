"""Extended-precision integer arithmetic: the carry flag `CC.CF` chains words into longer numbers (PTX ISA 9.7.2).

A subtraction adds the complement, and the flag is then the carry of that sum: set where nothing is borrowed. The manual
has the borrow itself in `CC.CF`; ptxas keeps the carry, as an `addc` after a `sub.cc` shows.
"""

from ..bits import WIDER, high_half
from ..form import Modifiers, form
from ..machine import Machine, Value
from ..operation import computes

WORDS = ("u32 s32", ("u64 s64", "4.3 sm_20"))
PLAIN = "u32 s32 u64 s64"  # ptxas asks for PTX 4.3 and sm_20 only where a 64-bit instruction writes the carry


@form("add.cc.type d, a, b", type=WORDS, since="1.2")
@computes("sum")
def add(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Add two integers and keep the carry out."""
    return _add(k, m, a, b)


@form("addc.type d, a, b", type=PLAIN, since="1.2")
@form("addc.cc.type d, a, b", type=WORDS, since="1.2")
def addc(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Add two integers and the carry; `.cc` keeps the carry out."""
    return _add(k, m, a, b, k.carry)


@form("sub.cc.type d, a, b", type=WORDS, since="1.3")  # the manual says 1.2, ptxas wants 1.3
@computes("difference")
def sub(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Subtract `b` from `a` and keep the borrow."""
    return _add(k, m, a, ~b, k.constant("pred", 1))


@form("subc.type d, a, b", type=PLAIN, since="1.3")
@form("subc.cc.type d, a, b", type=WORDS, since="1.3")
def subc(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Subtract `b` and the borrow from `a`; `.cc` keeps the borrow."""
    return _add(k, m, a, ~b, k.carry)


@form("mad.lo.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
@computes("product-sum")
def mad_lo(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b`, add `c` to the low half of the product, and keep the carry out."""
    return _add(k, m, a * b, c)


@form("mad.hi.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
def mad_hi(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b`, add `c` to the high half of the product, and keep the carry out."""
    return _add(k, m, high_half(k, a, b), c)


@form("madc.lo.type d, a, b, c", type=PLAIN, since="3.0 sm_20")
@form("madc.lo.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
def madc_lo(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b`, add `c` and the carry to the low half of the product; `.cc` keeps the carry out."""
    return _add(k, m, a * b, c, k.carry)


@form("madc.hi.type d, a, b, c", type=PLAIN, since="3.0 sm_20")
@form("madc.hi.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
def madc_hi(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b`, add `c` and the carry to the high half of the product; `.cc` keeps the carry out."""
    return _add(k, m, high_half(k, a, b), c, k.carry)


def _add(k: Machine, m: Modifiers, a: Value, b: Value, carry: Value | None = None) -> Value:
    """`a + b` and the carry; `.cc` keeps what goes beyond the highest bit."""
    total = _widen(k, a) + _widen(k, b)
    if carry is not None:
        total = total + k.cast(carry, total.type.name)
    if m.cc:
        k.carry = total >> a.type.width != 0
    return k.cast(total, a.type.name)


def _widen(k: Machine, a: Value) -> Value:
    """The bits of `a`, with zeros above them."""
    return k.cast(k.reinterpret(a, f"u{a.type.bits}"), WIDER[a.type.width])
