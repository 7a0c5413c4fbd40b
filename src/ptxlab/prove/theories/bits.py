"""Terms as bit-vectors: exact, and fast where numbers are small, as in shared memory with a fixed block."""

from __future__ import annotations

from collections.abc import Callable
from operator import add, and_, eq, le, lshift, lt, mul, or_, rshift, sub, truediv, xor
from typing import Any

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.flow.ranges import limits
from ptxlab.flow.steps import Step
from ptxlab.isa.types import Type

from .solver import z3
from .translation import Translation


class Bits(Translation):
    """Terms as bit-vectors."""

    def holds(self, condition: Linear) -> Any:
        """A predicate as a formula."""
        return self.number(condition) == 1

    def number(self, value: Linear) -> Any:
        """A term as a bit-vector of its width."""
        width = value.type.width
        found = z3.BitVecVal(value.constant, width)
        for atom, factor in value.terms:
            found = found + z3.BitVecVal(factor, width) * self._sized(self._atom(atom), atom.type, width)
        return z3.simplify(found)

    def same(self, value: Linear, other: Translation) -> Any:
        """That a term is the same number here and in the translation of another thread."""
        return self.number(value) == other.number(value)

    @staticmethod
    def _sized(found: object, type: Type, width: int) -> Any:
        if type.width > width:
            return z3.Extract(width - 1, 0, found)
        extend = z3.SignExt if type.kind == "s" else z3.ZeroExt
        return found if type.width == width else extend(width - type.width, found)

    def _variable(self, atom: Atom) -> Any:
        named, more = self._name(atom)
        if not named:
            return z3.BitVecVal(more, atom.type.width)
        variable = z3.BitVec(named, atom.type.width)
        low, high = limits(atom.type) if atom.type.kind != "p" else (0, 1)
        signed = atom.type.kind == "s"
        if atom.low > low:
            self.facts.append(variable >= atom.low if signed else z3.UGE(variable, atom.low))
        if atom.high < high:
            self.facts.append(variable <= atom.high if signed else z3.ULE(variable, atom.high))
        if more < 0:
            self.facts.append(z3.UGE(variable, -more))
        return variable + more if more else variable

    def _operation(self, atom: Atom, step: Step) -> Any | None:
        parts = [self.number(part) for part in atom.parts]
        signed = step.of.kind == "s"
        compute = {**_OPERATIONS, **(_SIGNED if signed else _UNSIGNED)}.get(step.operation)
        match step.operation:
            case "<" | "<=" | "==":
                assert compute is not None
                return z3.If(compute(*parts), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
            case "select":
                return z3.If(parts[0] == 1, parts[1], parts[2])
            case "//" | "%" if not (atom.parts[1].is_constant and atom.parts[1].constant):
                assert compute is not None
                return z3.If(parts[1] == 0, self._variable(atom), compute(*parts))  # of zero, the manual says nothing
            case "cast":
                return self._sized(parts[0], step.of, step.type.width)
            case "part":
                return z3.Extract(step.detail + step.type.width - 1, step.detail, parts[0])
            case "pack" if len(parts) > 1:
                return z3.Concat(*reversed(parts))
        return None if compute is None else compute(*parts)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "==": eq, "+": add, "-": sub, "*": mul, "&": and_, "|": or_, "^": xor, "<<": lshift
}  # fmt: skip
_SIGNED: dict[str, Callable[..., Any]] = {"<": lt, "<=": le, ">>": rshift, "//": truediv}
_UNSIGNED: dict[str, Callable[..., Any]] = {}
if z3 is not None:
    _SIGNED["%"] = z3.SRem
    _UNSIGNED |= {"<": z3.ULT, "<=": z3.ULE, ">>": z3.LShR, "//": z3.UDiv, "%": z3.URem}
