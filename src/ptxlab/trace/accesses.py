"""What recorded threads and asynchronous operations read and wrote, as arrays; memory at any time of the launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxlab.device.trace_format import NO_BLOCK, READ, WRITTEN
from ptxlab.isa.undefined import undefined_bytes
from ptxlab.trace.columns import Columns, Numbers, Segment, Slot
from ptxlab.values import Json

GLOBAL, SHARED, LOCAL, PARAM, CONST = range(5)
SPACES = {"global": GLOBAL, "shared": SHARED, "local": LOCAL, "param": PARAM, "const": CONST}
NAMES = tuple(SPACES)
FROM_PEER = 1 << 40  # events from here on are writes of launches that ran at the same time, see `Accesses.peer_write`
_WINDOW = 56  # above these bits of a generic address is the state space
_WINDOWS = {1: SHARED, 2: LOCAL, 3: PARAM}
_RANK, _OFFSET = 24, (1 << 24) - 1


@dataclass(frozen=True)
class Region:
    """Memory that the launch had: an array among the arguments, or a variable of the module."""

    name: str
    base: int
    size: int
    shape: tuple[int, ...]
    dtype: str
    data: bytes
    short: str
    """The name of the parameter or variable, `maps+128` for a part of one."""
    of_module: bool = True
    """Whether launches of other modules, or on other GPUs, have other memory at its address."""

    def array(self, content: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """The bytes as the array that they are of."""
        if not self.dtype:
            return content
        kind = dtype_named(self.dtype)
        count = int(np.prod(self.shape, dtype=np.int64)) * kind.itemsize
        return content[:count].view(kind).reshape(self.shape) if count == self.size else content

    def element(self, address: int, size: int = 1) -> str:
        """`a[3, 5]`, the element at an address, or `a[3, 5:7]`, those of some bytes."""
        offset = address - self.base
        width = dtype_named(self.dtype).itemsize if self.dtype else 1
        if not self.shape or int(np.prod(self.shape, dtype=np.int64)) * width != self.size:
            return f"{self.short}+{offset}"
        at = [int(index) for index in np.unravel_index(offset // width, self.shape)]
        past = at[-1] + -(-(offset % width + size) // width)
        last = str(at[-1]) if past == at[-1] + 1 else f"{at[-1]}:{past}"
        return f"{self.short}[{', '.join([*map(str, at[:-1]), last])}]"


@dataclass(frozen=True)
class Rows:
    """Accesses in the order in which they were made.

    `event` is -1 for those of instructions, from `FROM_PEER` on for those of other launches, else the event.
    """

    key: Numbers
    space: Numbers
    owner: Numbers
    """Whose memory it is: a block for shared memory, a thread for local memory, otherwise 0."""
    address: Numbers
    size: Numbers
    entry: Numbers
    instruction: Numbers
    data: Numbers
    """Where the bytes are that were written: in the payload, or in the data of events."""
    event: Numbers

    def __len__(self) -> int:
        return len(self.key)

    def take(self, chosen: object) -> Rows:
        """Some of them."""
        return Rows(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def touching(self, space: int, owner: int, start: int, size: int) -> Rows:
        """Those that access any of some bytes."""
        return self.take(
            (self.space == space)
            & (self.owner == owner)
            & (self.address < start + size)
            & (self.address + self.size > start)
        )


@dataclass(frozen=True, slots=True)
class PeerWrite:
    """A write of another launch to global memory, by a thread of it and an instruction of its program."""

    launch: int
    title: str
    """`rank 1`."""
    line: int
    text: str
    block: int
    thread: int


def unwritten(address: int, size: int) -> npt.NDArray[np.uint8]:
    """What memory of a block or a thread holds from an address on before anything is written."""
    return np.frombuffer(undefined_bytes(address, size), np.uint8).copy()


class Accesses:
    """All accesses of a recorded launch."""

    def __init__(self, columns: Columns, description: Json) -> None:
        self.columns = columns
        x, y, z = description["block"]
        self.threads_in_block: int = x * y * z
        self.cluster = description["cluster"]
        self.grid = description["grid"]
        self.shared_size: int = description["shared"]
        self.local_size: int = description["local"]
        self.parameters = bytes.fromhex(description["parameters"])
        regions = [given for given in description["regions"] if given["size"]]
        names = _names([given["name"] for given in regions])
        self._describe_peer: Callable[[int], PeerWrite]
        self.regions = [
            Region(
                given["name"],
                given["base"],
                given["size"],
                tuple(given["shape"]),
                given["dtype"],
                data,
                name,
                given.get("of_module", True),
            )
            for given, data, name in zip(regions, columns.memory, names, strict=False)
        ]

    def are_of_module(self, addresses: Numbers) -> npt.NDArray[np.bool_]:
        """Which addresses are in memory that the module has for itself."""
        regions = sorted(self.regions, key=lambda one: one.base)
        bases = np.array([one.base for one in regions], np.int64)
        kinds = np.array([True, *(one.of_module for one in regions)])
        return kinds[np.searchsorted(bases, addresses, "right")]

    def region_at(self, address: int) -> Region | None:
        """The region that has an address."""
        return next((one for one in self.regions if one.base <= address < one.base + one.size), None)

    @cached_property
    def writes(self) -> Rows:
        """Stores, atomic operations, and what asynchronous operations wrote."""
        return self._rows(("store", "update"), WRITTEN)

    @cached_property
    def reads(self) -> Rows:
        """Loads and atomic operations."""
        return self._rows(("load", "update"), READ)

    def add_peer_writes(self, rows: Rows, data: npt.NDArray[np.uint8], describe: Callable[[int], PeerWrite]) -> None:
        """Take what other launches wrote, whose bytes are in `data`; `describe` says what the write of a number is."""
        rows = replace(rows, data=rows.data + len(self.columns.data))
        self.columns.data = np.concatenate([self.columns.data, data])
        self._describe_peer = describe
        own = self.writes
        merged = Rows(
            *(np.concatenate([getattr(one, name) for one in (rows, own)]) for name in Rows.__dataclass_fields__)
        )
        self.writes = merged.take(np.argsort(merged.key, kind="stable"))

    def peer_write(self, event: int) -> PeerWrite | None:
        """The write of another launch that an event is."""
        return self._describe_peer(event - FROM_PEER) if event >= FROM_PEER else None

    def _rows(self, roles: tuple[str, ...], event: int) -> Rows:
        parts = [self._of_slot(segment, slot, entries) for segment, slot, entries in self._slots(roles)]
        parts.append(self._of_events(event))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        rows = Rows(*columns)
        return rows.take(np.argsort(rows.key, kind="stable"))

    def _slots(self, roles: tuple[str, ...]) -> Iterator[tuple[Segment, Slot, Numbers]]:
        for number, segment in enumerate(self.columns.segments):
            for slot in segment.slots:
                if slot.role in roles:
                    entries = self.columns.held(self.columns.entries_of(number), slot.guard)
                    if len(entries):
                        yield segment, slot, entries

    def _of_slot(self, segment: Segment, slot: Slot, entries: Numbers) -> list[Numbers]:
        columns = self.columns
        named, size = slot.what.split()
        addresses = columns.words(entries, slot.offset, slot.bytes).astype(np.int64)
        space, owner, address = self.resolve(named, addresses, columns.thread[entries])
        count = len(entries)
        return [
            columns.keys(entries, segment, slot),
            space,
            owner,
            address,
            np.full(count, int(size)),
            entries,
            np.full(count, slot.instruction),
            columns.offset[entries] + slot.offset + slot.bytes,
            np.full(count, -1),
        ]

    def resolve(self, named: str, address: Numbers, thread: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The state space of addresses, whose memory that is, and the address there."""
        block = thread // self.threads_in_block
        if named == "generic":
            window = address >> _WINDOW
            space = np.zeros(len(address), np.int64)
            for number, found in _WINDOWS.items():
                space[window == number] = found
            address = np.where(window > 0, address & ((1 << _WINDOW) - 1), address)
        else:
            space = np.full(len(address), SPACES["shared" if named == "cluster" else named])
        is_shared = space == SHARED
        rank = np.where(is_shared, address >> _RANK, 0)
        owner = np.where(is_shared, block, np.where(space == LOCAL, thread, 0))
        if (rank > 0).any():
            owner = np.where(rank > 0, self._block_of_rank(block, rank - 1), owner)
            address = np.where(is_shared, address & _OFFSET, address)
        return space, owner, address

    def _block_of_rank(self, block: Numbers, rank: Numbers) -> Numbers:
        """The block of a rank in the cluster of another."""
        extents = self.grid
        at = [block % extents[0], block // extents[0] % extents[1], block // extents[0] // extents[1]]
        inner = [rank % self.cluster[0], rank // self.cluster[0] % self.cluster[1],
                 rank // self.cluster[0] // self.cluster[1]]  # fmt: skip
        x, y, z = (o // c * c + i for o, c, i in zip(at, self.cluster, inner, strict=True))
        number: Numbers = x + extents[0] * (y + extents[1] * z)
        return number

    def _of_events(self, kind: int) -> list[Numbers]:
        columns, events = self.columns, self.columns.events
        is_written = events["kind"] == WRITTEN
        starts = np.cumsum(np.where(is_written, events["size"], 0).astype(np.int64)) - events["size"]
        chosen = np.flatnonzero(events["kind"] == kind)
        found = events[chosen]
        is_global = found["block"] == NO_BLOCK
        times = np.minimum(found["time"].astype(np.int64), len(columns))
        return [
            2 * columns.first_step[times],
            np.where(is_global, GLOBAL, SHARED),
            np.where(is_global, 0, found["block"]).astype(np.int64),
            found["address"].astype(np.int64),
            found["size"].astype(np.int64),
            times - 1,
            found["instruction"].astype(np.int64),
            starts[chosen],
            chosen,
        ]

    def bytes_of(self, rows: Rows, index: int) -> bytes:
        """What one of some writes wrote."""
        start, size = int(rows.data[index]), int(rows.size[index])
        if rows.event[index] >= 0:
            return self.columns.data[start : start + size].tobytes()
        return self.columns.payload[start : start + size].tobytes()

    def bytes_and_addresses(self, rows: Rows) -> tuple[npt.NDArray[np.uint8], Numbers]:
        """The bytes of some writes, one after the other, and the address of each."""
        steps = np.arange(int(rows.size.sum())) - np.repeat(np.cumsum(rows.size) - rows.size, rows.size)
        source = np.repeat(rows.data, rows.size) + steps
        is_event = np.repeat(rows.event >= 0, rows.size)
        values = np.empty(len(source), np.uint8)
        values[~is_event] = self.columns.payload[source[~is_event]]
        values[is_event] = self.columns.data[source[is_event]]
        return values, np.repeat(rows.address, rows.size) + steps

    def image(self, space: int, owner: int, base: int, content: npt.NDArray[np.uint8], key: int) -> None:
        """Make memory what it is before `key`: all writes up to then, in order, on top of what was there."""
        rows = self.writes.touching(space, owner, base, len(content))
        self.write(rows.take(rows.key < key), base, content)

    def write(self, rows: Rows, base: int, content: npt.NDArray[np.uint8]) -> None:
        """Make some writes, in order, to memory that starts at an address."""
        if not len(rows):
            return
        values, at = self.bytes_and_addresses(rows)
        at -= base
        inside = (at >= 0) & (at < len(content))
        content[at[inside]] = values[inside]


def dtype_named(name: str) -> np.dtype[Any]:
    """The type of elements by its name, of NumPy, ml_dtypes or torch; bytes if there is none."""
    name = name.rpartition(".")[2]
    found = getattr(ml_dtypes, name, None) if not re.fullmatch(r"(bool|u?int|float|complex)\d*", name) else name
    try:
        kind = np.dtype(found)
    except TypeError:
        kind = np.dtype(np.uint8)
    return np.dtype(np.uint8) if found is None or kind.hasobject else kind


def _names(regions: list[str]) -> list[str]:
    """Short names of regions, each another: arrays of several GPUs that have the same name have the rank."""
    shorts = []
    for name in regions:
        named, part = re.search(r"`(\w[\w$.]*)`", name), re.search(r" at (\+\d+)", name)
        shorts.append((named[1] if named else name) + (part[1] if part else ""))
    found: list[str] = []
    for number, (name, short) in enumerate(zip(regions, shorts, strict=True)):
        rank = re.search(r" of rank \d+", name)
        longer = short + rank[0] if rank and shorts.count(short) > 1 else short
        found.append(f"{longer}#{number}" if longer in found else longer)
    return found
