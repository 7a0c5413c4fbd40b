"""Grids on one stream that overlap: programmatic dependent launch, on the emulator and on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from ptxlab import gpu, ir
from ptxlab.device.arguments import address_space_of, pack
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.device.structures import leaves
from ptxlab.device.textures import Surface, Texture
from ptxlab.emulate.chain import Grid, run_chain
from ptxlab.emulate.search.seeds import copies_of
from ptxlab.gpu.hardware import Gpu
from ptxlab.launch import choose, module_of
from ptxlab.launch.contexts import context_of
from ptxlab.report import KernelError, is_failure

OWN = ("shared", "cluster", "cooperative", "overlap")  # options that each grid has for itself


def launch_chain(
    *grids: Sequence[object],
    device: str = "auto",
    detectors: bool | Iterable[str] = True,
    seed: int = 0,
    seeds: int | Iterable[int] | None = None,
    on_error: str = "raise",
    timeout: float | None = None,
    stream: object = None,
) -> list[Result]:
    """Run grids in order, each of which may start before the one before it is complete; a `Result` for each.

    A grid is `(kernel, grid, block, args)`, with a dictionary of `shared`, `cluster`, `cooperative` and `overlap` as a
    fifth part where they are needed. With `overlap`, as all grids but the first have it, a grid may start once the one
    before it has executed `griddepcontrol.launch_dependents`, and sees what that one did only after
    `griddepcontrol.wait`: it is launched with CUDA's attribute for programmatic stream serialization. On the emulator,
    what it accesses before its wait and the grid before it accesses, too, is a `data-race`. None runs after one that
    fails. The keywords are those of `ptxlab.ir.Function.launch`.

    >>> first, second = ptxlab.launch_chain((produce, 8, 128, [x, y]), (consume, 8, 128, [y, z]))  # doctest: +SKIP
    """
    common = {"device": device, "detectors": detectors, "seed": seed, "on_error": "collect", "timeout": timeout,
              "stream": stream}  # fmt: skip
    links = [_read(number, grid, common) for number, grid in enumerate(grids)]
    _refuse_shared_texels(links)
    devices = {choose(module_of(link.kernel), link.args, link.options) for link in links}
    kind, number = max(devices, key=lambda found: found[0] != "cpu") if devices else ("cpu", 0)
    if kind != "cpu" and seeds is not None:
        raise ValueError("`seeds` are the emulator's: choose `device='cpu'`")
    for link in links:
        module = module_of(link.kernel)
        context_of(module).refuse_wrong(module, link.kernel if on_error == "strict" else None)
    if kind == "cpu":
        results = _emulate(links, seeds)
    else:
        run = _on_both if kind == "both" else _on_gpu
        results = run(links, gpu.gpu(number), timeout, stream)
    for result in results:
        if is_failure(result.diagnostics, on_error):
            raise KernelError(result.diagnostics)
    return results


def _refuse_shared_texels(links: Sequence[Link]) -> None:
    """Textures and surfaces have texels of their own while a chain runs, which no other grid can read or write."""
    uses = [_uses(link) for link in links]
    if sum(Surface in kinds for use in uses for kinds in [set().union(*use.values())]) > 1:
        raise ValueError("several grids of the chain have surfaces: launch them one after the other")
    for number, use in enumerate(uses):
        for other, before in enumerate(uses[:number]):
            for array in use.keys() & before.keys():
                if len(use[array] | before[array]) > 1:
                    raise ValueError(
                        f"grids {other} and {number} of the chain have an array that is a texture or surface in one of "
                        "them: launch them one after the other"
                    )


def _uses(link: Link) -> dict[int, set[type]]:
    """What each array of a grid is: texels of a texture or a surface, or memory."""
    found: dict[int, set[type]] = {}
    for leaf in (leaf for value in link.args for leaf in leaves(value)):
        kind = next((one for one in (Texture, Surface) if isinstance(leaf, one)), object)
        for array in leaf.levels if isinstance(leaf, Texture) else (getattr(leaf, "array", leaf),):
            found.setdefault(id(array), set()).add(kind)
    return found


@dataclass(frozen=True)
class Link:
    """A grid of a chain: the kernel in its module, and the arguments as the program takes them."""

    kernel: ir.Function
    args: Sequence[Any]
    options: LaunchOptions


def _read(number: int, grid: Sequence[object], common: dict[str, object]) -> Link:
    """A grid as the user gives it."""
    if not isinstance(grid, (tuple, list)) or not 3 <= len(grid) <= 5:
        given = f"{len(grid)} values" if isinstance(grid, (tuple, list)) else type(grid).__name__
        raise TypeError(f"grid {number} of the chain is {given}, not (kernel, grid, block, args)")
    rest: list[Any] = [(), {}]
    kernel, extent, block, args, own = list(grid) + rest[len(grid) - 3 :]
    if unknown := sorted(set(own) - set(OWN)):
        raise TypeError(f"grid {number} of the chain: `{unknown[0]}` is not one of {', '.join(OWN)}")
    options = LaunchOptions(extent, block, **{"overlap": number > 0} | common | own)
    if options.record is not None:
        raise ValueError("`record` is for one launch: a chain of grids is not recorded")
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


def _run(links: Sequence[Link], values: Sequence[Sequence[object]]) -> list[Result]:
    grids = [
        Grid(context_of(module).emulated(module), link.kernel, args, link.options)
        for link, args in zip(links, values, strict=True)
        for module in (module_of(link.kernel),)
    ]
    return run_chain(grids, address_space_of(values))


def _on_both(links: Sequence[Link], there: Gpu, timeout: float | None, stream: object) -> list[Result]:
    """Run a chain on the emulator and on a GPU, from the same data; where arrays differ at its end is a finding.

    The finding is in the result of the last grid that has the array. Variables of modules are not compared.
    """
    from ptxlab.launch.comparison import as_there, bring_back, differences, mirror

    flat, mirrors = mirror([value for link in links for value in link.args], there)
    ends = list(accumulate(len(link.args) for link in links))
    values = [flat[end - len(link.args) : end] for link, end in zip(links, ends, strict=True)]
    kept: dict[int, bytearray] = {}
    hardware = _on_gpu(links, there, timeout, stream, kept)
    if not (failed := any(result.diagnostics for result in hardware)):
        kept |= bring_back(mirrors, there)
    alike = [replace(link, options=as_there(link.options, there)) for link in links]
    results = _run(alike, values)
    compared: set[int] = set()
    for link, args, result in reversed(list(zip(links, values, results, strict=False))):
        module = module_of(link.kernel)
        regions = [region for region in pack(module, link.kernel, args).regions if region.data not in compared]
        compared.update(region.data for region in regions)
        ends_alike = Result(output=result.output)  # what was printed is that of all grids together
        if not failed:
            result.diagnostics += differences(module, link.kernel, there, args, regions, kept, ends_alike, result)
    if failed and not any(result.diagnostics for result in results):
        last = module_of(links[-1].kernel), links[-1].kernel
        results[-1].diagnostics += differences(*last, there, values[-1], (), {}, hardware[-1], results[-1])
    return results


def _on_gpu(
    links: Sequence[Link],
    there: Gpu,
    timeout: float | None,
    stream: object,
    kept: dict[int, bytearray] | None = None,
) -> list[Result]:
    """Run a chain on a GPU, all of it on one stream."""
    from ptxlab.gpu import chains

    grids = [
        chains.GridOnGpu(module, link.kernel, context_of(module).on_gpu, link.args, link.options)
        for link in links
        for module in (module_of(link.kernel),)
    ]
    return chains.launch_chain(grids, there, timeout, stream, kept)
