"""Multicast addresses of a launch: the table that machine code reads."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.device.multicast import PlacedMulticast
from ptxlab.emulate.abi.multicast import MulticastObject
from ptxlab.emulate.abi.structs import StructArray


class MulticastTable:
    """All of them, and what they refer to."""

    def __init__(self, placed: Sequence[PlacedMulticast]) -> None:
        self.placed = placed
        self.address = 0
        if not placed:
            return
        self._table = StructArray(MulticastObject, len(placed))
        self.address = self._table.address
        for number, one in enumerate(placed):
            self._table.set(number, base=one.base, size=one.size, count=len(one.replicas))
            self._table.fill("replicas", one.replicas, number, 8)

    def replicas_of(self, address: int) -> Sequence[int]:
        """The addresses that an address refers to: itself, if it is not a multicast address."""
        return next((one.replicas for one in self.placed if one.base <= address < one.base + one.size), (address,))
