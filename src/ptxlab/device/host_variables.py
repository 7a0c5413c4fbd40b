"""What the host has set variables of a module to, and which device has changed them last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.report import KernelError, error
from ptxlab.values import dataclass


@dataclass
class HostVariables:
    """`given` has the bytes that variables were set to, by name, on whichever device they are.

    `ran_on` is the number of the GPU that ran a kernel last, None where that was the emulator.
    """

    given: dict[str, bytes] = field(default_factory=dict)
    ran_on: int | None = None
    objects: dict[str, list[Any]] = field(default_factory=dict)
    """Textures, surfaces and samplers that variables were set to."""

    def given_to(self, module: ir.Module, variable: ir.Variable) -> bytes | None:
        """What a variable of the module itself was set to; a value from before it was declared otherwise is refused."""
        data = self.given.get(variable.name)
        size = layout.size_of_variable(variable)
        if data is not None and size and len(data) != size:
            message = f"`{variable.name}` was set to {len(data)} bytes, and has {size} since the module was edited"
            found = error("bad-argument", message, module.span(variable), "declared here", helps=["set it again"])
            raise KernelError([found])
        return data

    def all_given(self, module: ir.Module) -> Iterator[tuple[str, bytes]]:
        """The variables that were set, as far as the module has them."""
        if not self.given:
            return
        for name, variable in layout.Variables(module, []).by_name.items():
            data = self.given_to(module, variable)
            if data is not None:
                yield name, data
