"""What is known of one operand where an instruction reads it, whatever the question."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.values import dataclass

from .effort import ExhaustedError
from .numbers import Base, Choice, Number
from .ranges import read

if TYPE_CHECKING:
    from .facts import Facts


class PointerValue(NamedTuple):
    """`offset` bytes into `variable`, as an address in a state space; None: a generic one."""

    variable: ir.Variable
    offset: int
    space: str | None


@dataclass(frozen=True)
class Value:
    """An operand of instruction `at`. What is asked for is found then; None is always an answer."""

    facts: Facts
    at: int
    operand: ir.Operand

    @cached_property
    def _known(self) -> Number | Choice | None:
        try:
            return self.facts.numbers.value(self.at, self.operand)
        except ExhaustedError:
            return None

    @property
    def _number(self) -> Number | None:
        return self._known if isinstance(self._known, Number) else None

    @property
    def choice(self) -> Choice | None:
        """Of a predicate: the threads in which it may be true, and those in which it may be false."""
        return self._known if isinstance(self._known, Choice) else None

    @property
    def constant(self) -> int | None:
        """The integer that it is in every thread, with its sign if the highest bit is set."""
        found = self._number
        return found.low if found is not None and found.base is None and found.low == found.high else None

    @property
    def range(self) -> tuple[int, int] | None:
        """The least and the greatest integer that it can be, read as the type of the register."""
        found = self._number
        if found is None or found.base is not None or not isinstance(self.operand, ir.Register):
            return None
        least, greatest = read(found, self.operand.type)
        if found.each is None:
            return least, greatest
        exact = [read(Number(bits, bits), self.operand.type)[0] for bits in self.by_thread or ()]
        return min(exact), max(exact)

    @property
    def by_thread(self) -> tuple[int, ...] | None:
        """Its bits in each thread of a block, where they follow from the position of the thread."""
        found = self._number
        return None if found is None or found.each is None else found.each.bits(self.facts.effort)

    @property
    def provenance(self) -> Base | None:
        """The variable that it is an address in, or that it was loaded from, at whatever distance."""
        found = self._number
        return found.base if found is not None and isinstance(found.base, Base) else None

    @property
    def _register(self) -> ir.Register | None:
        base = self.operand.base if isinstance(self.operand, ir.Address) else self.operand
        return base if isinstance(base, ir.Register) else None

    @cached_property
    def address(self) -> Base | None:
        """Of a register: the variable that it is an address in, found without following distances."""
        try:
            return None if self._register is None else self.facts.addresses.variable(self.at, self._register)
        except ExhaustedError:
            return None

    @property
    def origin(self) -> int | None:
        """The instruction that takes this address."""
        if self.address is None or self._register is None:
            return None
        return self.facts.addresses.origin(self.at, self._register, self.address.variable)

    @property
    def pointer(self) -> PointerValue | None:
        """The variable that it is an address in, and the distance from its start, if constants decide it."""
        if self._register is not None and not self.facts.may_be_fixed(self._register.index):
            return None
        if isinstance(self.operand, ir.Address) and isinstance(self.operand.base, ir.VariableReference):
            named = self.operand.base
            return PointerValue(named.variable, named.offset + self.operand.offset, named.variable.state_space)
        found = self._number
        if found is None or not isinstance(found.base, Base) or found.base.holds is not None:
            return None
        return PointerValue(found.base.variable, found.low, found.base.space) if found.low == found.high else None
