"""From a state to a tree of loops: what each thread runs, in which order; copies are put in by `staging.py`.

Each statement is nested in its own loops, in the order of the state; statements that start with the same loop over
independent iterations share it, and so do reductions over the loop of what each iteration has made. A number that is
made in one loop and read in another is in a register for each iteration, so that such loops are unrolled.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import prod

from ptxlab.schedule.results import result_of
from ptxlab.schedule.staging import put_copies
from ptxlab.schedule.state import Part, State
from ptxlab.schedule.statements import Let, Reduce, Statement, names
from ptxlab.schedule.tree import READING, Fill, Keep, Leaf, Loop, Node, Plan, Shared, Sync, reads, walk
from ptxlab.schedule.walk import combination

MOST_UNROLLED = 4096  # iterations of nested loops that are written out
MOST_REGISTERS = 224  # elements that a thread keeps of one array
SHARED_BYTES = {"sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99}  # KB a block can have; others have 227


def plan(state: State, multiples: Mapping[str, int]) -> Plan:
    """The tree of a state. `multiples` says what sizes are multiples of, where that is known."""
    made = Plan(state, multiples, [], set(), [])
    made.tree = _tree(state)
    made.unrolled = _unrolled(made)
    put_copies(made, made.tree, ())
    for one in state.stages:
        keeps = [node.stage for node, _ in walk(made.tree) if isinstance(node, Keep)]
        if not any(stage is one for stage in [*keeps, *(buffer.stage for buffer in made.buffers)]):
            where = f"in `{one.at}`" if one.at else "in the kernel"
            state.illegal(f"step {one.step + 1} stages `{one.array}` {where}, where nothing reads it")
    made.results = {one.array: result_of(made, one) for one in state.results}
    _check_sizes(made)
    if state.persistent:
        _check_tiles(made)
    if state.stream_k:
        last = max(n for n, node in enumerate(made.tree) if Sync.of(node).startswith("release"))
        made.tree[last + 1 :] = [Shared(made.tree[last + 1 :])]
    return made


def _check_tiles(made: Plan) -> None:
    """Refuse tiles of a block that would share memory: barriers are derived for one."""
    for node, _ in walk(made.tree):
        if isinstance(node, Fill):
            said = f"`{node.buffer.stage.array}` is staged by all threads, and the next tile would overwrite it"
            made.state.illegal(said, "stage it in the loop of the pipeline, or leave `persistent` out")
        if isinstance(node, Leaf) and node.kind == "combine" and combination(made.state, node.statement).scratch:
            said = f"threads combine `{node.statement.name}` in shared memory, and the next tile would overwrite it"  # type: ignore[attr-defined]
            made.state.illegal(said, "leave `persistent` out")


def _tree(state: State) -> list[Node]:
    """Statements in their loops; where one loop is one pass, what is before it, in it and after it."""
    statements = state.algorithm.statements
    once = state.online
    if once is None:
        return _nest(state, [leaf for one in statements for leaf in _leaves(state, one)])
    sums = [one for one in statements if isinstance(one, Reduce) and once.axis in one.over]
    inside = [one for one in statements if one in sums or once.axis in one.axes]
    before = [Leaf("init", one, state.serial(one.axes)) for one in sums]
    body: list[Leaf] = []
    after: list[Leaf] = []
    for one in inside:
        leaves = [leaf for leaf in _leaves(state, one) if one not in sums or leaf.kind != "init"]
        combined = [leaf for leaf in leaves if leaf.kind in ("combine", "gather", "exchange")]
        if one in sums and getattr(one, "name", "") != once.top:
            after += combined
            leaves = [leaf for leaf in leaves if leaf not in combined]
        body += leaves
        if getattr(one, "name", "") == once.top:
            body.append(Leaf("factor", one, state.serial(one.axes)))
            body += [Leaf("rescale", other, state.serial(other.axes)) for other in sums if other.name in once.sums]
    after += [leaf for one in statements if one not in inside for leaf in _leaves(state, one)]
    common = [axis for axis in state.algorithm.axes if all(axis in one.axes for one in statements)]
    fragments = {name for tensor in state.tensors for name in state.fragments(tensor)}
    outer = state.order[: state.order.index(state.once)]
    around = [name for name in state.serial(common) if name in outer and name not in fragments]
    for leaf in (*before, *body, *after):
        leaf.loops = [name for name in leaf.loops if name not in (*around, state.once)]
    loop = Loop(state.part(state.once), _nest(state, body))
    tree: list[Node] = [*_nest(state, before), loop, *_nest(state, after)]
    for name in reversed(around):
        tree = [Loop(state.part(name), tree)]
    return tree


def _leaves(state: State, one: Statement) -> list[Leaf]:
    """What is done for a statement, each with its loops."""
    loops = state.serial(one.axes)
    if not isinstance(one, Reduce):
        return [Leaf("let" if isinstance(one, Let) else "store", one, loops)]
    inner = state.serial((*one.axes, *one.over))
    found = [Leaf("init", one, loops)]
    tensor = state.tensor_of(one.name)
    if tensor is not None:
        fragments = state.fragments(tensor)
        found.append(Leaf("multiply", one, [name for name in inner if name not in fragments]))
        if tensor.unit == "tcgen05":
            last = state.parts[tensor.columns][-1].name  # these columns are loaded at once
            found = [found[1], Leaf("load", one, [name for name in loops if name != last])]
    else:
        found.append(Leaf("update", one, inner))
        if any(state.part(name).axis in one.over for name in state.threads):
            found += [Leaf("combine", one, list(loops)), Leaf("gather", one, list(loops))]
    if state.cluster and state.part(state.cluster).axis in one.over:
        found.append(Leaf("exchange", one, list(loops)))
    return found


def _nest(state: State, leaves: list[Leaf]) -> list[Node]:
    """Nest statements in their loops; neighbours whose outermost loop is the same share it."""
    found: list[Node] = []
    start = 0
    while start < len(leaves):
        first = leaves[start]
        end = start + 1
        if not first.loops:
            found.append(first)
        elif _is_at_once(state, leaves, start):
            end = start + (2 if first.kind == "combine" else 1)
            found += leaves[start:end]  # all iterations at once
        else:
            part = state.part(first.loops[0])
            makes = part.axis in first.statement.axes
            while makes and end < len(leaves) and _starts(leaves[end], part):
                end += 1
            group = leaves[start:end]
            sums = _reductions(part, group, leaves[end:]) if makes else []
            found += _nest(state, sums[::2])
            group += sums[1::2]
            leaves = leaves[:end] + [leaf for leaf in leaves[end:] if leaf not in sums]
            for leaf in group:
                leaf.loops = leaf.loops[1:]
            found.append(Loop(part, _nest(state, group)))
        start = end
    return found


def _reductions(part: Part, group: list[Leaf], later: list[Leaf]) -> list[Leaf]:
    """Later reductions over a loop of what each of its iterations has made, which then need not be kept.

    Of each the first number and the update. Those that read what is made after the loop are left.
    """
    made, after = ({getattr(leaf.statement, "name", "") for leaf in leaves} for leaves in (group, later))
    found: list[Leaf] = []
    for pair in pairwise(later):
        match pair:
            case Leaf("init"), Leaf("update", Reduce(over=over) as one, [name, *_]) if name == part.name:
                if part.axis in over and names(one) & made and not names(one) & after:
                    found += pair
    return found


def _starts(leaf: Leaf, part: Part) -> bool:
    return bool(leaf.loops) and leaf.loops[0] == part.name and part.axis in leaf.statement.axes


def _is_at_once(state: State, leaves: list[Leaf], start: int) -> bool:
    """Whether all iterations combine their numbers at once: blocks of a cluster always do where these are known."""
    first = leaves[start]
    if first.kind == "exchange" and all(state.count(state.part(name)) is not None for name in first.loops):
        return True
    return first.kind in ("combine", "exchange") and not _shares(state, leaves, start)


def _shares(state: State, leaves: list[Leaf], start: int) -> bool:
    """Whether a statement after all that combines a number starts with the same loop."""
    part, end = state.part(leaves[start].loops[0]), start
    while end < len(leaves) and leaves[end].kind in ("combine", "gather", "exchange"):
        end += 1
    return end < len(leaves) and _starts(leaves[end], part)


def _unrolled(plan: Plan) -> set[str]:
    """The loops that index registers, and those that are to be unrolled."""
    state = plan.state
    found = {part.name for parts in state.parts.values() for part in parts if part.unrolled}
    paths = {id(node): path for node, path in walk(plan.tree)}
    leaves = [node for node, _ in walk(plan.tree) if isinstance(node, Leaf)]
    for one in state.algorithm.statements:
        if not isinstance(one, (Let, Reduce)):
            continue
        uses = [n for n in leaves if n.statement is one or (n.kind in READING and one.name in names(n.statement))]
        if any(leaf.kind == "load" for leaf in uses):
            uses = [leaf for leaf in uses if leaf.kind != "multiply"]  # its sums are in tensor memory
        shared = [loop for loop in paths[id(uses[0])] if all(loop in paths[id(leaf)] for leaf in uses)]
        for name in state.serial(one.axes):
            if not any(loop.part.name == name for loop in shared):
                _check_known(
                    state, name, f"`{one.name}` is kept in a register for each iteration of `{name}`", one.line
                )
                found.add(name)
    for stage in state.stages:
        if stage.space != "registers":
            continue
        for leaf in leaves:
            around = [loop.part.name for loop in paths[id(leaf)]]
            inner = around[around.index(stage.at) + 1 :] if stage.at in around else around if not stage.at else []
            axes = {axis for load in reads(leaf) if load.array == stage.array for axis in load.names}
            for name in inner:
                if state.part(name).axis in axes:
                    said = f"`{stage.array}` is kept in a register for each iteration of `{name}`"
                    _check_known(state, name, said, leaf.statement.line)
                    found.add(name)
    return found


def _check_known(state: State, name: str, said: str, line: int) -> None:
    if state.count(state.part(name)) is None:
        axis = state.part(name).axis
        said += f", of which there are {state.extent(axis)}"
        state.refuse("unknown-extent", said, f"change the order of loops, run `{axis}` by blocks, or fix the size")


def _check_sizes(plan: Plan) -> None:
    """Refuse what a block or a thread cannot have."""
    state = plan.state
    most = SHARED_BYTES.get(state.target.rstrip("af"), 227) * 1024
    used = sum(bytes for _, bytes in plan.memory)
    if used > most:
        text = " and ".join(f"`{array}` {bytes:,} bytes" for array, bytes in plan.memory)
        state.refuse("schedule-limit", f"{text} of shared memory: {used - most:,} more than a block can have")
    for node, path in walk(plan.tree):
        written = [loop.part for loop in path if loop.part.name in plan.unrolled]
        count = prod(state.count(part) or 1 for part in written)
        if count > MOST_UNROLLED:
            text = ", ".join(f"`{part.name}` {state.count(part)}" for part in written)
            state.refuse("schedule-limit", f"{count:,} iterations would be written out ({text})", "use smaller tiles")
        if isinstance(node, Leaf) and isinstance(node.statement, (Let, Reduce)):
            kept = [state.part(n) for n in state.serial(node.statement.axes) if n in plan.unrolled]
            if prod(state.count(part) or 1 for part in kept) > MOST_REGISTERS:
                said = f"a thread would keep {prod(state.count(p) or 1 for p in kept)} of `{node.statement.name}`"
                state.refuse("schedule-limit", said, "use smaller tiles")
