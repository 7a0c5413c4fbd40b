"""One call for both devices: check the program, choose where to run, run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import cache, partial
from numbers import Real
from operator import index
from pathlib import Path
from typing import Any

from ptxlab import gpu, ir
from ptxlab.check import check
from ptxlab.device.result import Result
from ptxlab.emulate.host.regions import restore, snapshot
from ptxlab.emulate.launch import DETECTORS
from ptxlab.emulate.launch import launch as emulate
from ptxlab.emulate.search.explore import Exploration, Program, follow, read_schedule
from ptxlab.emulate.search.explore import explore as explore_program
from ptxlab.emulate.search.seeds import copies_of, raised, try_seeds
from ptxlab.launch.comparison import compare
from ptxlab.report import KernelError, PtxError, error

Extent = int | Sequence[int]


def launch(
    kernel: ir.Function,
    grid: Extent,
    block: Extent,
    args: Sequence[Any] = (),
    *,
    shared: int = 0,
    cluster: Extent | None = None,
    device: str = "auto",
    checks: bool | Iterable[str] = True,
    seed: int = 0,
    seeds: int | Iterable[int] | None = None,
    schedule: str | Sequence[int] | None = None,
    executor: Executor | None = None,
    blocks: Sequence[Sequence[int]] | None = None,
    on_error: str = "raise",
    timeout: float | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    profile: bool = False,
    cooperative: bool = False,
    stream: Any = None,
    compile: str | Path | None = None,
    wait: bool = True,
) -> Result:
    """Run a kernel; see `ptxlab.ir.Function.launch`."""
    module = kernel.module
    assert module is not None
    if kernel.kind != "entry":
        raise ValueError(f"`{kernel.name}` is a device function; the kernels are {', '.join(module.entries)}")
    if on_error not in ("raise", "strict", "collect"):
        raise ValueError(f"on_error={on_error!r}: there are 'raise', 'strict' and 'collect'")
    if timeout is not None and not (isinstance(timeout, Real) and timeout > 0):
        raise ValueError(f"timeout={timeout!r}: a number of seconds above 0 is wanted")
    if compile not in (None, "ptxas", "driver") and Path(compile).suffix != ".cubin":
        raise ValueError(f"compile={compile!r}: there are 'ptxas', 'driver' and the path of a `.cubin` file")
    wanted = DETECTORS if checks is True else chosen_detectors(checks)
    given_only = {"blocks": blocks, "profile": profile or None, "seeds": seeds, "schedule": schedule}
    emulated_only = next((name for name, value in given_only.items() if value is not None), "")
    hardware_only = "stream" if stream is not None else "" if wait else "wait"
    place, number = choose(module, device, args, bool(wanted), emulated_only, hardware_only)
    chosen = None if place == "cpu" else gpu.gpu(number)
    refuse_wrong(module, on_error == "strict")
    blocks_of_grid, threads_of_block = extent(grid, "grid"), extent(block, "block")
    blocks_of_cluster = None if cluster is None else extent(cluster, "cluster")
    if chosen is not None:
        on_gpu = {
            "grid": blocks_of_grid,
            "block": threads_of_block,
            "shared": shared,
            "cluster": blocks_of_cluster,
            "cooperative": cooperative,
            "stream": stream,
            "compile": compile,
            "wait": wait,
            "timeout": timeout,
        }
        if place == "cuda":
            return gpu.launch(module, kernel, chosen, args=args, on_error=on_error, **on_gpu)

    options = emulator_options(
        grid,
        block,
        cluster=cluster,
        shared=shared,
        checks=checks,
        blocks=blocks,
        timeout=timeout,
        profile=profile,
        cooperative=cooperative,
    )

    def on_cpu(seed: int = seed, **how: Any) -> Result:
        return emulate(module, kernel, seed=seed, workers=workers, progress=progress, **options, **how)

    if chosen is not None:
        there = partial(gpu.launch, module, kernel, chosen, **on_gpu)
        return compare(module, kernel, chosen, args, there, on_cpu, on_error, compile)
    values = [gpu.host_view(value) for value in args]
    if schedule is not None:
        steps = read_schedule(schedule) if isinstance(schedule, str) else list(schedule)
        program = Program(module, kernel, blocks_of_grid, threads_of_block, blocks_of_cluster, shared, wanted)
        return raised(follow(program, values, steps, timeout), on_error)
    if seeds is not None:
        chosen_seeds = range(seeds) if isinstance(seeds, int) else list(seeds)
        return try_seeds(module, kernel, on_cpu, values, chosen_seeds, on_error, options, executor)
    return on_cpu(args=values, on_error=on_error)


def emulator_options(
    grid: Extent,
    block: Extent,
    *,
    cluster: Extent | None = None,
    shared: int = 0,
    checks: bool | Iterable[str] = True,
    blocks: Sequence[Sequence[int]] | None = None,
    timeout: float | None = None,
    profile: bool = False,
    cooperative: bool = False,
) -> dict[str, Any]:
    """How the emulator is to run a kernel, by the arguments of `launch`."""
    return {
        "grid": extent(grid, "grid"),
        "block": extent(block, "block"),
        "cluster": None if cluster is None else extent(cluster, "cluster"),
        "shared": shared,
        "detectors": DETECTORS if checks is True else chosen_detectors(checks),
        "blocks": None if blocks is None else [_three(place, 0, "blocks") for place in blocks],
        "timeout": timeout,
        "profile": profile,
        "cooperative": cooperative,
    }


def chosen_detectors(checks: bool | Iterable[str]) -> frozenset[str]:
    """The detectors that `checks` names: all, none, or some by their codes."""
    if isinstance(checks, bool):
        return DETECTORS if checks else frozenset()
    named = frozenset([checks] if isinstance(checks, str) else checks)
    if unknown := sorted(named - DETECTORS):
        raise ValueError(f"checks={unknown[0]!r}: the detectors that can be chosen are {', '.join(sorted(DETECTORS))}")
    return named


def explore(
    kernel: ir.Function,
    grid: Extent,
    block: Extent,
    args: Sequence[Any] = (),
    *,
    shared: int = 0,
    cluster: Extent | None = None,
    checks: bool | Iterable[str] = True,
    limit: int = 10_000,
    timeout: float = 60.0,
    every: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Run a small kernel on the emulator under all schedules that differ, at most `limit`, for `timeout` seconds.

    Two schedules differ if accesses to one address, one of them a write, come in another order. `args` stay as they
    are. It ends at the first finding, unless `every` one is wanted, with all `outcomes`.

    >>> found = ptxlab.explore(kernel, grid=2, block=1, args=[flags])  # doctest: +SKIP
    >>> found.verdict  # doctest: +SKIP
    'explored all 3 executions that differ: no race, no hang'
    """
    module = kernel.module
    assert module is not None
    if kernel.kind != "entry":
        raise ValueError(f"`{kernel.name}` is a device function; the kernels are {', '.join(module.entries)}")
    refuse_wrong(module)
    wanted = DETECTORS if checks is True else chosen_detectors(checks)
    extents = extent(grid, "grid"), extent(block, "block"), None if cluster is None else extent(cluster, "cluster")
    program = Program(module, kernel, *extents, shared, wanted)
    given, before = copies_of([gpu.host_view(value) for value in args]), snapshot(module)

    def fresh() -> list[Any]:
        restore(module, before)
        return copies_of(given)

    try:
        return explore_program(program, fresh, limit, timeout, every, progress)
    finally:
        restore(module, before)


_DEVICE = re.compile(r"(auto|cpu|cuda|both)(?::(\d+))?")


def choose(
    module: ir.Module,
    device: str,
    args: Sequence[Any],
    checks: bool,
    emulated_only: str,
    hardware_only: str,
) -> tuple[str, int]:
    """Where to run: `cpu`, `cuda` or `both`, and the number of the GPU.

    `emulated_only` and `hardware_only` name an option that was given and is for one of them alone.
    """
    place, number = read_device(device)
    there = []
    if place in ("auto", "cpu"):
        there = [index for index, value in enumerate(args) if gpu.is_on_gpu(value)]
    if place == "auto":
        # The detectors are the emulator's: where they are wanted, as they are unless somebody says no, it runs.
        asked = hardware_only or (not checks and not emulated_only and runs_on_gpu(module))
        place = "cuda" if there or asked else "cpu"
    if place == "cpu" and there:
        raise KernelError([error("bad-argument", f"argument {there[0]} lies on a GPU, the launch does not", None,
                                 helps=['launch with `device="cuda"`, or copy the array here first'])])  # fmt: skip
    if place != "cpu" and emulated_only:
        raise ValueError(f"`{emulated_only}` is for the emulator alone: launch with device='cpu'")
    if place != "cuda" and hardware_only:
        raise ValueError(f"`{hardware_only}` is for a GPU alone: launch with device='cuda'")
    return place, number


@cache
def read_device(device: str) -> tuple[str, int]:
    """`cuda:1` as the place and the number of the GPU."""
    found = _DEVICE.fullmatch(device)
    if found is None or (found[2] and found[1] in ("auto", "cpu")):
        raise ValueError(f"device {device!r}: there are 'auto', 'cpu', 'cuda', 'cuda:1' and 'both'")
    return found[1], int(found[2] or 0)


def runs_on_gpu(module: ir.Module) -> bool:
    """Whether the first GPU of this machine, if there is one, can run a module."""
    return gpu.absence() is None and gpu.gpu(0).architecture_for(module.target) is not None


def refuse_wrong(module: ir.Module, strict: bool = False) -> None:
    """Refuse a program with errors, or with warnings if `strict`; one that has passed is not checked again."""
    if module.is_checked and not strict:
        return
    found = check(module)
    wrong = [one for one in found if strict or one.level == "error"]
    if wrong:
        raise PtxError(wrong)
    module.is_checked = True


def extent(given: Extent, name: str) -> tuple[int, int, int]:
    """`4`, `(4,)`, `(4, 2)` or `(4, 2, 1)` as three numbers; `name` is what a message calls it."""
    if type(given) is int:
        return given, 1, 1
    return _three(given, 1, name)


def _three(given: Extent, other: int, name: str) -> tuple[int, int, int]:
    """One to three whole numbers, filled up with `other`."""
    try:
        values = [index(value) for value in (given if hasattr(given, "__iter__") else (given,))]
    except TypeError:
        values = []
    if isinstance(given, str) or not 1 <= len(values) <= 3:
        raise ValueError(f"{name}={given!r}: one to three whole numbers are wanted")
    return (*values, other, other)[:3]  # type: ignore[return-value]
