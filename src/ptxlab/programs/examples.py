"""Launches of a program as examples for proofs: the numbers among their arguments, and how much memory there is."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.host_memory import HostMemory
from ptxlab.programs.messages import Frames
from ptxlab.programs.queue import QueuedLaunch, one_by_one

MOST_EXAMPLES = 64  # of one kernel
ALIGNMENT = 16
ZEROS = bytes(8)


@dataclass(frozen=True)
class LaunchExample:
    """A launch: integer arguments, and for each pointer the bytes to the end of its allocation, or to another one."""

    kernel: ir.Function
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    numbers: dict[str, int]
    sizes: dict[str, int]
    unusual: list[str]
    """What proofs assume not to be."""
    zeros: frozenset[str]
    """The arrays and variables that are known to start with zeros then, of eight bytes or all."""
    frames: Frames

    @property
    def key(self) -> tuple[object, ...]:
        """What a proof does not change."""
        return id(self.kernel), self.block, self.cluster, self.shared


def keep_example(
    examples: list[LaunchExample], one: QueuedLaunch, memory: HostMemory, *, at_once: bool
) -> None:  # fmt: skip
    """Keep a launch, which starts `at_once` or later, if there was none like it and are not enough of its kernel."""
    found = example_of(one, memory, at_once=at_once)
    alike = [other for other in examples if other.key == found.key]
    if len(alike) < MOST_EXAMPLES and all(replace(other, frames=found.frames) != found for other in alike):
        examples.append(found)


def example_of(one: QueuedLaunch, memory: HostMemory, *, at_once: bool) -> LaunchExample:
    """A launch that a program makes, with the memory that it has then; what that holds only if it starts `at_once`."""
    numbers: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for parameter, data in zip(one.kernel.parameters, one_by_one(one.kernel, one.data), strict=True):
        words = range(0, len(data) // 8 * 8, 8)  # a struct may have pointers, too
        found = {byte: int.from_bytes(data[byte : byte + 8], "little") for byte in words}
        ends = {byte: end for byte, word in found.items() if (end := _end(word, memory)) is not None}
        places |= {parameter.title + (f"+{byte}" if byte else ""): (found[byte], end) for byte, end in ends.items()}
        if not ends and not parameter.dimensions and parameter.type.kind != "f":
            numbers[parameter.title] = int.from_bytes(data, "little", signed=parameter.type.width < 64)
    starts = sorted({start for start, _ in places.values()})
    sizes = {
        name: min([end, *(other for other in starts if other > start)]) - start for name, (start, end) in places.items()
    }
    return LaunchExample(
        one.kernel, one.options.grid, one.options.block, one.options.cluster or (1, 1, 1), one.options.shared,
        numbers, sizes, list(_unusual(places)), frozenset(_zeros(one, places, memory) if at_once else ()), one.frames,
    )  # fmt: skip


def _zeros(one: QueuedLaunch, places: dict[str, tuple[int, int]], memory: HostMemory) -> Iterator[str]:
    """What starts with zeros, as far as it goes: of arguments, and of the variables of a module."""
    for name, (start, _) in places.items():
        region = next(one for one in memory.regions.values() if one.base <= start < one.base + one.size)
        size = min(len(ZEROS), region.base + region.size - start)
        if ctypes.string_at(region.data + start - region.base, size) == ZEROS[:size]:
            yield name
    module = one.loaded.module
    placed, held = layout.Variables(module, []), one.loaded.emulated().memory
    for variable in module.variables if not one.order.device else ():
        if variable.state_space == "global" and not held.of(placed, variable).raw[: len(ZEROS)].strip(b"\0"):
            yield variable.title


def _end(address: int, memory: HostMemory) -> int | None:
    """Where the allocation ends that an address is in."""
    return next((one.base + one.size for one in memory.regions.values() if one.base <= address < one.base + one.size),
                None)  # fmt: skip


def _unusual(places: dict[str, tuple[int, int]]) -> list[str]:
    known: dict[int, str] = {}
    found = []
    for name, (start, _) in places.items():
        if start in known:
            found.append(f"`{known[start]}` and `{name}` are the same memory")
        known.setdefault(start, name)
        if start % ALIGNMENT:
            found.append(f"`{name}` is not aligned to {ALIGNMENT} bytes")
    return found
