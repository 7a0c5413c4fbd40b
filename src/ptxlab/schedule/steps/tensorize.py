"""`tensorize("mma.sync")`: tensor cores compute a sum of products, in the tile that a warp has of its result.

The innermost parts of the two loops are cut as the accumulators of the instruction are: each thread has those that the
manual gives its lane, so that all that follows the sum is computed where the sum is.
"""

from __future__ import annotations

from dataclasses import replace

from ptxlab.isa.targets import TARGETS
from ptxlab.measure.block_scaled import BLOCK, FORMATS
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.scaled import factors_of
from ptxlab.schedule.state import LANES, MOST_TENSOR_COLUMNS, State, Tensor
from ptxlab.schedule.statements import Applied, Load, Name, Reduce
from ptxlab.schedule.steps.tile import cut
from ptxlab.schedule.tree import BYTES

UNITS = ("mma.sync", "wgmma", "tcgen05")
TARGET = {"wgmma": "sm_90a", "tcgen05": "sm_100a"}
ROWS = {"mma.sync": 16, "wgmma": 64, "tcgen05": LANES}  # of one instruction
DEPTH = 32  # bytes along the sum
EIGHT = {"e4m3", "e5m2"}
WHO = {"mma.sync": "warp", "wgmma": "warpgroup", "tcgen05": "warpgroup"}
# Of the tile of a warp, or of a warpgroup; for `tcgen05` those of tensor memory.
MOST_COLUMNS = {"mma.sync": 128, "wgmma": 256, "tcgen05": MOST_TENSOR_COLUMNS}


def tensorize(state: State, unit: str, rows: str = "") -> State:
    """A warp, or for `wgmma` a warpgroup, multiplies what is left of each tile after `threads`.

    Iterations of `rows` are rows of the instruction, those of the other loop its columns; without it, the outer loop is
    over rows. Few rows of a result need not fill 64 or 128 of an instruction, which has any multiple of 8 columns.
    """
    if unit not in UNITS:
        state.illegal(f"there is no unit {unit!r:.40}", "`mma.sync`, `wgmma` or `tcgen05`")
    if state.target != TARGET.get(unit, state.target):
        state.illegal(f"`{unit}` needs the target `{TARGET[unit]}`, and this one is `{state.target}`")
    assert state.target in TARGETS
    if state.tensors:
        state.illegal("tensor cores compute a sum already")
    if any(one.space == "shared" for one in state.stages):
        state.illegal("data is staged already", "`tensorize` before `stage`")
    tensor = _product(state, unit, rows)
    _check_tiles(state, tensor)
    if unit == "tcgen05":
        return _in_tensor_memory(state, tensor)
    state, own = _cut_rows(state, tensor)
    state, lane = _cut_columns(state, tensor)
    state = replace(
        state, threads=(*state.threads, *own, lane), tensors=(replace(tensor, lane=lane),), tiled=(), aliases={}
    )
    return _second(state, tensor, lane) if state.online is not None else state


def _in_tensor_memory(state: State, tensor: Tensor) -> State:
    """Cut loops as tensor memory is: a thread has a lane of it, which is a row, and loads some columns at once."""
    if state.online is not None:
        state.illegal("`tcgen05` computes no sums that are rescaled", "`wgmma` does, on `sm_90a`")
    columns = state.count(state.parts[tensor.columns][-1]) or 0
    state, _ = cut(state, tensor.rows, LANES)
    lane = state.parts[tensor.rows][-1]
    state = state.with_parts(replace(lane, role="thread", step=len(state.steps)))
    state, _ = cut(state, tensor.columns, 32 if columns % 32 == 0 else 16)
    state = replace(state, threads=(*state.threads, lane.name), tensors=(tensor,), tiled=())
    for part in (part for axis in (tensor.rows, tensor.columns) for part in state.parts[axis]):
        if part.role == "serial" and state.count(part) == 1:
            state = state.with_parts(replace(part, unrolled=True))
    used = state.tensor_columns + sum(state.factor_columns)
    if used > MOST_TENSOR_COLUMNS:
        said = f"`{tensor.sum}` of a block has {used} columns of tensor memory, which has {MOST_TENSOR_COLUMNS}"
        state.refuse("schedule-limit", said, "use smaller tiles")
    return state


def _second(state: State, first: Tensor, lane: str) -> State:
    """The sum of one pass whose left operand is made of the first product: its lanes have what they multiply."""
    assert state.online is not None
    for one in state.algorithm.statements:
        match one:
            case Reduce(name=name, value=Applied("mul", (Name(weight), Load() as right))) if (
                name in state.online.sums and weight == state.online.weight and len(right.index) >= 2
            ):
                pass
            case _:
                continue
        columns = [
            axis for axis in one.axes if axis not in (first.rows, first.columns) and axis in right.index[-1].names
        ]
        wanted = (Linear.of(first.columns), Linear.of(columns[0] if columns else ""))
        if first.columns != state.online.axis or right.index[-2:] != wanted:
            said = f"tensor cores compute `{name}` of rows of `{right.array}` over `{state.online.axis}`"
            state.illegal(said)
        tile = 8 * (state.count(state.parts[first.columns][-3]) or 1)
        if tile % (DEPTH // 2):
            said = f"tensor cores add up {DEPTH // 2} iterations of `{first.columns}` at a time in `{name}`"
            state.illegal(f"{said}, and a tile has {tile}", f"`tile({first.columns}={2 * DEPTH})` last")
        element = state.algorithm.arrays[right.array].element
        if element not in ("f16", "bf16"):
            state.illegal(f"tensor cores compute no sum of `{right.array}`: it is of {element}")
        made = Tensor(
            first.unit, name, "", right.array, first.rows, columns[0], first.columns, len(state.steps), weight
        )
        _check_columns(state, made)
        state, own = _cut_columns(state, made)
        made = replace(made, lane=own)
        return replace(state, tensors=(*state.tensors, made), aliases={own: lane})
    return state


def _cut_columns(state: State, tensor: Tensor) -> tuple[State, str]:
    """Cut the loop over columns; the part that the four lanes of a row run."""
    state, _ = cut(state, tensor.columns, 8)
    state, lane = cut(state, tensor.columns, 2)
    return state.with_parts(replace(state.part(lane), role="thread", step=len(state.steps))), lane


def _cut_rows(state: State, tensor: Tensor) -> tuple[State, list[str]]:
    """Cut the loop over rows; the parts that lanes run, and for `wgmma` the four warps of a warpgroup."""
    threads = []
    if tensor.unit == "wgmma":
        state, _ = cut(state, tensor.rows, 64)
        state, warps = cut(state, tensor.rows, 16)
        threads.append(warps)
    else:
        state, _ = cut(state, tensor.rows, 16)
    state, _ = cut(state, tensor.rows, 8)
    threads.append(state.parts[tensor.rows][-1].name)
    for name in threads:
        state = state.with_parts(replace(state.part(name), role="thread", step=len(state.steps)))
    return state, threads


def _product(state: State, unit: str, rows: str) -> Tensor:  # noqa: RET503 - `refuse` does not return
    """The sum of products of an algorithm, by which tensor cores can compute it."""
    sums = [one for one in state.algorithm.statements if isinstance(one, Reduce)]
    reasons = []
    for one in sums:
        found = _matched(state, one, unit, rows)
        if isinstance(found, Tensor):
            return found
        reasons.append(f"`{one.name}` {found}")
    state.illegal(
        "tensor cores compute no sum of this algorithm: " + ("; ".join(reasons) or "there is none"),
        "they compute `sum(a[i, x] * b[x, j] for x in range(k))` of `f16` or `bf16`, or of fewer bits by rows",
    )


def _matched(state: State, one: Reduce, unit: str, rows: str) -> Tensor | str:
    match one.value:
        case Applied("mul", (Load() as left, Load() as right)) if one.operation == "add" and one.condition is None:
            pass
        case _:
            return "is not a sum of products of two arrays"
    elements = {state.algorithm.arrays[load.array].element for load in (left, right)}
    said = f"is of {' and '.join(sorted(elements))}"
    scaled = len(elements) == 1 and elements <= FORMATS.keys()
    if elements <= EIGHT and unit == "mma.sync":
        return f"{said}, which `wgmma` and `tcgen05` multiply"
    if scaled and unit != "tcgen05":
        return f"{said}, which `tcgen05` multiplies"
    if elements not in ({"f16"}, {"bf16"}) and not elements <= EIGHT and not scaled:
        return said
    if len(one.over) != 1:
        return f"is over {len(one.over)} loops"
    if left.array == right.array:
        return f"multiplies `{left.array}` with itself: give it a second time, by another name"
    alone = [
        [axis for axis in one.axes if any(axis in index.names for index in own.index[-2:]) and axis not in other.names]
        for own, other in ((left, right), (right, left))
    ]
    if len(alone[0]) != 1 or len(alone[1]) != 1:
        return "does not have one loop over rows and one over columns"
    across = sorted((axis for (axis,) in alone), key=one.axes.index)
    if rows and rows not in across:
        return f"has rows and columns over `{across[0]}` and `{across[1]}`, not over {rows!r:.40}"
    if alone[0][0] != (rows or across[0]):
        left, right, alone = right, left, alone[::-1]
    (rows,), (columns,), (depth,) = *alone, one.over
    for load, axis in ((left, rows), (right, columns)):
        if {*load.index[-2:]} != {Linear.of(axis), Linear.of(depth)} or not load.is_inside:
            return f"has other indices than `{axis}` and `{depth}` in the last two dimensions of `{load.array}`"
        if (elements <= EIGHT or scaled) and load.index[-1] != Linear.of(depth):
            return f"reads `{load.array}` across `{depth}`: tensor cores read elements of 8 or 4 bits along it"
        if any(depth in index.names or axis in index.names for index in load.index[:-2]):
            return f"has `{axis}` or `{depth}` in another dimension of `{load.array}`, too"
    if scaled and not {*map(factors_of, (left.array, right.array))}.isdisjoint(state.algorithm.parameters):
        return f"has factors by the name of a parameter: rename `{factors_of(left.array)}`, `{factors_of(right.array)}`"
    group = FORMATS[elements.pop()].group if scaled else 0
    return Tensor(unit, one.name, left.array, right.array, rows, columns, depth, len(state.steps), group=group)


def _check_tiles(state: State, tensor: Tensor) -> None:
    """Refuse tiles that instructions do not fill."""
    _check_columns(state, tensor)
    depth = 4 * tensor.group or DEPTH // BYTES[state.algorithm.arrays[tensor.left].element]
    for axis, every in ((tensor.rows, ROWS[tensor.unit]), (tensor.depth, depth)):
        _check_multiple(state, tensor, axis, every)
        if axis == tensor.depth and any(p.role not in ("serial", "cluster") for p in state.parts[axis]):
            state.illegal(f"`{axis}` is run by threads or blocks")


def _check_columns(state: State, tensor: Tensor) -> None:
    _check_multiple(state, tensor, tensor.columns, BLOCK if tensor.group else 16 if tensor.unit == "tcgen05" else 8)
    columns = state.count(state.parts[tensor.columns][-1]) or 0
    if columns > MOST_COLUMNS[tensor.unit]:
        said = (
            f"{columns} columns for a {WHO[tensor.unit]}, and `{tensor.unit}` has {MOST_COLUMNS[tensor.unit]} at most"
        )
        state.refuse("schedule-limit", said)


def _check_multiple(state: State, tensor: Tensor, axis: str, every: int) -> None:
    part, who = state.parts[axis][-1], WHO[tensor.unit]
    count = state.count(part)
    if part.role != "serial" or count is None or count % every:
        said = f"`{part.name}` is run by {part.role}s" if part.role != "serial" else f"there are {count}"
        state.illegal(
            f"a {who} multiplies a multiple of {every} iterations of `{axis}` at a time: {said}",
            f"`tile({axis}={every * (4 if axis == tensor.depth else 2)})` last, and leave that to each {who}",
        )
