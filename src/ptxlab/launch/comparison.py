"""The same launch on the GPU and on the emulator, compared bit for bit."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.arguments import pack
from ptxlab.device.options import LaunchOptions
from ptxlab.device.regions import Region
from ptxlab.device.result import Result
from ptxlab.device.structures import leaves, map_leaves
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.device.textures import Surface
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.emulate.launch import launch as emulate
from ptxlab.gpu.arrays import ArrayMemory, host_view, memory_of
from ptxlab.gpu.driver import call, current
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.launching import launch as launch_there
from ptxlab.gpu.loading import GpuState, Loaded, load
from ptxlab.gpu.streams import recording
from ptxlab.isa.gpus import gpu_named
from ptxlab.report import Diagnostic, KernelError, error, is_failure
from ptxlab.toolchain.tools import can_find

REASONS = (
    "a race can be the reason, which the emulator's detectors find, "
    "an approximate instruction on a GPU other than an H200, whose results the emulator has, "
    "or products and sums that were contracted, which it knows where ptxas and nvdisasm are installed"
)


def compare(
    emulated: EmulatedModule,
    kernel: ir.Function,
    gpu: Gpu,
    state: GpuState,
    args: Sequence[object],
    options: LaunchOptions,
) -> Result:
    """Run both on the same data; the emulator's result, and its arrays, with a finding where the GPU's differ.

    Arrays that are on the GPU end up as the GPU leaves them; the emulator works on copies. Variables of the module
    start on both as the emulator has them.
    """
    if recording.graph is not None:
        raise ValueError(
            "a launch that is recorded in a graph does not run yet: `device='both'` has nothing to compare"
        )
    module, collecting = emulated.module, replace(options, on_error="collect")
    values, mirrors = mirror(args, gpu)
    regions = [*pack(module, kernel, values).regions, *_surfaces(values)]
    variables = WrittenVariables(emulated, kernel, load(module, kernel, gpu, state, options.compile))
    variables.equalize()
    kept: dict[int, bytearray] = {}
    hardware = launch_there(module, kernel, gpu, state, args, collecting, kept)
    if not hardware.diagnostics:
        kept |= bring_back(mirrors, gpu)
        variables.bring_back()
    result = emulate(emulated, kernel, values, as_there(collecting, gpu))
    result.diagnostics += differences(module, kernel, gpu, values, regions, kept, hardware, result)
    if not hardware.diagnostics:
        result.diagnostics += variables.differences()
    if is_failure(result.diagnostics, options.on_error):
        raise KernelError(result.diagnostics)
    return result


def as_there(options: LaunchOptions, gpu: Gpu) -> LaunchOptions:
    """The options with the arithmetic of the GPU, and what ptxas contracts, unless they say otherwise."""
    contract = "ptxas" if can_find("ptxas", "nvdisasm") else "none"
    return replace(options, gpu=options.gpu or _own_name(gpu), contract=options.contract or contract)


def _own_name(gpu: Gpu) -> str:
    """The name of the GPU, or its target if the emulator does not know the name."""
    try:
        return gpu.name if gpu_named(gpu.name).target == gpu.target else gpu.target
    except ValueError:
        return gpu.target


def mirror(args: Sequence[object], gpu: Gpu) -> tuple[list[Any], list[tuple[ArrayMemory, Any]]]:
    """The arguments with copies for arrays on the GPU; one array given twice is one copy."""
    import numpy

    copies: dict[tuple[int, int], tuple[ArrayMemory, Any]] = {}

    def mirrored(value: object) -> Any:
        memory = memory_of(value.array if isinstance(value, TensorMap) else value)
        if memory is None or memory.gpu is None:
            return host_view(value)
        key = memory.address, memory.size
        if key not in copies:
            copy = numpy.zeros(memory.size, numpy.uint8)
            _read(memory, copy.ctypes.data, gpu)
            copies[key] = memory, copy
        copy = copies[key][1]
        return replace(value, array=copy) if isinstance(value, TensorMap) else copy

    return [map_leaves(mirrored, value) for value in args], list(copies.values())


def bring_back(mirrors: Sequence[tuple[ArrayMemory, Any]], gpu: Gpu) -> dict[int, bytearray]:
    """What the GPU made of its own arrays, by the address of their copies."""
    found = {}
    for memory, copy in mirrors:
        image = bytearray(memory.size)
        if memory.size:
            _read(memory, ctypes.addressof((ctypes.c_uint8 * memory.size).from_buffer(image)), gpu)
        found[int(copy.ctypes.data)] = image
    return found


def _read(memory: ArrayMemory, target: int, gpu: Gpu) -> None:
    if memory.size:
        with current(gpu.number):
            call("cuCtxSynchronize")
            call("cuMemcpyDtoH", target, memory.address, memory.size)


def differences(
    module: ir.Module,
    kernel: ir.Function,
    gpu: Gpu,
    values: Sequence[object],
    regions: Sequence[Region],
    kept: dict[int, bytearray],
    hardware: Result,
    emulated: Result,
) -> list[Diagnostic]:
    """Where the GPU and the emulator do not agree: in how the kernel ended, in an array, in what it printed."""
    failed = [found for found in emulated.diagnostics if found.level == "error"]
    if hardware.diagnostics:
        if failed:
            return []
        first = hardware.diagnostics[0]
        return [error("disagreement", f"the emulator finds nothing wrong, the GPU does: {first.message}",
                      module.name_span(kernel), "this kernel", notes=first.notes)]  # fmt: skip
    found = []
    for region in regions:
        if region.data in kept and region.size:
            found += _difference(module, kernel, gpu, values, region, kept[region.data])
    if sorted(hardware.output.splitlines()) != sorted(emulated.output.splitlines()):
        found.append(error("disagreement", "the emulator and the GPU print different lines", module.name_span(kernel),
                           "this kernel", notes=[f"on {gpu.name}: {hardware.output[:200]!r}"]))  # fmt: skip
    return found


def _difference(
    module: ir.Module, kernel: ir.Function, gpu: Gpu, values: Sequence[object], region: Region, image: bytearray
) -> list[Diagnostic]:
    """The first element of an array that differs."""
    import numpy

    number = next(index for index, value in enumerate(values) if _has(value, region.owner))
    kind = region.owner.dtype
    here = numpy.frombuffer(ctypes.string_at(region.data, region.size), numpy.uint8)
    there = numpy.frombuffer(image, numpy.uint8)
    wrong = (here != there).reshape(-1, kind.itemsize).any(axis=1)
    if not wrong.any():
        return []
    first = int(wrong.argmax())
    part = slice(first * kind.itemsize, (first + 1) * kind.itemsize)
    parameter = kernel.parameters[number]
    element = ", ".join(map(str, numpy.unravel_index(first, region.owner.shape, order=_order(region.owner))))
    return [
        error(
            "disagreement",
            f"the emulator and {gpu.name} differ in {int(wrong.sum())} of {wrong.size} elements of `{parameter.name}`",
            module.span(parameter),
            "this argument",
            notes=[f"the first is element [{element}]: {_show(here[part], kind)} on the emulator, "
                   f"{_show(there[part], kind)} on the GPU"],
            helps=[REASONS],
        )
    ]  # fmt: skip


def _has(argument: object, array: object) -> bool:
    """Whether an array is in an argument."""
    return any((leaf.array if isinstance(leaf, (TensorMap, Surface)) else leaf) is array for leaf in leaves(argument))


def _surfaces(values: Sequence[object]) -> list[Region]:
    """The arrays that surfaces are of."""
    arrays = [leaf.array for value in values for leaf in leaves(value) if isinstance(leaf, Surface)]
    return [Region(0, array.nbytes, int(array.ctypes.data), "a surface", True, array) for array in arrays]


def _order(array: Any) -> Literal["C", "F"]:
    return "C" if array.flags.c_contiguous else "F"


def _show(data: Any, kind: object) -> str:
    """`1.5 (0x3fc00000)`"""
    value = data.view(kind)[0]
    return f"{value} (0x{data.tobytes()[::-1].hex()})"


class WrittenVariables:
    """The variables that a kernel may write, here and there; those that start with addresses are left out."""

    def __init__(self, emulated: EmulatedModule, kernel: ir.Function, loaded: Loaded) -> None:
        self.module, self.gpu = emulated.module, loaded.gpu
        placed = layout.Variables(self.module, layout.reachable(self.module, kernel))
        self.pairs = []
        self.images: list[bytearray] = []
        with current(self.gpu.number):
            for (_, variable), region in zip(placed.allocated, emulated.memory.regions(placed), strict=True):
                if not region.writable or not region.size or layout.has_addresses(variable):
                    continue
                if placed.by_name.get(variable.name) is not variable:
                    continue  # a function's own, for which the driver has no name
                there = loaded.variable(variable.name)
                if there is not None and there[1] == region.size:
                    self.pairs.append((variable, region, there[0]))

    def equalize(self) -> None:
        """Give the GPU's variables the values that the emulator's have."""
        with current(self.gpu.number):
            for _, region, address in self.pairs:
                call("cuMemcpyHtoD", address, region.data, region.size)

    def bring_back(self) -> None:
        """Keep what the GPU has made of its variables."""
        with current(self.gpu.number):
            for _, region, address in self.pairs:
                image = bytearray(region.size)
                call("cuMemcpyDtoH", ctypes.addressof((ctypes.c_uint8 * region.size).from_buffer(image)), address,
                     region.size)  # fmt: skip
                self.images.append(image)

    def differences(self) -> list[Diagnostic]:
        """The variables whose bytes differ now."""
        found = []
        for (variable, region, _), there in zip(self.pairs, self.images, strict=True):
            here = ctypes.string_at(region.data, region.size)
            wrong = [at for at in range(region.size) if here[at] != there[at]] if here != there else []
            if wrong:
                width = max(variable.type.width // 8, 1)
                at = wrong[0] // width * width
                values = [f"0x{bytes(data[at : at + width])[::-1].hex()}" for data in (here, there)]
                found.append(
                    error(
                        "disagreement",
                        f"the emulator and {self.gpu.name} differ in {len({element // width for element in wrong})} of "
                        f"{region.size // width} elements of the variable `{variable.name}`",
                        self.module.span(variable),
                        "this variable",
                        notes=[
                            f"the first is element {at // width}: {values[0]} on the emulator, {values[1]} on the GPU"
                        ],
                        helps=[REASONS],
                    )
                )
        return found
