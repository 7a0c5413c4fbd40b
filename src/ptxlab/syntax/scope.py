"""Names in scope, and the operands that texts mean there.

A scope is a dictionary from the text of an operand to the operand, filled as texts are met: a function uses the same
few texts again and again, so nearly every operand of a file is one lookup.
"""

from __future__ import annotations

import re
from typing import Any

from ptxlab.ir import (
    Address,
    Function,
    FunctionReference,
    Guard,
    Immediate,
    LabelReference,
    Negated,
    Operand,
    Register,
    Selection,
    Sink,
    SpecialRegister,
    Unresolved,
    Variable,
    VariableReference,
    Vector,
    VectorElement,
)
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.syntax.constants import float_literal, integer_literal

_NAME = r"(?:[a-zA-Z][\w$]*|[_$%][\w$]+)"
_SIMPLE = re.compile(
    rf"""
    (?P<name>{_NAME})
  | \[\s*(?P<base>{_NAME})\s*(?:\+\s*(?P<offset>-?(?:0|[1-9]\d{{0,17}}))\s*)?(?P<address>\])
  | (?P<integer>-?(?:0|[1-9]\d{{0,17}}) | 0[xX][0-9a-fA-F]{{1,16}})
  | (?P<float>0[fF][0-9a-fA-F]{{8}} | 0[dD][0-9a-fA-F]{{16}})
  | \{{(?P<elements>[^{{}}\[\]()]*)\}}
  | !\s*(?P<negated>{_NAME})
  | (?P<vector>{_NAME})\.(?P<component>[a-z][a-z0-9]*)
  | (?P<sink>_)
  | @(?P<not>!?)(?P<guard>{_NAME})
    """,
    re.VERBOSE | re.ASCII,
)
_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
_DIGITS = "0123456789"

SINK = Sink()


class Complicated(Exception):  # noqa: N818 - not an error: another reader takes over
    """The text of an operand needs the careful reader."""


class Scope(dict[str, Any]):
    """What names mean inside one pair of braces; `parent` is the scope around it."""

    __slots__ = ("budget", "candidates", "families", "labels", "met", "names", "parent", "registers", "wanted")

    def __init__(
        self, parent: Scope | None, candidates: frozenset[str], registers: list[Register], budget: list[int]
    ) -> None:
        super().__init__()
        self.parent = parent
        self.budget = budget  # its one number: how many registers may still be made before they are used
        self.met = False  # whether the dictionary holds more than `names`
        self.candidates = candidates  # names that are followed by `:` somewhere in the file
        self.registers = registers  # all registers of the function, in the order of their index
        self.names: dict[str, Operand] = {}
        self.families: dict[str, Variable] = {}
        self.labels: set[str] = set()
        self.wanted: set[str] = set()

    def inner(self) -> Scope:
        """A scope inside this one."""
        return Scope(self, self.candidates, self.registers, self.budget)

    def function(self) -> Scope:
        """A scope for a function inside this one, with registers of its own."""
        return Scope(self, self.candidates, [], self.budget)

    def declare(self, variable: Variable) -> None:
        """Make a variable known; what a text meant before may have changed by it."""
        self.forget()
        name = variable.name
        if variable.count is None:
            self[name] = self.names[name] = self._reference(name, variable)
            return
        self.families[name] = variable
        if variable.state_space == "reg" and variable.count <= self.budget[0]:
            # All at once is cheaper than each when it is met; compilers declare as many as they use.
            self.budget[0] -= variable.count
            registers = self.registers
            first, type, vector = len(registers), variable.type, variable.vector
            made = [Register(f"{name}{n}", type, vector, variable, first + n) for n in range(variable.count)]
            registers.extend(made)
            members = {register.name: register for register in made}
            self.names.update(members)
            self.update(members)

    def declare_function(self, function: Function) -> None:
        """Make a function known; its first declaration is the one that references get."""
        if function.name not in self.names:
            self.forget()
            self.names[function.name] = FunctionReference(function.name, function)

    def forget(self) -> None:
        """Drop what texts meant before, but for declared names."""
        if self.met:
            self.met = False
            self.clear()
            self.update(self.names)

    def _reference(self, name: str, variable: Variable) -> Register | VariableReference:
        if variable.state_space != "reg":
            return VariableReference(name, variable)
        register = Register(name, variable.type, variable.vector, variable, len(self.registers))
        self.registers.append(register)
        return register

    def resolve(self, name: str) -> Operand:
        """What a name means here."""
        stem = name.rstrip(_DIGITS)
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            if stem is not name:
                family = scope.families.get(stem)
                if family is not None:
                    member = scope._member(family, stem, name)
                    if member is not None:
                        return member
            scope = scope.parent
        if name in SPECIAL_REGISTERS:
            return SpecialRegister(name)
        if name == "WARP_SZ":
            return Immediate(32)
        if name in self.candidates:
            self.wanted.add(name)
            return LabelReference(name)
        return Unresolved(name)

    def _member(self, family: Variable, stem: str, name: str) -> Operand | None:
        digits = name[len(stem) :]
        # ptxas takes `%r07` for `%r7`.
        canonical = stem + digits.lstrip("0") if digits[0] == "0" and len(digits) > 1 else name
        canonical = canonical if canonical != stem else stem + "0"
        if len(digits) > 12 or int(digits) >= (family.count or 0):
            return None
        found = self.names.get(canonical)
        if found is None:
            found = self.names[canonical] = self._reference(canonical, family)
        return found

    def element(self, name: str, component: str) -> Operand:
        """What `name.component` means here."""
        base = self.resolve(name)
        if isinstance(base, SpecialRegister):
            return SpecialRegister(name, component)
        if not isinstance(base, Register):
            base = Unresolved(name) if not isinstance(base, Unresolved) else base
        if _SELECTOR.fullmatch(component):
            return Selection(base, component)
        return VectorElement(base, component)

    def guard(self, name: str, negated: bool) -> Guard:
        """The guard `@name` or `@!name`."""
        base = self.resolve(name)
        return Guard(base if isinstance(base, Register) else Unresolved(name), negated)

    def __missing__(self, text: str) -> Any:
        self.met = True
        stem = text.rstrip(_DIGITS)
        family = self.families.get(stem)
        if family is not None and stem is not text and text not in self.names:
            operand = self._member(family, stem, text) or self.resolve(text)
        else:
            operand = self._simple(text)
        self[text] = operand
        return operand

    def _simple(self, text: str) -> Any:
        match = _SIMPLE.fullmatch(text)
        if match is None:
            stripped = text.strip()
            if not stripped or stripped == text:
                raise Complicated
            return self[stripped]
        kind = match.lastgroup
        if kind == "name":
            return self.resolve(text)
        if kind == "address":
            offset = match["offset"]
            if offset is None:
                return Address(self.resolve(match["base"]))
            number = int(offset)
            return Address(self.resolve(match["base"]), number, plus_zero=number == 0)
        if kind == "integer":
            return integer_literal(text) if text[0] != "-" else Immediate(int(text))
        if kind == "float":
            return float_literal(text)
        if kind == "component":
            return self.element(match["vector"], match["component"])
        if kind == "elements":
            return Vector(tuple([self[element.strip()] for element in match["elements"].split(",")]))
        if kind == "negated":
            return Negated(self.resolve(match["negated"]))
        if kind == "guard":
            return self.guard(match["guard"], bool(match["not"]))
        return SINK
