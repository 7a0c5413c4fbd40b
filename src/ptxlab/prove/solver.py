"""One small interface to the solver, and terms as bit-vectors.

Bit-vectors are exact and fast where numbers are small, as in shared memory with a fixed block; `integers` has the other
translation, for sizes, strides and grids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.flow.ranges import limits
from ptxlab.flow.steps import Step
from ptxlab.isa.types import Type

try:
    import z3 as z3
except ImportError:  # `prove` says which package it needs
    z3 = None

Namer = Callable[[Atom], tuple[str, int]]
"""The variable that an atom is, and what is added to it; without a name, it is that number."""
WORK = 3_000  # what Z3 calls resources, in a millisecond
FENCE = 20


class MissingSolverError(ImportError):
    """Z3 is not installed."""


def require_solver() -> None:
    """Raise where Z3 is not installed."""
    if z3 is None:
        raise MissingSolverError("prove: it needs the solver Z3: `pip install --only-binary z3-solver 'ptxlab[prove]'`")


def check(formulas: Iterable[Any], milliseconds: int) -> tuple[str, Any]:
    """`unsat`, `sat` with a model, or `unknown`."""
    solver = limited(milliseconds)
    solver.add(*formulas)
    found = str(solver.check())
    return found, solver.model() if found == "sat" else None


def limited(milliseconds: int) -> Any:
    """A solver that gives up after so much work, the same on every machine; about so long on a free one."""
    solver = z3.Solver()
    solver.set("rlimit", milliseconds * WORK)
    solver.set("timeout", milliseconds * FENCE)
    solver.set("ctrl_c", False)  # else Ctrl-C ends one question, not the proof
    return solver


class Bits:
    """Terms as bit-vectors."""

    def __init__(self, name: Namer) -> None:
        self._name = name
        self._known: dict[Atom, Any] = {}
        self.facts: list[Any] = []

    def assume(self, conditions: Iterable[Linear]) -> None:
        """Take predicates as given."""
        self.facts += [self.holds(one) for one in conditions]

    def holds(self, condition: Linear) -> Any:
        """A predicate as a formula."""
        return self.value(condition) == 1

    def value(self, value: Linear) -> Any:
        """A term as a bit-vector of its width."""
        width = value.type.width
        found = z3.BitVecVal(value.constant, width)
        for atom, factor in value.terms:
            found = found + z3.BitVecVal(factor, width) * self._sized(self._atom(atom), atom.type, width)
        return z3.simplify(found)

    def number(self, value: Linear) -> Any:
        """The same as `value`, as the other translation calls it."""
        return self.value(value)

    @staticmethod
    def _sized(found: Any, type: Type, width: int) -> Any:
        if type.width > width:
            return z3.Extract(width - 1, 0, found)
        extend = z3.SignExt if type.kind == "s" else z3.ZeroExt
        return found if type.width == width else extend(width - type.width, found)

    def _atom(self, atom: Atom) -> Any:
        if atom not in self._known:
            found = None if atom.step is None else self._operation(atom, atom.step)
            self._known[atom] = self._variable(atom) if found is None else found
        return self._known[atom]

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
        return variable + more if more else variable

    def _operation(self, atom: Atom, step: Step) -> Any | None:
        operation, of = step.operation, step.of
        if any(part.type.kind not in "usbp" or part.type.lanes != 1 for part in atom.parts) or not atom.parts:
            return None
        if step.type.kind not in "usbp" or step.type.lanes != 1:
            return None
        parts = [self.value(part) for part in atom.parts]
        signed = of.kind == "s"
        if operation in ("<", "<=", "=="):
            less = {("<", True): lambda a, b: a < b, ("<", False): z3.ULT, ("<=", True): lambda a, b: a <= b,
                    ("<=", False): z3.ULE}.get((operation, signed), lambda a, b: a == b)  # fmt: skip
            return z3.If(less(*parts), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
        match operation:
            case "select":
                return z3.If(parts[0] == 1, parts[1], parts[2])
            case "*":
                return parts[0] * parts[1]
            case "+":
                return parts[0] + parts[1]
            case "-":
                return parts[0] - parts[1]
            case "&":
                return parts[0] & parts[1]
            case "|":
                return parts[0] | parts[1]
            case "^":
                return parts[0] ^ parts[1]
            case "<<":
                return parts[0] << parts[1]
            case ">>":
                return parts[0] >> parts[1] if signed else z3.LShR(parts[0], parts[1])
            case "//" | "%":
                return self._divided(atom, operation, signed, parts)
            case "cast":
                return self._sized(parts[0], of, step.type.width)
            case "part":
                return z3.Extract(step.detail + step.type.width - 1, step.detail, parts[0])
            case "pack" if len(parts) > 1:
                return z3.Concat(*reversed(parts))
        return None

    def _divided(self, atom: Atom, operation: str, signed: bool, parts: Sequence[Any]) -> Any:
        """A quotient or a remainder; of a division by zero, the manual says nothing."""
        a, b = parts
        if operation == "//":
            found = a / b if signed else z3.UDiv(a, b)
        else:
            found = z3.SRem(a, b) if signed else z3.URem(a, b)
        if atom.parts[1].is_constant and atom.parts[1].constant:
            return found
        return z3.If(b == 0, self._variable(atom), found)
