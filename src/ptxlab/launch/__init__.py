"""One call for both devices: check the program, choose where to run, run.

`contexts` has what devices hold of a module between launches, `comparison` a launch on both of them. That one and
`search.explore` are imported when they are used: most launches need neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ptxlab import gpu, ir
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.options import Extent, LaunchOptions
from ptxlab.device.result import Result
from ptxlab.emulate.launch import launch as emulate
from ptxlab.emulate.search.seeds import copies_of, raised, try_seeds
from ptxlab.launch.contexts import Context, context_of
from ptxlab.launch.precision import mistyped_arrays, other_arrays
from ptxlab.launch.recorded import keep, with_record
from ptxlab.report import KernelError, error

if TYPE_CHECKING:
    from ptxlab.emulate.search.explore import Exploration

_BEFORE = ("bad-argument", "bad-launch", "not-emulated")  # wrong before anything runs
EXPLORED = 60.0  # seconds that an exploration takes at most by default


def launch(kernel: ir.Function, args: Sequence[object], options: LaunchOptions) -> Result:
    """Run a kernel; see `ptxlab.ir.Function.launch`."""
    module = module_of(kernel)
    if options.timeline:
        from ptxlab.launch.timelines import launch_recorded

        where = choose(module, args, options)
        return launch_recorded(kernel, args, options, where, launch)
    chosen_kind, number = choose(module, args, options)
    chosen = None if chosen_kind == "cpu" else gpu.gpu(number)
    context = context_of(module)
    context.refuse_wrong(module, kernel if options.on_error == "strict" else None)
    if chosen is None:
        return _emulate_checked(module, kernel, context, args, options)
    if chosen_kind == "cuda":
        return gpu.launch(module, kernel, chosen, context.on_gpu, args, options)
    from ptxlab.launch.comparison import compare

    return compare(context.emulated(module), kernel, chosen, context.on_gpu, args, options)


def _emulate_checked(
    module: ir.Module, kernel: ir.Function, context: Context, args: Sequence[object], options: LaunchOptions
) -> Result:
    """Run a kernel on the emulator; beside its findings are the warnings of `check`, which may say why."""
    if options.detectors != DETECTORS:
        return _emulate(module, kernel, context, args, options)
    others = other_arrays(args)  # before the kernel writes to them
    try:
        result = _emulate(module, kernel, context, args, options)
    except KernelError as wrong:
        if not any(found.code in _BEFORE for found in wrong.diagnostics):
            wrong.warnings = context.warnings(module, kernel)
        raise
    result.warnings = context.warnings(module, kernel)
    if found := mistyped_arrays(module, kernel, context, args, others):
        result.diagnostics = [*found, *result.diagnostics]
        return raised(result, options.on_error)
    return result


def _emulate(
    module: ir.Module, kernel: ir.Function, context: Context, args: Sequence[object], options: LaunchOptions
) -> Result:
    """Run a kernel on the emulator: by its seed, by several, or by a schedule."""
    emulated = context.emulated(module)
    values = gpu.host_views(args)
    other = "seeds" if options.seeds is not None else "schedule" if options.schedule is not None else None
    if options.record is not None and other is not None:
        raise ValueError(f"`record` and `{other}`: a recording is of one launch, by its `seed`")
    if options.schedule is not None:
        from ptxlab.emulate.search.explore import ExploredKernel, follow, read_schedule

        schedule = options.schedule
        steps = read_schedule(schedule) if isinstance(schedule, str) else list(schedule)
        return raised(follow(ExploredKernel(emulated, kernel, options), values, steps), options.on_error)
    if options.seeds is not None:
        return try_seeds(emulated, kernel, values, options)
    return keep(emulate(emulated, kernel, values, with_record(options)))


def prepare(kernel: ir.Function, args: Sequence[object], options: LaunchOptions) -> gpu.Prepared:
    """A launch on a GPU to repeat: each `.launch()` is one call of the driver. Its arrays are on the GPU."""
    module = module_of(kernel)
    chosen_kind, number = read_device(options.device)
    if chosen_kind not in ("auto", "cuda"):
        raise ValueError(f"device={options.device!r}: a launch is prepared for a GPU, 'cuda' or 'cuda:1'")
    context = context_of(module)
    context.refuse_wrong(module)
    return gpu.prepare(module, kernel, gpu.gpu(number), context.on_gpu, args, options)


def module_of(kernel: ir.Function) -> ir.Module:
    """The module of a kernel; a device function is refused."""
    module = kernel.module
    if module is None:
        raise ValueError(f"take the kernel from its module by its name: `module[{kernel.name!r}]`")
    if kernel.kind != "entry":
        raise ValueError(f"`{kernel.title}` is a device function; the kernels are {', '.join(module.entries)}")
    return module


def explore(
    kernel: ir.Function,
    grid: Extent,
    block: Extent,
    args: Sequence[object] = (),
    *,
    shared: int = 0,
    cluster: Extent | None = None,
    detectors: bool | Iterable[str] = True,
    limit: int = 10_000,
    timeout: float = EXPLORED,
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
    options = LaunchOptions(grid, block, shared=shared, cluster=cluster, detectors=detectors)
    return explore_all(kernel, args, options, limit, timeout, every, progress)


def explore_all(
    kernel: ir.Function,
    args: Sequence[object],
    options: LaunchOptions,
    limit: int,
    timeout: float,
    every: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """As `explore`, with the options of a launch."""
    from ptxlab.emulate.search.explore import ExploredKernel
    from ptxlab.emulate.search.explore import explore as explore_program

    module = module_of(kernel)
    context = context_of(module)
    context.refuse_wrong(module)
    memory = context.memory
    given, before = copies_of(gpu.host_views(args)), memory.snapshot()

    def fresh() -> list[Any]:
        memory.restore(before)
        return copies_of(given)

    try:
        program = ExploredKernel(context.emulated(module), kernel, options)
        return explore_program(program, fresh, limit, timeout, every, progress)
    finally:
        memory.restore(before)


_DEVICE = re.compile(r"(auto|cpu|cuda|both)(?::(\d+))?")


def choose(module: ir.Module, args: Sequence[object], options: LaunchOptions) -> tuple[str, int]:
    """Where to run: `cpu`, `cuda` or `both`, and the number of the GPU."""
    chosen_kind, number = read_device(options.device)
    emulator_only, gpu_only = options.emulator_only, options.gpu_only
    there = []
    if chosen_kind in ("auto", "cpu"):
        there = [index for index, value in enumerate(args) if gpu.is_on_gpu(value)]
    if chosen_kind == "auto":
        # The detectors are the emulator's: where they are wanted, as they are unless the user says no, it runs.
        here = emulator_only or options.arithmetic
        asked = gpu_only or (not options.detectors and not here and runs_on_gpu(module))
        chosen_kind = "cuda" if there or asked else "cpu"
    if chosen_kind == "cpu" and there:
        raise KernelError([error("bad-argument", f"argument {there[0]} is on a GPU, the launch is not", None,
                                 helps=['launch with `device="cuda"`, or copy the array here first'])])  # fmt: skip
    if chosen_kind != "cpu" and emulator_only:
        raise ValueError(f"`{emulator_only}` is for the emulator alone: launch with device='cpu'")
    if chosen_kind == "cuda" and options.arithmetic:
        raise ValueError(f"`{options.arithmetic}` is for the emulator: launch with device='cpu' or 'both'")
    if chosen_kind != "cuda" and gpu_only:
        raise ValueError(f"`{gpu_only}` is for a GPU alone: launch with device='cuda'")
    return chosen_kind, number


@cache
def read_device(device: str) -> tuple[str, int]:
    """`cuda:1` as the kind of device and its number."""
    found = _DEVICE.fullmatch(device)
    if found is None or (found[2] and found[1] in ("auto", "cpu")):
        raise ValueError(f"device {device!r}: expected one of 'auto', 'cpu', 'cuda', 'cuda:1', 'both'")
    return found[1], int(found[2] or 0)


def runs_on_gpu(module: ir.Module) -> bool:
    """Whether the first GPU of this machine, if there is one, can run a module."""
    return gpu.absence() is None and gpu.gpu(0).architecture_for(module.target) is not None
