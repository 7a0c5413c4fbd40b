"""Running a kernel on this machine's cores, and what came of it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.device.coverage import Coverage
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.limits import check_cluster, check_launch
from ptxlab.device.options import Extents, LaunchOptions
from ptxlab.device.regions import Region
from ptxlab.device.result import Recording, Result
from ptxlab.emulate.explain.counters import count
from ptxlab.emulate.explain.coverage import schedule_of
from ptxlab.emulate.host.module_memory import EmulatedModule
from ptxlab.emulate.host.running import Configuration, RunningLaunch
from ptxlab.emulate.host.watched import reads_of
from ptxlab.emulate.translate.arithmetic import Arithmetic, arithmetic_of
from ptxlab.emulate.translate.compile import Compiled, compile_kernel, prepare_runtime
from ptxlab.emulate.translate.preemption import NEVER, POINTS
from ptxlab.native.apart import OutOfTimeError
from ptxlab.report import Diagnostic, KernelError, error, is_failure, render

if TYPE_CHECKING:
    from ptxlab.emulate.host.recording import HostRecorder

LONG = 10  # seconds of `timeout` that include those which a runtime takes that is compiled for this kernel
# A kernel is translated for lanes that execute it together (see `translate.lanes`), which takes LLVM some time, for
# launches of so many threads, and after it has executed so many instructions.
MANY_THREADS = 1 << 16
MANY_INSTRUCTIONS = 1 << 22
GRACE = 1.0  # seconds that compiling may take beside those of `timeout`


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a kernel ran; `diagnostics` say where it was, `result` what it did. Arrays hold what it wrote."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.diagnostics = result.diagnostics
        super().__init__(render(result.diagnostics).rstrip("\n"))


def launch(
    emulated: EmulatedModule, kernel: ir.Function, args: Sequence[object], options: LaunchOptions,
    watched: Sequence[Region] = (),
) -> Result:  # fmt: skip
    """Run a kernel on this machine's cores; the result has what it reads of memory that is `watched`."""
    arithmetic = arithmetic_of(emulated.module, kernel, emulated.digest, options)
    configuration = replace(configure(emulated.module, kernel, options, arithmetic), watched=watched)
    is_hasty = not options.profile and (options.timeout is None or options.timeout >= LONG)
    threads = math.prod((*configuration.grid, *configuration.block)) if is_hasty else None
    prepare_runtime(options.record is not None, threads)
    started = time.perf_counter()
    timeout = options.timeout
    until = None if timeout is None else started + timeout + GRACE
    try:
        compiled = compiled_for(emulated, kernel, options, arithmetic, until)
    except OutOfTimeError:
        found = [uncompiled(emulated.module, kernel, timeout)]
        result, outcome = Result(found, seconds=time.perf_counter() - started), None
    else:
        if timeout is not None and until is not None:
            until = min(time.perf_counter() + timeout, until)
        result, outcome = _run(compiled, emulated, args, options, configuration, until)
    if outcome == "interrupted":
        raise Interrupted(result)
    if is_failure(result.diagnostics, options.on_error):
        raise KernelError(result.diagnostics)
    return result


def compiled_for(
    emulated: EmulatedModule, kernel: ir.Function, options: LaunchOptions, arithmetic: Arithmetic, until: float | None,
    preemption: int | None = None,
) -> Compiled:  # fmt: skip
    """A kernel as a launch with these options runs it; `preemption` is where threads may stop, if not by the seed."""
    if preemption is None:
        preemption = POINTS if options.seed else NEVER
    checks = bool(options.detectors)
    module, digest = emulated.module, emulated.digest
    record = None if options.record is None else options.record.recorded
    key = digest, kernel.name
    is_watched = options.profile or preemption != NEVER or record is not None or (checks and key in _apart)
    together = not is_watched and (_threads(options) >= MANY_THREADS or _executed.get(key, 0) >= MANY_INSTRUCTIONS)
    return compile_kernel(
        module, kernel, digest, checks, options.profile, preemption, arithmetic, until, record, together
    )


def _threads(options: LaunchOptions) -> int:
    """How many threads a launch has."""
    return math.prod((*options.grid, *options.block))


def note_executed(running: RunningLaunch, digest: str) -> None:
    """Count what a launch has executed, of its kernel."""
    key, blocks = (digest, running.compiled.kernel.name), running.compiled.facts["counters"]
    times = (sum(found) for found in zip(*(worker.counters for worker in running.workers), strict=True))
    executed = sum(count * (end - start) for count, (start, end) in zip(times, blocks, strict=False))
    _executed[key] = _executed.get(key, 0) + executed


_executed: dict[tuple[str, str], int] = {}  # instructions of kernels in this process; time would depend on chance
_apart: set[tuple[str, str]] = set()  # kernels in which lanes together found something; mostly they will again


def _run(
    compiled: Compiled,
    emulated: EmulatedModule,
    args: Sequence[object],
    options: LaunchOptions,
    configuration: Configuration,
    until: float | None,
) -> tuple[Result, str | None]:
    """What came of a kernel that has been compiled, and how it ended if not by itself."""
    memory = emulated.memory
    workers = workers_for(compiled, options)
    running = RunningLaunch(compiled, memory, args, configuration, workers)
    memory.host.ran_on = None
    if options.profile:
        running.profile()
    try:
        result, outcome = result_of(running, options, until)
        while outcome == "failed":
            running.put_back()
            if running.found_together:
                _apart.add((emulated.digest, compiled.kernel.name))
            else:
                workers = 1
            together = running.is_together and not running.found_together
            again = RunningLaunch(compiled, memory, args, configuration, workers, together=together)
            running.end()
            again.regions.share()
            running = again
            result, outcome = result_of(running, options, until)
        note_executed(running, emulated.digest)
    finally:
        running.end()
    return result, outcome


def result_of(running: RunningLaunch, options: LaunchOptions, until: float | None) -> tuple[Result, str | None]:
    """Run a launch: what came of it, unless it has to be run again, and how it ended if not by itself."""
    started = time.perf_counter()
    outcome = running.run(until, options.progress)
    result = Result(seconds=time.perf_counter() - started)
    if outcome == "failed":
        return result, outcome
    running.textures.write_back()
    result.output = "".join(running.services.output)
    result.diagnostics = diagnostics_of(running, outcome, options)
    if running.recorder is not None:
        _finish_recording(running.recorder, result, outcome, running)
    if options.profile:
        running.settle()
    result.counters, result.fidelity = count(running)
    result.coverage = Coverage((schedule_of(running),))
    result.reads = tuple(reads_of([running])) if running.watched and running.checks else ()
    return result, outcome


def _finish_recording(recorder: HostRecorder, result: Result, outcome: str | None, running: RunningLaunch) -> None:
    """Close the recording of a launch; it is part of the result."""
    wrong = [worker.fault.get("instruction") for worker in running.workers if worker.fault.get("kind")]
    recorder.finish(outcome, wrong[0] if wrong else None, result.diagnostics)
    result.recording = Recording(recorder.path, recorder.is_temporary)


def workers_for(compiled: Compiled, options: LaunchOptions) -> int:
    """How many cores run blocks: one, where what blocks do depends on those before them."""
    if options.profile or options.record or compiled.facts["talks"] or compiled.facts["clock"]:
        return 1
    return max(1, options.workers or os.cpu_count() or 1)


def configure(
    module: ir.Module, kernel: ir.Function, options: LaunchOptions, arithmetic: Arithmetic
) -> Configuration:  # fmt: skip
    """What a launch is to run, as the kernel's directives have it; refused if it is impossible."""
    grid, cluster, blocks = options.grid, options.cluster, options.blocks
    check_cluster(module, kernel, grid, cluster, arithmetic.architecture)
    cluster = cluster or kernel.required_cluster
    if kernel.directive("blocksareclusters") is not None and cluster is not None:
        grid = grid[0] * cluster[0], grid[1] * cluster[1], grid[2] * cluster[2]
    check_launch(module, kernel, grid, options.block, options.shared, blocks, arithmetic.architecture)
    return Configuration(
        grid=grid,
        block=options.block,
        cluster=cluster,
        shared=options.shared,
        seed=options.seed,
        numbers=None if blocks is None else _clusters_of(blocks, grid, cluster or (1, 1, 1)),
        checks=bool(options.detectors),
        cooperative=options.cooperative,
        record=options.record,
    )


def diagnostics_of(running: RunningLaunch, outcome: str | None, options: LaunchOptions) -> list[Diagnostic]:
    """What a launch found, by the detectors that were asked for; a clean one needs no explanation."""
    if outcome is None and running.is_clean:
        return []
    from ptxlab.emulate.explain.faults import explain
    from ptxlab.emulate.explain.locations import add_sources

    left_out = DETECTORS - options.detectors
    found = [one for one in explain(running, outcome, options.timeout) if one.code not in left_out]
    return add_sources(running.compiled.module, found)


def uncompiled(module: ir.Module, kernel: ir.Function, timeout: float | None) -> Diagnostic:
    """What is found of a kernel whose time was over before it could run."""
    return error(
        "timeout",
        f"the kernel was stopped after {timeout:g} seconds, while it was compiled",
        module.name_span(kernel),
        "this kernel has not run",
        notes=[f"it has {sum(1 for _ in kernel.instructions())} instructions"],
        helps=["raise the time limit: what was compiled once is kept"],
    )


def _clusters_of(blocks: Sequence[Extents], grid: Extents, cluster: Extents) -> list[int]:
    """The numbers of the clusters that these blocks belong to, each once."""
    across, down = grid[0] // cluster[0], grid[1] // cluster[1]
    clusters = [[at // size for at, size in zip(index, cluster, strict=True)] for index in blocks]
    return list(dict.fromkeys(x + across * (y + down * z) for x, y, z in clusters))
