"""A module without a stack calls what needs one.

Where any function of a module has several results, ptxas makes code without a stack for all of the module. Such code
has no recursion, no calls through a register, no addresses of functions, and no calls of functions that are defined
elsewhere, `vprintf` and `malloc` among them.

Wrong:

```ptx
.version 8.0
.target sm_80
.func (.reg .u32 quotient, .reg .u32 rest) divide(.reg .u32 a, .reg .u32 b) {
    div.u32 quotient, a, b;
    rem.u32 rest, a, b;
    ret;
}
.func (.reg .u32 sum) sum_to(.reg .u32 n) {
    .reg .pred %done;
    .reg .u32 %less;
    mov.u32 sum, n;
    setp.eq.u32 %done, n, 0;
    @%done ret;
    sub.u32 %less, n, 1;
    call (%less), sum_to, (%less);
    add.u32 sum, n, %less;
    ret;
}
.entry k() {
    .reg .u32 %r<3>;
    call (%r1, %r2), divide, (7, 2);
    call (%r1), sum_to, (%r1);
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.func (.reg .b64 both) divide(.reg .u32 a, .reg .u32 b) {
    .reg .u32 %quotient, %rest;
    div.u32 %quotient, a, b;
    rem.u32 %rest, a, b;
    mov.b64 both, {%quotient, %rest};
    ret;
}
.func (.reg .u32 sum) sum_to(.reg .u32 n) {
    .reg .pred %done;
    .reg .u32 %less;
    mov.u32 sum, n;
    setp.eq.u32 %done, n, 0;
    @%done ret;
    sub.u32 %less, n, 1;
    call (%less), sum_to, (%less);
    add.u32 sum, n, %less;
    ret;
}
.entry k() {
    .reg .u32 %r<3>;
    .reg .b64 %both;
    call (%both), divide, (7, 2);
    mov.b64 {%r1, %r2}, %both;
    call (%r1), sum_to, (%r1);
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, Span, error

from ..program import FunctionFacts, Program


def check(program: Program) -> Iterator[Diagnostic]:
    cause = program.calls.with_several_results
    if cause is None:
        return
    for facts in program.functions:
        for call in facts.calls:
            what = _needing_a_stack(program, facts, call)
            if what is not None:
                yield _wrong(program, cause, what, program.module.span(call))
        if facts.function.name in program.calls.compiled:
            yield from _check_addresses(program, facts, cause)
    functions = {function.name for function in program.module.functions}
    for variable in program.module.variables:
        if any(name in functions for name in _named(variable.initializer)):
            what = f"the initial value of `{variable.name}` is the address of a function"
            yield _wrong(program, cause, what, program.module.span(variable))


def _needing_a_stack(program: Program, facts: FunctionFacts, call: ir.Instruction) -> str | None:
    name = program.calls.callee(call)
    if name is None:
        through = any(isinstance(operand, ir.Register) for operand in call.operands)
        return "a function is called through a register" if through else None
    if not program.calls.has_body(name):
        return f"`{name}` is called, which is defined elsewhere"
    if facts.function.name in program.calls.compiled and program.calls.is_called_by(facts.function.name, name):
        return f"`{name}` is called recursively"
    return None


def _check_addresses(program: Program, facts: FunctionFacts, cause: ir.Function) -> Iterator[Diagnostic]:
    calls = set(map(id, facts.calls))
    for instruction in facts.instructions:
        if id(instruction) in calls:
            continue
        for operand in instruction.operands:
            if isinstance(operand, ir.FunctionReference):
                what = f"the address of `{operand.name}` is taken"
                yield _wrong(program, cause, what, program.module.span(instruction))


def _named(value: ir.Initializer | None) -> Iterator[str]:
    if isinstance(value, ir.InitializerList):
        for element in value.elements:
            yield from _named(element)
    elif isinstance(value, ir.SymbolAddress):
        yield value.name


def _wrong(program: Program, cause: ir.Function, what: str, span: Span | None) -> Diagnostic:
    declared = program.module.name_span(cause)
    return error(
        "stackless-call",
        f"{what} in a module without a stack",
        span,
        "needs a stack",
        others=[Label(declared, "has several results, so ptxas makes no stack")] if declared else [],
        helps=[f"return one value from `{cause.name}`: a `.b64` that holds two, or a `.param` array"],
    )
