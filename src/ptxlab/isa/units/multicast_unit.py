"""Memory of several devices under one address, of the abstract machine: `k.multicast`."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..async_operation import step

A = TypeVar("A")

MOST_REPLICAS = 8  # devices that a multicast address may refer to


class Multicast(Protocol[A]):
    """Multicast addresses."""

    @step("replicate", address="operand")
    def replica(self, operand: A, number: int, bytes: int) -> A:
        """The address of these bytes on the device of that number; 0 where there are fewer devices."""
