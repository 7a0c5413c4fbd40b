"""Variables of a module on a GPU: set, read, and for launches on both devices made equal before and compared after."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.host.regions import globals_of
from ptxlab.gpu.driver import DriverError, call, current
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.loading import Loaded
from ptxlab.gpu.streams import recording
from ptxlab.gpu.waiting import fail, refuse_broken
from ptxlab.report import Diagnostic, KernelError, error

REASONS = (
    "a race can be the reason, which the emulator's `checks` find, "
    "or an approximate instruction on a GPU other than an H200, whose results the emulator has"
)


def write_variable(module: ir.Module, name: str, data: bytes) -> None:
    """Give a variable a value wherever the module is loaded, once all kernels there have ended."""
    for loaded in [part for part in module.on_gpu.values() if isinstance(part, Loaded)]:
        with _quiet(module, loaded.gpu):
            loaded.write(name, data)


def read_variable(module: ir.Module, name: str, size: int, gpu: Gpu) -> bytes | None:
    """What a variable holds where a kernel of the module ran last on this GPU; None where there is no such thing."""
    last = module.on_gpu.get(("last", gpu.number))
    if last is None:
        return None
    with _quiet(module, gpu):
        found: bytes | None = last.loaded.read(name, size)
    return found


@contextmanager
def _quiet(module: ir.Module, gpu: Gpu) -> Iterator[None]:
    """No kernel runs on the GPU inside; what the driver says is told in words."""
    refuse_broken()
    if recording.graph is not None:
        raise ValueError("a graph is being recorded: set and get variables before it or after it")
    try:
        with current(gpu.number):
            call("cuCtxSynchronize")
            yield
    except DriverError as problem:
        last = module.on_gpu.get(("last", gpu.number))
        kernel = module[module.entries[0]] if last is None else last.kernel
        raise KernelError([fail(problem, module, kernel, gpu)]) from None


class Variables:
    """The variables that a kernel may write, here and there; those that begin with addresses are left out."""

    def __init__(self, module: ir.Module, kernel: ir.Function, loaded: Loaded) -> None:
        self.module, self.gpu = module, loaded.gpu
        placed = layout.Variables(module, layout.reachable(module, kernel))
        self.pairs = []
        self.images: list[bytearray] = []
        with current(self.gpu.number):
            for (_, variable), region in zip(placed.allocated, globals_of(module, placed), strict=True):
                if not region.writable or not region.size or layout.has_addresses(variable):
                    continue
                if placed.by_name.get(variable.name) is not variable:
                    continue  # a function's own, for which the driver has no name
                there = loaded.variable(variable.name)
                if there is not None and there[1] == region.size:
                    self.pairs.append((variable, region, there[0]))

    def equalise(self) -> None:
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
                        f"the emulator and {self.gpu.name} differ in {len({place // width for place in wrong})} of "
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
