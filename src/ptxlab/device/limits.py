"""What a launch may ask for: sizes of grids and blocks, shared memory, which blocks to run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.ir.origin import at_origin
from ptxlab.isa.targets import target_named
from ptxlab.report import Diagnostic, KernelError, error

_LOCAL = 512 * 1024  # bytes of local memory of a thread
VARIABLES = 4 << 30  # bytes of all variables that a kernel can reach, or half of what the machine has free
_UNCOUNTED = 64 << 20  # that many are there in any case
_PORTABLE, _MOST = 8, 16  # blocks of a cluster: on every GPU that has clusters, and on any
_CLUSTERS = 90  # the first target that has any


def check_launch(
    module: ir.Module,
    kernel: ir.Function,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    blocks: Sequence[tuple[int, int, int]] | None,
    target: str | None = None,
) -> None:
    """Refuse a launch that no GPU would take, with every reason; `target` is the GPU's, if not the module's own."""
    problems = list(_problems(module, kernel, grid, block, shared, blocks, target or module.target))
    if problems:
        raise KernelError(at_origin(module, problems))


def _problems(
    module: ir.Module,
    kernel: ir.Function,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    blocks: Sequence[tuple[int, int, int]] | None,
    target: str,
) -> Iterator[Diagnostic]:
    span = module.name_span(kernel)
    threads = block[0] * block[1] * block[2]

    def problem(text: str, *helps: str) -> Diagnostic:
        return error("bad-launch", f"`{kernel.title}`: {text}", span, "this kernel", helps=list(helps))

    if kernel.body is None:
        yield problem("it has no body in this file")
        return
    if min(block) < 1 or min(grid) < 1:
        yield problem(f"grid {grid} and block {block} need at least 1 in each dimension")
    if block[0] > 1024 or block[1] > 1024 or block[2] > 64 or threads > 1024:
        yield problem(f"a block of {_times(block)} = {threads} threads, at most 1024 are possible (64 in z)",
                      "use smaller blocks and more of them")  # fmt: skip
    if grid[0] > 2**31 - 1 or grid[1] > 65535 or grid[2] > 65535:
        yield problem(f"a grid of {_times(grid)} blocks, at most 2147483647 × 65535 × 65535 are possible")
    for name in ("reqntid", "maxntid"):
        directive = kernel.directive(name)
        if directive is not None:
            wanted = tuple(int(extent) for extent in directive.arguments)
            wanted = (*wanted, 1, 1)[:3]
            if name == "reqntid" and wanted != block:
                yield problem(f"`.reqntid` asks for blocks of {_times(wanted)} threads, not {_times(block)}")
            if name == "maxntid" and threads > wanted[0] * wanted[1] * wanted[2]:
                yield problem(f"`.maxntid` allows blocks of {wanted[0] * wanted[1] * wanted[2]} threads, not {threads}")
    variables = layout.Variables(module, layout.reachable(module, kernel))
    total = variables.dynamic_offset - variables.reserved_size + shared
    limit = target_named(target).shared_memory
    if shared < 0:
        yield problem(f"{shared} bytes of shared memory")
    elif total > limit:
        yield problem(f"{total} bytes of shared memory, `{target}` has {limit} for a block")
    for function in variables.functions:
        local = layout.locals_of(module, function).size
        if local > _LOCAL:
            yield problem(f"`{function.title}` has {local} bytes of local memory, a thread may have {_LOCAL}")
    yield from _large_variables(module, kernel, variables)
    for x, y, z in blocks or ():
        if not (0 <= x < grid[0] and 0 <= y < grid[1] and 0 <= z < grid[2]):
            yield problem(f"block ({x}, {y}, {z}) is outside of the grid of {_times(grid)}")
            break


def _large_variables(module: ir.Module, kernel: ir.Function, variables: layout.Variables) -> Iterator[Diagnostic]:
    """What is wrong with variables that take more memory than there may be; none has been allocated yet."""
    sizes = [layout.size_of_variable(variable) for _, variable in variables.allocated]
    if sum(sizes) <= _UNCOUNTED:
        return
    limit = min(VARIABLES, available() // 2)
    if sum(sizes) <= limit:
        return
    size, largest = max(
        zip(sizes, (variable for _, variable in variables.allocated), strict=True), key=lambda one: one[0]
    )
    yield error(
        "out-of-memory",
        f"`{kernel.title}`: its variables take {_amount(sum(sizes))}, this machine gives them {_amount(limit)} at most",
        module.span(largest),
        f"`{largest.name}` takes {_amount(size)}",
        helps=["allocate the memory on the host, and pass its address"],
    )


def check_variable(module: ir.Module, variable: ir.Variable) -> None:
    """Refuse memory for a variable that is larger than all together may be."""
    size, limit = layout.size_of_variable(variable), min(VARIABLES, available() // 2)
    if size > _UNCOUNTED and size > limit:
        raise KernelError([error(
            "out-of-memory",
            f"`{variable.name}` takes {_amount(size)}, this machine gives variables {_amount(limit)} at most",
            module.span(variable),
            "this variable",
        )])  # fmt: skip


def check_cluster(
    module: ir.Module,
    kernel: ir.Function,
    grid: tuple[int, int, int],
    given: tuple[int, int, int] | None,
    target: str,
) -> None:
    """Refuse clusters that no GPU would take, with every reason."""
    problems = [
        error("bad-launch", f"`{kernel.title}`: {text}", module.name_span(kernel), "this kernel", helps=helps)
        for text, *helps in _wrong_clusters(kernel, grid, given, target)
    ]
    if problems:
        raise KernelError(at_origin(module, problems))


def _wrong_clusters(
    kernel: ir.Function, grid: tuple[int, int, int], given: tuple[int, int, int] | None, target: str
) -> Iterator[tuple[str, ...]]:
    """What is wrong, then what to do about it."""
    required = kernel.required_cluster
    cluster = given or required
    if cluster is None:
        if kernel.directive("explicitcluster") is not None:
            yield "`.explicitcluster` asks for clusters, and the launch has none", "launch it with `cluster=`"
        return
    size = cluster[0] * cluster[1] * cluster[2]
    if min(cluster) < 1:
        yield (f"the cluster {cluster} needs at least 1 in each dimension",)
        return
    if size > 1 and target_named(target).number < _CLUSTERS:
        yield f"clusters of {size} blocks, `{target}` has none", "raise the target to `sm_90`"
    if required is not None and cluster != required:
        yield (f"`.reqnctapercluster` asks for clusters of {_times(required)} blocks, not {_times(cluster)}",)
    maximum = kernel.directive("maxclusterrank")
    if maximum is not None and size > int(maximum.arguments[0]):
        yield (f"`.maxclusterrank` allows clusters of {maximum.arguments[0]} blocks, not {size}",)
    if size > _MOST:
        yield f"a cluster of {size} blocks, at most {_MOST} are possible", f"use {_PORTABLE}: every GPU has those"
    counted = kernel.directive("blocksareclusters") is None
    if counted and any(blocks % part for blocks, part in zip(grid, cluster, strict=True)):
        yield (
            f"a grid of {_times(grid)} is not a multiple of the cluster {_times(cluster)}",
            "round the grid up, and let the blocks beyond do nothing",
        )


def check_memory(module: ir.Module, kernel: ir.Function, threads: int, blocks: int, bytes: int, free: int) -> None:
    """Refuse a launch for which this machine has too little memory."""
    if bytes <= free:
        return
    each = _amount(bytes // threads // blocks)
    what = "a block" if blocks == 1 else f"a cluster of {blocks} blocks"
    raise KernelError(
        [
            error(
                "out-of-memory",
                f"`{kernel.title}`: {what} takes {_amount(bytes)} on this machine, which has {_amount(free)} free",
                module.name_span(kernel),
                "this kernel",
                notes=[f"a block has {threads} threads with {each} of registers and memory each"],
                helps=["use smaller blocks, or less local memory"],
            )
        ]
    )


def _amount(bytes: int) -> str:
    """`1.5 GiB`"""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if bytes >= size:
            return f"{bytes / size:.1f} {unit}"
    return f"{bytes} bytes"


def _times(extents: Sequence[int]) -> str:
    return " × ".join(map(str, extents))


def available() -> int:
    """Bytes of memory that this machine has free."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError, AttributeError):
        return 4 << 30
