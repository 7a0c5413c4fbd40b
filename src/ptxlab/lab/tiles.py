"""Matrices in shared memory that an instruction reads: where each chunk of 16 bytes is, and what it comes from.

By a descriptor (`wgmma`, `tcgen05.mma`) or by the rows that lanes point to (`ldmatrix`). A tile has rows and chunks as
the instruction sees them, so a swizzle is undone in it; the addresses show the swizzle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ptxlab.device.trace_format import NO_BLOCK, READ
from ptxlab.isa import Match
from ptxlab.isa.units.descriptor import CHUNK, K_MAJOR, MN_MAJOR, MODES, TENSOR_MODES, chunk_offset, tensor_chunk_offset
from ptxlab.isa.units.fragment import ELEMENT_BITS, extents
from ptxlab.isa.units.instruction_descriptor import KINDS, bytes_of_row
from ptxlab.isa.units.tensor_matrix import a_code, b_code, bits_of
from ptxlab.lab.memory import MemoryHistory
from ptxlab.trace.accesses import GLOBAL, SHARED
from ptxlab.trace.columns import Numbers
from ptxlab.trace.finder import Finder
from ptxlab.trace.lanes import matrices_of
from ptxlab.trace.warp_steps import WarpSteps

MOST = 256 * 8  # chunks of a tile
_FOLLOWED = 300  # chunks that threads have written, of which the origin is searched
_SWIZZLES = {number: name for name, number in TENSOR_MODES.items()}
_TENSOR_TYPES = {"f16": ("f16", "bf16"), "tf32": ("", "", "tf32"), "i8": ("u8", "s8"), "f8f6f4": ("e4m3", "e5m2")}


@dataclass(frozen=True)
class _Tile:
    """A matrix in shared memory as an instruction reads it."""

    operand: str
    type: str
    rows: int
    chunks: int
    addresses: Numbers
    """Of each chunk, row by row."""
    about: str
    is_transposed: bool = False
    """Whether a chunk goes along the rows of A, or the columns of B."""


def is_tile(match: Match | None) -> bool:
    """Whether an instruction reads a matrix from shared memory."""
    if match is None:
        return False
    rows = matrices_of(match).get("d")
    is_mma = match.effects.does("wgmma", "start") or match.effects.does("tensor_memory", "multiply")
    return is_mma or (rows is not None and rows.owners is not None)


class Tiles:
    """The tiles that steps read."""

    def __init__(self, steps: WarpSteps, memory: MemoryHistory) -> None:
        self.steps = steps
        self.memory = memory
        self.finder = Finder(steps.trace)
        self._reads = lru_cache(maxsize=8)(self._find_reads)

    def read_by(self, step: int) -> list[dict[str, object]]:
        """The tiles that the instruction of a warp step reads, each chunk with the array that it comes from."""
        group, index = self.steps.locate(step)
        instruction = self.steps.instruction(step)
        entries = self.steps.entries(group)
        block = int(self.steps.warp[group]) // self.steps.warps_in_block
        thread = int(self.steps.trace.columns.thread[entries[0]])
        key = 2 * (int(self.steps.trace.columns.first_step[entries[0]]) + index) + 1
        match = self.steps.trace.program.match(instruction)
        if match is None:
            return []
        if match.effects.does("wgmma", "start"):
            found = self._of_warpgroup(thread, instruction, key)
        elif match.effects.does("tensor_memory", "multiply"):
            found = self._of_tensor_cores(thread, instruction, key)
        else:
            found = self._of_rows(step, instruction)
        return [{**self._described(tile), "sources": self._sources(tile, block, step)} for tile in found]

    def _described(self, tile: _Tile) -> dict[str, object]:
        return {
            "operand": tile.operand, "type": tile.type, "rows": tile.rows, "chunks": tile.chunks, "about": tile.about,
            "transposed": tile.is_transposed, "addresses": tile.addresses.tolist(),
        }  # fmt: skip

    # Which chunks.

    def _of_warpgroup(self, thread: int, instruction: int, key: int) -> Iterator[_Tile]:
        match = self.steps.trace.program.match(instruction)
        assert match is not None
        m = match.candidate.modifiers
        rows, columns, depth = extents(m.shape)
        for operand, count, type in (("a", rows, m.atype), ("b", columns, m.btype)):
            descriptor = self.finder.operand(thread, instruction, f"{operand}_desc", key)
            if descriptor is None:
                continue
            is_mn = bool(self.finder.operand(thread, instruction, f"trans_{operand}", key))
            each = CHUNK * 8 // ELEMENT_BITS[type]
            major = MN_MAJOR if is_mn else K_MAJOR
            size = (depth, count // each) if is_mn else (count, depth // each)
            places = [int(chunk_offset(descriptor, r, c, major)) for r in range(size[0]) for c in range(size[1])]
            about = _about(descriptor, MODES[descriptor >> 62])
            yield _Tile(operand.upper(), type, *size, np.array(places, np.int64), about, is_mn)

    def _of_tensor_cores(self, thread: int, instruction: int, key: int) -> Iterator[_Tile]:
        match = self.steps.trace.program.match(instruction)
        assert match is not None
        kind = match.candidate.modifiers.kind.removeprefix("kind::")
        number = KINDS.index(kind)
        bits = self.finder.operand(thread, instruction, "idesc", key)
        if bits is None:
            return
        codes = {"a": a_code(bits), "b": b_code(bits, number)}
        extent = {"a": (bits >> 24 & 31) << 4, "b": (bits >> 17 & 63) << 3}
        for operand in ("a", "b"):
            descriptor = self.finder.operand(thread, instruction, f"{operand}_desc", key)
            if descriptor is None:
                continue
            is_mn = bool(bits >> (15 if operand == "a" else 16) & 1)
            width = int(bits_of(codes[operand], number))
            each = CHUNK * 8 // max(width, 1)
            chunks = int(bytes_of_row(bits, number)) // CHUNK
            size = (chunks * each, extent[operand] // each) if is_mn else (extent[operand], chunks)
            major = MN_MAJOR if is_mn else K_MAJOR
            places = [int(tensor_chunk_offset(descriptor, r, c, major)) for r in range(size[0]) for c in range(size[1])]
            about = _about(descriptor, _SWIZZLES.get(descriptor >> 61, "reserved"))
            names = _TENSOR_TYPES.get(kind, ())
            type = names[int(codes[operand])] if int(codes[operand]) < len(names) else f"b{width}"
            yield _Tile(operand.upper(), type, *size, np.array(places, np.int64), about, is_mn)

    def _of_rows(self, step: int, instruction: int) -> Iterator[_Tile]:
        """Rows that lanes point to, eight of a matrix."""
        held = matrices_of(self.steps.trace.program.match(instruction)).get("d")
        if held is None or held.owners is None:
            return
        owners, steps = held.owners, self.steps
        group, index = steps.locate(step)
        rows = np.full(32, -1, np.int64)
        for entry in steps.entries(group).tolist():
            own = steps.trace.columns.segment_of(entry).steps[index][0]
            for access in steps.trace.accesses_at(entry, own):
                rows[int(steps.lane_of_entry[entry])] = access.address
        lanes = [position >> 5 & 31 for position in owners.positions[:: owners.columns]]
        addresses = rows[np.array(lanes, np.int64)]
        about = f"{owners.copies} matrices of {owners.rows} rows, at the addresses of lanes 0 to {max(lanes)}"
        yield _Tile("D", f"b{owners.bits}", len(addresses), 1, addresses, about)

    # Where chunks come from.

    def _sources(self, tile: _Tile, block: int, step: int) -> list[object]:
        """For each chunk: the element of an array that its first byte is, by array, name and index."""
        writes = self.memory.writes(SHARED, block)
        done = int(np.searchsorted(writes.after, step))
        last = np.full((self.steps.trace.accesses.shared_size >> 4) + 1, -1, np.int64)
        rows = writes.rows.take(slice(0, done))
        last[np.minimum(rows.address >> 4, len(last) - 1)] = np.arange(done)
        found: list[Any] = []
        followed = 0
        for address in tile.addresses.tolist():
            row = int(last[address >> 4]) if 0 <= address >> 4 < len(last) else -1
            if row < 0:
                found.append(None)
                continue
            event = int(rows.event[row])
            if event >= 0:
                found.append(self._read_by(event, address - int(rows.address[row])))
            elif followed < _FOLLOWED:
                followed += 1
                found.append(self._followed(block, address, int(rows.key[row]) + 1))
            else:
                found.append(None)
        return found

    def _find_reads(self, block: int) -> tuple[Numbers, Numbers]:
        """What asynchronous copies of a block read, ordered by thread and operation, and these."""
        own, events = self.steps.events_of(block), self.steps.trace.columns.events
        reads = own[events["kind"][own] == READ]
        known = events["thread"][reads].astype(np.int64) << 32 | events["operation"][reads].astype(np.int64)
        order = np.argsort(known, kind="stable")
        return reads[order], known[order]

    def _read_by(self, event: int, offset: int) -> Any:
        """The element that an asynchronous copy read for a byte that it wrote."""
        events = self.steps.trace.columns.events
        written = events[event]
        start = int(written["offset"]) + offset
        thread = int(written["thread"])
        reads, known = self._reads(thread // self.steps.trace.accesses.threads_in_block)
        key = thread << 32 | int(written["operation"])
        own = reads[np.searchsorted(known, key) : np.searchsorted(known, key, "right")]
        low = events["offset"][own].astype(np.int64)
        inside = np.flatnonzero((low <= start) & (start < low + events["size"][own]))
        if not len(inside):
            return None
        read = events[own[inside[-1]]]
        if int(read["block"]) != NO_BLOCK:
            return None
        return self._element(int(read["address"]) + start - int(read["offset"]))

    def _followed(self, block: int, address: int, key: int) -> Any:
        """The element that a thread has stored, found through its registers."""
        origin = self.finder.of_memory(SHARED, block, address, 2, key)
        for found in origin.walk(24):
            if found.role == "value" and found.place is not None and found.place[0] == GLOBAL:
                return self._element(found.place[2])
        return None

    def _element(self, address: int) -> Any:
        for number, region in enumerate(self.steps.trace.accesses.regions):
            if region.base <= address < region.base + region.size:
                content = region.array(np.frombuffer(region.data, np.uint8))
                at = np.unravel_index((address - region.base) // content.itemsize, content.shape)
                return [number, *(int(one) for one in at)]
        return None


def _about(descriptor: int, swizzle: str) -> str:
    start, leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    return f"descriptor: start {start}, leading {leading}, stride {stride}, swizzle {swizzle}"
