"""An operand is not of the kind, width or type that the instruction works on.

PTX is strict about registers: `.b` instructions take any register of their width, `.u` and `.s` instructions registers
of bits or integers, `.f` instructions registers of bits or of exactly that format. Only `ld`, `st` and `cvt` let the
register be wider than the type. An integer is never a floating-point constant, nor the other way round. ptxas calls all
of this `Arguments mismatch`.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<3>;
    .reg .f32 %f<2>;
    mov.f32 %f1, 0f3F800000;
    mov.u32 %r2, 1;
    add.u32 %r1, %r2, %f1;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<4>;
    .reg .f32 %f<2>;
    mov.f32 %f1, 0f3F800000;
    mov.u32 %r2, 1;
    cvt.rzi.u32.f32 %r3, %f1;
    add.u32 %r1, %r2, %r3;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.ir.shapes import shape_of, unwritable
from ptxlab.isa import Match
from ptxlab.isa.operand import Expected
from ptxlab.isa.shape import find_problem, is_odd, wrong_scalar
from ptxlab.report import Diagnostic, Edit, Help, Label, Span, error, warning

from ..program import Failure, FunctionFacts, Program
from ..wording import described


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["operand-type"]:
        assert failure.mismatch is not None
        # A module of 32-bit addresses is refused as a whole, by its header.
        if program.module.address_size != 32 or failure.mismatch.problem.kind != "address-width":
            yield explain(program, failure)
    for failure in program.failures["odd-operand"]:
        yield _doubt(program, failure)
    for facts in program.functions:
        for at in facts.where(_names_an_object):
            yield from _check_objects(program, facts, at)


def _names_an_object(match: Match) -> bool:
    """Whether an address of an instruction names a texture, a sampler or a surface."""
    return any(_is_object(expected) for expected in match.expected)


def _is_object(expected: Expected) -> bool:
    return expected.kind == "address" and expected.type is not None and expected.type.kind == "o"


def _check_objects(program: Program, facts: FunctionFacts, at: int) -> Iterator[Diagnostic]:
    """A texture, a sampler or a surface has no parts that an offset could lead to."""
    instruction, match = facts.instructions[at], facts.matches[at]
    assert match is not None
    for index, (expected, address) in enumerate(zip(match.expected, instruction.operands, strict=False)):
        if _is_object(expected) and isinstance(address, ir.Address) and (address.offset or address.plus_zero):
            assert expected.type is not None
            text, wanted = instruction.opcode.text, f"a `.{expected.type.name}`"
            yield error(
                "operand-type",
                f"operand {index + 1} of `{text}` is an address with an offset, expected {wanted}",
                program.module.operand_span(instruction, index),
                "expected a name or a register, with nothing added to it",
            )


def _doubt(program: Program, failure: Failure) -> Diagnostic:
    """Say what ptxas takes in silence, though it can hardly be meant."""
    assert failure.match is not None
    instruction, index = failure.instruction, failure.operand
    expected = failure.match.expected[index]
    operand = instruction.operands[index]
    for inner, part in zip(expected.inner, getattr(operand, "arguments", ()), strict=False):
        if is_odd(inner, shape_of(part)):  # what is odd is inside the brackets
            expected, operand = inner, part
    if expected.stray:
        return warning(
            "operand-type",
            f"operand {index + 1} of `{instruction.opcode.text}` does nothing",
            program.module.operand_span(instruction, index),
            "ptxas accepts it, and ignores it",
            helps=["remove it"],
        )
    for name in unwritable(instruction, failure.match):
        return error(
            "operand-type",
            f"operand {index + 1} of `{instruction.opcode.text}` has `{name}` among its results",
            program.module.operand_span(instruction, index),
            "ptxas accepts it, but nothing can write to it: a result needs a register",
        )
    is_address = expected.kind == "address"
    plain = is_address and isinstance(operand, ir.Address) and not operand.arguments
    wrong = culprit(operand, expected) if isinstance(operand, ir.Vector) or plain else operand
    narrow = plain and expected.type is None
    wanted = f"64 bits for {expected.describe()}" if narrow else expected.describe()
    return warning(
        "operand-type",
        f"operand {index + 1} of `{instruction.opcode.text}` is {described(wrong)}, expected {wanted}",
        program.module.operand_span(instruction, index),
        "ptxas accepts it, but it is probably not meant",
        helps=["put the address in brackets"] if is_address and not plain else [],
    )


def explain(program: Program, failure: Failure) -> Diagnostic:
    """What is there, what should be, and where the register was declared."""
    mismatch = failure.mismatch
    assert mismatch is not None
    instruction, index = failure.instruction, failure.operand
    expected = mismatch.problem.expected
    assert expected is not None
    operand = instruction.operands[index]
    wrong = culprit(operand, expected)
    wanted = expected.describe()
    if mismatch.problem.kind == "address-width":
        wanted = f"64 bits for {wanted}"
    said = f"{described(wrong)}, expected {wanted}"
    if mismatch.problem.kind == "no-part":
        said = f"{described(wrong).split(',')[0]}, which has no such part"
    declared = []
    if isinstance(wrong, ir.Register) and wrong.variable is not None:
        span = program.module.span(wrong.variable)
        if span is not None:
            declared = [Label(span, f"declared `.{wrong.type.name}` here")]
    return error(
        "operand-type",
        f"operand {index + 1} of `{instruction.opcode.text}` is {said}",
        program.module.operand_span(instruction, index),
        REASONS.get(mismatch.problem.kind) or f"expected {expected.describe()}",
        others=declared,
        notes=[f"legal: `{mismatch.candidate.form.syntax}`"],
        helps=_as_float(wrong, expected, program.module.operand_span(instruction, index)),
    )


def _as_float(operand: ir.Operand, expected: Expected, span: Span | None) -> list[Help]:
    """An integer constant where a float is needed, with a decimal point."""
    is_float = expected.type is not None and expected.type.name in ("f32", "f64")
    if not isinstance(operand, ir.Immediate) or operand.is_float or not is_float:
        return []
    text = f"{operand.value}.0"
    edits = (Edit(span, text),) if span is not None and span.text == str(operand.value) else ()
    return [Help(f"write `{text}`", edits)]


def culprit(operand: ir.Operand, expected: Expected) -> ir.Operand:
    """The part of a compound operand that is most likely the wrong one."""
    if isinstance(operand, ir.Vector) and expected.type is not None:
        return next((part for part in operand.elements if wrong_scalar(expected, shape_of(part))), operand)
    if isinstance(operand, ir.Address):
        beside = zip(expected.inner, operand.arguments, strict=False)
        if not any(find_problem(inner, shape_of(part), 0) for inner, part in beside):
            return operand.base
    return operand


REASONS = {
    "address-type": "an address is an integer or bits",
    "address-width": "an address of this state space has 64 bits",
    "object-array": "an array; put the address of one of its elements into a register, by `mov`",
    "special-register": "a special register can only be read by `mov`",
    "decimal": "a constant must have 32 bits here, as `0f00000000` has; a decimal one has 64",
    "vector-types": "floats, integers and pairs of halves can be mixed only in untyped registers of one width",
    "register-only": "an immediate is not allowed here, use a register",
    "result-register": "a result needs a register",
    "sink": "`_` is not allowed here",
    "not-address": "an address belongs here, in brackets",
    "no-part": "it has no such part",
    "element": "an element of a vector is not allowed here",
    "not-array": "only an array has elements, and the index is an integer",
    "not-immediate": "this must be a constant",
    "negated": "this predicate cannot be negated",
    "pair": "this form has no second result",
    "not-pair": "this form has two results, `p|q`",
    "symbol": "the name of a variable is not allowed here; take its address with `mov`",
}
