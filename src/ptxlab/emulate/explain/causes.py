"""One cause, one finding: which findings have one cause, so that one of them reports it.

A deallocation races with all that no thread waited for, and is reported once. Where one fence is missing, all
operations that follow the same synchronization lack it. Of loads that a compiler made of one line, as of an unrolled
loop, one reports that they read what no thread has written.

Two races have one cause if both are between threads of a block (or both are about the same array), if they are of one
kind, and if one barrier would order both: some point of the function is between the two instructions of the one and
between the two of the other. Where that is not so, they still have one cause if they are on the same two lines of the
source that the kernel was compiled from: a helper that is used twice. The race that was found first represents all. The
same goes for asynchronous operations of two kinds: the copies of a stage and the MMAs that read it. Two writes have the
cause of reads that race with both: a thread that has read something wrong writes where it should not.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ptxlab.emulate.abi import address_spaces, findings
from ptxlab.emulate.explain.accesses import Race, excuse
from ptxlab.emulate.explain.found import Found
from ptxlab.emulate.runtime.order import shadow
from ptxlab.ir.inlining import own_frame

F = TypeVar("F", bound=Found)
MOST = 4  # pairs of lines that a note names
Source = tuple[str, int]  # a file and a line of it


@dataclass
class Cause:
    """Races with one cause; a barrier after the instruction `low` and before `high` orders all of them."""

    key: Hashable
    low: int
    high: int
    races: list[Race]
    sources: set[frozenset[Source]] = field(default_factory=set)


def causes_of(races: Sequence[Race]) -> list[list[Race]]:
    """Races, those with one cause together, by when the first of each was found.

    Two writes follow from what reads too early or too late: with it, if both are part of it, after it if one is.
    """
    causes: list[Cause] = []
    sources = _sources(races)
    for race in _without_consequences(races):
        low, high = sorted(race.instructions)
        key = _key(race, sources)
        source = frozenset(sources[at] for at in (low, high) if at in sources)
        for cause in causes:
            if cause.key != key:
                continue
            overlaps = max(cause.low, low) < min(cause.high, high)
            if overlaps or source in cause.sources:
                cause.races.append(race)
                break
        else:
            causes.append(cause := Cause(key, low, high, [race]))
            overlaps = True
        if overlaps:
            cause.low, cause.high = max(cause.low, low), min(cause.high, high)
        if source:
            cause.sources.add(source)
    groups = [sorted(cause.races, key=_rank) for cause in causes]
    reading = [(group, _instructions(group)) for group in groups if not _rank(group[0])[1]]
    followed: list[list[Race]] = []
    for group in [group for group in groups if _rank(group[0])[1]]:
        written = _instructions(group)
        cause_of = next((other for other, instructions in reading if written <= instructions), None)
        if cause_of is not None:
            cause_of += group
            groups.remove(group)
        elif any(written & instructions for _, instructions in reading):
            followed.append(group)
    return sorted(groups, key=lambda group: group in followed)


def _instructions(races: Sequence[Race]) -> set[int]:
    return {instruction for race in races for instruction in race.instructions}


def _rank(race: Race) -> tuple[bool, bool]:
    """Which of several races represents their cause, the least first.

    A race represents those that a warp collective happens to order. What reads too early, or too late, represents two
    writes: where data are changed in place, these follow from it.
    """
    is_read = any(party.kind != address_spaces.STORE for party in race.parties)
    return race.kind != findings.RACE, not is_read


def _without_consequences(races: Sequence[Race]) -> list[Race]:
    """The races without those of a deallocation or of a missing fence that others explain."""
    unfenced = [race for race in races if race.kind in (findings.UNFENCED, findings.UNFENCED_TENSOR)]
    frees = [race for race in races if race.access.effects.does("tensor_memory", "free")]
    kept = {race for race in races if race not in frees and race not in unfenced}
    reported = {instruction for race in kept for instruction in race.instructions}
    for kind in (findings.UNFENCED, findings.UNFENCED_TENSOR):  # of those for which one fence is missing the first
        kept |= {group[0] for group in by_synchronization([race for race in unfenced if race.kind == kind])}
    freed: set[int] = set()
    for race in frees:
        if race.instruction not in freed and race.other.instruction not in reported:
            freed.add(race.instruction)
            kept.add(race)
    return [race for race in races if race in kept]


def by_synchronization(found: Sequence[F]) -> list[list[F]]:
    """Findings in the order of the file, those that follow the same synchronization together."""
    groups: list[tuple[frozenset[int], list[F]]] = []
    for one in sorted(found, key=lambda one: one.instruction):
        before = one.paths.synchronizations_before(one.instruction)
        group = next((group for other, group in groups if before & other), None)
        if group is None:
            groups.append((before, group := []))
        group.append(one)
    return [group for _, group in groups]


def by_source(found: Sequence[F]) -> list[list[F]]:
    """Findings of one access each, those that were compiled from one line of the source together."""
    sources = _sources(found)
    groups: dict[Hashable, list[F]] = {}
    for one in found:
        groups.setdefault((one.space, sources.get(one.instruction, one.instruction)), []).append(one)
    return list(groups.values())


def other_lines(found: Sequence[Found]) -> list[str]:
    """A note on the pairs of lines of one cause beside the first, if there are any."""
    numbered = [sorted(one.instructions) for one in found]
    named = {(low, high): tuple(map(found[0].line, (low, high))) for low, high in numbered}
    lines = list(dict.fromkeys(named.values()))[1:]
    pairs = [f"{low} and {high}{' of another thread' * (low == high)}" for low, high in lines]
    alike = len(named) - len(pairs) - 1
    texts = pairs[:MOST]
    if len(pairs) > MOST:
        texts.append(f"{len(pairs) - MOST} more pairs of lines")
    if alike:
        texts.append(f"{alike} more pair{'s' * (alike > 1)} of PTX lines of the same source lines")
    if not texts:
        return []
    *most, last = texts
    return [f"the same order is missing between {', '.join(most)}{', and ' if most else ''}{last}"]


def _key(race: Race, sources: dict[int, Source]) -> Hashable:
    """What races with one cause have in common; the race itself for one that has its cause to itself."""
    kind, space, parties = race.kind, race.space, race.parties
    earlier, later = parties
    is_plain = kind in (findings.RACE, findings.COLLECTIVE_ONLY) and space != address_spaces.TENSOR_SPACE
    functions = frozenset(id(race.launch.compiled.instructions[at][0]) for at in race.instructions)
    are_async = all(party.is_async or party.flags & shadow.COPY for party in parties)
    if is_plain and are_async and len(functions) == 1:
        names = frozenset(party.operation.name for party in parties)
        return functions, names, earlier.block == later.block, earlier.kind, later.kind
    if not is_plain or any(party.flags & shadow.STALE for party in parties):
        return race
    if kind == findings.RACE and excuse(race):
        return race
    if len(functions) > 1:  # their instructions have no common order
        functions |= {earlier.instruction, later.instruction}
    copies = [party for party in parties if party.is_copy and not race.is_of_next]
    if copies:  # one wait is for all `cp.async` of a thread, but other copies may each have an mbarrier
        waits = [sources.get(one.instruction, one.instruction) for one in copies if one.is_async]
        return functions, space, race.in_block, race.earlier.kind, race.later.kind, *waits
    strong = earlier.flags & later.flags & shadow.STRONG
    if earlier.block == later.block:
        return functions, strong, race.is_of_next
    region = race.launch.regions.at(race.record.address)
    return functions, strong, None if region is None else region.name


def _sources(found: Sequence[Found]) -> dict[int, Source]:
    """The user's line that each instruction of their kernel was compiled from, where there is one."""
    if not found:
        return {}
    launch = found[0].launch
    spans = map(launch.span_of, range(len(launch.compiled.instructions)))
    frames = [() if span is None else launch.origins.frames(span) for span in spans]
    owned = {number: found[own_frame(found)] for number, found in enumerate(frames) if found}
    return {number: (frame.file, frame.line) for number, frame in owned.items()}
