"""Results that go through shared memory: accumulators are written there by `stmatrix`, and copied by TMA.

A warpgroup stores what it has of a tile box after box: 64 of its rows, and as many columns as are swizzled together.
Where rows of the instruction are columns of the array, `stmatrix` transposes them, and a box has all columns of the
instruction as its rows. Copies run while the next box, or the next tile, is computed; a box is overwritten when they
have read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NoReturn

from ptxlab.author import Pointer, b8, bf16, f16, ptx, s32
from ptxlab.author.emit import emit
from ptxlab.isa.units.swizzle import SWIZZLES
from ptxlab.schedule.address import Value
from ptxlab.schedule.elements import as_words
from ptxlab.schedule.exchange import shared
from ptxlab.schedule.expressions import register
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import WARPGROUP, Stage, Tensor
from ptxlab.schedule.statements import Store
from ptxlab.schedule.synchronize import BLOCK
from ptxlab.schedule.tensor import tiles
from ptxlab.schedule.tree import BYTES, Leaf, Plan, walk
from ptxlab.schedule.walk import WARP
from ptxlab.schedule.writing import Writing

ROWS = 64  # of an instruction
Collected = Mapping[frozenset[tuple[str, int]], Value]  # by the numbers of unrolled loops
LANE_PARTS = 3  # of threads: those of a warpgroup
FIRST_BARRIER = 2  # of the first warpgroup; those before are for all threads


@dataclass(frozen=True)
class StagedResult:
    """An array that is stored through shared memory."""

    stage: Stage
    tensor: Tensor
    store: Store
    is_turned: bool
    """Whether rows of the instruction are columns of the array."""
    box: tuple[int, int]
    pieces: int
    """Boxes of a warpgroup's tile."""
    groups: int
    again: bool
    """Whether a block stores several tiles."""

    @property
    def kept(self) -> int:
        """Boxes that a warpgroup has memory for."""
        return self.stage.slots or self.pieces

    @property
    def bytes(self) -> int:
        """Bytes of all of them."""
        return self.groups * self.kept * prod(self.box) * 2

    @property
    def align(self) -> int:
        """What a box is at a multiple of."""
        return SWIZZLES[self.stage.swizzle].period if self.stage.swizzle else 128


def result_of(plan: Plan, stage: Stage) -> StagedResult:
    """How an array is stored through shared memory; refuse what is not."""
    state, array = plan.state, stage.array

    def refuse(said: str, *helps: str) -> NoReturn:
        state.illegal(f"`{array}` {said}", *helps)

    store = next(one for one in state.algorithm.statements if isinstance(one, Store) and one.array == array)
    axes = {*store.index[-2:]}
    tensor = next((t for t in state.tensors if axes == {Linear.of(t.rows), Linear.of(t.columns)}), None)
    if tensor is None or tensor.unit != "wgmma":
        refuse("goes through shared memory where `wgmma` has computed it", '`tensorize("wgmma")` first')
    if BYTES[state.algorithm.arrays[array].element] != 2:
        refuse("does not have elements of 16 bits, which `stmatrix` writes")
    if store.condition is not None or any(load.array == array for load in state.loads):
        refuse("is read, or written under a condition, and a box is stored as a whole")
    if state.cluster and (shared(plan) is None or len(state.results) < len(state.algorithm.outputs)):
        refuse(
            f"has columns of which {state.cluster_blocks} blocks do not have a share each, or is not all that is stored"
        )
    runs = [name for name in (*state.blocks, *state.threads) if name not in state.aliases.values()]
    if {state.part(name).axis for name in runs} - {*store.axes} or any(len(one.terms) != 1 for one in store.index):
        refuse("has other indices than the loops that threads and blocks run")
    rows = prod(state.count(state.part(name)) or 1 for name in state.serial([tensor.rows])[:-1])
    *outer, eights, _ = state.serial([tensor.columns])
    columns = 8 * (state.count(state.part(eights)) or 1) // state.cluster_blocks
    across = columns * prod(state.count(state.part(name)) or 1 for name in outer)
    is_turned = store.index[-1] == Linear.of(tensor.rows)
    wide = int(stage.swizzle[:-1]) // 2 if stage.swizzle else columns
    if is_turned and wide != ROWS:
        refuse(f"is transposed, and {ROWS} of its columns are swizzled together", '`swizzle="128B"`')
    if not is_turned and columns % wide:
        refuse(f"has {columns} columns of a multiplication, and {wide} are swizzled together", "a narrower swizzle")
    path = next(path for node, path in walk(plan.tree) if isinstance(node, Leaf) and node.statement is store)
    again = state.persistent or any(loop.part.name not in plan.unrolled for loop in path)
    box = (columns, ROWS) if is_turned else (ROWS, wide)
    pieces = rows * ROWS * across // prod(box)
    if stage.slots and pieces % stage.slots:
        refuse(f"is stored in {pieces} boxes by a warpgroup, not a multiple of {stage.slots}")
    return StagedResult(stage, tensor, store, is_turned, box, pieces, state.thread_count // WARPGROUP, again)


def write_results(w: Writing) -> None:
    """Store what was collected of a tile."""
    for array, values in w.results.items():
        if values:
            _write(w, w.plan.results[array], values)
        w.results[array] = {}


def _write(w: Writing, result: StagedResult, values: Collected) -> None:
    """Store what a warpgroup has of a tile; of a cluster, each block stores a share of the columns."""
    w.comment(
        f"{result.stage.array} through shared memory, in boxes of {' x '.join(map(str, result.box))}", result.stage.step
    )
    if not w.state.cluster:
        _write_boxes(w, result, values, 0)
        return
    outside = w.addresses.known
    for block in range(w.state.cluster_blocks):
        w.addresses.known = outside.new_child()
        with ptx.when(w.addresses.registers[w.state.cluster] == block):
            _write_boxes(w, result, values, block)
    w.addresses.known = outside


def _write_boxes(w: Writing, result: StagedResult, values: Collected, block: int) -> None:
    """Store a share of what a warpgroup has, box after box."""
    stage, tensor, kept = result.stage, result.tensor, result.kept
    columns = 8 * (w.state.count(w.state.part(w.state.serial([tensor.columns])[-2])) or 1) // w.state.cluster_blocks
    wide = columns if result.is_turned else result.box[1]
    group, number = w.thread // WARPGROUP, 0
    sides = tiles(w, tensor, tensor.rows, 1), tiles(w, tensor, tensor.columns, 2)
    for (numbers, down), (others, right) in product(*sides):
        words = _words(w, result, values, {**numbers, **others})
        for start in range(columns * block, columns * (block + 1), wide):
            if number >= kept or (result.again and (kept < result.pieces or not number)):
                w.comment(f"derived: copies have read what of `{stage.array}` was in this memory")
                pending = kept - 1 if kept < result.pieces else 0
                emit("cp.async.bulk.wait_group.read", [pending], when=w.thread % WARPGROUP == 0)
                _synchronize(w, result, group)
            slot = number % kept if result.groups == 1 else group * kept + number % kept
            _write_box(w, result, words[start // 4 : (start + wide) // 4], slot)
            w.comment("derived: what all threads of the warpgroup have written is visible to TMA")
            emit("fence.proxy.async.shared::cta", [])
            _synchronize(w, result, group)
            _copy(w, result, down, right + start, slot)
            number += 1


def _words(w: Writing, result: StagedResult, values: Collected, numbers: dict[str, int]) -> list[Value]:
    """The numbers of a multiplication, two in a register: of eight columns those of a row, and of that 8 rows on."""
    tensor, element = result.tensor, w.algorithm.arrays[result.stage.array].element
    *_, eights, pair = w.state.serial([tensor.columns])
    half = w.state.serial([tensor.rows])[-1]
    found = []
    for eight, down in product(range(w.state.count(w.state.part(eights)) or 1), range(2)):
        chosen = [frozenset({**numbers, eights: eight, half: down, pair: right}.items()) for right in range(2)]
        found += as_words(element, [register(values[one]) for one in chosen])
    return found


def _write_box(w: Writing, result: StagedResult, words: list[Value], slot: Value) -> None:
    """Write registers to a box in shared memory, four of each lane at once where there are."""
    element = {"f16": f16, "bf16": bf16}[w.algorithm.arrays[result.stage.array].element]
    memory = Pointer(element, "shared", w.scratch[f"{result.stage.array}_stored"])
    copies = result.groups * result.kept
    tile = ptx.tile(element, *result.box, swizzle=result.stage.swizzle or None, copies=copies, at=memory)
    together = 4 if len(words) % 4 == 0 else 2
    multiply = ptx.wgmma.mma_async.sync.aligned[f"m64n{4 * together}k16"].f32.f16.f16
    fragment, first = ptx.warpgroup_fragments(multiply).d.packed(f16), w.thread // WARP % 4 * 16
    turned = fragment.transposed
    for place in range(0, len(words), together):
        some, columns = words[place : place + together], 4 * place
        if result.is_turned:
            down, right = turned.row_of(ptx.laneid)
            turned.store(tile.at(down + columns, right + first, slot), some)
        else:
            fragment.store(tile.matrices(fragment, ptx.laneid, first, columns, slot), some)


def _synchronize(w: Writing, result: StagedResult, group: Value) -> None:
    """Synchronize the threads of a warpgroup."""
    if result.groups == 1:
        w.barrier(BLOCK)
    else:
        emit("bar.sync", [group + FIRST_BARRIER, WARPGROUP])


def _copy(w: Writing, result: StagedResult, down: int, right: int, slot: Value) -> None:
    """Have TMA copy a box to the array, by one thread of the warpgroup."""
    tensor, array = result.tensor, result.stage.array
    own = {*w.state.threads[-LANE_PARTS:], tensor.lane, *w.plan.unrolled}
    first = {tensor.rows: down, tensor.columns: right}
    place = []
    for one in result.store.index:
        axis = next(iter(one.names))
        index = w.plan.index(one)
        start = w.addresses.value(index.only(index.names - own) + first.get(axis, 0))
        place.append(s32(start) if isinstance(start, int) else start)
    hint, policy = w.hint(array)
    copy = ptx.cp.async_.bulk.tensor[f"{len(place)}d"]["global"]["shared::cta"].bulk_group
    copy = copy[hint.removeprefix(".")] if hint else copy
    size = prod(result.box) * 2
    start = w.scratch[f"{array}_stored"]
    source = start + slot * size if isinstance(slot, int) else ptx.mad.lo.u32(slot, size, start)
    with ptx.when(w.thread % WARPGROUP == 0):
        copy((w.values[array].generic, tuple(reversed(place))), Pointer(b8, "shared", source), *policy)
        ptx.cp.async_.bulk.commit_group()


def write_last(w: Writing) -> None:
    """Have threads that started copies wait until these have read shared memory."""
    if w.plan.results:
        w.comment("derived: no block is over before copies have read its results")
        emit("cp.async.bulk.wait_group.read", [0], when=w.thread % WARPGROUP == 0)
