"""What arithmetic with a carry must give: the expected carry is the second result."""

from ..cases import Case
from .table import oracle, wrap


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
