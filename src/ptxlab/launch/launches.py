"""A kernel with all that a launch of it takes, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ptxlab import author, gpu, ir
from ptxlab.device.options import Extent, LaunchOptions
from ptxlab.device.result import Result
from ptxlab.launch import prepare
from ptxlab.launch.chains import launch_chain
from ptxlab.syntax import format, parse

Arrays = dict[str, Any]


class UnsuitedError(ValueError):
    """A variant or library that does not do this size or type; its text says why."""


@dataclass(frozen=True)
class Launch:
    """A kernel with all that a launch of it takes."""

    kernel: ir.Function | author.Kernel
    grid: Extent
    block: Extent
    args: Sequence[Any]
    shared: int = 0
    cluster: Extent | None = None
    overlap: bool = False
    """Whether it may start before the kernel before it is complete: it waits for that itself, `griddepcontrol.wait`."""

    def run(self, **how: Any) -> Result:
        """Run it; `how` is what `kernel.launch` takes besides."""
        return self.kernel.launch(self.grid, self.block, self.args, shared=self.shared, cluster=self.cluster, **how)

    def changed(self, *changes: tuple[str, str], name: str = "kernel.ptx") -> Launch:
        """The same launch of a kernel in whose PTX one text after the other was replaced, where it is first."""
        text = str(self.kernel) if isinstance(self.kernel, author.Kernel) else format(self.module)
        for old, new in changes:
            if old not in text:
                raise ValueError(f"there is no `{old}` in the kernel")
            text = text.replace(old, new, 1)
        return replace(self, kernel=parse(text, name)[self.function.name])

    @property
    def function(self) -> ir.Function:
        """The kernel as the program has it."""
        return self.kernel.entry if isinstance(self.kernel, author.Kernel) else self.kernel

    @property
    def module(self) -> ir.Module:
        """The program that the kernel belongs to."""
        found = self.function.module
        assert found is not None
        return found

    def prepare(self, stream: object = None, compile: Path | None = None, device: str = "cuda") -> gpu.Prepared:
        """The launch with its arguments packed, for the first GPU or another; `compile` is a cubin to load."""
        options = LaunchOptions(
            self.grid,
            self.block,
            shared=self.shared,
            cluster=self.cluster,
            overlap=self.overlap,
            stream=stream,
            compile=compile,
            device=device,
        )
        return prepare(self.function, self.args, options)


def on_emulator(launches: Sequence[Launch]) -> None:
    """Run them in order, as on one stream of a GPU: those that start early are compared with the one before."""
    launch_chain(
        *(
            (
                one.kernel,
                one.grid,
                one.block,
                one.args,
                {"shared": one.shared, "cluster": one.cluster, "overlap": one.overlap},
            )
            for one in launches
        ),
        device="cpu",
    )


def ceil_div(count: int, part: int) -> int:
    """How many parts cover a count.

    >>> ceil_div(1000, 256)
    4
    """
    return -(-count // part)
