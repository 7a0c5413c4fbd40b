"""Unsynchronized accesses to tensor memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab.emulate.explain.found import Found, replay
from ptxlab.emulate.explain.snapshots import ranges
from ptxlab.emulate.runtime.tensor_memory.collectors import CHANGED, FULL
from ptxlab.isa.units.collector import BUFFERS
from ptxlab.isa.units.tensor_memory import BAND, COLUMNS
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.explain.accesses import Race
    from ptxlab.emulate.explain.found import Party

MOST_LINES = 4  # that a note lists
_WHERE = {"load": " of tensor memory", "store": " to tensor memory"}


def explain_tensor_race(race: Race) -> Diagnostic:
    """Operations on the same tensor memory without order."""
    earlier, later = race.earlier, race.later
    if _frees(race, earlier):
        return _explain_use_after_free(race, later, earlier, race.second_thread, race.first)
    if _frees(race, later):
        return _explain_use_after_free(race, earlier, later, race.first, race.second_thread)
    before, after = race.operation(earlier), race.operation(later)
    start, still, label = "", "still ", f"before the {before.name} was known to be complete"
    notes = [before.completion]
    if not race.is_started:
        start, still, label = "unsynchronized: ", "", f"not ordered with the {before.name}"
        notes = [f"no barrier or mbarrier orders the two{_last_waits(race)}", before.completion]
    return error(
        "data-race",
        f"{start}{after} {later.does} tensor memory that {before} {still}{earlier.does}",
        race.launch.span_of(later.instruction),
        f"{race.second_thread} started it at {race.bytes}, {label}",
        others=race.at_earlier(f"{race.first} started the {before.name}"),
        notes=[*notes, *replay(race.launch)],
    )


def _last_waits(race: Race) -> str:
    """`: the last before the MMA is on line 12, before the load on line 40`, where there is one of each"""
    texts, paths = [], race.paths
    for party in (race.earlier, race.later):
        found = sorted(paths.synchronizations_before(party.instruction, is_fenced=True))
        if len(found) != 1:
            return ""
        line = race.launch.name_line(found[0], race.later.instruction)
        texts.append(f"before the {race.operation(party).name} is on {line}")
    return f": the last {texts[0]}, the last {texts[1]}" if texts[0] != texts[1] else ""


def _frees(race: Race, party: Party) -> bool:
    return party.effects.does("tensor_memory", "free")


def _explain_use_after_free(race: Race, use: Party, free: Party, user: str, freer: str) -> Diagnostic:
    """Operations that a deallocation does not wait for: they may use what is no longer the block's."""
    operation = race.operation(use)
    return error(
        "use-after-free",
        f"{operation} may use tensor memory after `tcgen05.dealloc` has freed it",
        race.launch.span_of(use.instruction),
        f"{user} started it at {race.bytes}",
        others=race.label(free.instruction, f"{freer} frees it"),
        notes=[
            f"nothing makes sure that the {operation.name} is complete when the memory is freed",
            operation.completion,
            *replay(race.launch),
        ],
        helps=["`bar.sync`, or another barrier of all warps that use the memory, before `tcgen05.dealloc`"],
    )


def explain_missing_fence(race: Race) -> Diagnostic:
    """An operation on tensor memory that may run ahead of the synchronization before it."""
    before, after = race.operation(race.earlier), race.operation(race.later)
    waits = sorted(race.paths.synchronizations_before(race.later.instruction))
    after_wait, where = "before it", "between the synchronization and this line"
    if len(waits) == 1:
        after_wait = f"after {race.launch.name_line(waits[0], race.later.instruction)}"
        where = f"{after_wait}, where the threads synchronize"
    return warning(
        "missing-tensor-fence",
        f"{after}{_WHERE.get(after.name, '')} may run ahead of the synchronization that orders it after "
        f"{before}{_WHERE.get(before.name, '')}",
        race.launch.span_of(race.later.instruction),
        f"{race.second_thread} started it at {race.bytes}, with no `tcgen05.fence::after_thread_sync` {after_wait}",
        others=race.at_earlier(f"{race.first} started the {before.name}"),
        notes=["operations on tensor memory are ordered after barriers and mbarriers only by such a fence"],
        helps=[f"`tcgen05.fence::after_thread_sync;` {where}"],
    )


def explain_missing_fence_before(race: Race) -> Diagnostic:
    """A store of a warp that has waited for it, but passes no fence before it synchronizes."""
    after = race.operation(race.later)
    return warning(
        "missing-tensor-fence",
        f"{after}{_WHERE.get(after.name, '')} may overtake a store to tensor memory of another warp, which passes no "
        "fence before it synchronizes",
        race.launch.span_of(race.later.instruction),
        f"{race.second_thread} started it at {race.bytes}",
        others=race.at_earlier(f"{race.first} started the store, and has passed no fence since"),
        notes=["`tcgen05.wait::st` is for the warp itself; what other threads start is ordered after it by a fence"],
        helps=[
            "`tcgen05.fence::before_thread_sync;` after `tcgen05.wait::st`, before the barrier or the arrival that "
            "other threads wait for"
        ],
    )


def explain_unread(found: Found) -> Diagnostic:
    """Accumulators that nothing reads before they are freed or overwritten."""
    word, columns = found.record.address // 4, found.record.bytes // 4
    bands = [band for band in range(4) if found.record.bands >> band & 1]
    lanes = ranges(lane for band in bands for lane in range(band * BAND, (band + 1) * BAND))
    first = word % COLUMNS
    which = f"lanes {lanes}" if not columns else f"columns {first} to {first + columns - 1}"
    last = found.other.instruction
    end = "freed" if found.other.effects.does("tensor_memory", "free") else "overwritten"
    notes, helps = [], [f"read them, or use an MMA with {columns} columns less"]
    if not columns:
        notes = ["a warp reads the 32 lanes of its number in its warpgroup: it takes four warps to read 128 rows"]
        helps = [f"let the warps that reach lanes {lanes} read them; if they are not needed, use an MMA with 64 rows"]
    return warning(
        "unread-accumulators",
        f"{which} of the accumulators are {end}, and nothing has read them",
        found.span,
        f"this MMA writes them, at column {first} of tensor memory" if not columns else "this MMA writes them",
        others=found.label(last, f"{end} here") if last != found.instruction else [],
        notes=notes,
        helps=helps,
    )


def explain_collectors(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """Of each collector buffer that MMAs use in vain, the first; one with another matrix if there is one."""
    by_flags: dict[int, list[Found]] = {}
    for one in found:
        by_flags.setdefault(one.record.collector, []).append(one)
    for flags, (first, *others) in sorted(by_flags.items(), reverse=True):
        if flags < FULL and {flags | FULL, flags | CHANGED} & by_flags.keys():
            continue  # the buffer is empty before it is wrong: one cause
        diagnostic = explain_collector(first)
        lines = [first.line(other.instruction) for other in others]
        if lines:
            listed = ", ".join(lines[:MOST_LINES])
            more = f", and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
            diagnostic = replace(diagnostic, notes=(*diagnostic.notes, f"the same is the case on {listed}{more}"))
        yield diagnostic


def explain_collector(found: Found) -> Diagnostic:
    """A collector buffer that an MMA uses, and that does not hold its matrix."""
    flags = found.record.collector
    buffer = BUFFERS[flags & (FULL - 1)]
    matrix = "A" if buffer == "a" else "B"
    span = None if found.other.instruction == found.instruction else found.launch.span_of(found.other.instruction)
    notes = ["modelled, not measured: the hardware may take a matrix from the buffer or from memory"]
    if flags & FULL:
        make, label = error, "filled here"
        message = f"collector buffer `{buffer}` is used for another {matrix} than it was filled with"
    elif flags & CHANGED:
        make, label = error, "filled here"
        message = f"collector buffer `{buffer}` is used for {matrix}, which was overwritten after the buffer was filled"
    else:
        make, label = warning, "emptied here"
        message = f"collector buffer `{buffer}` is used, but {'is empty' if span else 'no MMA has filled it'}"
        if span is not None and buffer in ("a", "b0"):
            notes.insert(0, f"an MMA without a collector modifier is `collector::{buffer}::discard`")
    return make(
        "bad-collector",
        message,
        found.span,
        f"uses the {matrix} that the buffer should hold",
        others=[] if span is None else [Label(span, label)],
        notes=notes,
        helps=[
            f"`collector::{buffer}::fill` on the first MMA of those that share {matrix}, `use` on those that follow, "
            "`lastuse` on the last"
        ],
    )
