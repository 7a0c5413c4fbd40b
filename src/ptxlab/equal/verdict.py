"""What a comparison says: how equal two kernels are, for which values, and why not more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ptxlab.ir.module import Module
from ptxlab.ir.origin import Origins
from ptxlab.report import Span
from ptxlab.values import Json

SAME_BITS, SAME_FUNCTION, NEAR, DIFFERENT, REFUSED = "same-bits", "same-function", "near", "different", "refused"
TITLES = {
    SAME_BITS: "same bits",
    SAME_FUNCTION: "same function up to rounding",
    NEAR: "numerically near",
    DIFFERENT: "different",
    REFUSED: "not decided",
}


@dataclass(frozen=True)
class Refusal:
    """What cannot be decided, and where: an instruction that is not followed, or that does something else elsewhere."""

    side: int
    """0 for the first kernel, 1 for the second."""
    line: int
    instruction: str
    why: str
    source: str = ""
    """`kernel.cu:12`: the line that the instruction was compiled from."""

    @property
    def place(self) -> OperationSite:
        """The instruction."""
        return OperationSite(self.side, self.line, self.instruction, source=self.source)


class RefusedError(Exception):
    """Raised where a replay ends."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


@dataclass(frozen=True)
class OperationSite:
    """An operation of one side."""

    side: int
    line: int
    instruction: str
    thread: int = -1
    recording: tuple[Any, int] | None = field(default=None, repr=False, compare=False)
    """The `Trace` of the launch, and the last step in which the thread executed the operation."""
    source: str = ""
    """`kernel.cu:12`: the line that the instruction was compiled from."""

    def __str__(self) -> str:
        if not self.line:
            return f"{'ab'[self.side]}: as given"
        compiled = f" (of {self.source})" if self.source else ""
        return f"{'ab'[self.side]} line {self.line}: {self.instruction}{compiled}"


def source_of(module: Module, line: int) -> str:
    """The line that a line of PTX was compiled from, where that is known."""
    text = module.source
    if not module.origins or text is None or not line:
        return ""
    found = Origins(module).span(Span(text, *text.line_bounds(line)))
    return "" if found is None else f"{found.source.name}:{found.source.position(found.start)[0]}"


@dataclass(frozen=True)
class Witness:
    """Where two sides part: an element, the operations, what differs in words, and values that show it."""

    element: str
    places: tuple[OperationSite | None, OperationSite | None]
    words: Sequence[str] = ()
    inputs: Json = field(default_factory=dict, repr=False)
    """Arrays for which the two give different results, by name."""
    values: tuple[float, float] | None = None
    """What the element is then on both sides, as real numbers."""


@dataclass(frozen=True)
class Verdict:
    """The answer."""

    level: str
    """`same-bits`, `same-function`, `near`, `different`, or `refused`."""
    titles: tuple[str, str]
    outputs: Sequence[str]
    """The arrays that were compared."""
    holds_for: str
    """What the answer holds for."""
    probability: float = 0.0
    """That of a wrong "same", at most."""
    witness: Witness | None = None
    """For a level below the first: where the two sides part."""
    refusal: Refusal | None = None
    notes: Sequence[str] = ()
    elements: int = 0
    differing: int = 0
    """How many elements are not the same."""
    error: tuple[float, float] | None = None
    """Of each side against real numbers, where that was measured: relative to the largest element."""

    @property
    def same(self) -> bool:
        """Whether the two are the same function."""
        return self.level in (SAME_BITS, SAME_FUNCTION)

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        lines = [f"{TITLES[self.level]}: a = {self.titles[0]}, b = {self.titles[1]}"]
        if self.outputs:
            lines.append(f"  compared: {', '.join(self.outputs)}, {self.elements:,} elements")
        lines.append(f"  for {self.holds_for}" if self.level != REFUSED else f"  would hold for {self.holds_for}")
        if self.level == SAME_FUNCTION:
            lines.append(f"  a wrong answer has a probability below {self.probability:.1g}")
        if self.refusal is not None:
            lines += [f"  {self.refusal.place}"] if self.refusal.line else []
            lines.append(f"  {self.refusal.why}")
        if self.error is not None:
            lines.append(
                f"  error against real numbers: a {self.error[0]:.2g}, b {self.error[1]:.2g} of the largest element"
            )
        if self.differing:
            what = "differ as bits: they are rounded otherwise" if self.level == SAME_FUNCTION else "differ"
            lines.append(f"  {self.differing:,} of {self.elements:,} elements {what}")
        if self.witness is not None:
            lines += _witness_lines(self.witness)
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def as_dict(self) -> Json:
        """The answer as plain values, for JSON."""
        witness = self.witness
        found: Json = {
            "version": 1, "level": self.level, "a": self.titles[0], "b": self.titles[1], "outputs": list(self.outputs),
            "holds_for": self.holds_for, "elements": self.elements, "differing": self.differing,
            "notes": list(self.notes),
        }  # fmt: skip
        if self.level == SAME_FUNCTION:
            found["probability"] = self.probability
        if self.error is not None:
            found["error"] = list(self.error)
        if self.refusal is not None:
            found["refusal"] = {"side": "ab"[self.refusal.side], "line": self.refusal.line,
                                "source": self.refusal.source, "instruction": self.refusal.instruction,
                                "why": self.refusal.why}  # fmt: skip
        if witness is not None:
            found["witness"] = {
                "element": witness.element, "words": list(witness.words),
                "places": [None if one is None else {"line": one.line, "source": one.source, "thread": one.thread,
                                                     "instruction": one.instruction} for one in witness.places],
                "values": None if witness.values is None else list(witness.values),
            }  # fmt: skip
        return found


def _witness_lines(witness: Witness) -> list[str]:
    lines = [f"  {witness.element}: the two part at"]
    lines += [f"    {place}" for place in witness.places if place is not None]
    lines += [f"  {one}" for one in witness.words]
    if witness.values is not None:
        lines.append(
            f"  {witness.element} is {witness.values[0]:.9g} of a and {witness.values[1]:.9g} of b for `witness.inputs`"
        )
    return lines
