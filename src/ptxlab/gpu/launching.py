"""A launch on a GPU, from top to bottom; what repeats from launch to launch is checked once, in `prepared`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ptxlab import ir
from ptxlab.device.fidelity import Fidelity
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.gpu.arrays import LEGACY_STREAM
from ptxlab.gpu.driver import DriverError, call, current
from ptxlab.gpu.failures import Subject
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.loading import GpuState
from ptxlab.gpu.output import captured
from ptxlab.gpu.parameters import Parameters, convert
from ptxlab.gpu.prepared import How, Kind, Prepared, make, note_run, ready
from ptxlab.gpu.references import references_of
from ptxlab.gpu.streams import recording, stream_handle
from ptxlab.gpu.waiting import fail, refuse_broken, run, with_message
from ptxlab.report import KernelError, is_failure


def launch(
    module: ir.Module,
    kernel: ir.Function,
    gpu: Gpu,
    state: GpuState,
    args: Sequence[object],
    options: LaunchOptions,
    kept: dict[int, bytearray] | None = None,
) -> Result:
    """Run a kernel on a GPU; with `kept`, arrays of the host stay as they are and what came out is there.

    While a graph is recorded, the launch becomes a part of it instead of running.
    """
    refuse_broken()
    how = how_of(options)
    result = Result(fidelity=fidelity_of(gpu.name))
    try:
        bound = references_of(module, state)
        prepared = ready(module, kernel, gpu, state, how, options.compile)
        parameters = convert(module, kernel, prepared.signature, args, gpu)
        parameters.copies = parameters.copies.with_variables(bound)
        note_run(state, prepared)
        if not options.wait or recording.graph is not None:
            _start(prepared, parameters, how[-1])
        else:
            _run(prepared, parameters, how[-1], options.timeout, result, kept)
    except DriverError as problem:
        result.diagnostics.append(fail(problem, Subject.of(module, kernel), gpu))
    if is_failure(result.diagnostics, options.on_error):
        raise KernelError(result.diagnostics)
    return result


@cache
def fidelity_of(name: str) -> Fidelity:
    """What is known of results of that GPU."""
    return Fidelity(name, on_hardware=True)


def how_of(options: LaunchOptions) -> How:
    """How a launch with these options is started."""
    stream = stream_handle(options.stream)
    kind = Kind(options.cooperative, options.overlap)
    return options.grid, options.block, options.shared, options.cluster, kind, stream


def _start(prepared: Prepared, parameters: Parameters, stream: int) -> None:
    """Start a kernel whose arrays are on the GPU, and return."""
    if parameters.copies.names:
        raise ValueError("arrays of this machine's memory are copied back when the kernel has ended; "
                         "`wait=False` and graphs need arrays on the GPU")  # fmt: skip
    if parameters.streams:
        with current(prepared.loaded.gpu.number):
            await_producers(parameters, stream)
    prepared.start(parameters.data)
    if recording.graph is not None:
        recording.graph.add(prepared, parameters.owners)


def _run(
    prepared: Prepared,
    parameters: Parameters,
    stream: int,
    timeout: float | None,
    result: Result,
    kept: dict[int, bytearray] | None,
) -> None:
    """Bring arrays to the GPU, run, and bring them back."""
    kernel, gpu = prepared.kernel, prepared.loaded.gpu
    copies = parameters.copies
    with current(gpu.number):
        try:
            await_producers(parameters, stream)
            copies.copy_in()
            copies.objects.bind(prepared.loaded.handle)
            data = parameters.placed()
            with captured(prepared.can_print) as written:
                try:
                    result.seconds = run(lambda: prepared.start(data), stream, timeout)
                except DriverError as problem:
                    result.diagnostics.append(fail(problem, kernel, gpu))
            result.output = written.output
            if result.diagnostics and written.errors:
                result.diagnostics[0] = with_message(result.diagnostics[0], written.errors)
            if not result.diagnostics:
                copies.copy_out(kept)
        except DriverError as problem:
            # What is freed below is freed only if the context is not broken, so it must be known by then.
            result.diagnostics.append(fail(problem, kernel, gpu))
        finally:
            copies.free()


def await_producers(parameters: Parameters, stream: int) -> None:
    """Wait for streams that arrays say they are made on."""
    for other in set(parameters.streams) - {LEGACY_STREAM, stream}:
        call("cuStreamSynchronize", other)


def prepare(
    module: ir.Module, kernel: ir.Function, gpu: Gpu, state: GpuState, args: Sequence[object], options: LaunchOptions
) -> Prepared:
    """A launch to repeat: each `.launch()` is one call of the driver. Its arrays are on the GPU."""
    refuse_broken()
    try:
        made = make(module, kernel, gpu, state, how_of(options), options.compile)
    except DriverError as problem:
        raise KernelError([fail(problem, Subject.of(module, kernel), gpu)]) from None
    parameters = convert(module, kernel, made.signature, args, gpu)
    parameters.copies = parameters.copies.with_variables(references_of(module, state))
    if parameters.copies.names:
        raise ValueError("a prepared launch takes arrays on the GPU; these would be copied each time: "
                         + ", ".join(parameters.copies.names))  # fmt: skip
    made.fill(parameters.data)
    made.owners = parameters.owners
    note_run(state, made)
    return made
