"""Counters in the code of a kernel: how often its parts run, what they move, and if they change what others see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.amounts import is_counted_apart
from ptxlab.emulate.translate import access
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue, resize

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_SHARED = "shared", "shared::cluster"
_SEEN_BY_OTHERS = (None, "global", *_SHARED)


class Counting:
    """The counters of one kernel, and what each of them counts."""

    def __init__(self, profile: bool) -> None:
        self.profile = profile
        self.counters: list[tuple[int, int]] = []
        self.traffic: list[tuple[int, str, int, int, int]] = []
        self.amounts: list[tuple[int, str, int]] = []
        self.profile_sites: list[int] = []
        self.changes: set[int] = set()
        self.looks: dict[int, bool] = {}

    def mark(self) -> tuple[int, int, int, set[int], dict[int, bool]]:
        """What is counted so far."""
        sizes = len(self.counters), len(self.traffic), len(self.amounts)
        return *sizes, set(self.changes), dict(self.looks)

    def go_back(self, mark: tuple[int, int, int, set[int], dict[int, bool]]) -> None:
        """Forget what was added since."""
        counters, traffic, amounts, changes, looks = mark
        del self.counters[counters:], self.traffic[traffic:], self.amounts[amounts:]
        self.changes, self.looks = set(changes), dict(looks)

    def count_block(self, function: Function, start: int, end: int) -> None:
        """Count how often a basic block runs."""
        function.block_counter = self._count(function, (function.first + start, function.first + end))

    def count_guarded(self, function: Function) -> None:
        """Count how often the guard of an instruction holds."""
        if is_counted_apart(function.instructions[function.position]):
            number = function.instruction_number
            function.guard_counter = number, self._count(function, (number, number))

    def count_here(self, function: Function, amount: str = "1") -> int:
        """Count how often, or how much, this part of an instruction does; the number of the counter."""
        return self._count(function, (-1, -1), amount)

    def count_amount(self, function: Function, name: str, amount: str) -> None:
        """Count how much of something an instruction does."""
        self.amounts.append((function.instruction_number, name, self.count_here(function, amount)))

    def count_copy(
        self, function: Function, destination: str | None, source: str | None, kind: int, names: Sequence[str]
    ) -> int:
        """Two counters that the runtime adds to: bytes written and bytes read; the number of the first.

        `names` says what the bytes in shared memory are counted as besides.
        """
        first = len(self.counters)
        self.counters += [(-1, -1)] * 2
        for counter, space, how in ((first, destination, kind), (first + 1, source, address_spaces.LOAD)):
            name = (space or "generic").partition("::")[0]
            self.traffic.append((function.instruction_number, name, how, 1, counter))
        in_shared = first if destination in _SHARED else first + 1
        self.amounts += [(function.instruction_number, name, in_shared) for name in names]
        return first

    def note_change(self, function: Function, space: str | None, condition: str | None = None) -> None:
        """Count how often this instruction changes memory that other threads see: always, or under a condition."""
        if space not in _SEEN_BY_OTHERS:
            return
        if condition is None:
            self.changes.add(function.counter)
        else:
            amount = function.builder.value(f"zext i1 {condition} to i64")
            self.changes.add(self.count_here(function, amount))

    def note_look(self, function: Function, space: str | None) -> None:
        """Count how often this instruction reads what other threads, or even other blocks, may change."""
        if space in _SEEN_BY_OTHERS:
            self.looks[function.counter] = self.looks.get(function.counter, False) or space not in _SHARED

    def _count(self, function: Function, what: tuple[int, int], amount: str = "1") -> int:
        builder = function.builder
        index = len(self.counters)
        self.counters.append(what)
        amount = function.times(amount)
        at = builder.value(f"getelementptr i64, ptr %counters, i64 {index}")
        count = builder.value(f"load i64, ptr {at}")
        builder.emit(f"store i64 {builder.value(f'add i64 {count}, {amount}')}, ptr {at}")
        return index

    def count_bytes(
        self, function: Function, address: LlvmAddress, size: LlvmValue | int, kind: int, condition: int = -1
    ) -> None:
        """Count the bytes of an access that no request of a warp makes."""
        bytes, counter = (size, condition) if isinstance(size, int) else (1, 0)
        if not isinstance(size, int):
            counter = self.count_here(function, resize(size, 64, signed=False))
        space = (address.space or "generic").partition("::")[0]
        if counter < 0 and function.is_repeated:
            return
        self.traffic.append((function.instruction_number, space, kind, bytes, counter))

    def count_access(
        self, function: Function, address: LlvmAddress, size: LlvmValue | int, kind: int, condition: int = -1
    ) -> None:
        """Count the bytes of an access, as often as its instruction is executed, or as the counter `condition` says."""
        self.count_bytes(function, address, size, kind, condition)
        if self.profile and address.space in _SEEN_BY_OTHERS:
            site = len(self.profile_sites)
            self.profile_sites.append(function.instruction_number)
            given = (site, function.iteration(), address.value, size, access.SPACES[address.space])
            function.unit.calls.runtime_call(function, "note_request", given, None)
