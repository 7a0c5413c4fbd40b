"""Memory as diagnostics name it: `bytes 128..132 of tile`, `lane 32, columns 0..64`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.explain.snapshots import block_name, companion
from ptxlab.emulate.runtime.order.devices import DEVICE_SHIFT
from ptxlab.isa.units.tensor_memory import COLUMNS

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_SPACES = {
    address_spaces.GLOBAL_SPACE: "global",
    address_spaces.SHARED_SPACE: "shared",
    address_spaces.LOCAL_SPACE: "local",
    address_spaces.CLUSTER_SPACE: "shared",
    address_spaces.TENSOR_SPACE: "tensor",
}


def name_memory(space: int) -> str:
    """`shared memory`"""
    return f"{_SPACES[space]} memory"


def name_bytes(launch: RunningLaunch, space: int, address: int, size: int, block: int | None = None) -> str:
    """Which bytes these are: `bytes 128..132 of tile`, with the name marked as code; `block` is who accesses them."""
    if space == address_spaces.TENSOR_SPACE:
        return _name_words(address, size)
    name, base, of = "", 0, ""
    if space == address_spaces.GLOBAL_SPACE:
        address &= (1 << DEVICE_SHIFT) - 1
        region = launch.regions.at(address)
        if region is not None:
            name, base = region.name, region.base
    elif space in (address_spaces.SHARED_SPACE, address_spaces.CLUSTER_SPACE):
        rank, address = address >> address_spaces.RANK_SHIFT, address & address_spaces.OFFSET_MASK
        name, base = layout.shared_variable_at(launch.compiled.variables, address)
        if block is not None and launch.cluster_size > 1:
            owner = companion(launch, block, rank - 1) if rank else block
            of = f" of {block_name(launch, owner)}"
    return f"bytes {address - base}..{address - base + size}" + (f" of {name}" if name else "") + of


def _name_words(address: int, bytes: int) -> str:
    """Which words of tensor memory these are: `lane 32, columns 0..64`."""
    lane, column = divmod(address // 4, COLUMNS)
    return f"lane {lane}, columns {column}..{column + bytes // 4}"
