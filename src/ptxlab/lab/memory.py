"""Memory page by page: its bytes at the start of a window of warp steps, and what is written within it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.lab.encoding import packed
from ptxlab.trace.accesses import GLOBAL, SPACES, Rows
from ptxlab.trace.columns import Numbers, stable_order
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

PAGE = 8192  # bytes
_TOGETHER = 1024  # writes that are inspected at a time


@dataclass(frozen=True)
class Writes:
    """Writes to the memory of one owner, by the warp step after which they are done."""

    rows: Rows
    after: Numbers


class MemoryHistory:
    """Global and shared memory at any position."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.writes = lru_cache(maxsize=64)(self._find_writes)

    def _find_writes(self, space: int, owner: int) -> Writes:
        order, owners = self._by_owner
        low, high = (int(np.searchsorted(owners, _owner(space, owner), side)) for side in ("left", "right"))
        rows = self.steps.trace.accesses.writes.take(order[low:high])
        after = self.steps.when(rows)
        order = np.argsort(after, kind="stable")
        return Writes(rows.take(order), after[order])

    @cached_property
    def _by_owner(self) -> tuple[Numbers, Numbers]:
        """All writes, those to the memory of one owner together, and whose they are."""
        rows = self.steps.trace.accesses.writes
        owners = _owner(rows.space, rows.owner)
        order = stable_order(owners)
        return order, owners[order]

    def page(self, space: int, owner: int, page: int, start: int, end: int) -> Json:
        """A page of a block's shared memory, or of an array (its number is `owner`)."""
        accesses = self.steps.trace.accesses
        base, size = page * PAGE, accesses.shared_size
        initial: npt.NDArray[np.uint8] | None = None
        address = base
        if space == GLOBAL:
            region = accesses.regions[owner]
            address, size, owner = region.base + base, region.size, 0
            initial = np.frombuffer(region.data, np.uint8)[base : base + PAGE]
        content = np.zeros(max(min(PAGE, size - base), 0), np.uint8)
        known = np.zeros(len(content), np.bool_)
        if initial is not None:
            content[: len(initial)] = initial
            known[: len(initial)] = True
        writes = self.writes(space, owner)
        rows, after = writes.rows, writes.after
        inside = (rows.address < address + len(content)) & (rows.address + rows.size > address)
        before = inside & (after < start)
        self._fill(rows.take(before), address, content, known)
        within = np.flatnonzero(inside & (after >= start) & (after < end))
        return {
            "base": base,
            "data": packed(content),
            "known": packed(np.packbits(known, bitorder="little")),
            "writes": self._within(rows.take(within), after[within], address),
        }

    def _fill(self, rows: Rows, address: int, content: npt.NDArray[np.uint8], known: npt.NDArray[np.bool_]) -> None:
        fresh = np.zeros(len(content), np.bool_)  # what these have written
        for past in range(len(rows), 0, -_TOGETHER):  # the last first: there is no need for those that they overwrite
            if fresh.all():
                break
            values, at = self.steps.trace.accesses.bytes_and_addresses(rows.take(slice(max(past - _TOGETHER, 0), past)))
            at -= address
            inside = (at >= 0) & (at < len(content))
            at, values = at[inside], values[inside]
            is_first = ~fresh[at]
            content[at[is_first]] = values[is_first]
            fresh[at] = True
        known |= fresh

    def _within(self, rows: Rows, after: Numbers, address: int) -> dict[str, object]:
        """Writes in order; those that one step makes by one instruction are together.

        Of each the step after which it is done, the instruction, whether that is asynchronous, the bytes at each
        address, and how many addresses there are; addresses and bytes of all are one after the other.
        """
        is_event = rows.event >= 0
        kinds = np.stack([after, rows.instruction, is_event.astype(np.int64), rows.size], axis=1)
        cuts = np.flatnonzero((np.diff(kinds, axis=0) != 0).any(axis=1)) + 1
        first = np.concatenate([[0], cuts]).astype(np.int64)[: len(rows)]
        values, _ = self.steps.trace.accesses.bytes_and_addresses(rows)
        return {
            "after": after[first].tolist(), "instruction": rows.instruction[first].tolist(),
            "asynchronous": is_event[first].tolist(), "size": rows.size[first].tolist(),
            "count": np.diff(np.append(first, len(rows))).tolist(),
            "addresses": packed((rows.address - address).astype("<i4")), "data": packed(values),
        }  # fmt: skip


def _owner(space: Any, owner: Any) -> Any:
    """A state space and whose memory it is, as one number."""
    return owner * len(SPACES) + space
