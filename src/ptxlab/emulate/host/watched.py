"""What launches have read of memory that the host may write, too; see `runtime.order.watched_reads`."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy

from ptxlab.device.regions import ReadBytes
from ptxlab.emulate.abi import entries
from ptxlab.emulate.abi.clocks import WatchedMemory
from ptxlab.emulate.abi.structs import StructArray

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def reads_of(launches: Sequence[RunningLaunch], first: int = 0) -> Iterator[ReadBytes]:
    """What launches that ran together have read, each of what it watches; they are numbered from `first`."""
    regions = {region.base: region for launch in launches for region in launch.watched if region.size}
    for base, region in regions.items():
        marks = [
            numpy.zeros(-(-region.size // 8), numpy.uint8) if any(one.base == base for one in launch.watched) else None
            for launch in launches
        ]
        count = len(launches)
        tables = (ctypes.c_void_p * count)(*(None if one is None else one.ctypes.data for one in marks))
        low, past = (ctypes.c_uint64 * count)(*[region.size] * count), (ctypes.c_uint64 * count)()
        asked = StructArray(WatchedMemory)
        asked.set(start=base, size=region.size, marks=ctypes.addressof(tables), first=ctypes.addressof(low),
                  past=ctypes.addressof(past))  # fmt: skip
        for worker in launches[0].workers:
            launches[0].ask(entries.MARK_READS, worker, asked)
        for number, found in enumerate(marks):
            if found is not None and past[number]:
                start = low[number] // 8 * 8
                bits = found[start // 8 : -(-past[number] // 8)].tobytes()
                yield ReadBytes(first + number, base + start, past[number] - start, bits)
