"""Kernels that kernels launch: what `runtime/device.ptx` has noted, to be launched when the kernel has ended.

A grid is complete when all that it has launched is, and nothing says that they start before: so this order is one that
a GPU may choose, too. Races between a kernel and those that it launches are not found.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.abi.address_spaces import FUNCTION_WINDOW
from ptxlab.launch.contexts import context_of

_RUNTIME = Path(__file__).parent / "runtime" / "device.ptx"
_LAUNCHES = "ptxlab_launches"
_HEAD, _SLOT, _SLOTS = 64, 4160, 2048
_RECORD = struct.Struct("<Q3I3III")  # the kernel, grid, block, shared memory, whether it was launched


@dataclass(frozen=True)
class DeviceLaunch:
    """A launch by a kernel."""

    kernel: ir.Function
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    data: bytes


def runtime_for(texts: list[str]) -> list[str]:
    """The runtime of kernels as a further part, where one of these launches kernels."""
    return [_RUNTIME.read_text("utf-8")] if any("__cudaCDP2LaunchDeviceV2" in text for text in texts) else []


def take_launches(module: ir.Module) -> list[DeviceLaunch]:
    """The launches that kernels of a module have made, which then are no longer noted."""
    placed = layout.Variables(module, [])
    variable = placed.by_name.get(_LAUNCHES)
    if variable is None:
        return []
    memory = memoryview(context_of(module).memory.of(placed, variable)).cast("B")
    count = min(int.from_bytes(memory[:4], "little"), _SLOTS)
    kernels = {number: name for name, number in layout.function_numbers(module).items()}
    made = []
    for slot in range(count):
        at = _HEAD + slot * _SLOT
        address, *numbers, shared, is_launched = _RECORD.unpack(memory[at : at + _RECORD.size])
        if not is_launched:
            continue
        kernel = module[kernels[(address - FUNCTION_WINDOW) // 16]]
        size = layout.block_of(kernel.parameters).size
        grid, block = (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5])
        made.append(DeviceLaunch(kernel, grid, block, shared, bytes(memory[at + _HEAD : at + _HEAD + size])))
    memory[:4] = bytes(4)
    return made
