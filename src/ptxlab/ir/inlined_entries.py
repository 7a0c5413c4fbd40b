"""Calls by which inlined code came to its place, where DWARF says it and not `.loc`: of code compiled with `-G`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxlab.ir import mangled
from ptxlab.ir.dwarf import DwarfError, DwarfSymbol, Entry, entries
from ptxlab.ir.items import Function, Section
from ptxlab.ir.module import Module
from ptxlab.ir.statements import Instruction, Label, Location


@dataclass(frozen=True, slots=True)
class InlinedCall:
    """A function that is inlined between two labels, and the place of the call."""

    function: str
    file: int
    line: int
    low: str
    high: str
    inner: tuple[InlinedCall, ...]


class InlinedEntries:
    """The inlined functions of a module, by the functions that they are in."""

    def __init__(self, module: Module) -> None:
        self._calls: dict[str, tuple[InlinedCall, ...]] = {}
        if not any(isinstance(item, Section) and item.name == ".debug_info" for item in module.items):
            return
        try:
            units = entries(module)
        except DwarfError:  # of another compiler, or damaged: then callers are not known
            return
        known = {entry.offset: entry for unit in units for entry in unit.walk()}
        for entry in known.values():
            if entry.tag == "function" and "low_pc" in entry.attributes:
                name = _text(entry, "linkage_name", known) or _text(entry, "name", known)
                self._calls[name] = tuple(_calls(entry, known))

    def chains(self, function: Function) -> list[tuple[InlinedCall, ...]] | None:
        """For each instruction of a function the calls around it, the outermost first; None where `.loc` says it."""
        calls = self._calls.get(function.name)
        if not calls or any(isinstance(one, Location) and one.inlined_at for one in function.statements()):
            return None
        labels: dict[str, int] = {}
        count = 0
        for statement in function.statements():
            if isinstance(statement, Label):
                labels[statement.name] = count
            count += isinstance(statement, Instruction)
        found: list[tuple[InlinedCall, ...]] = [()] * count

        def mark(inner: tuple[InlinedCall, ...]) -> None:
            for call in inner:
                for number in range(labels.get(call.low, 0), labels.get(call.high, 0)):
                    found[number] += (call,)
                mark(call.inner)

        mark(calls)
        return found


def _calls(entry: Entry, known: dict[int, Entry]) -> Iterator[InlinedCall]:
    """The inlined functions in an entry; blocks are passed through."""
    for child in entry.children:
        low, high = child.attributes.get("low_pc"), child.attributes.get("high_pc")
        if child.tag == "inlined" and isinstance(low, DwarfSymbol) and isinstance(high, DwarfSymbol):
            name = _text(child, "linkage_name", known) or _text(child, "name", known)
            file, line = child.number("call_file") or 0, child.number("call_line") or 0
            inner = tuple(_calls(child, known))
            yield InlinedCall(mangled.function_title(name), file, line, low.name, high.name, inner)
        elif child.tag == "block":
            yield from _calls(child, known)


def _text(entry: Entry, name: str, known: dict[int, Entry]) -> str:
    """What an entry says, or the one that it completes, which is another."""
    for _ in range(8):
        found = entry.text(name)
        other = known.get(entry.number("origin") or entry.number("specification") or -1)
        if found or other is None:
            return found
        entry = other
    return ""
