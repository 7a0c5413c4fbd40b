"""Which arguments of a launch point to memory that its kernel may write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.translate.provenance import ALL, PARAMETERS, UNKNOWN, VARIABLE

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def written_parameters(launch: RunningLaunch) -> int:
    """The parameters that point to memory which the kernel may write, as bits."""
    compiled, parameters, regions = launch.compiled, bytes(launch.parameters), launch.regions
    written: int = compiled.facts["written"]
    if written & UNKNOWN:
        return ALL
    pointers: dict[int, list[int]] = {}
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
                    pointers.setdefault(region.base, []).append(number)
    found = written & VARIABLE
    for numbers in pointers.values():
        bits = sum(1 << number for number in set(numbers))
        if bits & written:
            found |= bits
    return found
