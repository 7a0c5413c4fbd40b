"""`Module`: several kernels, device functions and variables in one PTX module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ptxlab import ir
from ptxlab.author.kernel import Kernel, check_function, numbers_of, version_of, write_kernel
from ptxlab.author.lines import here, refuse
from ptxlab.author.pointers import Pointer
from ptxlab.author.raw import symbol_of
from ptxlab.author.trace import Trace, TracedModule, writing
from ptxlab.isa.targets import TARGETS, Version


class Module:
    """A module that kernels are added to; `module["name"].launch(...)` runs one of them.

    `lines=False` leaves out which Python line each instruction comes from. With `untyped=True` what an instruction
    returns is bits, which any other may read as any type, as in the PTX of compilers.
    """

    def __init__(
        self,
        target: str = "sm_80",
        version: str | Version | None = None,
        *,
        address_size: int | None = 64,
        options: Sequence[str] = (),
        lines: bool = True,
        untyped: bool = False,
    ) -> None:
        position = here()
        if target not in TARGETS:
            refuse("unknown-target", f"there is no target `{target}`", position=position)
        self.program = TracedModule(target, version_of(version, position), address_size, lines, tuple(options), untyped)

    def kernel(self, function: Callable[..., object] | None = None, **directives: int | Sequence[int]) -> Any:
        """Make a Python function a kernel of this module; keywords are directives, `maxntid=256`."""
        position = here()
        chosen = {name: numbers_of(name, value, position) for name, value in directives.items()}

        def add(function: Callable[..., object]) -> Kernel:
            check_function(function, position)
            program = self.program
            added = Kernel(function, program.target, program.version, chosen, position)
            program.names.add(added.name)
            added.__dict__["program"] = program  # not one of its own
            write_kernel(program, added)
            return added

        return add if function is None else add(function)

    @contextmanager
    def body(self, head: str) -> Iterator[None]:
        """The block is the body of a function whose head is given as PTX."""
        trace = Trace(self.program, head.split("(")[0].split()[-1], "func")
        with writing(trace):
            yield
            trace.close()
        self.program.items.append("\n".join(["", head, "{", *trace.body(), "}", ""]))

    def text(self, ptx: str) -> None:
        """Add items as PTX writes them: prototypes, debug sections, aliases."""
        self.program.items.append(f"\n{ptx}")

    def declare(self, text: str) -> Pointer:
        """Declare a variable as PTX writes it, and return its address."""
        self.text(text)
        return symbol_of(text)

    @property
    def ptx(self) -> str:
        """The PTX of all that has been added."""
        return self.program.text()

    def __str__(self) -> str:
        return self.program.text(lines=False)

    @property
    def module(self) -> ir.Module:
        """The program, as `ptxlab.parse` reads it."""
        return self.program.module

    def set(self, name: str, value: object, dtype: object = None) -> None:
        """Give a variable a value, as `ptxlab.ir.Module.set` does."""
        self.module.set(name, value, dtype)

    def get(self, name: str, dtype: object = None, device: str = "auto") -> Any:
        """A copy of a variable, as `ptxlab.ir.Module.get` gives it."""
        return self.module.get(name, dtype, device)

    def __getitem__(self, name: str) -> ir.Function:
        return self.module[name]
