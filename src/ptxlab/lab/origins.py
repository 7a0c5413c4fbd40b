"""Where a value comes from, as a graph that the page draws: values, the steps that wrote them, and what those read."""

from __future__ import annotations

import re

import numpy as np

from ptxlab.debug.values import shown
from ptxlab.trace.accesses import GLOBAL, SHARED, SPACES, dtype_named
from ptxlab.trace.finder import Finder
from ptxlab.trace.origin import Origin, Stored
from ptxlab.trace.registers import Written
from ptxlab.trace.tensor_memory import of_word, writers
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

MOST, DEPTH, WIDEST = 80, 16, 6  # values of a graph, how far they are followed, and sources of one that are
_THREAD = re.compile(r" of thread \d+( of block \d+)?$")


class Origins:
    """What finds the origins of values at positions of the page."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.finder = Finder(steps.trace)

    def of_register(self, warp: int, lane: int, name: str, position: int) -> dict[str, object]:
        """Of a register of a lane."""
        count = self.steps.trace.accesses.threads_in_block
        block, own = divmod(warp, self.steps.warps_in_block)
        thread = block * count + own * 32 + lane
        key = self.steps.keys(warp, position).get(thread, 0)
        return self._graph(self.finder.of_register(thread, name, key))

    def of_memory(self, space: str, owner: int, address: int, size: int, position: int) -> dict[str, object]:
        """Of bytes of memory; those of an array are counted from its start, and `owner` is its number."""
        code = SPACES[space]
        if code == GLOBAL:
            address += self.steps.trace.accesses.regions[owner].base
            owner = 0
        rows = self.steps.trace.accesses.writes.touching(code, owner, address, size)
        before = rows.take(self.steps.when(rows) < position)
        key = int(before.key.max()) + 1 if len(before) else 0
        return self._graph(self.finder.of_memory(code, owner, address, size, key))

    def of_tensor(self, block: int, lane: int, column: int, position: int) -> dict[str, object]:
        """Of a word of tensor memory."""
        before = [
            one.step.key for one in writers(self.finder, block) if self.steps.position_of(one.step.key // 2) < position
        ]
        return self._graph(of_word(self.finder, block, lane, column, max(before, default=-1) + 1))

    def _graph(self, root: Origin) -> dict[str, object]:
        """The values that are nearest, with the sources of each by their numbers."""
        numbers = {_identity(root): 0}
        found: list[Json] = []
        pending = [(root, 0)]
        for origin, depth in pending:
            node = self._node(origin)
            found.append(node)
            values = [one for one in origin.sources if one.role == "value"]
            others = [one for one in origin.sources if one.role != "value"]
            for source in values[: WIDEST if depth < DEPTH else 0]:
                known = _identity(source)
                if known not in numbers:
                    if len(numbers) >= MOST:
                        continue
                    numbers[known] = len(numbers)
                    pending.append((source, depth + 1))
                if numbers[known] not in node["sources"]:
                    node["sources"].append(numbers[known])
            node["more"] = len({_identity(one) for one in values}) - len(node["sources"])
            node["beside"] = [{**self._node(one), "role": one.role} for one in others[:WIDEST]]
        return {"nodes": found}

    def _node(self, origin: Origin) -> Json:
        step = origin.step
        node: Json = {
            "what": origin.what, "value": self._value(origin), "line": origin.line, "text": origin.instruction,
            "step": self.steps.position_of(step) if step is not None and self.steps.trace.steps else None,
            "role": origin.role, "sources": [], "more": 0, "given": origin.array is not None,
        }  # fmt: skip
        if isinstance(origin.at, Written):
            thread = int(self.steps.trace.columns.thread[origin.at.entry])
            node["warp"] = self.steps.warp_of(thread)
            node["lane"] = thread % self.steps.trace.accesses.threads_in_block % 32
            node["register"] = _THREAD.sub("", origin.what)
        elif isinstance(origin.at, Stored) and origin.at.rows.event[origin.at.row] < 0:
            entry = int(origin.at.rows.entry[origin.at.row])
            node["warp"] = self.steps.warp_of(int(self.steps.trace.columns.thread[entry]))
            node["lane"] = int(self.steps.lane_of_entry[entry])
        if origin.place is not None and origin.place[0] == SHARED:
            node["shared"] = list(origin.place[1:])
        return node

    def _value(self, origin: Origin) -> str:
        value = origin.value
        if value is None:
            return ""
        if not isinstance(value, bytes):
            return shown(value)
        places = [origin.place, *(one.place for one in origin.sources[:2])]  # a copy has elements of what it copies
        regions = [self.finder.region_of(place) for place in places if place is not None]
        dtype = next((region.dtype for region in regions if region is not None and region.dtype), "")
        if dtype:
            kind = dtype_named(dtype)
            if len(value) % kind.itemsize == 0:
                return " ".join(f"{one:g}" for one in np.frombuffer(value, kind).astype(np.float64)[:8])
        return f"0x{int.from_bytes(value, 'little'):x}" if len(value) <= 8 else value.hex()


def _identity(origin: Origin) -> tuple[str, int | None, int]:
    return origin.what, origin.step, origin.line
