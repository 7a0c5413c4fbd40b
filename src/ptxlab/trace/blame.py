"""Following the values that differ between two recorded launches, back to the instruction that made the first.

Both launches are followed together: a value is compared with what the same thread had at the same point of its path in
the other launch. Where another instruction wrote it there, the reason is an address, a guard or a branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxlab.device.trace_format import WRITTEN
from ptxlab.trace.accesses import GLOBAL, PARAM, Rows, unwritten
from ptxlab.trace.columns import Columns, Numbers
from ptxlab.trace.finder import Finder
from ptxlab.trace.origin import Origin, Place, Stored
from ptxlab.trace.registers import Written, last_write

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

_ROLES = ("value", "address", "guard")
END = 1 << 62


def blame(origin: Origin, other: Trace) -> Origin:
    """The first value that an origin comes from that is another in a launch that is right; itself if none is."""
    assert origin.finder is not None
    comparison = Comparison(origin.finder, other)
    found, there = origin, END
    seen: set[int] = set()
    while id(found) not in seen:
        seen.add(id(found))
        below = comparison.key_there(found)
        before = comparison.instead(found, there)
        sources = sorted(found.sources, key=lambda one: _ROLES.index(one.role))
        for source in [*before, *sources]:
            key = comparison.key_of(source) if source in before else below
            if key is not None and comparison.differs(source, key):
                found, there = source, key
                break
        else:
            branch = comparison.branch_before(found)
            if branch is not None and comparison.differs(branch, comparison.key_of(branch) or END):
                found, there = branch, comparison.key_of(branch) or END
    return found


class Comparison:
    """A launch, and another that has the same segments."""

    def __init__(self, finder: Finder, other: Trace) -> None:
        self.finder = finder
        self.other = other
        self.ours, self.theirs = finder.columns, other.columns
        self._read_there: dict[int, int] = {}
        self._words: dict[int, bool] = {}
        if len(self.ours.segments) != len(self.theirs.segments):
            raise ValueError("the launches are of kernels with different instructions: compare them by `Trace.diff`")

    # The same point in the other launch.

    def _mapped(self, entry: int, one: Columns, other: Columns) -> int | None:
        """The entry of another launch at the same point of a thread's path; None if the paths are different there."""
        thread = int(one.thread[entry])
        position = int(np.searchsorted(one.entries_by(thread), entry))
        own = other.entries_by(thread)
        if position >= len(own) or one.segment[entry] != other.segment[own[position]]:
            return None
        return int(own[position])

    def key_there(self, origin: Origin) -> int | None:
        """When the instruction that wrote a value read its operands in the other launch."""
        if isinstance(origin.at, Written):
            return self._key(origin.at.entry, origin.at.key)
        if isinstance(origin.at, Stored):
            rows, row = origin.at.rows, origin.at.row
            if rows.event[row] < 0:
                return self._key(int(rows.entry[row]), int(rows.key[row]))
            there = self._event_there(int(rows.event[row]), self.ours, self.theirs)
            return None if there is None else _time(self.theirs, there)
        if origin.step is None:
            return None
        return self._key(self.ours.locate(origin.step)[0], 2 * origin.step + 1)

    def key_of(self, origin: Origin) -> int | None:
        """When a value was read in the other launch whose reader is the instruction that is being explained."""
        return self._read_there.get(id(origin))

    def _key(self, entry: int, key: int) -> int | None:
        there = self._mapped(entry, self.ours, self.theirs)
        return None if there is None else key + 2 * int(self.theirs.first_step[there] - self.ours.first_step[entry])

    def _event_there(self, number: int, one: Columns, other: Columns) -> int | None:
        """The same write of the same thread by an asynchronous operation in another launch."""
        mine, theirs = (_writes_of(columns, int(one.events["thread"][number])) for columns in (one, other))
        position = int(np.searchsorted(mine, number))
        return int(theirs[position]) if position < len(theirs) else None

    # Differences.

    def differs(self, origin: Origin, key: int) -> bool:
        """Whether a value that is read before `key` in the other launch is another there."""
        if isinstance(origin.at, Written):
            written = self._register_there(origin.at, key)
            if written is None:
                return True
            ours = self.ours.bytes_at(origin.at.entry, origin.at.slot)
            return ours != self.theirs.bytes_at(written.entry, written.slot)
        if origin.place is not None and origin.value is not None:
            return self._bytes_there(origin.place, key) != origin.value
        if origin.place is not None:
            return self._row_there(origin.place, key) is not None
        return self._word_differs(origin)

    def _word_differs(self, origin: Origin) -> bool:
        """Whether a word of tensor memory may be another: what was written there is not recorded, its sources are."""
        if id(origin) not in self._words:
            key = self.key_there(origin)
            differs = origin.step is not None and (
                key is None or any(self.differs(source, key) for source in origin.sources)
            )
            self._words[id(origin)] = differs
        return self._words[id(origin)]

    def _register_there(self, written: Written, key: int) -> Written | None:
        return last_write(self.theirs, int(self.ours.thread[written.entry]), written.slot.what, key)

    def _bytes_there(self, place: Place, key: int) -> bytes:
        space, owner, address, size = place
        content = unwritten(address, size)
        if space == PARAM:
            return self.other.accesses.parameters[address : address + size]
        region = self.other.accesses.region_at(address) if space == GLOBAL else None
        if region is not None:
            start = address - region.base
            content[:] = np.frombuffer(region.data[start : start + size], np.uint8)
        self.other.accesses.image(space, owner, address, content, key)
        return content.tobytes()

    def _row_there(self, place: Place, key: int) -> tuple[Rows, int] | None:
        """The last write to some bytes in the other launch."""
        space, owner, address, size = place
        rows = self.other.accesses.writes.touching(space, owner, address, size)
        rows = rows.take(rows.key < key)
        return (rows, len(rows) - 1) if len(rows) else None

    # Other writers.

    def instead(self, origin: Origin, key: int) -> list[Origin]:
        """Where another instruction wrote a value there: why it did not here, by its address and its guard."""
        if isinstance(origin.at, Written):
            written = self._register_there(origin.at, key)
            if written is None or written.slot.instruction == origin.at.slot.instruction:
                return []
            return self._reasons(written.entry, written.slot.instruction, written.key, ("guard",))
        if origin.place is None:
            return []
        found = self._row_there(origin.place, key)
        if found is None:
            return []
        rows, row = found
        entry, instruction, event = int(rows.entry[row]), int(rows.instruction[row]), int(rows.event[row])
        if event >= 0:
            return self._reasons_of_copy(event, instruction)
        return self._reasons(entry, instruction, int(rows.key[row]), ("address", "guard"))

    def _reasons(self, entry: int, instruction: int, key: int, roles: tuple[str, ...]) -> list[Origin]:
        """The registers here by which an instruction did something else than there."""
        here = self._mapped(entry, self.theirs, self.ours)
        if here is None:
            thread = int(self.theirs.thread[entry])
            branch = self._branch(thread, int(np.searchsorted(self.theirs.entries_by(thread), entry)))
            return [] if branch is None else [branch]
        ours = key + 2 * int(self.ours.first_step[here] - self.theirs.first_step[entry])
        return self._registers(int(self.theirs.thread[entry]), instruction, ours, key, roles)

    def _reasons_of_copy(self, event: int, instruction: int) -> list[Origin]:
        thread = int(self.theirs.events["thread"][event])
        here = self._event_there(event, self.theirs, self.ours)
        if here is None:
            return []
        keys = [
            [key for key in Finder.completions_in(columns, thread, instruction) if key <= _time(columns, number) + 1]
            for columns, number in ((self.ours, here), (self.theirs, event))
        ]
        if not all(keys):
            return []
        return self._registers(thread, instruction, keys[0][-1], keys[1][-1], ("address", "guard", "value"))

    def _registers(self, thread: int, instruction: int, ours: int, theirs: int, roles: tuple[str, ...]) -> list[Origin]:
        found = []
        for use in self.finder.uses(instruction):
            if use.role in roles:
                one = self.finder.of_register(thread, use.name, ours, "address")
                self._read_there[id(one)] = theirs
                found.append(one)
        return found

    def branch_before(self, origin: Origin) -> Origin | None:
        """The guard of the branch after which a thread took another path there, before it wrote a value."""
        if isinstance(origin.at, Written):
            entry = origin.at.entry
        elif isinstance(origin.at, Stored) and origin.at.rows.event[origin.at.row] < 0:
            entry = int(origin.at.rows.entry[origin.at.row])
        else:
            return None
        if self._mapped(entry, self.ours, self.theirs) is not None:
            return None
        thread = int(self.ours.thread[entry])
        return self._branch(thread, int(np.searchsorted(self.ours.entries_by(thread), entry)))

    def _branch(self, thread: int, position: int) -> Origin | None:
        """The guard here of the last branch before the paths of a thread are different, up to a position in them."""
        a, b = self.ours.entries_by(thread), self.theirs.entries_by(thread)
        common = min(position + 1, len(a), len(b))
        unlike = np.flatnonzero(self.ours.segment[a[:common]] != self.theirs.segment[b[:common]])
        fork = int(unlike[0]) if len(unlike) else common
        for number in range(fork - 1, -1, -1):
            before, there = int(a[number]), int(b[number])
            segment = self.ours.segment_of(before)
            if segment.steps:
                key = 2 * int(self.ours.first_step[before + 1]) - 1
                guards = [use for use in self.finder.uses(segment.steps[-1][0]) if use.role in ("guard", "value")]
                if not guards:
                    return None
                found = self.finder.of_register(thread, guards[0].name, key, "guard")
                self._read_there[id(found)] = 2 * int(self.theirs.first_step[there + 1]) - 1
                return found
        return None


def _time(columns: Columns, event: int) -> int:
    return 2 * int(columns.first_step[min(int(columns.events["time"][event]), len(columns))])


def _writes_of(columns: Columns, thread: int) -> Numbers:
    return np.flatnonzero((columns.events["thread"] == thread) & (columns.events["kind"] == WRITTEN))
