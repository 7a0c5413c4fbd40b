"""Which registers a thread saves before it waits, and which it fetches back afterwards.

A register has its own slot in the frame. It is saved only if it may have been written since that slot last held its
value, and fetched only if it is read before the next wait. Sets of registers are integers, a bit each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from ptxlab.emulate.translate.dataflow import backwards, forwards, settle
from ptxlab.ir.flow import Flow
from ptxlab.values import dataclass


@dataclass
class Wait:
    """A point at which a thread waits: `live` registers are read later.

    A wait that is not `certain` may be passed by; one on a jump to the block `target` continues there.
    """

    live: int
    certain: bool
    target: int | None
    before: list[str]
    after: list[str]
    saved: int = 0
    fetched: int = 0


@dataclass
class RegisterUse:
    """An instruction: registers that it reads, waits within it, registers that it writes, surely or perhaps."""

    reads: int
    writes: int
    overwrites: int
    waits: list[Wait] = field(default_factory=list)


def choose(flow: Flow, steps: Sequence[Sequence[RegisterUse]]) -> None:
    """Decide for each wait; `steps` are those of each block of `flow`."""
    _choose_saved(flow, steps)
    _choose_fetched(flow, steps)


def _choose_saved(flow: Flow, steps: Sequence[Sequence[RegisterUse]]) -> None:
    """Find, forwards, whose slots in the frame are up to date; the others are saved."""
    everything = -1
    fresh = [everything] * len(flow.blocks)
    if flow.blocks:
        fresh[0] = 0

    def visit(number: int) -> list[int]:
        now = fresh[number]
        if now == everything:  # nothing gets there, as far as is known
            return []
        for step in steps[number]:
            for wait in step.waits:
                if wait.certain:
                    now |= wait.live
            now &= ~step.writes
        changed = []
        for successor in flow.blocks[number].successors:
            met = fresh[successor] & now
            if met != fresh[successor]:
                fresh[successor] = met
                changed.append(successor)
        return changed

    settle(forwards(flow), visit)
    for number in range(len(flow.blocks)):
        now = fresh[number]
        for step in steps[number]:
            for wait in step.waits:
                wait.saved = wait.live & ~now
                if wait.certain:
                    now |= wait.live
            now &= ~step.writes


def _choose_fetched(flow: Flow, steps: Sequence[Sequence[RegisterUse]]) -> None:
    """Find, backwards, which registers are read, or saved, before the next wait."""
    needed = [0] * len(flow.blocks)

    def visit(number: int) -> Sequence[int]:
        now = 0
        for successor in flow.blocks[number].successors:
            now |= needed[successor]
        for step in reversed(steps[number]):
            now &= ~step.overwrites
            for wait in reversed(step.waits):
                wait.fetched = wait.live & (now if wait.target is None else needed[wait.target])
                now = wait.saved if wait.certain else now | wait.saved
            now |= step.reads
        if now == needed[number]:
            return ()
        needed[number] = now
        return flow.blocks[number].predecessors

    settle(backwards(flow), visit)


def members(registers: int) -> Iterator[int]:
    """The numbers of the registers in a set."""
    while registers:
        lowest = registers & -registers
        yield lowest.bit_length() - 1
        registers ^= lowest
