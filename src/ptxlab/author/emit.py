"""One instruction: from a spelling and Python values to a line of PTX and the registers that it writes.

`plan` finds the form that the arguments make of an opcode, by the same table and rules that `check` reads; it is asked
once per spelling and kinds of arguments. `emit` then prints the operands and makes registers for the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.author.constants import is_number, print_constant
from ptxlab.author.lines import refuse
from ptxlab.author.operand import Kind, Operand, describe
from ptxlab.author.registers import Register, class_of
from ptxlab.author.trace import Trace, current
from ptxlab.author.violations import explain_mismatch, explain_spelling
from ptxlab.isa import Candidate, Type, opcode, type_named
from ptxlab.isa.opcode import align
from ptxlab.isa.operand import Expected, Shape
from ptxlab.isa.shape import find_problem
from ptxlab.isa.special_registers import SPECIAL_REGISTERS

_GUARD = Expected("when", "read", negatable=True)
OPAQUE = frozenset(("texref", "surfref", "samplerref"))  # types of variables that are also their state space


@dataclass(frozen=True, slots=True)
class ChosenForm:
    """The form that is meant; `expected` is one entry an operand of the line, results included."""

    candidate: Candidate
    expected: tuple[Expected, ...]


def kind_of(argument: object) -> Kind:
    """What matters of an argument when a form is looked for."""
    if isinstance(argument, Operand):
        return argument.operand_kind
    if argument is None:
        return "_"
    if is_number(argument):
        return "#int" if hasattr(argument, "__index__") else "#float"
    if isinstance(argument, (tuple, list)):
        return ("(", *[kind_of(part) for part in argument])
    if isinstance(argument, str):
        return ("%", _special_shape(argument)) if argument.startswith("%") else ("@",)
    return refuse(
        "not-an-operand",
        f"{type(argument).__name__} {argument!r:.40} is not an operand of an instruction",
        helps=[
            "operands are registers, numbers, pointers and arrays of the kernel, and tuples of these",
            "an array of the host is an argument of the launch",
        ],
    )


def _special_shape(name: str) -> Shape:
    base, _, component = name.partition(".")
    found = SPECIAL_REGISTERS.get(base)
    if found is None or (component and not found.vector):
        refuse("unknown-name", f"there is no special register `{name}`")
    return ("%{", *[found.shape] * found.vector) if found.vector and not component else found.shape


def shape_for(expected: Expected, kind: Kind) -> Shape:
    """The shape of an argument for the operand `expected`."""
    if isinstance(kind, str):
        if expected.kind == "address" and kind[0] not in "#_":
            return ("[", kind)
        if kind == "#int":
            return "#int" if expected.type is None or expected.type.kind != "f" else _float_shape(expected)
        return _float_shape(expected) if kind == "#float" else kind
    match kind:
        case ("*", space, base):
            if expected.kind != "address":
                return base
            return ("[", base) if space in OPAQUE or _reaches(expected.space, space) else "wrong space"
        case ("(", *parts):
            if expected.kind == "address":
                inner = [shape_for(e, part) for e, part in zip(expected.inner, parts[1:], strict=False)]
                first = shape_for(expected, parts[0]) if parts else "_"
                base = first[1] if isinstance(first, tuple) else first
                return ("[", base, *inner, *["_"] * (len(parts) - 1 - len(inner)))
            if expected.kind == "targets" and all(part == ("@",) for part in parts):
                return "@targets"
            mark = "(" if expected.kind == "arguments" else "{"
            return (mark, *[shape_for(expected, part) for part in parts])
        case ("@",):
            return f"@{expected.kind}" if expected.kind in ("label", "function", "targets", "prototype") else "@label"
        case ("%" | "=", shape):
            return shape
    return kind


def _float_shape(expected: Expected) -> str:
    return "#float" if expected.type is not None and expected.type.width == 64 else "#f32"


def _reaches(wanted: str | None, space: str | None) -> bool:
    """Whether an access in `wanted` (None: generic) may use a pointer into `space`."""
    return (wanted or "generic").partition("::")[0] == (space or "generic").partition("::")[0]


@cache
def plan(text: str, kinds: tuple[Kind, ...], outs: tuple[Kind, ...] | None, pair: bool) -> ChosenForm | None:
    """The form that these arguments and results make of an opcode; None where no form takes them.

    Without `out=` the form that writes the fewest registers is meant: `mov.b32` copies, unless `out=` asks to unpack.
    """
    found = [plan for plan, _ in plans(text, kinds, outs, pair) if plan is not None]
    return min(found, key=lambda plan: sum(e.count for e in plan.expected if e.role == "write"), default=None)


def plans(
    text: str, kinds: tuple[Kind, ...], outs: tuple[Kind, ...] | None, pair: bool
) -> list[tuple[ChosenForm | None, tuple[Candidate, str, int, Expected | None]]]:
    """For each form of an opcode: the plan, or the candidate, what is wrong, with which argument, what was expected.

    Registers are declared as bits here: a form for registers of a type can only be written as PTX.
    """
    found: list[tuple[ChosenForm | None, tuple[Candidate, str, int, Expected | None]]] = []
    for candidate in opcode(text).candidates:
        if candidate.violation is not None or any(expected.typed for expected in candidate.expected):
            continue
        given = [e for e in candidate.expected if e.role == "write" or e.kind == "sink"]
        aligned = align(candidate.expected, len(given) + len(kinds))
        if aligned is None:
            found.append((None, (candidate, "count", len(kinds), None)))
            continue
        wrong = _first_problem(candidate, aligned, kinds, outs, pair)
        found.append((None if wrong else ChosenForm(candidate, aligned), wrong or (candidate, "", 0, None)))
    return found


def _first_problem(
    candidate: Candidate,
    aligned: tuple[Expected, ...],
    kinds: tuple[Kind, ...],
    outs: tuple[Kind, ...] | None,
    pair: bool,
) -> tuple[Candidate, str, int, Expected | None] | None:
    arguments = iter(kinds)
    results = None if outs is None else iter(outs)
    index = -1
    for expected in aligned:
        if expected.kind == "sink":
            if results is not None and next(results, "_") != "_":
                return candidate, "results", -1, None
            continue
        if expected.role == "write":
            if results is None:
                if pair and expected.second is None:
                    return candidate, "pair", index, expected
                continue
            shape = shape_for(expected, next(results, "_"))
            if expected.second is not None and (not expected.second_optional or pair):
                shape = ("|", shape, shape_for(expected.second, next(results, "_")))
        else:
            index += 1
            shape = shape_for(expected, next(arguments))
        problem = find_problem(expected, shape, index)
        if problem is not None:
            return candidate, problem.kind, index if expected.role != "write" else -1, expected
    if results is not None and next(results, None) is not None:
        return candidate, "results", -1, None
    return None


def emit(text: str, arguments: Sequence[object], out: object = None, when: object = None, pair: bool = False) -> Any:
    """Write one instruction; returns what it writes: None, a value, or a tuple of them."""
    trace = current(f"`{text}`")
    outs = None if out is None else _results(text, out)
    pair = pair or (outs is not None and len(outs) > 1)
    kinds = tuple([kind_of(argument) for argument in arguments])
    out_kinds = None if outs is None else tuple([kind_of(result) for result in outs])
    found = plan(text, kinds, out_kinds, pair)
    if found is None:
        if not any(candidate.violation is None for candidate in opcode(text).candidates):
            explain_spelling(text)
        explain_mismatch(text, arguments, [wrong for _, wrong in plans(text, kinds, out_kinds, pair)])
    trace.program.require(found.candidate, text)
    guard = "" if when is None else _guard(trace, text, when)
    printed: list[str] = []
    results: list[Any] = []
    remaining = iter(arguments)
    given = None if outs is None else iter(outs)
    for expected in found.expected:
        if expected.kind == "sink":
            printed.append("_")
        elif expected.role == "write":
            if given is None and when is not None:
                refuse(
                    "unwritten-register",
                    f"`{text}` with `when=` writes its result only where the predicate holds",
                    helps=["say which register keeps its value otherwise: `out=register`"],
                )
            printed.append(_result(trace, expected, given, pair, results))
        else:
            printed.append(print_operand(trace, expected, next(remaining), text))
    trace.write(f"{guard}{text}{' ' if printed else ''}{', '.join(printed)};")
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _results(text: str, out: object) -> list[Any]:
    """`out=` as one entry per result: a register, a tuple for a vector, None for a result that is discarded."""
    wanted = [e for c in opcode(text).candidates for e in c.expected if e.role == "write"]
    if isinstance(out, (tuple, list)):
        # A tuple is a vector where no form has two results, or where the parts are too many to be two.
        is_vector = any(e.count for e in wanted) and not any(isinstance(part, (tuple, list)) for part in out)
        return [tuple(out)] if is_vector or _is_alone(out, wanted) else list(out)
    return [out]


def _is_alone(out: Sequence[object], wanted: Sequence[Expected]) -> bool:
    """Whether `out=(d,)` is `{d}`, a vector of one, which `ld` may write in place of `d`."""
    if len(out) != 1 or not isinstance(out[0], Register):
        return False
    return any(find_problem(e, ("{", out[0].type.name), 0) is None for e in wanted)


def _result(trace: Trace, expected: Expected, given: Any, pair: bool, results: list[object]) -> str:
    second = expected.second if expected.second is not None and (not expected.second_optional or pair) else None
    if given is None:
        value = _fresh(trace, expected)
        results.append(value)
        texts = [_print_fresh(value)]
        if second is not None:
            results.append(_fresh(trace, second))
            texts.append(_print_fresh(results[-1]))
        return "|".join(texts)
    texts = []
    for wanted in (expected, second):
        if wanted is not None:
            out = next(given, None)
            results.append(out)
            texts.append(print_operand(trace, wanted, out, ""))
    return "|".join(texts)


def result_type(expected: Expected) -> Type:
    """The type of the registers that are made for a result."""
    assert expected.type is not None
    type = expected.type
    if type.width == 8 and expected.loose:  # arithmetic starts at 16 bits
        return type_named(f"{type.kind if type.kind in 'us' else 'b'}16")
    return type


def _fresh(trace: Trace, expected: Expected) -> Any:
    type = result_type(expected)
    if trace.program.untyped and type.kind != "p":
        type = type_named(f"b{type.width}")
    if expected.count:
        return tuple(class_of(type).fresh(trace) for _ in range(expected.count))
    return class_of(type).fresh(trace)


def _print_fresh(value: Any) -> str:
    return "{" + ", ".join(part.name for part in value) + "}" if isinstance(value, tuple) else str(value.name)


def _guard(trace: Trace, text: str, when: object) -> str:
    if not isinstance(when, Operand) or when.operand_kind not in ("pred", ("!", "pred")):
        refuse(
            "guard-type",
            f"`when=` of `{text}` is {describe(when)}, expected a predicate",
            helps=["compare: `x < n` gives a predicate"],
        )
    return f"@{when.print_operand(trace, _GUARD)} "


def print_operand(trace: Trace, expected: Expected, argument: object, text: str) -> str:
    """An argument as PTX writes it for the operand `expected`."""
    if isinstance(argument, Operand):
        return argument.print_operand(trace, expected)
    if argument is None:
        return "_"
    if isinstance(argument, str):
        if not argument.startswith("%") and expected.kind == "label":
            trace.want(argument)
        return argument
    if isinstance(argument, (tuple, list)):
        if expected.kind == "address":
            base = print_operand(trace, expected, argument[0], text)[1:-1]
            inner = [print_operand(trace, e, a, text) for e, a in zip(expected.inner, argument[1:], strict=True)]
            return f"[{', '.join([base, *inner])}]"
        if expected.kind == "targets":
            return trace.branch_targets(argument)
        parts = ", ".join(print_operand(trace, expected, part, text) for part in argument)
        return f"({parts})" if expected.kind == "arguments" else f"{{{parts}}}"
    return print_constant(argument, expected, text)
