"""Which instructions of a kernel a timeline records: waits, and asynchronous operations that are issued.

A kernel's warps run except where they wait, so waits alone show both. Operations of one unit are issued one after the
other and then committed as a group; only the first of a group and the commit are recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxlab import ir
from ptxlab.device.layout import reachable
from ptxlab.ir.flow import Flow, flow_of
from ptxlab.ir.shapes import match_of
from ptxlab.isa import Match
from ptxlab.isa.jump import Jump

# Of each unit with asynchronous operations: their track, as recorded launches have it.
TRACKS = {
    "async_copy": "cp.async",
    "bulk": "bulk copies",
    "wgmma": "tensor cores",
    "tensor_memory": "tensor cores",
}
STARTS = {"start", "multiply"}
LONGEST_POLL = 32  # instructions of a loop that does nothing but ask whether a phase is over


@dataclass(frozen=True)
class TimedEvent:
    """What a record is of: a line of the kernel that a warp has executed."""

    at: int
    """The number of the instruction."""
    kind: str
    """`wait`, `poll` (again until it is over), `ask` (once), `start` (of a group), `commit`, `issue`, `call`, `end`."""
    unit: str
    text: str
    line: int
    left: int = 0
    """The groups that a wait leaves in flight."""
    mbarrier: int | None = None
    """The operand that is the address of an mbarrier, which the operation completes on, or the wait is for."""

    @cached_property
    def is_wait(self) -> bool:
        """Whether the warp may wait there."""
        return self.kind in ("wait", "poll", "ask", "call")

    @cached_property
    def label(self) -> str:
        """What a span of it is called."""
        return f"{'calls' if self.kind == 'call' else 'waits'}: {self.text}"


def events_of(module: ir.Module, kernel: ir.Function) -> list[TimedEvent]:
    """What is recorded of a kernel, by the numbers of its instructions."""
    instructions = list(kernel.instructions())
    found = [event for at in range(len(instructions)) for event in _events(module, instructions, at)]
    flow = flow_of(kernel)
    return [event for event in _once_a_group(found, flow) if event.kind != "ask" or event.mbarrier is not None]


def _events(module: ir.Module, instructions: Sequence[ir.Instruction], at: int) -> Iterator[TimedEvent]:
    instruction = instructions[at]
    span = module.span(instruction)
    text = "" if span is None else " ".join(span.text.split()).rstrip(" ;")
    line = 0 if span is None else span.source.position(span.start)[0]
    jump = instruction.opcode.jump
    if jump in (Jump.RETURN, Jump.EXIT):
        yield TimedEvent(at, "end", "", text, line)
    elif jump is Jump.CALL:
        called = [one.function for one in instruction.operands if isinstance(one, ir.FunctionReference)]
        if any(_waits(one) for function in called for one in reachable(module, function)):
            yield TimedEvent(at, "call", "", text, line)
    elif (match := match_of(instruction)) is not None:
        kind, unit = _kind(match)
        if kind:
            mbarrier = _mbarrier(match, kind, unit)
            kind = "issue" if (unit, kind) == ("bulk", "start") and mbarrier is not None else kind
            yield TimedEvent(at, kind, unit, text, line, _left(instruction), mbarrier)


def _waits(function: ir.Function) -> bool:
    """Whether a function that is called has something to record."""
    kinds = (_kind(match)[0] for one in function.instructions() if (match := match_of(one)) is not None)
    return any(kinds)


def _kind(match: Match) -> tuple[str, str]:
    """What an instruction is to a timeline, and the unit it is about; nothing for most."""
    effects = match.effects
    if (effects.barrier is not None and effects.waits) or effects.more_registers:
        return "wait", ""
    steps = {step.unit: {one.name for one in effects.steps if one.unit == step.unit} for step in effects.steps}
    if steps.get("mbarrier", set()) & {"wait", "test"}:
        return "poll", "mbarrier"
    for unit in TRACKS:
        names = steps.get(unit, set())
        if "wait" in names:
            return "wait", unit
        if names & {"commit", "arrive"}:
            return "commit", unit
        if names & STARTS:
            return "start", unit
    return "", ""


def _mbarrier(match: Match, kind: str, unit: str) -> int | None:
    """The operand that is an mbarrier."""
    names = [expected.name for expected in match.expected]
    if "mbar" in names:
        return names.index("mbar")
    is_one = unit == "mbarrier" or (unit == "async_copy" and kind == "commit")
    return names.index("a") if is_one and "a" in names else None


def _left(instruction: ir.Instruction) -> int:
    """The number of groups that a wait leaves; 0 where it names none."""
    first = instruction.operands[0] if len(instruction.operands) == 1 else None
    return int(first.value) if isinstance(first, ir.Immediate) else 0


def _once_a_group(events: Sequence[TimedEvent], flow: Flow) -> Iterator[TimedEvent]:
    """The events with the starts that follow another of their group left out, and with waits as polls or questions."""
    places = {event.at: event for event in events}
    started: set[tuple[int, str]] = set()
    texts: dict[str, tuple[str, int]] = {}
    for event in events:
        block = flow.block_at(event.at)
        if event.kind == "start":
            texts[event.unit] = event.text, event.line
            if (block, event.unit) not in started:
                started.add((block, event.unit))
                yield event
        elif event.kind == "commit":
            started -= {one for one in started if one[1] == event.unit}
            text, line = texts.get(event.unit, (event.text, event.line))
            yield TimedEvent(event.at, "commit", event.unit, text, line, mbarrier=event.mbarrier)
        elif event.kind == "poll" and not _is_repeated(event.at, flow, places):
            yield TimedEvent(event.at, "ask", event.unit, event.text, event.line, mbarrier=event.mbarrier)
        else:
            yield event


def _is_repeated(at: int, flow: Flow, events: dict[int, TimedEvent]) -> bool:
    """Whether an instruction is the only event of a short loop: a warp leaves it when what it asks for is true."""
    home = flow.block_at(at)
    seen: dict[int, int] = {}
    pending = [(home, at + 1, 0)]
    while pending:
        number, start, length = pending.pop()
        block = flow.blocks[number]
        end = at if number == home and start <= at else block.end
        if any(other in events for other in range(start, end)):
            continue
        if end == at:
            return True
        length += end - start
        if length > LONGEST_POLL or seen.get(number, LONGEST_POLL + 1) <= length:
            continue
        seen[number] = length
        pending += [(one, flow.blocks[one].start, length) for one in block.successors]
    return False
