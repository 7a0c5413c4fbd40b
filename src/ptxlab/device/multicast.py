"""Arrays of several devices under one address, for `multimem`: on the emulator, one launch sees all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.isa.units.multicast_unit import MOST_REPLICAS
from ptxlab.values import dataclass

MULTICAST = 0x6800_0000_0000  # where multicast addresses start in the generic address space; arrays are above
STEP = 1 << 36  # from one multicast address to the next


@dataclass(frozen=True, eq=False, init=False)
class Multicast:
    """An array on each of several devices, under one address that only `multimem` instructions access.

    >>> import numpy
    >>> import ptxlab
    >>> len(ptxlab.Multicast([numpy.zeros(64, numpy.float32) for device in range(4)]).arrays)
    4
    """

    arrays: tuple[Any, ...]

    def __init__(self, arrays: Sequence[Any]) -> None:
        """Take the array of each device, from 1 to 8."""
        found = tuple(arrays)
        if not 1 <= len(found) <= MOST_REPLICAS:
            raise ValueError(f"{len(found)} arrays: there are 1 to {MOST_REPLICAS} devices")
        for array in found:
            if array.dtype != found[0].dtype or array.shape != found[0].shape:
                raise ValueError("the arrays of all devices have one type and one shape")
        if len({id(array) for array in found}) < len(found):
            raise ValueError("each device has an array of its own, and one of these is given twice")
        object.__setattr__(self, "arrays", found)


@dataclass(frozen=True)
class PlacedMulticast:
    """A multicast address, how many bytes it is of, and the addresses of the arrays."""

    base: int
    size: int
    replicas: tuple[int, ...]
    name: str
