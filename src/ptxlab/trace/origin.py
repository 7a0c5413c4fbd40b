"""Where a value of a recorded launch comes from: through registers, memory and asynchronous copies, back to arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ptxlab.trace.accesses import Rows, dtype_named
from ptxlab.trace.program import Value
from ptxlab.trace.registers import Written

if TYPE_CHECKING:
    from ptxlab.trace.finder import Finder
    from ptxlab.trace.trace import Trace

MOST = 100_000  # values that are followed
SHOWN, DEPTH, LONGEST = 4, 12, 60  # sources of a value, how far they are followed, and lines that are shown
Sources = Callable[[], "list[Origin]"]
Place = tuple[int, int, int, int]  # the state space, whose memory it is, the address and the bytes
Part = tuple[int, int] | None  # the first byte of a register that matters, and how many; None: all of them


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """Bytes that were written to memory: in which row, where in it, and how many."""

    rows: Rows
    row: int
    offset: int
    size: int


@dataclass(frozen=True, eq=False)
class Origin:
    """A value, what wrote it, and where that has it from."""

    what: str
    """The register or memory: `%f3 of thread 5`, `a[3, 5]`."""
    value: Value | bytes | None
    step: int | None
    """The step that wrote it; None: it was there before, or is not recorded."""
    line: int
    instruction: str
    role: str = "value"
    """What it is to the instruction that reads it: `value`, `address` or `guard`."""
    array: tuple[str, str] | None = None
    """The array and the element of it that the value is, if it comes from the host."""
    at: Written | Stored | None = field(default=None, repr=False)
    """Where it is recorded."""
    place: Place | None = None
    """The bytes of memory that it is, if it is not a register."""
    finder: Finder | None = field(default=None, repr=False)
    """What has found it."""
    _find: Sources = field(default=list, repr=False)
    _found: list[list[Origin]] = field(default_factory=list, repr=False)

    @property
    def sources(self) -> list[Origin]:
        """What the instruction read: values, addresses, its guard."""
        if not self._found:
            self._found.append(self._find())
        return self._found[0]

    def walk(self, limit: int = MOST) -> Iterator[Origin]:
        """This and all that it comes from, each once, the nearest first."""
        pending, seen = [self], {self._identity}
        for found in pending:
            yield found
            if len(seen) > limit:
                return
            for source in found.sources:
                if source._identity not in seen:
                    seen.add(source._identity)
                    pending.append(source)

    @property
    def _identity(self) -> tuple[str, int | None, int]:
        return self.what, self.step, self.line

    @property
    def lines(self) -> set[int]:
        """The lines of the PTX that the value depends on."""
        return {found.line for found in self.walk() if found.line}

    def inputs(self) -> dict[str, list[str]]:
        """The elements of arrays, and the parameters, that the value comes from, not as addresses, by name."""
        found: dict[str, list[str]] = {}
        pending, seen = [self], {self._identity}
        for one in pending:
            if one.array is not None:
                found.setdefault(one.array[0], []).append(one.array[1])
            for source in one.sources:
                if source.role == "value" and source._identity not in seen and len(seen) < MOST:
                    seen.add(source._identity)
                    pending.append(source)
        return found

    def blame(self, other: Trace) -> Origin:
        """The first of the values it comes from that differs from a launch that is right.

        All that its instruction read is the same there, so that the instruction is what is wrong.
        """
        from ptxlab.trace.blame import blame

        return blame(self, other)

    def __str__(self) -> str:
        lines: list[str] = []
        self._show(lines, "", DEPTH, set())
        return "\n".join(lines)

    def _spelled(self) -> str:
        """The value: a number where its type is known, otherwise its bytes."""
        if not isinstance(self.value, bytes):
            return str(self.value)
        region = None if self.finder is None or self.place is None else self.finder.region_of(self.place)
        if region is not None and region.dtype:
            kind = dtype_named(region.dtype)
            if len(self.value) % kind.itemsize == 0:
                return " ".join(str(one) for one in np.frombuffer(self.value, kind).tolist())
        return self.value.hex()

    def _show(self, lines: list[str], indent: str, depth: int, shown: set[tuple[str, int | None, int]]) -> None:
        text = "" if self.value is None else f" = {self._spelled()}"
        where = f"  line {self.line}: {self.instruction}" if self.line else f"  {self.instruction}"
        sources = [source for source in self.sources if source.role == "value"] if depth else []
        again = bool(sources) and self._identity in shown
        lines.append(f"{indent}{self.what}{text}{where}" + ("  (see above)" if again else ""))
        shown.add(self._identity)
        if again:
            return
        chosen = sources[:SHOWN] if len(lines) < LONGEST else []
        for source in chosen:
            source._show(lines, indent + "  ", depth - 1, shown)
        if len(sources) > len(chosen):
            lines.append(f"{indent}  … and {len(sources) - len(chosen)} more")
