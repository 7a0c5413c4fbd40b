"""The word for what an instruction computes is true: on the reference machine, it computes just that."""

import operator
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from ptxlab.isa import Operation, opcode
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms

from .cases import Case, all_operands, exact, make_cases
from .sample import Choice

COMPUTED: dict[Operation, Callable[..., int]] = {
    Operation.COPY: lambda a: a,
    Operation.CONVERSION: lambda a: a,
    Operation.SUM: operator.add,
    Operation.DIFFERENCE: operator.sub,
    Operation.PRODUCT: operator.mul,
    Operation.PRODUCT_SUM: lambda a, b, c: a * b + c,
    Operation.SHORT_PRODUCT: lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    Operation.SHORT_PRODUCT_SUM: lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    Operation.QUOTIENT: operator.floordiv,
    Operation.REMAINDER: operator.mod,
    Operation.NEGATION: operator.neg,
    Operation.MAGNITUDE: abs,
    Operation.MINIMUM: min,
    Operation.MAXIMUM: max,
    Operation.AND: operator.and_,
    Operation.OR: operator.or_,
    Operation.XOR: operator.xor,
    Operation.NOT: operator.invert,
    Operation.LEFT_SHIFT: lambda a, b: a << min(b, 64),
    Operation.RIGHT_SHIFT: operator.rshift,
}


def choices(form: Form) -> Iterator[Choice]:
    """The spellings that compute on single integers, and do not clamp the result."""
    for choice in islice(form.spellings(), 64):
        m = form.modifiers(choice)
        operands = all_operands(form, m)
        integers = all(one.type is not None and one.type.kind in "usbp" and one.type.lanes == 1 for one in operands)
        if integers and not (m.sat or m.relu or m.vec or any(one.count for one in operands)):
            yield choice


TRIED = [form for form in forms() if form.computes in COMPUTED and form.semantics is not None and any(choices(form))]


def test_every_word_is_tried() -> None:
    assert {form.computes for form in TRIED} == COMPUTED.keys()


@pytest.mark.parametrize("form", TRIED, ids=lambda form: form.syntax)
def test_a_word_is_true(form: Form) -> None:
    assert form.computes is not None
    tried = 0
    for choice in choices(form):
        for case in make_cases(form, choice, 60):
            numbers = [case.number(name) for name in case.bits]
            if _is_defined(form, numbers):
                tried += 1
                result = next(one.type for one in case.operands.values() if one.role == "write")
                assert result is not None
                expected = COMPUTED[form.computes](*numbers) & ((1 << result.width) - 1)
                assert exact(Case(form, choice, case.bits))[0] == expected, case
    assert tried


def _is_defined(form: Form, numbers: list[int]) -> bool:
    """Division is tried on positive numbers, where it rounds alike for all."""
    if form.computes in (Operation.QUOTIENT, Operation.REMAINDER):
        return numbers[0] >= 0 and numbers[1] > 0
    if form.computes in (Operation.SHORT_PRODUCT, Operation.SHORT_PRODUCT_SUM):
        return min(numbers[:2]) >= 0 and all(number < 1 << 23 for number in numbers[:2])
    return True


@pytest.mark.parametrize(
    ("text", "word"),
    [("mul.hi.u32", None), ("mad.hi.s32", None), ("addc.u32", None), ("setp.lt.s32", Operation.COMPARISON),
     ("fma.rn.f32", Operation.PRODUCT_SUM), ("ex2.approx.f32", Operation.FUNCTION), ("prmt.b32", Operation.PERMUTATION),
     ("cvt.rn.f16x2.f32", Operation.PACKING), ("cvt.rn.f32.s32", Operation.CONVERSION),
     ("cvta.to.global.u64", Operation.ADDRESS), ("mapa.shared::cluster.u32", Operation.ADDRESS),
     ("shfl.sync.idx.b32", Operation.SHUFFLE), ("selp.b32", Operation.SELECTION), ("ld.global.u32", None)],
)  # fmt: skip
def test_words(text: str, word: Operation | None) -> None:
    assert opcode(text).candidates[0].effects.computes is word
