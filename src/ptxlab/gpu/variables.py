"""Variables of a module on the GPU and on the emulator: made equal before a launch, compared after it."""

from __future__ import annotations

import ctypes

from ptxlab import ir
from ptxlab.emulate import layout
from ptxlab.emulate.regions import globals_of
from ptxlab.gpu.driver import call, current
from ptxlab.gpu.loading import Loaded
from ptxlab.report import Diagnostic, error

REASONS = (
    "a race can be the reason, which the emulator's `checks` find, "
    "or an approximate instruction on a GPU other than an H200, whose results the emulator has"
)


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
