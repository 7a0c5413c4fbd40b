"""Bulk copies: where their box is in the tensor, which bytes of shared memory it fills, and when it arrives.

What a copy read and wrote is recorded piece by piece; the tensor map, read as copies read it, says what these pieces
are in the tensor, and what of the box is outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ptxlab import ir
from ptxlab.device.trace_format import COMPLETED, ISSUED, NO_BLOCK, OBSERVED, PHASE, READ, WRITTEN
from ptxlab.draw.boxes import Copy, executed
from ptxlab.emulate.abi.bulk import IM2COL
from ptxlab.emulate.explain.encoded_maps import explain_map
from ptxlab.isa import Match
from ptxlab.isa.units.descriptor import CHUNK
from ptxlab.isa.units.tensor_map import BYTES
from ptxlab.lab.barriers import Barriers
from ptxlab.trace.accesses import GLOBAL, PARAM
from ptxlab.trace.columns import Numbers
from ptxlab.trace.finder import Finder
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

BULK = 1 << 31  # of the number of an operation: it is a bulk copy
MOST = 20_000  # copies that are listed
LINE = 128  # bytes of a row, of copies without a tensor map


@dataclass(frozen=True)
class _Operation:
    """A bulk copy: the event of its issue, and what it read and wrote."""

    issue: int
    pieces: Numbers


def is_copy(match: Match | None) -> bool:
    """Whether an instruction starts a bulk copy."""
    return match is not None and match.effects.does("bulk", "start")


class RecordedCopies:
    """The bulk copies of a recorded launch."""

    def __init__(self, steps: WarpSteps, barriers: Barriers) -> None:
        self.steps = steps
        self.barriers = barriers
        self.finder = Finder(steps.trace)
        self.events = steps.trace.columns.events

    @cached_property
    def _operations(self) -> list[_Operation]:
        """All copies, in the order of their issue."""
        events = self.events
        is_bulk = (events["operation"] & BULK) != 0
        block = events["thread"].astype(np.int64) // self.steps.trace.accesses.threads_in_block
        known = block << 32 | events["operation"].astype(np.int64)
        issued = np.flatnonzero(is_bulk & (events["kind"] == ISSUED))
        pieces = np.flatnonzero(is_bulk & ((events["kind"] == READ) | (events["kind"] == WRITTEN)))
        pieces = pieces[np.argsort(known[pieces], kind="stable")]
        low, high = (np.searchsorted(known[pieces], known[issued], side) for side in ("left", "right"))
        return [
            _Operation(issue, pieces[a:b])
            for issue, a, b in zip(issued.tolist(), low.tolist(), high.tolist(), strict=True)
        ]

    def listed(self, block: int) -> list[Json]:
        """The copies that threads of a block issue, and those that write its shared memory, in order."""
        count = self.steps.trace.accesses.threads_in_block
        found = []
        for number, one in enumerate(self._operations):
            written = self.events["block"][one.pieces]
            if int(self.events["thread"][one.issue]) // count == block or (written == block).any():
                found.append({"number": number, **self._summary(one)})
        return found[:MOST]

    def _summary(self, one: _Operation) -> Json:
        issue, when = self.events[one.issue], self.steps.event_steps
        written = one.pieces[self.events["kind"][one.pieces] == WRITTEN]
        block, own = divmod(int(issue["thread"]), self.steps.trace.accesses.threads_in_block)
        return {
            "step": int(when[one.issue]), "landed": int(when[written].max()) if len(written) else -1,
            "instruction": int(issue["instruction"]), "line": self.steps.trace.program.line(int(issue["instruction"])),
            "warp": block * self.steps.warps_in_block + own // 32, "lane": own % 32,
            "loads": self._loads(one, written), "array": self._array(one),
        }  # fmt: skip

    def _loads(self, one: _Operation, written: Numbers) -> bool:
        """Whether it writes shared memory."""
        if len(written):
            return int(self.events["block"][written[0]]) != NO_BLOCK
        match = self.steps.trace.program.match(int(self.events["instruction"][one.issue]))
        assert match is not None
        return any(access.kind == "store" and access.space == "shared" for access in match.effects.accesses)

    def _array(self, one: _Operation) -> int:
        """The array that it reads or writes; -1 if that is not known."""
        outside = one.pieces[self.events["block"][one.pieces] == NO_BLOCK]
        if len(outside):
            address = int(self.events["address"][outside[0]])
            for number, region in enumerate(self.steps.trace.accesses.regions):
                if region.base <= address < region.base + region.size:
                    return number
        return -1

    def shown(self, block: int, number: int) -> Json:
        """A copy as a picture: the rows of its box, chunk by chunk, and where each chunk is in memory of a block."""
        one = self._operations[number]
        summary = self._summary(one)
        copy, about = self._map(one, summary["step"])
        blocks = self.events["block"][one.pieces]
        owners = sorted(int(owner) for owner in np.unique(blocks[blocks != NO_BLOCK]))
        owner = block if block in owners or not owners else owners[0]
        unit = int(copy.map.unit) if copy is not None else CHUNK
        addresses = self._shared(one, owner, unit)
        rows, chunks = (copy.transfer.rows, copy.chunks) if copy is not None else (-(-len(addresses) // 8), 8)
        addresses += [-1] * (rows * chunks - len(addresses))
        there = self._global(one, unit, len(addresses))
        return {
            **summary, **about, "owner": owner, "owners": owners, "chunks": chunks, "addresses": addresses,
            "filled": [size for _, size in there], "unit": unit, "rows": list(self._rows(copy, there, chunks)),
            "barrier": self._barrier(one, owner),
        }  # fmt: skip

    # The box.

    def _map(self, one: _Operation, step: int) -> tuple[Copy | None, Json]:
        """The copy by its tensor map, if it has one that can be read, and what the map says."""
        issue = self.events[one.issue]
        thread, instruction = int(issue["thread"]), int(issue["instruction"])
        match, written = self.steps.trace.program.match(instruction), self.steps.trace.program.instructions[instruction]
        assert match is not None
        given = dict(zip((expected.name for expected in match.expected), written[1].operands, strict=True))
        operand, key = given.get("map"), self._key(step, thread)
        if not isinstance(operand, ir.Address) or key is None:
            return None, {}
        encoded = self._encoded(thread, instruction, key, operand.offset)
        starts = [self._values(thread, key, part) for part in (*operand.arguments, given.get("offsets"))]
        if encoded is None or None in starts[0]:
            return None, {}
        copy = executed(
            encoded, getattr(match.candidate.modifiers, "mode", None) or "tile", starts[0], starts[-1] or []
        )
        if copy is None:
            return None, {}
        said = {field.name: field.says for field in explain_map(encoded).fields}
        first = int(copy.map.dimensions) - int(copy.map.rank)
        return copy, {
            "at": [value - (value >> 31 << 32) for value in reversed(starts[0])],
            "sizes": [int(size) for size in reversed(copy.map.sizes[first : copy.map.dimensions])],
            "box": [int(size) for size in reversed(copy.map.box[first : copy.map.dimensions])],
            "type": said["tensorDataType"], "swizzle": said["swizzle"], "interleave": said["interleave"],
            "tiled": copy.transfer.mode < IM2COL, "each": copy.each, "first": copy.first,
            "fill": "NaN" if copy.map.fills else "zeros",
        }  # fmt: skip

    def _key(self, step: int, thread: int) -> int | None:
        """Before when registers of a thread count at its step."""
        columns = self.steps.trace.columns
        group, index = self.steps.locate(step)
        own = [entry for entry in self.steps.entries(group).tolist() if int(columns.thread[entry]) == thread]
        return 2 * (int(columns.first_step[own[0]]) + index) + 1 if own else None

    def _encoded(self, thread: int, instruction: int, key: int, offset: int) -> bytes | None:
        """The bytes of the tensor map that an instruction names."""
        accesses = self.steps.trace.accesses
        base = self.finder.operand(thread, instruction, "map", key)
        if base is None:
            return None
        address = np.array([base + offset], np.int64)
        (space,), _, (place,) = accesses.resolve("generic", address, np.array([thread], np.int64))
        if space == PARAM:
            found = accesses.parameters[place : place + BYTES]
            return found if len(found) == BYTES else None
        region = accesses.region_at(int(place))
        if space != GLOBAL or region is None or int(place) + BYTES > region.base + region.size:
            return None
        start = int(place) - region.base
        content = np.frombuffer(region.data, np.uint8)[start : start + BYTES].copy()
        accesses.image(GLOBAL, 0, int(place), content, key)
        return content.tobytes()

    def _values(self, thread: int, key: int, part: object) -> list[Any]:
        """The numbers in a vector of operands; None of those that are not known."""
        found: list[Any] = []
        for element in part.elements if isinstance(part, ir.Vector) else [] if part is None else [part]:
            if isinstance(element, ir.Immediate):
                found.append(element.value & 0xFFFFFFFF)
            elif isinstance(element, ir.Register):
                found.append(self.finder.value(thread, element.name, key))
            else:
                found.append(None)
        return found

    def _shared(self, one: _Operation, owner: int, unit: int) -> list[int]:
        """Where the chunks of the box are in shared memory of a block, in the order of the box."""
        own = one.pieces[self.events["block"][one.pieces] == owner]
        found: dict[int, int] = {}
        for piece in self.events[own].tolist():
            _, _, _, address, _, _, size, _, offset, _ = piece
            for at in range(0, size, CHUNK):
                found[(offset + at * unit // CHUNK) // unit] = address + at
        return [found.get(chunk, -1) for chunk in range(max(found, default=-1) + 1)]

    def _global(self, one: _Operation, unit: int, count: int) -> list[tuple[int, int]]:
        """Of each chunk, where it is in global memory, and how many bytes of it are."""
        found = [(-1, 0)] * count
        own = one.pieces[self.events["block"][one.pieces] == NO_BLOCK]
        for piece in self.events[own].tolist():
            _, _, _, address, _, _, size, _, offset, _ = piece
            for chunk in range(offset // unit, min(-(-(offset + size) // unit), count)):
                low, high = max(offset, chunk * unit), min(offset + size, (chunk + 1) * unit)
                known, bytes = found[chunk]
                found[chunk] = known if known >= 0 else address + low - offset, bytes + high - low
        return found

    def _rows(self, copy: Copy | None, there: list[tuple[int, int]], chunks: int) -> Iterator[str]:
        """What each row is called: its coordinates but the innermost, or its elements of an array."""
        if copy is not None:
            yield from (", ".join(map(str, reversed(row.position))) for row in copy.rows())
            return
        accesses = self.steps.trace.accesses
        for first in range(0, len(there), chunks):
            address = there[first][0]
            region = accesses.region_at(address) if address >= 0 else None
            yield "" if region is None else region.element(address)

    # When it arrives.

    def _barrier(self, one: _Operation, owner: int) -> Json | None:
        """The mbarrier that its bytes arrive at: when, of which phase, when that is complete, and who sees it first."""
        if not len(one.pieces):
            return None
        issue, events, when = self.events[one.issue], self.events, self.steps.event_steps
        last = int(one.pieces.max())
        for signal in range(last + 1, min(last + 64, len(events))):
            is_own = events["kind"][signal] == COMPLETED and events["instruction"][signal] == issue["instruction"]
            if is_own and int(events["block"][signal]) == owner and events["thread"][signal] == issue["thread"]:
                break
        else:
            return None
        address = int(events["address"][signal])
        for history in self.barriers.recorded.histories(owner):
            if history.is_mbarrier and history.address == address:
                later = history.events[np.searchsorted(history.events, signal) :]
                phase = later[events["kind"][later] == PHASE][:1]
                found: Json = {
                    "name": self.barriers.name(history), "address": address, "step": int(when[signal]),
                    "bytes": int(events["size"][signal]), "phase": int(events["operation"][signal]),
                }  # fmt: skip
                if len(phase):
                    found["complete"] = int(when[phase[0]])
                    found["seen"] = self._seen(later[later > phase[0]], found["phase"])
                return found
        return None

    def _seen(self, later: Numbers, phase: int) -> list[int] | None:
        """The first wait that is over by a phase: the warp, and the step."""
        events = self.events
        seen = later[(events["kind"][later] == OBSERVED) & (events["operation"][later] == phase)]
        if not len(seen):
            return None
        block, own = divmod(int(events["thread"][seen[0]]), self.steps.trace.accesses.threads_in_block)
        return [block * self.steps.warps_in_block + own // 32, int(self.steps.event_steps[seen[0]])]
