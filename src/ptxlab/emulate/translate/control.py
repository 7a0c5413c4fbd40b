"""Branches, calls and returns: statements that compute nothing but decide where a thread continues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.abi import code, faults
from ptxlab.emulate.translate import passing
from ptxlab.emulate.translate.operands import scalar
from ptxlab.emulate.translate.values import LlvmValue
from ptxlab.isa import Jump
from ptxlab.isa.types import type_named
from ptxlab.native import size_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_U32, _U64 = type_named("u32"), type_named("u64")


def _bra(function: Function, instruction: ir.Instruction) -> None:
    (target,) = function.flow.targets[function.position]
    function.go(target)


def _brx(function: Function, instruction: ir.Instruction) -> None:
    """Jump to one of a list of labels; an index beyond the list fails."""
    builder = function.builder
    index = scalar(function, _U32, instruction.operands[0]).text
    targets = function.flow.targets[function.position]
    wrong = builder.new_label("wrong")
    labels = [builder.new_label("case") for _ in targets]
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(labels))
    builder.close(f"switch i32 {index}, label %{wrong} [ {cases} ]")
    for label, target in zip(labels, targets, strict=True):
        builder.label(label)
        function.go(target)
    builder.label(wrong)
    _fail(function, faults.BAD_BRANCH, LlvmValue(function, _U32, index))


def _ret(function: Function, instruction: ir.Instruction) -> None:
    function.leave()


def _exit(function: Function, instruction: ir.Instruction) -> None:
    function.exit()


def _trap(function: Function, instruction: ir.Instruction) -> None:
    _fail(function, faults.TRAP, 0)


def _fail(function: Function, kind: int, value: LlvmValue | int) -> None:
    function.unit.calls.runtime_call(function, "fail", (kind, function.instruction_number, value), None)
    function.fail()


def _call(function: Function, instruction: ir.Instruction) -> None:
    """Save the registers, hand the arguments over in local memory, let the callee run, and read its results."""
    operands = list(instruction.operands)
    results: tuple[ir.Operand, ...] = ()
    if isinstance(operands[0], ir.Arguments) and len(operands) > 1:
        results = operands.pop(0).elements  # type: ignore[union-attr]
    callee = operands.pop(0)
    arguments = operands[0].elements if operands and isinstance(operands[0], ir.Arguments) else ()
    if isinstance(callee, ir.FunctionReference):
        target = function.unit.by_name[callee.name]
        if target.body is None:
            function.unit.call_builtin(function, callee.name, target, results, arguments)
            return
        returns, parameters = target.returns, target.parameters
        number = str(function.unit.function_number(callee.name))
        entry = function.builder.value(f"getelementptr i8, ptr @callees, i64 {int(number) * size_of(code.Callee)}")
    else:
        returns, parameters = _prototype(function, operands)
        address = scalar(function, _U64, callee)
        found = function.builder.value(
            f"call ptr @{function.unit.calls.runtime('find_callee')}"
            f"(ptr %thread, i64 {address.text}, i32 {function.unit.signature_number(returns, parameters)}, "
            f"i32 {function.instruction_number})"
        )
        entry = _unless_null(function, found)
    builder = function.builder
    area = layout.block_of((*returns, *parameters))
    top = function.load_field("memory.local_top", "i64")
    if function.iterations is not None:
        function.iterations.call(function.block_number, function.instruction_number)
    enough = builder.value(
        f"call i1 @{function.unit.calls.runtime('enter')}(ptr %thread, i64 %own.size, ptr {entry}, "
        f"i32 {function.frame.next_resume}, i32 {function.instruction_number})"
    )
    fail, on = builder.new_label("fail"), builder.new_label("enter")
    builder.branch(enough, on, fail, likely=True)
    builder.label(fail)
    function.fail()
    builder.label(on)
    for variable, argument in zip(parameters, arguments, strict=True):
        passing.pass_argument(function, variable, argument, _pointer(function, top, area.offsets[id(variable)]))
    function.frame.wait(None, function.live.across(function.position), calls=True)
    # Back again: results are where the callee left them, above the local memory of this function.
    top = function.load_field("memory.local_top", "i64") if results else ""
    for variable, result in zip(returns, results, strict=True):
        passing.receive_result(function, variable, result, _pointer(function, top, area.offsets[id(variable)]))


def _unless_null(function: Function, pointer: str) -> str:
    builder = function.builder
    fail, on = builder.new_label("fail"), builder.new_label("on")
    builder.branch(builder.value(f"icmp eq ptr {pointer}, null"), fail, on, likely=False)
    builder.label(fail)
    function.fail()
    builder.label(on)
    return pointer


def _prototype(function: Function, operands: list[ir.Operand]) -> tuple[list[ir.Variable], list[ir.Variable]]:
    """What an indirect call returns and takes: by its prototype, or by one of the functions it may call."""
    label = operands[-1]
    assert isinstance(label, ir.LabelReference)
    found = function.labels[label.name]
    if isinstance(found, ir.CallPrototype):
        return found.returns, found.parameters
    assert isinstance(found, ir.CallTargets)
    target = found.targets[0]
    assert isinstance(target, ir.FunctionReference)
    return target.function.returns, target.function.parameters


def _pointer(function: Function, base: str, offset: int) -> str:
    at = function.builder.value(f"add i64 {base}, {offset}")
    return function.builder.value(f"getelementptr i8, ptr %local, i64 {at}")


HANDLERS: dict[Jump, Callable[[Function, ir.Instruction], None]] = {
    Jump.BRANCH: _bra,
    Jump.INDEXED_BRANCH: _brx,
    Jump.RETURN: _ret,
    Jump.EXIT: _exit,
    Jump.TRAP: _trap,
    Jump.CALL: _call,
}
