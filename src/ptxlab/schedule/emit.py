"""A plan as a kernel of `author`: its parameters, blocks, threads and shared memory; the tree is in `loops.py`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from math import prod
from typing import Any

from ptxlab.author import Kernel, b32, f32, pointer, ptx, s32, tensor_map, u32
from ptxlab.author.lines import SourcePosition
from ptxlab.schedule.address import Value
from ptxlab.schedule.asynchronous import (
    number_of,
    role,
    write_barriers,
    write_drain,
    write_end,
    write_prefetch,
    write_ready,
)
from ptxlab.schedule.computing import write_spread
from ptxlab.schedule.copies import portions
from ptxlab.schedule.elements import ELEMENTS, synchronize_cluster
from ptxlab.schedule.loops import write_body
from ptxlab.schedule.pieces import Pieces, workspace_of
from ptxlab.schedule.scaled import factors_of
from ptxlab.schedule.statements import Reduce
from ptxlab.schedule.tree import Leaf, Node, Plan, walk
from ptxlab.schedule.walk import WARP, combination
from ptxlab.schedule.writing import Writing

ALIGN = 16  # bytes, of what one access can take
STATIC_BYTES = 48 * 1024  # of shared memory that a kernel can declare; more is dynamic


def write_kernel(plan: Plan) -> Kernel:
    """The kernel: pointers and numbers in the order of the algorithm's parameters, then the sizes."""
    algorithm = plan.state.algorithm
    types: dict[str, Any] = {
        name: tensor_map
        if name in plan.described
        else pointer[ELEMENTS[algorithm.arrays[name].element]]  # type: ignore[misc]
        if name in algorithm.arrays
        else f32
        for name in algorithm.parameters
    }
    types |= {factors_of(name): tensor_map for name in algorithm.parameters if factors_of(name) in plan.mapped}
    types |= {name: s32 for name in algorithm.sizes if name not in plan.state.fixed}

    if plan.state.stream_k:
        types[workspace_of(plan.state)] = pointer[f32]

    def body(*values: object) -> None:
        _write(Writing(plan, dict(zip(types, values, strict=True))))

    # A finding about an argument then shows the algorithm.
    known = algorithm.function.__code__
    body.__code__ = body.__code__.replace(
        co_filename=known.co_filename, co_name=known.co_name, co_firstlineno=known.co_firstlineno
    )
    body.__name__ = algorithm.name
    body.__doc__ = algorithm.function.__doc__
    body.__annotations__ = types
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    body.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in types])  # type: ignore[attr-defined]
    directives: dict[str, tuple[int, ...]] = {"maxntid": (plan.state.launched,)}
    if plan.state.cluster:
        directives["reqnctapercluster"] = (1, 1, plan.state.cluster_blocks)
    if plan.state.multicast:
        directives["reqnctapercluster"] = (plan.state.together(), 1, 1)
    if plan.state.resident or plan.state.moved_registers:
        directives["minnctapersm"] = (max(1, plan.state.resident),)
    position = SourcePosition(known, known.co_firstlineno, 0)
    return Kernel(body, plan.state.target, None, directives, position)


def shared_bytes(plan: Plan) -> int:
    """The dynamic shared memory of a launch."""
    total = max((one.start + one.size for one in memory_of(plan)), default=0)
    return total if total > STATIC_BYTES or plan.reuses_memory else 0


@dataclass(frozen=True)
class Piece:
    """An array in shared memory."""

    name: str
    start: int
    size: int
    align: int


def memory_of(plan: Plan) -> list[Piece]:
    """Arrays in shared memory. Copies of one stage in several loops are in a row."""
    found: list[Piece] = []

    def add(name: str, size: int, align: int = ALIGN, start: int | None = None) -> None:
        end = max((one.start + one.size for one in found), default=0)
        found.append(Piece(name, -(-end // align) * align if start is None else start, size, align))

    for number, buffer in enumerate(plan.buffers):
        every = buffer.swizzle.period if buffer.swizzle else 128 if buffer.stage.array in plan.mapped else ALIGN
        add(f"{buffer.stage.array}_{number}", buffer.bytes, every)
    for node, _ in walk(plan.tree):
        if not isinstance(node, Leaf) or not isinstance(node.statement, Reduce):
            continue
        count = prod(plan.state.count(plan.state.part(name)) or 1 for name in node.loops)
        if node.kind == "combine" and combination(plan.state, node.statement).scratch:
            add(f"{node.statement.name}_of_threads", count * plan.state.thread_count * 4)
        elif node.kind == "exchange":
            size = -(-count // 4) * plan.state.thread_count * 16
            add(f"{node.statement.name}_of_blocks", size, start=0 if plan.reuses_memory else None)
    for one in plan.results.values():
        add(f"{one.stage.array}_stored", one.bytes, one.align)
    return found


def _write(w: Writing) -> None:
    w.comment(f"{w.algorithm.name}: " + (", ".join(w.state.steps) or "one thread does all of it"))
    if not w.plan.mapped:
        _write_first(w)
    _write_threads(w)
    write_prefetch(w)
    for kind in sorted(set(w.state.policies.values())):
        w.policies[kind] = ptx.createpolicy.fractional[f"L2::{kind}"].b64(1.0)
    _write_memory(w)
    w.fills = [[] if b.stage.array in w.plan.mapped else portions(w, n, b) for n, b in enumerate(w.plan.buffers)]
    write_barriers(w)
    if w.plan.mapped:  # other warps know their tile while the first one initializes barriers
        _write_first(w)
    write_ready(w)
    if w.state.specialized:
        _write_roles(w)
        return
    _write_groups(w)
    write_body(w, w.plan.tree)
    write_end(w)


def _write_roles(w: Writing) -> None:
    """What the warps that copy, multiply and compute do."""
    w.comment("one thread of the last warp copies", w.state.steps.index("specialize()"))
    copier = w.state.thread_count
    registers = w.state.moved_registers
    with ptx.when(w.thread >= copier):
        if registers:
            ptx.setmaxnreg.dec.sync.aligned.u32(registers[0])
        with ptx.when(w.thread == copier), role(w, "copy"):
            _write_tiles(w, w.plan.producer)
            if w.state.multicast and w.state.pair == 1:
                write_drain(w)
        if w.plan.multiplier:
            w.comment("one thread of another warp multiplies", w.state.steps.index("specialize()"))
            multiplies = w.thread == copier + WARP
            if w.state.pair > 1:
                multiplies = ptx.and_.pred(multiplies, ptx.cluster_ctarank == 0)
            with ptx.when(multiplies), role(w, "multiply"):
                _write_tiles(w, w.plan.multiplier)
    with ptx.otherwise(), role(w, "compute"):
        w.comment("all other warps compute", w.state.steps.index("specialize()"))
        if registers:
            ptx.setmaxnreg.inc.sync.aligned.u32(registers[1])
        _write_groups(w)
        _write_tiles(w, w.plan.tree)
        if w.state.pair == 1:
            write_end(w)
    if w.state.pair > 1:
        w.comment("derived: no block is over while others copy to it, or arrive at its mbarriers")
        synchronize_cluster()
        write_end(w)


def _write_tiles(w: Writing, tree: list[Node]) -> None:
    """What a warp does: for one tile, or for each that its block has."""
    outside = w.addresses.known
    w.addresses.known = outside.new_child()
    if not w.state.persistent:
        write_body(w, tree)
    else:
        step = _cluster_number(w, ptx.nctaid.x)
        if w.state.stream_k:
            w.comment("pieces of tiles of this block", w.state.steps.index("stream_k()"))
            w.pieces = Pieces(w, _tiles(w), _cluster_number(w, ptx.ctaid.x), step)
            for number in w.pieces:
                w.addresses.known = outside.new_child()
                _write_blocks(w, number)
                write_body(w, tree)
        else:
            _write_each(w, tree, step)
    w.addresses.known = outside


def _tiles(w: Writing) -> Value:
    """How many tiles there are, or groups of them that clusters share."""
    outer, *inner = _counts(w)
    return prod(inner, start=outer)


def _write_first(w: Writing) -> None:
    """Which tile this block has, or has first."""
    if not w.state.stream_k:
        w.tile = _cluster_number(w, ptx.ctaid.x)
        _write_blocks(w, w.tile)


def _write_each(w: Writing, tree: list[Node], step: Value) -> None:
    """Write what is done for each tile of a block; the next one is found where the one before is done."""
    w.comment("tiles of this block", w.state.steps.index("persistent()"))
    known, tiles, number = w.addresses.registers, _tiles(w), u32(w.tile)
    first = {name: known[name] for name in w.state.blocks}
    with ptx.when(number < tiles), ptx.loop():
        write_body(w, tree)
        w.addresses.known = w.addresses.known.parents.new_child()
        ptx.add.u32(number, step, out=number)
        ptx.leave_when(number >= tiles)
        _write_blocks(w, number)
        for name, register in first.items():
            ptx.mov.s32(known[name], out=register)
        known |= first


def _cluster_number(w: Writing, block: Value) -> Value:
    """The number of the cluster that a block is of, where clusters share copies."""
    return block // w.state.together() if w.state.multicast else block


def _write_blocks(w: Writing, number: Value) -> None:
    names = w.state.blocks
    if w.state.cluster:
        w.comment("the number of a block in its cluster", w.state.part(w.state.cluster).step)
        w.addresses.registers[w.state.cluster] = ptx.ctaid.z.view(s32)
    if not names:
        return
    w.comment(f"the number of a block is that of {', '.join(names)}", w.state.part(names[0]).step)
    known = w.addresses.registers
    if not w.state.group:
        for name, axis in zip(reversed(names), "xyz", strict=False):
            known[name] = getattr(ptx.ctaid, axis).view(s32)
        return
    *outer, down, across = _counts(w)
    if outer:  # one result after the other
        known[names[0]] = (number // (down * across)).view(s32)
        number = number % (down * across)
    size = across * w.state.group
    groups = number // size
    first, within = groups * w.state.group, number - groups * size
    rows = ptx.min.u32(down - first, w.state.group)
    column = within // rows
    known[names[-2]] = (first + (within - column * rows)).view(s32)
    known[names[-1]] = column.view(s32)
    for one in w.state.multicast:
        w.comment("the tile of a block of the cluster", one.step)
        known[one.part] = known[one.part] * one.blocks + number_of(one).view(s32)


def _counts(w: Writing) -> list[Value]:
    """How many tiles there are, in each direction."""
    return [w.count(name, w.state.together(name)).view(u32) for name in w.state.blocks]


def _write_threads(w: Writing) -> None:
    if w.state.thread_count == 1:
        w.addresses.numbers.update(dict.fromkeys(w.state.threads, 0))
        w.plan.unrolled.update(w.state.threads)
        return
    names = ", ".join(w.state.threads)
    w.comment(f"the number of a thread is that of {names}", w.state.part(w.state.threads[0]).step)
    w.thread = rest = ptx.tid.x
    for place, name in reversed(list(enumerate(w.state.threads))):
        count = w.state.count(w.state.part(name)) or 1
        w.addresses.registers[name] = (rest % count if place else rest).view(s32)
        if place:
            rest = rest // count
    for name, other in w.state.aliases.items():
        w.addresses.registers[name] = w.addresses.registers[other]
    write_spread(w)


def _write_groups(w: Writing) -> None:
    """Take the number of a warpgroup from a lane, where warps do no more than compute.

    ptxas then knows that it is the same for a warp, and has descriptors and slots of rings in uniform registers.
    """
    registers = w.addresses.registers
    for name in w.state.threads[:-3] if w.state.unit == "wgmma" else ():
        registers[name] = ptx.shfl.sync.idx.b32(registers[name].view(b32), 0, WARP - 1, -1).view(s32)


def _write_memory(w: Writing) -> None:
    memory = memory_of(w.plan)
    if shared_bytes(w.plan):
        start = ptx.dynamic_shared(b32, align=max(one.align for one in memory)).address
        starts = [start + one.start if one.start else start for one in memory]
    else:
        starts = [ptx.shared(b32, -(-one.size // 4), align=one.align, name=one.name).address for one in memory]
    for number in range(len(w.plan.buffers)):
        w.addresses.memory[number] = starts[number]
    w.scratch = {one.name: start for one, start in zip(memory, starts, strict=True)}
