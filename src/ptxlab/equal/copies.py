"""Asynchronous copies in a replay: bytes that one read are what it writes, as the events of a recording say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.trace_format import NO_BLOCK, READ, WRITTEN
from ptxlab.equal.codes import of_bytes
from ptxlab.equal.memory import Bytes
from ptxlab.equal.nodes import Origin
from ptxlab.equal.rules import FORMATS
from ptxlab.equal.updates import summed
from ptxlab.isa.types import type_named
from ptxlab.trace.accesses import GLOBAL, SHARED

if TYPE_CHECKING:
    from ptxlab.equal.replay import Replay


class LaunchCopies:
    """The copies of a launch, as far as they have been made."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        events = replay.columns.events
        is_written = events["kind"] == WRITTEN
        self._data = np.cumsum(np.where(is_written, events["size"], 0).astype(np.int64)) - events["size"]
        chosen = np.flatnonzero((events["kind"] == READ) | is_written)
        self._order = chosen[np.argsort(events["time"][chosen], kind="stable")]
        self._times = events["time"][self._order].astype(np.int64)
        self._done = 0
        self._read: dict[tuple[int, int, int], list[tuple[int, Bytes]]] = {}

    @property
    def is_due(self) -> bool:
        """Whether there are copies left."""
        return self._done < len(self._order)

    def advance(self, entry: int) -> None:
        """Make all that were made before an entry."""
        past = int(np.searchsorted(self._times, entry, "right"))
        events = self._replay.columns.events
        for index in self._order[self._done : past].tolist():
            self._make(events[index], index)
        self._done = past

    def _make(self, event: Any, index: int) -> None:
        replay = self._replay
        is_global = int(event["block"]) == NO_BLOCK
        space, owner = (GLOBAL, 0) if is_global else (SHARED, int(event["block"]))
        memory = replay.memory.range(space, owner, int(event["address"]), int(event["size"]))
        key = int(event["operation"]), int(event["thread"]), int(event["instruction"])
        offset, size = int(event["offset"]), int(event["size"])
        if int(event["kind"]) == READ:
            self._read.setdefault(key, []).append((offset, memory.copy()))
            return
        start = int(self._data[index])
        data = of_bytes(replay.columns.data[start : start + size])
        for first, codes in self._read.get(key, ())[::-1]:
            low, high = max(first, offset), min(first + len(codes), offset + size)
            if low < high:
                data[low - offset : high - offset] = codes[low - first : high - first]
        match = replay.plans[int(event["instruction"])].match
        reduction = None if match is None else match.effects.reduction
        if reduction is not None and ((data >= 0).any() or (memory >= 0).any()):
            type = reduction.type or self._element(int(event["address"]))
            if reduction.operation != "add" or not type:
                raise replay.refused(int(event["instruction"]), "a copy that reduces an input, and not to a sum")
            replay.nodes.set_origin(Origin(replay.side, replay.launch, int(event["instruction"])))
            data = summed(replay.nodes, memory, data, type, type_named(type).width // 8)
        memory[:] = data

    def _element(self, address: int) -> str:
        """The type of the elements of an array, by an address in it: that of a copy through a tensor map."""
        for region in self._replay.trace.accesses.regions:
            if region.base <= address < region.base + region.size:
                return FORMATS.get(region.dtype, "")
        return ""
