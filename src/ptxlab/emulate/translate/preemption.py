"""Where a thread can be preempted: before instructions by which threads observe each other.

With seed 0, the only such points are volatile accesses, where lanes of a warp take turns: code that was written for
lanes in step then computes what it computes on a GPU.

Fences are not among them: a fence acts on its own thread alone, so preempting before it is preempting before the next
access. Neither are weak accesses of large functions, unless they are logged. Between two synchronization operations of
a thread, its weak accesses commute with everything that other threads do, unless they race; and a race is found in
whatever order the two accesses are executed, as long as synchronization operations are in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.emulate.translate.liveness import Liveness
from ptxlab.isa import Match
from ptxlab.isa.effects import Access, Effects

# What a kernel is compiled for: to run on until it must wait, to be preempted at points, and to log what it does there.
NEVER, POINTS, LOGGED = 0, 1, 2

LOOK = 0  # it changes nothing that others read
CHANGE = 1
TURN = 2  # where lanes of a warp take turns, though threads are not preempted: a volatile access
# Registers that the points before weak accesses of a function may save in all. Each takes LLVM some 10 microseconds.
MOST_SAVED = 4000

_PRIVATE = frozenset(("param", "const", "local"))


def points_of(matches: Sequence[Match | None], live: Liveness, preemption: int) -> dict[int, int]:
    """The positions of instructions before which a thread can be preempted, and what each may do to memory."""
    if preemption == NEVER:
        return {position: TURN for position, match in enumerate(matches) if match is not None and takes_turns(match)}
    effects = {position: match.effects for position, match in enumerate(matches) if match is not None}
    strong = {position: _kind(one) for position, one in effects.items() if _synchronizes(one)}
    weak = {position: _kind(one) for position, one in effects.items() if position not in strong and _visible(one)}
    if preemption != LOGGED and sum(live.before(position).bit_count() for position in weak) > MOST_SAVED:
        return strong
    return strong | weak


def takes_turns(match: Match) -> bool:
    """Whether lanes may exchange values by a volatile access: to shared or global memory."""
    spaces = {(access.space or "global").partition("::")[0] for access in match.effects.accesses}
    return bool(match.candidate.modifiers.volatile) and spaces <= {"shared", "global"}


def _synchronizes(effects: Effects) -> bool:
    """Whether threads synchronize by an instruction, or may."""
    return (
        effects.barrier is not None
        or any(step.unit == "mbarrier" for step in effects.steps)
        or any(access.order != "weak" for access in _visible(effects))
    )


def _visible(effects: Effects) -> list[Access]:
    """The accesses of a thread to memory that others may write, too; those of a whole warp are not counted."""
    return [
        access
        for access in effects.accesses
        if access.order != "constant" and not access.is_async and not effects.converges
        if (access.space or "").partition("::")[0] not in _PRIVATE
    ]


def _kind(effects: Effects) -> int:
    return CHANGE if any(access.kind != "load" for access in effects.accesses) else LOOK
