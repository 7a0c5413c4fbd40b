"""Grids on one stream that overlap: programmatic dependent launch, on the emulator and on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ptxlab import gpu, ir
from ptxlab.device.arguments import address_space_of
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.device.structures import leaves
from ptxlab.device.textures import OPAQUE
from ptxlab.emulate.chain import Grid, run_chain
from ptxlab.emulate.search.seeds import copies_of
from ptxlab.launch import choose, module_of
from ptxlab.launch.contexts import context_of
from ptxlab.report import KernelError, is_failure

OWN = ("shared", "cluster", "cooperative", "overlap")  # options that each grid has for itself


def chain(
    *grids: Sequence[Any],
    device: str = "auto",
    checks: bool | Iterable[str] = True,
    seed: int = 0,
    seeds: int | Iterable[int] | None = None,
    on_error: str = "raise",
    timeout: float | None = None,
    stream: Any = None,
) -> list[Result]:
    """Run grids in order, each of which may start before the one before it is complete; a `Result` for each.

    A grid is `(kernel, grid, block, args)`, with a dictionary of `shared`, `cluster`, `cooperative` and `overlap` as a
    fifth part where they are needed. With `overlap`, as all grids but the first have it, a grid may start once the one
    before it has executed `griddepcontrol.launch_dependents`, and sees what that one did only after
    `griddepcontrol.wait`: it is launched with CUDA's attribute for programmatic stream serialization. On the emulator,
    what it accesses before its wait and the grid before it accesses, too, is a `data-race`. None runs after one that
    fails. The keywords are those of `ptxlab.ir.Function.launch`.

    >>> first, second = ptxlab.chain((produce, 8, 128, [x, y]), (consume, 8, 128, [y, z]))  # doctest: +SKIP
    """
    common = {"device": device, "checks": checks, "seed": seed, "on_error": "collect", "timeout": timeout,
              "stream": stream}  # fmt: skip
    links = [_read(number, grid, common) for number, grid in enumerate(grids)]
    if any(isinstance(leaf, OPAQUE) for link in links for value in link.args for leaf in leaves(value)):
        raise ValueError("a chain of grids takes no textures and surfaces: launch the kernels one after the other")
    devices = {choose(module_of(link.kernel), link.args, link.options) for link in links}
    kind, number = max(devices, key=lambda found: found[0] != "cpu") if devices else ("cpu", 0)
    if kind == "both" or (kind == "cuda" and seeds is not None):
        what = "device='both'" if kind == "both" else "`seeds`"
        raise ValueError(f"{what}: a chain of grids runs on the emulator or on a GPU, and seeds are the emulator's")
    for link in links:
        context_of(module_of(link.kernel)).refuse_wrong(module_of(link.kernel), on_error == "strict")
    results = _on_gpu(links, number, timeout, stream) if kind == "cuda" else _emulate(links, seeds)
    for result in results:
        if is_failure(result.diagnostics, on_error):
            raise KernelError(result.diagnostics)
    return results


@dataclass(frozen=True)
class Link:
    """A grid of a chain: the kernel in its module, and the arguments as the program takes them."""

    kernel: ir.Function
    args: Sequence[Any]
    options: LaunchOptions


def _read(number: int, grid: Sequence[Any], common: dict[str, Any]) -> Link:
    """A grid as the user gives it."""
    if not isinstance(grid, (tuple, list)) or not 3 <= len(grid) <= 5:
        given = f"{len(grid)} values" if isinstance(grid, (tuple, list)) else type(grid).__name__
        raise TypeError(f"grid {number} of the chain is {given}, not (kernel, grid, block, args)")
    rest: list[Any] = [(), {}]
    kernel, extent, block, args, own = list(grid) + rest[len(grid) - 3 :]
    if unknown := sorted(set(own) - set(OWN)):
        raise TypeError(f"grid {number} of the chain: `{unknown[0]}` is not one of {', '.join(OWN)}")
    options = LaunchOptions(extent, block, **{"overlap": number > 0} | common | own)
    if not isinstance(kernel, ir.Function):  # a kernel in Python
        return Link(kernel.entry, kernel.passed_args(args), options)
    return Link(kernel, args, options)


def _emulate(links: Sequence[Link], seeds: int | Iterable[int] | None) -> list[Result]:
    """Run a chain on the emulator; of several seeds, the first works on the arrays themselves."""
    values = [gpu.host_views(link.args) for link in links]
    if seeds is None:
        return _run(links, values)
    given = copies_of(values)
    memories = {id(module_of(link.kernel)): context_of(module_of(link.kernel)).memory for link in links}
    before = {key: memory.snapshot() for key, memory in memories.items()}
    results: list[Result] = []
    after = before
    for seed in range(seeds) if isinstance(seeds, int) else seeds:
        for key, memory in memories.items():
            memory.restore(before[key])
        seeded = [replace(link, options=replace(link.options, seed=seed)) for link in links]
        found = _run(seeded, copies_of(given) if results else values)
        if not results:
            after = {key: memory.snapshot() for key, memory in memories.items()}
        results = results or found
        if any(result.diagnostics for result in found):
            results = found
            break
    for key, memory in memories.items():
        memory.restore(after[key])
    return results


def _run(links: Sequence[Link], values: Sequence[Sequence[Any]]) -> list[Result]:
    grids = [
        Grid(context_of(module).emulated(module), link.kernel, args, link.options)
        for link, args in zip(links, values, strict=True)
        for module in (module_of(link.kernel),)
    ]
    return run_chain(grids, address_space_of(values))


def _on_gpu(links: Sequence[Link], number: int, timeout: float | None, stream: Any) -> list[Result]:
    """Run a chain on a GPU, all of it on one stream."""
    from ptxlab.gpu.chains import GridOnGpu, launch_chain

    grids = [
        GridOnGpu(module, link.kernel, context_of(module).on_gpu, link.args, link.options)
        for link in links
        for module in (module_of(link.kernel),)
    ]
    return launch_chain(grids, gpu.gpu(number), timeout, stream)
