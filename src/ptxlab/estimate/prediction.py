"""`estimate`: how long a launch takes on a GPU that is not there, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

from ptxlab import author, ir
from ptxlab.device.digest import digest_of
from ptxlab.device.options import Extent, LaunchOptions
from ptxlab.estimate.bounds import Bounds, Shape, bound, least
from ptxlab.estimate.execution import BasicBlock, executed_blocks
from ptxlab.estimate.hardware import CEILINGS, Ceiling, Hardware, gpu_of, hardware_of
from ptxlab.estimate.sampling import Work, sample
from ptxlab.estimate.traffic import traffic_of
from ptxlab.estimate.units import DRAM, L2, LAUNCH
from ptxlab.ir.origin import Origins, line_span
from ptxlab.report import KernelError, PtxError, error
from ptxlab.syntax import format, parse
from ptxlab.toolchain import (
    Occupancy,
    Resources,
    SassFunction,
    SassInstruction,
    Tool,
    assemble,
    disassemble,
    find,
    find_assembler,
    occupancy,
)

FEW_BLOCKS, LAST_WAVE = "too few blocks", "last wave"
MOST_LINES, LEAST_SHARE = 6, 0.005
_IDLE = 0.3  # of all slots for blocks: if more are empty, that is what to change
NOT_MODELLED = (
    "L2 keeps what is read again, DRAM reads each array once; queues at atomics and "
    "mbarriers, hand-overs between warps, clusters that do not fit and the power limit (but for wgmma) are left out"
)

NOT_IN_BOUNDS = (
    "the rates of a data sheet, of units that overlap perfectly; DRAM reads each array once; latency, L2, other pipes "
    "and the launch are left out"
)


@dataclass(frozen=True)
class Unit:
    """A unit of the GPU, or latency: how long it is busy, and which part of the launch that is."""

    name: str
    seconds: float
    cycles: float
    fraction: float


@dataclass(frozen=True)
class HotLine:
    """A line that takes a large part of what limits the launch."""

    share: float
    file: str
    """The file of Python or CUDA C++; empty for a line of the PTX."""
    line: int
    text: str
    sass: str
    """The costliest of its SASS instructions."""
    instructions: int
    """How many there are."""
    callers: str = ""
    """Of a line in a function that is inlined: `called from line 12`."""


@dataclass(frozen=True)
class Estimate:
    """What a launch is estimated to take, and why."""

    kernel: str
    gpu: str
    seconds: float
    cycles: float
    limiter: str
    """A unit, `latency`, `launch overhead`, `too few blocks` or `last wave`."""
    units: tuple[Unit, ...]
    occupancy: Occupancy
    registers: int
    blocks: int
    waves: float
    idle: float
    """The part of the slots for blocks that is empty, because of the last wave or few blocks."""
    dram_bytes: tuple[float, float]
    """Read and written."""
    conflicts: float
    """The part of shared memory's cycles that bank conflicts take."""
    hot: tuple[HotLine, ...]
    sampled: int
    """Blocks that were run on the emulator."""
    not_modelled: str = NOT_MODELLED
    is_bound: bool = False
    """Whether `seconds` is what the launch takes at least, by the rates of a data sheet."""

    def unit(self, name: str) -> Unit:
        """The unit of that name."""
        return next(unit for unit in self.units if unit.name == name)

    def __str__(self) -> str:
        from ptxlab.estimate.text import describe

        return "\n".join(describe(self))


@dataclass(frozen=True)
class Observation:
    """What is known of a launch before any figure of the hardware is: its code, and what a block of it does."""

    kernel: ir.Function
    target: str
    functions: Sequence[SassFunction]
    needs: Resources
    held: Occupancy
    work: Work
    options: LaunchOptions


def estimate(
    kernel: ir.Function | author.Kernel,
    grid: Extent,
    block: Extent,
    args: Sequence[object] = (),
    *,
    shared: int = 0,
    cluster: Extent | None = None,
    target: str | None = None,
    blocks: Sequence[Extent] | None = None,
    timeout: float | None = None,
) -> Estimate:
    """How long a launch takes on an H200, and what limits it; needs ptxas and nvdisasm, and no GPU.

    A few blocks of the grid are run on the emulator, which writes their part of the results; `blocks` names others,
    `timeout` is in seconds, for each.
    `target` is what ptxas assembles for, by default the target of the module: one that was measured, or `sm_100a`, for
    which it is what a B200 takes at least.

        found = ptxlab.estimate(module["saxpy"], 65536, 256, [x, y, 2.0, n], target="sm_90")
        print(found.limiter, found.seconds)
        print(found)
    """
    given = LaunchOptions(grid, block, shared=shared, cluster=cluster, blocks=blocks, timeout=timeout)
    return predict(observe(kernel.entry if isinstance(kernel, author.Kernel) else kernel, args, given, target))


def observe(
    kernel: ir.Function, args: Sequence[object], options: LaunchOptions, target: str | None = None
) -> Observation:
    """Assemble a kernel, and run some blocks of a launch of it."""
    kernel = _with_source(kernel)
    module = kernel.module
    assert module is not None
    assert module.source is not None
    target = target or module.target
    gpu = gpu_of(target)
    tools = find_assembler(module.version), find("nvdisasm")
    functions, needs = _assemble(module.source.text, module.source.name, kernel.name, target, *tools)
    held = occupancy(target, prod(options.block), needs.registers or 0, options.shared + needs.shared)
    assert held is not None
    if not held.blocks:
        text = f"`{kernel.title}`: no block of {prod(options.block)} threads fits on an SM: {held.limiter} are too few"
        raise KernelError([error("bad-launch", text, module.name_span(kernel), "this kernel")])
    work = sample(kernel, args, options, gpu)
    return Observation(kernel, target, functions, needs, held, work, options)


def predict(seen: Observation, hardware: Hardware | None = None) -> Estimate:
    """What a launch takes on hardware, by default that of its target."""
    module = seen.kernel.module
    assert module is not None
    used: Hardware | Ceiling = hardware or CEILINGS.get(seen.target) or hardware_of(seen.target)
    basic = executed_blocks(seen.functions, seen.kernel.name, seen.work.lines)
    traffic = traffic_of(basic, seen.work)
    total = prod(seen.options.grid)
    shape = Shape(
        total,
        ceil(prod(seen.options.block) / 32),
        seen.held.blocks,
        seen.options.shared + seen.needs.shared,
        seen.work.slowest,
    )
    if isinstance(used, Ceiling):
        found = least(basic, seen.work, traffic, shape, used)
        seconds, limiter, launch = max(found.seconds.values()), found.largest, {}
    else:
        found = bound(basic, seen.work, traffic, shape, used)
        seconds, launch = used.launch + found.combined(used), {LAUNCH: used.launch}
    idle = 1 - total / (used.sms * ceil(total / used.sms))
    if isinstance(used, Hardware):
        limiter = _limiter(found, used, total, idle)
    return Estimate(
        seen.kernel.title,
        used.name,
        seconds,
        seconds * used.clock,
        limiter,
        tuple(_units({**found.seconds, **launch}, used.clock, seconds)),
        seen.held,
        seen.needs.registers or 0,
        total,
        total / (used.sms * shape.resident),
        idle,
        found.dram_bytes,
        traffic.conflicts / traffic.shared if traffic.shared else 0.0,
        tuple(_hot(module, basic, found)),
        len(seen.work.sampled),
        NOT_IN_BOUNDS if isinstance(used, Ceiling) else NOT_MODELLED,
        isinstance(used, Ceiling),
    )


def _with_source(kernel: ir.Function) -> ir.Function:
    """The kernel with lines of PTX: one that was built in memory, or edited, gets those of its text."""
    module = kernel.module
    assert module is not None
    source = module.source
    if source is not None and digest_of(parse(source.text, source.name)) == digest_of(module):
        return kernel
    return parse(format(module), "kernel.ptx")[kernel.name]


@lru_cache(maxsize=32)
def _assemble(
    text: str, name: str, entry: str, target: str, assembler: Tool, disassembler: Tool
) -> tuple[tuple[SassFunction, ...], Resources]:
    """The machine code of a module, and what the entry needs; PTX that ptxas refuses raises `PtxError`."""
    assembly = assemble(text, target, name, ["-lineinfo"], tool=assembler)
    if assembly.cubin is None:
        raise PtxError(assembly.diagnostics)
    needs = next(one for one in assembly.resources if one.function == entry)
    return tuple(disassemble(assembly.cubin, tool=disassembler)), needs


def _limiter(found: Bounds, hardware: Hardware, total: int, idle: float) -> str:
    """What limits a launch, by name."""
    largest = found.largest
    if found.seconds[largest] < hardware.launch:
        return LAUNCH
    if largest not in (DRAM, L2) and idle > _IDLE:
        return FEW_BLOCKS if total < hardware.sms else LAST_WAVE
    return largest


def _units(busy: Mapping[str, float], clock: float, seconds: float) -> list[Unit]:
    """The units that were busy, the longest first."""
    chosen = sorted(busy.items(), key=lambda item: -item[1])
    return [Unit(name, taken, taken * clock, taken / seconds) for name, taken in chosen]


def _hot(module: ir.Module, blocks: Sequence[BasicBlock], found: Bounds) -> list[HotLine]:
    """The lines that contribute most to the largest bound."""
    costs: Mapping[int, float] = found.costs[found.largest]
    origins = Origins(module)
    lines: dict[tuple[str, int], list[SassInstruction]] = {}
    for block in blocks:
        for one in block.instructions:
            if costs.get(one.address) and one.line is not None:
                lines.setdefault(_origin(module, origins, one.line), []).append(one)
    whole = sum(costs.values())
    shares = {at: sum(costs[one.address] for one in group) / whole for at, group in lines.items()}
    chosen = sorted(shares, key=lambda at: -shares[at])[:MOST_LINES]
    return [_hot_line(origins, at, lines[at], shares[at], costs) for at in chosen if shares[at] >= LEAST_SHARE]


def _origin(module: ir.Module, origins: Origins, line: int) -> tuple[str, int]:
    """The line that was written: of Python or CUDA C++ with the name of its file, or of the PTX with no name."""
    source = module.source
    assert source is not None
    span = origins.span(line_span(source, line))
    if span is None or span.source is source:
        return "", line
    return span.source.name, span.source.position(span.start)[0]


def _hot_line(
    origins: Origins, at: tuple[str, int], group: Sequence[SassInstruction], share: float, costs: Mapping[int, float]
) -> HotLine:
    module = origins.module
    assert module.source is not None
    costliest = max(group, key=lambda one: costs[one.address])
    name, line = at
    source = next((one for one in module.origins.values() if one.name == name), None) if name else module.source
    text = source.text.split("\n")[line - 1].strip() if source is not None else ""
    callers = origins.caller(*(line_span(module.source, one.line) for one in group if one.line is not None))
    return HotLine(share, name, line, text, costliest.text, len(group), callers.strip(" ()") if name else "")
