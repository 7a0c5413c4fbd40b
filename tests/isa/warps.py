"""A warp of the reference machine with a memory, and short ways to run one instruction on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.isa.exact import Exact, evaluate_warp
from ptxlab.isa.form import Form, Modifiers
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.table import forms_of
from ptxlab.isa.types import type_named

Registers = list[list[int]]  # by register, then by lane


@dataclass(frozen=True)
class Where:
    """An address."""

    offset: int
    space: str | None = "shared"

    def __add__(self, bytes: Pattern | int) -> Where:
        return Where(self.offset + (bytes if isinstance(bytes, int) else bytes.number), self.space)


class Thread(Exact):
    """One thread, with a memory that it shares with others."""

    memory: bytearray

    def load(self, address: Where, type: str, count: int = 1, *, when: Pattern | None = None) -> tuple[Pattern, ...]:
        size = type_named(type).width // 8
        assert address.offset % (size * count) == 0, f"{address} is not aligned"
        if when is not None and not when.bits:
            return (Pattern.of(type, 0),) * count
        starts = range(address.offset, address.offset + count * size, size)
        return tuple(Pattern.of(type, int.from_bytes(self.memory[start : start + size], "little")) for start in starts)

    def store(self, address: Where, values: Sequence[Pattern], *, when: Pattern | None = None) -> None:
        if when is None or when.bits:
            at = address.offset
            for value in values:
                size = value.type.width // 8
                self.memory[at : at + size] = value.bits.to_bytes(size, "little")
                at += size


@cache
def _spellings(head: str) -> dict[str, tuple[Form, Modifiers]]:
    """Every spelling of the instructions that begin with this word; the last form of two wins."""
    return {
        form.spell(choice): (form, form.modifiers(choice)) for form in forms_of(head) for choice in form.spellings()
    }


def execute(
    opcode: str, operands: dict[str, Any], memory: bytearray | None = None, target: str = "sm_90"
) -> list[Registers]:
    """Run an instruction on a warp: operands are registers, functions of the lane, or the same in all lanes."""
    form, m = _spellings(opcode.partition(".")[0])[opcode]
    machines = {}
    given = {}
    for lane in range(32):
        k = Thread(lane, 0xFFFFFFFF, target)
        k.memory = bytearray() if memory is None else memory
        machines[lane] = k
        given[lane] = {name: _given(value, lane) for name, value in operands.items()}
    results = evaluate_warp(form, m, given, machines)
    count = len(results[0])
    return [_registers([results[lane][index] for lane in range(32)]) for index in range(count)]


def vector(words: Registers, type: str = "b32") -> tuple[str, Registers]:
    """An operand in registers: one list of 32 patterns for each."""
    return type, words


def _given(value: Any, lane: int) -> Any:
    if callable(value):
        return value(lane)
    if isinstance(value, tuple):
        type, words = value
        return tuple(Pattern.of(type, register[lane]) for register in words)
    return value


def _registers(by_lane: list[Any]) -> Registers:
    """Results of lanes as 32-bit registers."""
    rows = [[one] if isinstance(one, Pattern) else list(one) for one in by_lane]
    width = rows[0][0].type.width
    return [
        [row[index].bits >> shift & 0xFFFFFFFF for row in rows]
        for index in range(len(rows[0]))
        for shift in range(0, width, 32)
    ]
