"""What operations mean as functions of real numbers, where rounding does not count.

Functions of `ptxlab.numbers` and the arithmetic of `isa.machine` have a word each; every other operation on an input is
`opaque`: nothing is known of it but that equal operands give equal results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.nodes import Ids, NodeOperation, Nodes
from ptxlab.numbers import approximate
from ptxlab.numbers.extremum import maximum, minimum
from ptxlab.numbers.parameters import RELU, SAT

WORDS: dict[Callable[..., Any], str] = {
    approximate.quotient: "div",
    approximate.reciprocal: "reciprocal",
    approximate.high_reciprocal: "reciprocal",
    approximate.square_root: "sqrt",
    approximate.reciprocal_root: "inverse_root",
    approximate.high_reciprocal_root: "inverse_root",
    approximate.reciprocal_root_f64: "inverse_root",
    approximate.sine: "sin",
    approximate.cosine: "cos",
    approximate.logarithm: "log2",
    approximate.power: "exp2",
    approximate.half_power: "exp2",
    approximate.tangent: "tanh",
    approximate.half_tangent: "tanh",
    maximum: "max",
    minimum: "min",
}
_CONVERSIONS = ("convert", "positive_zero", "convert_randomly")
FORMATS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2", "float8_e8m0fnu": "ue8m0", "float4_e2m1fn": "e2m1",
}  # fmt: skip
"""The formats of floats, by the names of NumPy's types."""
FLOATS = ("f16", "bf16", "f32", "f64", "tf32", "e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "ue8m0", "ue4m3")


@dataclass(frozen=True)
class Rule:
    """A word, the float types that operands are read as, and what is done to the result."""

    word: str
    reads: tuple[str, ...] = ()
    format: str = ""
    """The format of the result; empty if it is that of its operands."""
    relu: bool = False
    saturates: bool = False
    detail: Any = None


def rule_of(operation: NodeOperation) -> Rule:
    """What an operation means."""
    match operation.kind:
        case "arithmetic":
            name, how = operation.detail.detail
            types = tuple(type.name for type in operation.detail.read_as)
            return Rule(name, types, operation.type, bool(how.get("relu")), bool(how.get("sat")))
        case "call":
            return _called(operation)
        case "compare":
            step = operation.detail
            if step.of.kind == "f":
                return Rule(step.operation, (step.of.name,) * 2, "pred")
        case "integer":
            step = operation.detail
            if step.operation in ("&", "|", "^"):
                return Rule("logic " + step.operation, (), "", detail=step.type.width)
            if step.operation in ("<<", ">>") and step.type.width == 32:
                return Rule("shift", (), "f32", detail=step.operation)
            if step.operation in ("+", "-") and step.type.width == 32:
                return Rule("whole", (), "", detail=step.operation)
        case "select" | "not" | "input" | "constant" | "bytes" | "part":
            return Rule(operation.kind, (), operation.type, detail=operation.text)
        case "matmul":
            family, a, b = operation.text.split()[:3]
            reads = ("", "") if family == "real" or family.startswith("scaled") else (a, b)
            return Rule("matmul", reads, operation.type, detail=operation.detail)
        case "scaled":
            return Rule("mul", tuple(operation.text.split()), operation.type)
        case "atomic":
            return Rule("add", (operation.type,) * 2, operation.type)
        case "real":
            return Rule(operation.text, (), operation.type)
        case "row":
            return Rule("row")
    return Rule("opaque", (), operation.type, detail=operation.text)


def _called(operation: NodeOperation) -> Rule:
    function, given = operation.detail.detail
    types = tuple(type.name for type in operation.detail.read_as)
    if function in WORDS:
        return Rule(WORDS[function], types, operation.type)
    if function.__name__ in _CONVERSIONS and types[0] in FLOATS:
        flags = given[4] if function.__name__ == "convert" and isinstance(given[4], int) else 0
        return Rule("copy", (), operation.type, bool(flags & RELU), bool(flags & SAT))
    if function.__name__ in ("from_signed", "from_unsigned"):
        return Rule("from_integer", (), operation.type)
    return Rule("opaque", types, operation.type, detail=operation.text)


def format_of(type: str, width: int) -> str:
    """The float format of a type, or of bits of that width."""
    return type if type in FLOATS else {2: "f16", 4: "f32", 8: "f64"}.get(width, "")


def reads_as(own: str, read: str) -> bool:
    """Whether a number of a format is the same number when it is read as another."""
    return own in ("", read) or not read or {own, read} in ({"f32", "tf32"}, {"e4m3", "ue4m3"})


COMPARISONS = ("<", "<=", "==")
BIAS = 127
EXPONENT = 12_583_039.0  # 1.5 · 2^23 + 127
_LEAST, _MOST = 0x4B400000, 0x4B4000FF  # the bits of 1.5 · 2^23, and of 255 more


def is_constant(nodes: Nodes, ids: Ids, number: int | None = None) -> npt.NDArray[np.bool_]:
    """Which are plain numbers, or the given one."""
    kinds = np.array([one.kind == "constant" for one in nodes.operations])
    found: npt.NDArray[np.bool_] = kinds[nodes.operation_of[ids]]
    return found if number is None else found & (nodes.operands[0, ids] == number)


def is_exponent(nodes: Nodes, numbers: Ids, counts: Ids) -> npt.NDArray[np.bool_]:
    """Whether shifted bits are a power of two, as in `expf`: those of x + 1.5 · 2^23, by 23.

    Near 1.5 · 2^23 the low bits of a float are a whole number n + 127; shifted, they are the exponent of 2^n.
    """
    found = np.zeros(len(numbers), bool)
    for index, (number, count) in enumerate(zip(numbers.tolist(), counts.tolist(), strict=True)):
        kind, shift = nodes.kind(number), nodes.kind(count)
        if kind.kind != "arithmetic" or kind.detail.detail[0] not in ("add", "fma") or shift.kind != "constant":
            continue
        given = [one for one in nodes.operands[:, number].tolist() if one >= 0 and nodes.kind(one).kind == "constant"]
        added = [one for one in given if _LEAST <= int(nodes.operands[0, one]) <= _MOST]
        found[index] = bool(added) and int(nodes.operands[0, count]) == 23
    return found
