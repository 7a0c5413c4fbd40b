"""Grids on one stream of a GPU that overlap, with the driver's attribute for programmatic stream serialization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab import ir
from ptxlab.device.arguments import address_space_of
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.gpu.driver import DriverError, current
from ptxlab.gpu.failures import Subject
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.launching import await_producers, fidelity_of, how_of
from ptxlab.gpu.loading import GpuState
from ptxlab.gpu.output import captured
from ptxlab.gpu.parameters import DeviceCopies, Parameters, convert
from ptxlab.gpu.prepared import Prepared, note_run, ready
from ptxlab.gpu.references import references_of
from ptxlab.gpu.streams import stream_handle
from ptxlab.gpu.textures import TextureObjects
from ptxlab.gpu.waiting import fail, refuse_broken, run
from ptxlab.report import KernelError, error


@dataclass(frozen=True)
class GridOnGpu:
    """One grid of a chain."""

    module: ir.Module
    kernel: ir.Function
    state: GpuState
    args: Sequence[Any]
    options: LaunchOptions


def launch_chain(
    grids: Sequence[GridOnGpu],
    gpu: Gpu,
    timeout: float | None,
    stream: object,
    kept: dict[int, bytearray] | None = None,
) -> list[Result]:
    """Start all grids, then wait; arrays of the host are copied there before the first and back after the last.

    The seconds and what was printed are those of all grids together, and so is what went wrong. What would be copied
    back goes to `kept`, by the addresses of the arrays, if it is given.
    """
    refuse_broken()
    result = Result(fidelity=fidelity_of(gpu.name))
    try:
        parts = _prepare(grids, gpu)
        if parts:
            _run(parts, gpu, stream_handle(stream), timeout, result, kept)
    except DriverError as problem:
        result.diagnostics.append(fail(problem, Subject.of(grids[0].module, grids[0].kernel), gpu))
    return [Result(fidelity=result.fidelity) for _ in grids[1:]] + [result] if grids else []


def _prepare(grids: Sequence[GridOnGpu], gpu: Gpu) -> list[tuple[Prepared, Parameters]]:
    """The launches as the driver takes them, all of which know an array by one address."""
    space = address_space_of([grid.args for grid in grids])
    parts = []
    for grid in grids:
        _refuse_references(grid)
        prepared = ready(grid.module, grid.kernel, gpu, grid.state, how_of(grid.options), grid.options.compile)
        parameters = convert(grid.module, grid.kernel, prepared.signature, grid.args, gpu, space)
        note_run(grid.state, prepared)
        parts.append((prepared, parameters))
    return parts


def _refuse_references(grid: GridOnGpu) -> None:
    """Each grid has textures of its own, and a variable refers to one for all grids of its module."""
    for name, _ in references_of(grid.module, grid.state):
        (variable,) = (one for one in grid.module.variables if one.name == name)
        message = f"`{name}`, a variable, refers to a texture or surface, which grids of a chain take as arguments"
        helps = ["take it as a parameter of the kernel, `.param .u64`; or launch the grids one after the other"]
        raise KernelError([error("bad-argument", message, grid.module.span(variable), "declared here", helps=helps)])


def _run(
    parts: Sequence[tuple[Prepared, Parameters]],
    gpu: Gpu,
    stream: int,
    timeout: float | None,
    result: Result,
    kept: dict[int, bytearray] | None,
) -> None:
    """Bring arrays to the GPU, start all grids, and bring the arrays back."""
    by_base = {region.base: region for _, parameters in parts for region in parameters.copies.regions}
    copies = DeviceCopies(list(by_base.values()))
    objects = [parameters.copies.objects for _, parameters in parts]  # each grid has handles of its own
    with current(gpu.number):
        try:
            copies.copy_in()
            started = []
            for (prepared, parameters), own in zip(parts, objects, strict=True):
                await_producers(parameters, stream)
                own.create()
                parameters.copies, copies.objects = copies, own
                started.append((prepared, parameters.placed()))
            copies.objects = TextureObjects()

            def start() -> None:
                for prepared, data in started:
                    prepared.start(data)

            with captured(any(prepared.can_print for prepared, _ in parts)) as written:
                try:
                    result.seconds = run(start, stream, timeout)
                except DriverError as problem:
                    result.diagnostics.append(fail(problem, parts[0][0].kernel, gpu))
            result.output = written.output
            if not result.diagnostics:
                copies.copy_out(kept)
                for own in objects:
                    own.copy_out(kept)
        finally:
            copies.free()
            for own in objects:
                own.free()
