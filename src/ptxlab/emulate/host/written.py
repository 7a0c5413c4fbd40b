"""Which arguments of a launch point to memory that its kernel, or one that runs at the same time, may write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.translate.provenance import ALL, PARAMETERS, UNKNOWN, VARIABLE

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

VARIABLES = -1
"""In place of the address of an allocation: variables of the module."""


def written_parameters(launch: RunningLaunch) -> int:
    """The parameters that point to memory which the kernel may write, as bits."""
    (found,) = tracked_parameters([launch], [0])
    return found


def tracked_parameters(launches: Sequence[RunningLaunch], ordered: Sequence[int]) -> list[int]:
    """For each launch the parameters, as bits, that point to memory which it, or one beside it, may write.

    Those of memory that is watched count, too. `ordered` has for each launch those that streams and events order with
    it, as bits: what these write, or read, can't race with it.
    """
    pointers = [_pointers(launch) for launch in launches]
    writers: dict[int | None, int] = {}  # of each allocation, as bits; None: of any
    for number, (launch, own) in enumerate(zip(launches, pointers, strict=True)):
        written: int = launch.compiled.facts["written"]
        places: Iterable[int | None] = (base for base, bits in own.items() if bits & written)
        for place in [None] if written & UNKNOWN else places:
            writers[place] = writers.get(place, 0) | 1 << number
    found = []
    for launch, own, done in zip(launches, pointers, ordered, strict=True):
        if writers.get(None, 0) & ~done:
            found.append(ALL)
            continue
        bits = 0
        watched = {region.base for region in launch.watched}
        for base, parameters in own.items():
            bits |= parameters if writers.get(base, 0) & ~done or base in watched else 0
        found.append(bits)
    return found


def _pointers(launch: RunningLaunch) -> dict[int, int]:
    """The parameters that point to each allocation, as bits."""
    compiled, parameters, regions = launch.compiled, bytes(launch.parameters), launch.regions
    pointers = {VARIABLES: VARIABLE}
    for number, parameter in enumerate(compiled.kernel.parameters[:PARAMETERS]):
        start = compiled.variables.parameters.offsets[id(parameter)]
        for at in range(start, start + layout.size_of_variable(parameter) - 7, 8):
            address = int.from_bytes(parameters[at : at + 8], "little")
            address = launch.textures.addresses.get(address, address)
            for replica in launch.multicast.replicas_of(address):
                region = regions.at(replica)
                if region is not None and region.tensor:
                    replica = region.tensor
                    region = regions.at(replica)
                if region is not None and replica <= region.base + region.size:
                    pointers[region.base] = pointers.get(region.base, 0) | 1 << number
    return pointers
