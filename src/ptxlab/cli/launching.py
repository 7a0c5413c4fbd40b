"""What `ptxlab run` and `ptxlab debug` share: the options of a launch, and the kernel that is meant."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ptxlab.cli.arguments import parse_argument, parse_setting
from ptxlab.cli.compiling import CUDA
from ptxlab.cli.findings import LISTED
from ptxlab.cli.plain_arguments import Argument
from ptxlab.device.detectors import DETECTORS
from ptxlab.report import Diagnostic, PtxError, error
from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from ptxlab.ir import Function, Module

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
NOT_COUNTED = 5.0  # seconds
_DIGITS = 10  # of the largest extent of a grid
_LIBRARIES = ("cub::", "thrust::")  # their kernels are made with those of a file that includes them


def extent(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]+([,x][0-9]+){0,2}", value):
        raise click.BadParameter(f"`{value}` is not like 4 or 4,2,1")
    if any(len(part) > _DIGITS for part in re.split("[,x]", value)):
        raise click.BadParameter(f"`{value}` is too large")
    return tuple(int(part) for part in re.split("[,x]", value))


def block_indices(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> list[tuple[int, ...]] | None:
    if value is None:
        return None
    found = [extent(context, parameter, word) for word in value.split()]
    if not found:
        raise click.BadParameter("it names no block; write '0,0 5,3'")
    return [(*index, 0, 0)[:3] for index in found if index is not None]


def _arguments(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> list[Argument]:
    return [parse_argument(text) for text in value]


def _settings(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> dict[str, Argument]:
    return dict(parse_setting(text) for text in value)


_OPTIONS = [
    click.option("--entry", "--kernel", metavar="NAME", help="The kernel to run; needed where the file has several."),
    click.option(
        "--grid", metavar="X,Y,Z", callback=extent, default="1", show_default=True, help="Size of the grid, in blocks."
    ),
    click.option("--block", metavar="X,Y,Z", callback=extent, help="Size of a block, in threads."),
    click.option("--cluster", metavar="X,Y,Z", callback=extent, help="Size of a cluster, in blocks."),
    click.option("--arg", "arguments", metavar="TYPE=VALUE", multiple=True, callback=_arguments, help="An argument."),
    click.option(
        "--set",
        "settings",
        metavar="NAME=TYPE=VALUE",
        multiple=True,
        callback=_settings,
        help="The initial value of a variable of the module.",
    ),
    click.option("--shared", metavar="BYTES", type=click.IntRange(min=0), default=0, help="Dynamic shared memory."),
    click.option(
        "--seed",
        metavar="N",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        show_default=True,
        help="Seed of the schedule and of random data.",
    ),
]


def _seconds(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and isnan(value):
        raise click.BadParameter("nan is not a time")
    return value


def _gpu(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    from ptxlab.isa.gpus import gpu_named

    if value is not None:
        try:
            gpu_named(value)
        except ValueError as wrong:
            raise click.BadParameter(str(wrong).partition(": ")[2]) from None
    return value


_DETECTOR = click.Choice(sorted(DETECTORS | {"uninitialised-read"}))  # and as it was spelled before
_DETECTOR_OPTIONS = (
    click.option("--detectors/--no-detectors", default=True,
                 help="Run the detectors: races, uninitialized reads and others. Bounds are always checked."),
    click.option("--detector", "only", metavar="CODE", multiple=True, type=_DETECTOR,
                 help="Run only the detector of this code; may be repeated."),
)  # fmt: skip


def detector_options(command: Decorated) -> Decorated:
    """Which detectors run."""
    for option in reversed(_DETECTOR_OPTIONS):
        command = option(command)
    return command


timeout_option = click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    callback=_seconds,
    help="Stop the kernel after this time; reading and checking it has as much.",
)
gpu_option = click.option(
    "--gpu",
    metavar="NAME",
    callback=_gpu,
    help="Compute as this GPU, such as H200; by default as that of the module's target.",
)


def launch_options(command: Decorated) -> Decorated:
    """The options of a command that say what a kernel is launched with."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def time_limit(seconds: float | None, name: str) -> Iterator[None]:
    """Raise `PtxError` where a block takes longer, as reading and checking many megabytes of PTX does.

    Some seconds are not counted: Python loads modules in them, on a busy machine slowly.
    """
    if seconds is None or not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return

    def stop(*_: object) -> None:
        helps = ["raise `--timeout`"]
        raise PtxError([error("timeout", f"`{name}` was not read and checked within {seconds:g} seconds", None,
                              helps=helps)])  # fmt: skip

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds + NOT_COUNTED)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check_first(module: Module) -> None:
    """Raise `PtxError` with all that `ptxlab check` finds, where errors are among it."""
    from ptxlab.launch.contexts import findings_of

    found = findings_of(module)
    if any(one.level == "error" for one in found):
        raise PtxError(found)


def kernel_warnings(kernel: Function) -> list[Diagnostic]:
    """What `ptxlab check` warns of in a kernel, and in what it calls."""
    from ptxlab.launch.contexts import warnings_of

    return warnings_of(kernel)


def choose(module: Module, entry: str | None, path: Path | None = None) -> Function:
    """The kernel of that name, or the only one."""
    from ptxlab.ir.mangled import matches, plain, titles

    names = module.entries
    if not names:
        if path is not None and path.suffix == CUDA:
            raise click.UsageError(
                "there is no kernel in the file: no function is `__global__`, or only templates, not instantiated; "
                "a template needs its arguments, as `--entry 'gemm<128, float>'`"
            )
        raise click.UsageError("there is no kernel in the file: none of its functions is an `.entry`")
    own = [name for name in names if not plain(name).startswith(_LIBRARIES)] or names
    if entry is None and len(own) != 1:
        raise click.UsageError(f"`--entry` is required: the kernels are {listed(own)}")
    if entry is None or entry in names:
        return module[entry or own[0]]
    meant = matches(entry, names)  # the name in C++, of which PTX has the mangled one
    if len(meant) > 1:
        raise click.UsageError(f"`{entry}` is one of several kernels: {listed(meant)}")
    if not meant:
        close = nearest(entry, titles(names))
        other = f"did you mean `{close}`?" if close else f"the kernels are {listed(own)}"
        raise click.UsageError(f"there is no kernel `{entry}`; {other}")
    return module[meant[0]]


def listed(names: Sequence[str]) -> str:
    """Names of kernels as people write them, the first of many."""
    from ptxlab.ir.mangled import titles

    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(f"`{name}`" for name in titles(names[:LISTED])) + more


def required_block(kernel: Function) -> tuple[int, ...]:
    """The extents of a block that the kernel itself asks for."""
    directive = kernel.directive("reqntid")
    if directive is None:
        raise click.UsageError(f"`--block` is required: `{kernel.title}` has no `.reqntid`")
    return tuple(int(extent) for extent in directive.arguments)
