"""That a warp which waits for registers gets them: enough are given back, by warps that do not wait for it before.

All warps of a warpgroup must change their number together.

A block starts with as many registers for each warp as the header of its kernel says. Here each warp changes that number
once at most, outside of loops, and either all that do come to it or none.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab.check.launch import registers_at_start
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Event, UnsupportedError
from ptxlab.prove.execution.threads import Threads
from ptxlab.prove.questions.questions import Obligation, obligation

RAISE, LOWER = "raise", "lower"
WARPGROUP = 128  # threads
WAITS = ("wait", "part", "barrier")


def show_registers(execution: Execution) -> Iterator[Obligation]:
    """Show that no warp waits for registers for ever, and that those of a warpgroup change their number together."""
    changes = [event for event in execution.notes.events if event.kind in (RAISE, LOWER)]
    threads = Threads(execution.terms)
    places = {event: threads.mask(event.path, event.at) for event in changes}
    blocks = [threads.of_rank(rank) for rank in range(execution.terms.ranks)]
    groups = [own & (((1 << WARPGROUP) - 1) << number * threads.own + first)
              for number, own in enumerate(blocks) for first in range(0, threads.own, WARPGROUP)]  # fmt: skip
    for event, (mask, _) in places.items():
        is_whole = all(mask & group in (0, group) for group in groups)
        about = "the warps of a warpgroup change their number of registers together"
        yield obligation("registers", (event.line,), about, is_whole, "counted", "it may be some of them only")
    start = registers_at_start(execution.facts.function)
    if start is None:
        return  # the instruction has no effect
    for number, event in enumerate(changes):
        for later in changes[number + 1 :]:
            is_again = event.bytes != later.bytes if set(event.loops) & set(later.loops) else event.bytes < later.bytes
            if later.kind == LOWER == event.kind and places[event][0] & places[later][0] and is_again:
                raise UnsupportedError(later.at, "a warp may have fewer registers here than it is to keep")
    if all(event.kind == LOWER for event in changes):
        return
    start = -(-start // 8) * 8
    seen = left = 0
    for event, (mask, others) in places.items():
        if mask & seen or event.loops or set(others) != set(places[changes[0]][1]):
            reason = "the number of registers of a warp may change more than once, or not with that of others"
            raise UnsupportedError(event.at, reason)
        seen |= mask
        left += mask.bit_count() * (max(0, start - event.bytes) if event.kind == LOWER else min(0, start - event.bytes))
    lines = tuple(dict.fromkeys(event.line for event in changes))
    about = "a warp that waits for registers gets them"
    raised = [event.number for event in changes if event.kind == RAISE]
    is_early = all(_is_early(execution, threads, event, mask, raised)
                   for event, (mask, _) in places.items() if event.kind == LOWER)  # fmt: skip
    reason = "other warps do not give enough back" if left < 0 else "other warps may wait before they give some back"
    yield obligation("registers", lines, about, left >= 0 and is_early, "counted", reason)


def _is_early(execution: Execution, threads: Threads, lower: Event, mask: int, raised: list[int]) -> bool:
    """Whether warps give registers back before they wait for any that may wait for registers."""
    waits = [one for one in execution.notes.events if one.kind in WAITS and one.number < lower.number]
    own = [one for one in waits if one.kind == "barrier" or threads.mask(one.path)[0] & mask]
    return all(one.kind == "barrier" and all(one.number < number for number in raised) for one in own)
