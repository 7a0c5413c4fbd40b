"""What both translations for the solver have in common: an atom is an operation, or a variable of its thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.flow.steps import Step

Namer = Callable[[Atom], tuple[str, int]]
"""The variable that an atom is, and what is added to it; without a name, it is that number."""
_INTEGERS = "usbp"  # the kinds of types that a solver computes with: what is computed from others is a variable


class Translation(ABC):
    """Terms of one thread in a theory of the solver; `facts` hold of their variables."""

    def __init__(self, name: Namer) -> None:
        self._name = name
        self._known: dict[Atom, Any] = {}
        self.facts: list[Any] = []

    def assume(self, conditions: Iterable[Linear]) -> None:
        """Take predicates as given; each may be used to show that what is in the next does not wrap."""
        for one in conditions:
            self.facts.append(self.holds(one))

    @abstractmethod
    def holds(self, condition: Linear) -> Any:
        """A predicate as a formula."""

    @abstractmethod
    def number(self, value: Linear) -> Any:
        """A term as a number."""

    @abstractmethod
    def same(self, value: Linear, other: Translation) -> Any:
        """That a term is the same number here and in the translation of another thread."""

    def _atom(self, atom: Atom) -> Any:
        if atom not in self._known:
            step = atom.step
            is_known = step is not None and all(
                type.kind in _INTEGERS and type.lanes == 1 for type in (step.type, *(one.type for one in atom.parts))
            )
            found = self._operation(atom, step) if step is not None and is_known and atom.parts else None
            self._known[atom] = self._variable(atom) if found is None else found
        return self._known[atom]

    @abstractmethod
    def _variable(self, atom: Atom) -> Any:
        """An atom of which nothing but its bounds is known."""

    @abstractmethod
    def _operation(self, atom: Atom, step: Step) -> Any | None:
        """What an operation makes of its parts; None if the theory has no such operation."""
