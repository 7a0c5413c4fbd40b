"""Numba's kernels on the emulator: while a session is open, `kernel[grid, block](...)` compiles and runs there."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from functools import wraps
from importlib import import_module
from typing import Any
from unittest.mock import patch

from ptxlab import ir
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.frameworks.arrays import Arrays
from ptxlab.frameworks.numba.host import Device, capability, instead_of_a_gpu
from ptxlab.frameworks.numba.linking import ARRIVALS, module_of
from ptxlab.frameworks.numba.values import Values
from ptxlab.frameworks.packages import numba_cuda
from ptxlab.isa.targets import TARGETS
from ptxlab.report import Diagnostic, KernelError, is_failure

DEFAULT_TARGET = "sm_90a"
_THREADS = 256  # of a block of `forall`, where a driver would say how many are best
_NOT_OURS = {"grid", "block", "shared", "cluster", "device", "cooperative", "overlap", "stream", "compile", "wait"}
OPTIONS = {field.name for field in fields(LaunchOptions)} - _NOT_OURS


@dataclass(frozen=True)
class Launched:
    """One launch of a session."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    result: Result
    kernel: ir.Function = field(repr=False)


@dataclass
class Session:
    """What was launched, in order, and how."""

    target: str
    options: dict[str, Any] = field(default_factory=dict)
    launches: list[Launched] = field(default_factory=list)
    arrays: Arrays = field(default_factory=Arrays, repr=False)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was found in all launches."""
        return [one for launched in self.launches for one in launched.result.diagnostics]

    def launch(self, kernel: Any, args: Sequence[Any], grid: Any, block: Any, shared: int) -> None:
        """Launch a kernel that Numba compiled."""
        module = module_of(kernel, capability(self.target))
        function = module[kernel.entry_name]
        values = Values(self.arrays, kernel.extensions)
        names = _names(kernel)
        given = [
            one
            for number, (type, value) in enumerate(zip(kernel.argument_types, args, strict=True))
            for one in values.parameters(type, value, names[number] if number < len(names) else f"argument {number}")
        ]
        chosen = self.options | {"on_error": "collect"}
        cooperative = bool(kernel.cooperative)
        if cooperative:
            module.set(ARRIVALS, 0)
        result = function.launch(grid, block, given, shared=shared, cooperative=cooperative, device="cpu", **chosen)
        name = function.name if not names else kernel.py_func.__name__
        self.launches.append(Launched(name, tuple(grid), tuple(block), result, function))
        if is_failure(result.diagnostics, self.options.get("on_error", "raise")):
            raise KernelError(result.diagnostics)
        sys.stdout.write(result.output)
        for call in values.after:
            call()
        if kernel.debug:
            _raise_exception(kernel, module)


@contextmanager
def emulated(target: str = DEFAULT_TARGET, **options: object) -> Iterator[Session]:
    """Run Numba's kernels on the emulator while this context is open; host code stays as it is.

    Kernels are compiled for `target` by the installed Numba. Device arrays, streams and events are those of Numba's
    own simulator: memory of this process. `options` are those of `kernel.launch`: `seed`, `detectors`, `on_error`,
    `timeout`, `profile`, …

    >>> with ptxlab.numba.emulated("sm_80") as session:  # doctest: +SKIP
    ...     saxpy[4, 256](x, y, 2.0)
    >>> session.launches[0].result.counters["instructions"]  # doctest: +SKIP
    """
    if target not in map(str, TARGETS):
        raise ValueError(f"target={target!r}: there are sm_80, sm_90a, sm_100a, sm_120a, …")
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not an option of a launch: expected one of {', '.join(sorted(OPTIONS))}")
    numba_cuda("`ptxlab.numba`")
    session = Session(target, options)
    with ExitStack() as stack:
        instead_of_a_gpu(stack, Device(target))
        _take_launches(stack, session)
        yield session


def run(
    kernel: object,
    grid: object,
    block: object,
    *args: object,
    target: str = DEFAULT_TARGET,
    shared: int = 0,
    **named: object,
) -> Result:
    """Run a kernel with `@cuda.jit` on the emulator: arrays of NumPy are changed in place.

    `args` are what `kernel[grid, block](*args)` takes; `shared` is the size of dynamic shared memory in bytes. `named`
    are the options of `kernel.launch`: `seed`, `detectors`, `on_error`, `profile`, `record`, …

    >>> ptxlab.numba.run(saxpy, 4, 256, x, y, 2.0, target="sm_90")  # doctest: +SKIP
    """
    if not hasattr(kernel, "py_func") or not hasattr(kernel, "__getitem__"):
        raise TypeError(f"`run` takes a kernel, a function with @cuda.jit, not {kernel!r:.60}")
    with emulated(target, **named) as session:
        kernel[grid, block, 0, shared](*args)
    return session.launches[-1].result if session.launches else Result()


def _take_launches(stack: ExitStack, session: Session) -> None:
    """Let compiled kernels be launched by the session."""
    dispatcher = import_module("numba.cuda.dispatcher")
    compiled = dispatcher._Kernel
    make = compiled.__init__

    @wraps(make)
    def with_lines(self: object, *args: object, **named: object) -> None:
        make(self, *args, **(named if named.get("debug") else named | {"lineinfo": True}))

    def launch(self: Any, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> None:
        session.launch(self, args, griddim, blockdim, sharedmem)

    stack.enter_context(patch.object(compiled, "__init__", with_lines))
    stack.enter_context(patch.object(compiled, "launch", launch))
    stack.enter_context(patch.object(compiled, "bind", lambda self: None))
    blocks = Device(session.target).MULTIPROCESSOR_COUNT
    stack.enter_context(patch.object(compiled, "max_cooperative_grid_blocks", lambda self, *_: blocks))
    threads = lambda self, _: self.thread_per_block or _THREADS  # noqa: E731
    stack.enter_context(patch.object(dispatcher.ForAll, "_compute_thread_per_block", threads))
    library = import_module("numba.cuda.codegen").CUDACodeLibrary
    stack.enter_context(patch.object(library, "get_cufunc", _refuse_to_load))


def _refuse_to_load(library: object) -> None:
    raise NotImplementedError(
        "Numba asks for what a GPU's driver says of a loaded kernel, such as its registers: there is none in emulated()"
    )


def _raise_exception(kernel: Any, module: ir.Module) -> None:
    """Raise what the kernel has: with `debug=True` Numba leaves its number and the thread in variables."""
    name = kernel.entry_name
    if f"{name}__errcode__" not in {one.name for one in module.variables}:
        return
    number = int(module.get(f"{name}__errcode__"))
    if number == 0:
        return
    module.set(f"{name}__errcode__", 0)
    exception, args, place = kernel.call_helper.get_exception(number)
    thread, block = (
        [int(module.get(f"{name}__{kind}{axis}__")) for axis in "zyx"] for kind in ("tid", "ctaid")
    )  # fmt: skip
    where = "" if place is None else "In function {!r}, file {}, line {}, ".format(*place)
    text = f"{where}tid={thread} ctaid={block}"
    raise exception(f"{text}: {args[0]}" if args else text, *(args or ())[1:])


def _names(kernel: object) -> list[str]:
    """The parameters' names in Python; a kernel from Numba's cache has none."""
    function = getattr(kernel, "py_func", None)
    return [] if function is None else list(inspect.signature(function).parameters)
