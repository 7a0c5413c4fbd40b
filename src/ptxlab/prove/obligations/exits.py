"""That copies from and to shared memory are complete when their thread exits: after that, it is another block's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Access, Path, Segment, following
from ptxlab.prove.questions.copies import FREE, PHASED, Pending, pending
from ptxlab.prove.questions.intervals import At, Pair
from ptxlab.prove.questions.questions import Obligation, Questions, copy_at_exit, obligation
from ptxlab.prove.terms.terms import Loop, without_rank
from ptxlab.prove.theories.lemmas import products


def show_exits(execution: Execution, questions: Questions, milliseconds: int) -> Iterator[Obligation]:
    """Show that no copy which groups complete may be under way where its thread exits."""
    segments = execution.notes.segments
    under_way = {(one.copy.at, one.copy.segment) for one in pending(segments)
                 if any(_may_exit(one, path, questions, milliseconds) for path in one.segment.exits)}  # fmt: skip
    for access in (one for segment in segments for one in segment.accesses):
        if access.is_async and access.unit not in PHASED and access.space == "shared":
            yield copy_at_exit((access.line,), (access.at, access.segment) not in under_way, "waits for groups")


def show_presence(execution: Execution, is_awaited: Callable[[Access], bool]) -> Iterator[Obligation]:
    """Show that blocks run while others access their shared memory: all threads of the cluster synchronize around it.

    What a copy brings is awaited in the block that it is brought to (`rings`), and so may be arrivals at its mbarriers.
    """
    started = following(execution.entry, _is_between_barriers)
    accesses = [one for segment in execution.notes.segments for one in segment.accesses]
    brought = {one.at for one in accesses if one.unit == "mbarrier"}
    for access in accesses:
        _, rank = without_rank(access.address)
        if rank is None or rank == execution.terms.rank():
            continue
        stays = (
            access.at in brought
            or is_awaited(access)
            or not any(one.exits for one in following(access.segment, _is_between_barriers))
        )
        for is_shown, has, where in ((access.segment not in started, "has started", "before"),
                                     (stays, "has not exited", "after")):  # fmt: skip
            about = f"the block whose shared memory another one accesses {has}"
            reason, help = f"no barrier of the cluster is {where} it", f"put a `barrier.cluster` {where} it"
            yield obligation("exit", (access.line,), about, is_shown, "barriers of the cluster", reason, help)


def _is_between_barriers(after: Segment, _: Loop | None) -> bool:
    """Whether a segment does not start with a barrier of all threads."""
    return after.barrier is None or after.is_of_warp


def _may_exit(one: Pending, exit: Path, questions: Questions, milliseconds: int) -> bool:
    """Whether a thread can exit on a path while a copy of it is under way."""
    if one.copy.space != "shared":
        return False
    copy: Access = one.copy
    turns = dict.fromkeys(one.segment.loops, FREE) | one.since | one.left
    pair = Pair(copy.segment.loops, (dict.fromkeys(copy.segment.loops, 0), turns), same_block=True, same_thread=True)
    terms = questions.terms
    ends = [terms.some(map(terms.every, loop.exits)) for loop in one.left if loop.exits and not loop.outer]
    places = At(copy.path, copy.segment.loops, ()), At((*exit, *ends), one.segment.loops, ())
    space, threads = questions.in_integers(pair, *places)
    facts = [fact for t in threads for fact in t.facts]
    return questions.clock.check([*facts, *space.lemmas(products(space)), *space.facts], milliseconds)[0] != "unsat"
