"""Memory while a launch is replayed: codes of global arrays, of shared memory of blocks, of local memory of threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ptxlab.equal.codes import NOTHING, Codes, of_bytes
from ptxlab.equal.nodes import Ids
from ptxlab.isa.units.tensor_memory import COLUMNS, LANES
from ptxlab.trace.accesses import LOCAL, PARAM, SHARED, unwritten

if TYPE_CHECKING:
    from ptxlab.trace import Trace

Bytes = npt.NDArray[np.int64]
"""A code for each byte of an array."""


@dataclass(frozen=True)
class Placed:
    """An array at an address of a launch."""

    base: int
    codes: Bytes


class OutsideError(Exception):
    """An address in no memory that is known here."""


class Memory:
    """All memory of a launch."""

    def __init__(self, trace: Trace, placed: Sequence[Placed]) -> None:
        self._placed = sorted(placed, key=lambda one: one.base)
        self._bases = np.array([one.base for one in self._placed], np.int64)
        self._trace = trace
        self._shared: dict[int, Bytes] = {}
        self._local: dict[int, Bytes] = {}
        self._tensor: dict[int, Codes] = {}
        self._parameters = of_bytes(np.frombuffer(trace.accesses.parameters, np.uint8))

    def _content(self, space: int, owner: int, address: int) -> tuple[Bytes, int]:
        """The memory that has an address, and where it starts."""
        if space == SHARED:
            if owner not in self._shared:
                self._shared[owner] = of_bytes(unwritten(0, self._trace.accesses.shared_size))
            return self._shared[owner], 0
        if space == LOCAL:
            if owner not in self._local:
                self._local[owner] = of_bytes(unwritten(0, self._trace.accesses.local_size))
            return self._local[owner], 0
        if space == PARAM:
            return self._parameters, 0
        position = int(np.searchsorted(self._bases, address, "right")) - 1
        if position < 0 or address >= self._placed[position].base + len(self._placed[position].codes):
            raise OutsideError
        return self._placed[position].codes, self._placed[position].base

    def _groups(self, space: Ids, owner: Ids, address: Ids) -> list[tuple[Bytes, int, Ids]]:
        """The addresses by the memory that they are in: codes, base, and which of them."""
        found: list[tuple[Bytes, int, Ids]] = []
        left = np.arange(len(address))
        while len(left):
            first = left[0]
            codes, base = self._content(int(space[first]), int(owner[first]), int(address[first]))
            own = (space[left] == space[first]) & (owner[left] == owner[first])
            own &= (address[left] >= base) & (address[left] < base + len(codes))
            if not own[0]:
                raise OutsideError
            found.append((codes, base, left[own]))
            left = left[~own]
        return found

    def load(self, space: Ids, owner: Ids, address: Ids, size: int) -> Codes:
        """The codes at addresses, so many bytes each."""
        found = np.zeros((len(address), size), np.int64)
        for codes, base, chosen in self._groups(space, owner, address):
            at = (address[chosen] - base)[:, None] + np.arange(size)
            if int(at.max()) >= len(codes):
                raise OutsideError
            found[chosen] = codes[at]
        return found

    def store(self, space: Ids, owner: Ids, address: Ids, values: Codes) -> None:
        """Write codes to addresses, one line after the other."""
        for codes, base, chosen in self._groups(space, owner, address):
            at = (address[chosen] - base)[:, None] + np.arange(values.shape[1])
            if int(at.max()) >= len(codes):
                raise OutsideError
            codes[at] = values[chosen]

    def range(self, space: int, owner: int, address: int, size: int) -> Bytes:
        """The codes of some bytes: a view that may be written."""
        codes, base = self._content(space, owner, address)
        if address - base + size > len(codes):
            raise OutsideError
        return codes[address - base : address - base + size]

    def shared(self, block: int) -> Bytes:
        """All shared memory of a block."""
        return self._content(SHARED, block, 0)[0]

    def tensor(self, block: int) -> Codes:
        """All tensor memory of a block, by lane, column and byte."""
        if block not in self._tensor:
            self._tensor[block] = np.full((LANES, COLUMNS, 4), NOTHING)
        return self._tensor[block]
