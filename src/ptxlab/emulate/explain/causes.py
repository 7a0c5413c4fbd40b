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

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.accesses import Party, excuse, parties_of, race_of
from ptxlab.emulate.explain.operations import operation_of
from ptxlab.emulate.explain.paths import Paths
from ptxlab.emulate.runtime.order import reports, shadow
from ptxlab.ir.inlining import own_frame

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

MOST = 4  # pairs of lines that a note names
Source = tuple[str, int]  # a file and a line of it


@dataclass
class Cause:
    """Findings with one cause; a barrier after the instruction `low` and before `high` orders all of them."""

    key: Hashable
    low: int
    high: int
    numbers: list[int] = field(default_factory=list)
    sources: set[frozenset[Source]] = field(default_factory=set)


def causes_of(launch: RunningLaunch, found: StructArray, numbers: list[int]) -> list[list[int]]:
    """The numbers of findings, those with one cause together, by when the first of each was found.

    Two writes follow from what reads too early or too late: with it, if both are part of it, after it if one is.
    """
    causes: list[Cause] = []
    sources = _sources(launch)
    for number in _without_consequences(launch, found, numbers):
        parties = parties_of(found, number)
        low, high = sorted(party.instruction for party in parties)
        key = _key(launch, found, number, parties, sources)
        source = frozenset(sources[at] for at in (low, high) if at in sources)
        for cause in causes:
            if cause.key != key:
                continue
            overlaps = max(cause.low, low) < min(cause.high, high)
            if overlaps or source in cause.sources:
                cause.numbers.append(number)
                break
        else:
            causes.append(cause := Cause(key, low, high, [number]))
            overlaps = True
        if overlaps:
            cause.low, cause.high = max(cause.low, low), min(cause.high, high)
        if source:
            cause.sources.add(source)
    groups = [sorted(cause.numbers, key=lambda one: _rank(found, one)) for cause in causes]
    reading = [(group, _instructions(found, group)) for group in groups if not _rank(found, group[0])[1]]
    followed: list[list[int]] = []
    for group in [group for group in groups if _rank(found, group[0])[1]]:
        written = _instructions(found, group)
        cause_of = next((other for other, instructions in reading if written <= instructions), None)
        if cause_of is not None:
            cause_of += group
            groups.remove(group)
        elif any(written & instructions for _, instructions in reading):
            followed.append(group)
    return sorted(groups, key=lambda group: group in followed)


def _instructions(found: StructArray, numbers: list[int]) -> set[int]:
    return {party.instruction for number in numbers for party in parties_of(found, number)}


def _rank(found: StructArray, number: int) -> tuple[bool, bool]:
    """Which of several findings represents their cause, the least first.

    A race represents those that a warp collective happens to order. What reads too early, or too late, represents two
    writes: where data are changed in place, these follow from it.
    """
    is_read = any(party.kind != address_spaces.STORE for party in parties_of(found, number))
    return found.get("kind", number) != reports.RACE, not is_read


def _without_consequences(launch: RunningLaunch, found: StructArray, races: list[int]) -> list[int]:
    """The findings without those of a deallocation or of a missing fence that others explain."""
    kinds = {number: found.get("kind", number) for number in races}
    unfenced = [number for number in races if kinds[number] in (reports.UNFENCED, reports.UNFENCED_TENSOR)]
    frees = [
        number
        for number in races
        if launch.compiled.effects(found.get("instruction", number)).does("tensor_memory", "free")
    ]
    kept = {number for number in races if number not in frees and number not in unfenced}
    reported = {found.get(name, number) for number in kept for name in ("instruction", "other_instruction")}
    for kind in (reports.UNFENCED, reports.UNFENCED_TENSOR):
        kept |= set(_one_a_fence(launch, found, [number for number in unfenced if kinds[number] == kind]))
    freed: set[int] = set()
    for number in frees:
        at = found.get("instruction", number)
        if at not in freed and found.get("other_instruction", number) not in reported:
            freed.add(at)
            kept.add(number)
    return [number for number in races if number in kept]


def _one_a_fence(launch: RunningLaunch, found: StructArray, unfenced: list[int]) -> list[int]:
    """Of the findings for which one fence is missing the one that is first in the file."""
    return [group[0] for group in by_synchronization(launch, found, unfenced)]


def by_synchronization(launch: RunningLaunch, found: StructArray, numbers: list[int]) -> list[list[int]]:
    """Findings in the order of the file, those that follow the same synchronization together."""
    paths = Paths(launch.compiled)
    groups: list[tuple[frozenset[int], list[int]]] = []
    for number in sorted(numbers, key=lambda number: (found.get("instruction", number), number)):
        before = paths.synchronizations_before(found.get("instruction", number))
        group = next((group for other, group in groups if before & other), None)
        if group is None:
            groups.append((before, group := []))
        group.append(number)
    return [group for _, group in groups]


def by_source(launch: RunningLaunch, found: StructArray, numbers: list[int]) -> list[list[int]]:
    """Findings of one access each, those that were compiled from one line of the source together."""
    sources = _sources(launch)
    groups: dict[Hashable, list[int]] = {}
    for number in numbers:
        at = found.get("instruction", number)
        groups.setdefault((found.get("space", number), sources.get(at, at)), []).append(number)
    return list(groups.values())


def other_lines(launch: RunningLaunch, found: StructArray, numbers: list[int]) -> list[str]:
    """A note on the pairs of lines of one cause beside the first, if there are any."""
    beside = parties_of(found, numbers[0])[1].instruction
    numbered = [sorted(party.instruction for party in parties_of(found, one)) for one in numbers]
    named = {(low, high): tuple(launch.name_line(number, beside) for number in (low, high)) for low, high in numbered}
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


def _key(
    launch: RunningLaunch, found: StructArray, number: int, parties: tuple[Party, Party], sources: dict[int, Source]
) -> Hashable:
    """What findings with one cause have in common; a number of its own for one that has its cause to itself."""
    kind, space = found.get("kind", number), found.get("space", number)
    earlier, later = parties
    is_plain = kind in (reports.RACE, reports.COLLECTIVE_ONLY) and space != address_spaces.TENSOR_SPACE
    functions = frozenset(id(launch.compiled.instructions[party.instruction][0]) for party in parties)
    are_async = all(party.is_async or party.flags & shadow.COPY for party in parties)
    if is_plain and are_async and len(functions) == 1:
        names = frozenset(operation_of(launch.compiled.effects(party.instruction)).name for party in parties)
        return functions, names, earlier.block == later.block, earlier.kind, later.kind
    if not is_plain or any(party.flags & shadow.STALE for party in parties):
        return number
    race = race_of(launch, found, number)
    is_of_next = race.is_of_next
    if kind == reports.RACE and excuse(launch, race.earlier, race.later):
        return number
    if len(functions) > 1:  # their instructions have no common order
        functions |= {earlier.instruction, later.instruction}
    copies = [party for party in parties if party.is_copy and not is_of_next]
    if copies:  # one wait is for all `cp.async` of a thread, but other copies may each have an mbarrier
        waits = [sources.get(one.instruction, one.instruction) for one in copies if one.is_async]
        return kind, functions, space, race.in_block, race.earlier.kind, race.later.kind, *waits
    strong = earlier.flags & later.flags & shadow.STRONG
    if earlier.block == later.block:
        return kind, functions, strong, is_of_next
    region = launch.regions.at(found.get("address", number))
    return kind, functions, strong, None if region is None else region.name


def _sources(launch: RunningLaunch) -> dict[int, Source]:
    """The user's line that each instruction was compiled from, where there is one."""
    spans = map(launch.span_of, range(len(launch.compiled.instructions)))
    frames = [() if span is None else launch.origins.frames(span) for span in spans]
    owned = {number: found[own_frame(found)] for number, found in enumerate(frames) if found}
    return {number: (frame.file, frame.line) for number, frame in owned.items()}
