"""A call does not fit the function that it calls.

A call names a device function that is declared above it, or a register with the function's address and the
`.callprototype` or `.calltargets` above it that it conforms to, and passes exactly the parameters of the declaration.

Wrong:

```ptx
.version 8.0
.target sm_80
.func f(.param .b32 a) { ret; }
.entry k() {
    call f;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.func f(.param .b32 a) { ret; }
.entry k() {
    .param .b32 argument;
    st.param.b32 [argument], 1;
    call f, (argument);
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, Span, error

from ..passing import fits, is_formal, is_narrow
from ..program import FunctionFacts, Program
from ..storage import parameter_alignment
from ..wording import described


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        for call in facts.calls:
            yield from _check(program, facts, call)


def _check(program: Program, facts: FunctionFacts, call: ir.Instruction) -> Iterator[Diagnostic]:
    parts = list(call.operands)
    results = parts.pop(0) if parts and isinstance(parts[0], ir.Arguments) else None
    if not parts:
        span = program.module.span(call)
        yield error("illegal-call", "the call names no function", span, "what is called?")
        return
    position = len(call.operands) - len(parts)
    target = parts.pop(0)
    arguments = parts.pop(0) if parts and isinstance(parts[0], ir.Arguments) else None
    prototype = parts.pop(0) if parts else None
    span = program.module.operand_span(call, position)
    given = (
        results.elements if isinstance(results, ir.Arguments) else (),
        arguments.elements if isinstance(arguments, ir.Arguments) else (),
    )
    if isinstance(target, ir.FunctionReference):
        if target.function.kind == "entry":
            yield error("illegal-call", f"`{target.name}` is a kernel and cannot be called", span, "not a function",
                        helps=["make it a `.func`, or launch it from the host"])  # fmt: skip
            return
        if prototype is not None:
            yield error("illegal-call", f"`{target.name}` is called by name and needs no prototype", span,
                        "not a register", helps=["remove the last operand"])  # fmt: skip
            return
        yield from _compare_function(program, facts, call, target.function, given)
    elif isinstance(target, ir.Register):
        found = facts.labels.get(prototype.name) if isinstance(prototype, ir.LabelReference) else None
        if prototype is None:
            yield error("illegal-call", "an indirect call needs a `.callprototype` or `.calltargets`", span,
                        "what does this function take?")  # fmt: skip
        elif isinstance(found, (ir.CallPrototype, ir.CallTargets)) and _is_below(found, call):
            declared = program.module.span(found)
            yield error("illegal-call", f"`{found.name}` comes too late",
                        program.module.operand_span(call, len(call.operands) - 1), "used before it is declared",
                        others=[Label(declared, "it is declared here")] if declared else [])  # fmt: skip
        elif isinstance(found, ir.CallPrototype):
            wanted = (found.returns, found.parameters)
            yield from _compare(program, facts, call, found.name, wanted, given, program.module.span(found))
        elif isinstance(found, ir.CallTargets):
            for named in found.targets:
                if isinstance(named, ir.FunctionReference):
                    yield from _compare_function(program, facts, call, named.function, given)
        elif not isinstance(prototype, (ir.LabelReference, ir.Unresolved)):
            yield error("illegal-call", f"a call conforms to a prototype, not to {described(prototype)}",
                        program.module.operand_span(call, len(call.operands) - 1), "not a prototype")  # fmt: skip
        elif isinstance(found, (ir.Label, ir.BranchTargets)):
            yield error("illegal-call", f"`{found.name}` is neither a `.callprototype` nor a `.calltargets`",
                        program.module.operand_span(call, len(call.operands) - 1), "a label of code")  # fmt: skip
    elif not isinstance(target, ir.Unresolved):
        yield error("illegal-call", f"a call goes to a function, not to {described(target)}", span, "not a function")


def _is_below(found: ir.CallPrototype | ir.CallTargets, call: ir.Instruction) -> bool:
    return found.start is not None and call.start is not None and found.start > call.start


def _compare_function(
    program: Program,
    facts: FunctionFacts,
    call: ir.Instruction,
    function: ir.Function,
    given: tuple[tuple[ir.Operand, ...], tuple[ir.Operand, ...]],
) -> Iterator[Diagnostic]:
    wanted = (function.returns, function.parameters)
    yield from _compare(program, facts, call, function.name, wanted, given, program.module.name_span(function))


def _compare(
    program: Program,
    facts: FunctionFacts,
    call: ir.Instruction,
    name: str,
    wanted: tuple[list[ir.Variable], list[ir.Variable]],
    given: tuple[tuple[ir.Operand, ...], tuple[ir.Operand, ...]],
    declared: Span | None,
) -> Iterator[Diagnostic]:
    others = [Label(declared, "declared here")] if declared else []
    for what, formals, actuals in zip(("result", "parameter"), wanted, given, strict=True):
        optional = len(formals) > 1 and what == "parameter" and formals[-1].elements is None
        if len(actuals) not in (len(formals), len(formals) - optional):
            plural = "s" if len(formals) != 1 else ""
            yield error(
                "illegal-call",
                f"`{name}` has {len(formals)} {what}{plural}, the call passes {len(actuals)}",
                program.module.span(call),
                f"{len(actuals)} where {len(formals)} belong",
                others=others,
            )
            return
        for formal, actual in zip(formals, actuals, strict=False):
            fault = _fault(program, facts, f"{what} `{formal.name}` of `{name}`", formal, actual, what == "result")
            if fault is not None:
                message, label, helps = fault
                yield error("illegal-call", message, program.module.span(call), label, others=others, helps=helps)
                return


def _fault(
    program: Program, facts: FunctionFacts, name: str, formal: ir.Variable, actual: ir.Operand, is_result: bool
) -> tuple[str, str, list[str]] | None:
    """What is wrong with passing `actual` for the parameter or result that is called `name`: message, label, help."""
    if not fits(formal, actual, result=is_result):
        return f"{name} is `.{formal.type.name}`, the call passes {described(actual)}", "of another type", []
    if isinstance(actual, ir.VariableReference) and is_formal(facts.function, actual.variable):
        message = f"`{actual.name}` is a parameter of `{facts.function.title}`, which no call can pass on"
        helps = ["declare a `.param` variable in the body, and copy it there"]
        return message, "not a variable of the body", helps
    if not _is_aligned_as(formal, actual):
        message = f"{name} is aligned to {parameter_alignment(formal)} bytes, {described(actual)} is not"
        return message, "of another alignment", []
    calls = program.calls
    if is_narrow(formal) and facts.function.name in calls.compiled and calls.with_several_results is None:
        message = f"{name} is a single `.{formal.type.name}`, which no call can pass"
        return message, "passed here", [f"make it a `.b{max(formal.type.width, 16)}`"]
    return None


def _is_aligned_as(formal: ir.Variable, actual: ir.Operand) -> bool:
    if isinstance(actual, ir.VariableReference):
        return formal.state_space == "reg" or parameter_alignment(formal) == parameter_alignment(actual.variable)
    if isinstance(actual, ir.Register) and actual.variable is not None and formal.state_space == "reg":
        return parameter_alignment(formal) == parameter_alignment(actual.variable)
    return True
