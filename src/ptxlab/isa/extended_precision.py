"""Extended-precision integer arithmetic: the carry flag `CC.CF` chains words into longer numbers (PTX ISA 9.7.2)."""

from .form import form

WORDS = ("u32 s32", ("u64 s64", "4.3 sm_20"))
PLAIN = "u32 s32 u64 s64"  # ptxas asks for PTX 4.3 and sm_20 only where a 64-bit instruction writes the carry


@form("add.cc.type d, a, b", type=WORDS, since="1.2")
def add() -> None:
    """Add two integers and keep the carry out."""


@form("addc.type d, a, b", type=PLAIN, since="1.2")
@form("addc.cc.type d, a, b", type=WORDS, since="1.2")
def addc() -> None:
    """Add two integers and the carry; `.cc` keeps the carry out."""


@form("sub.cc.type d, a, b", type=WORDS, since="1.3")  # the manual says 1.2, ptxas wants 1.3
def sub() -> None:
    """Subtract `b` from `a` and keep the borrow."""


@form("subc.type d, a, b", type=PLAIN, since="1.3")
@form("subc.cc.type d, a, b", type=WORDS, since="1.3")
def subc() -> None:
    """Subtract `b` and the borrow from `a`; `.cc` keeps the borrow."""


@form("mad.lo.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
@form("mad.hi.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
def mad() -> None:
    """Multiply `a` by `b`, add `c` to the low or the high half of the product, and keep the carry out."""


@form("madc.lo.type d, a, b, c", type=PLAIN, since="3.0 sm_20")
@form("madc.lo.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
@form("madc.hi.type d, a, b, c", type=PLAIN, since="3.0 sm_20")
@form("madc.hi.cc.type d, a, b, c", type=WORDS, since="3.0 sm_20")
def madc() -> None:
    """Multiply `a` by `b`, add `c` and the carry to the low or the high half of the product; `.cc` keeps the carry."""
