"""`pair()`: two blocks of a cluster multiply together by `tcgen05`; each copies its rows of A, and half of B."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import LANES, State
from ptxlab.schedule.steps.multicast import multicast

MOST_COLUMNS = 256  # of one multiplication
COLUMNS = 32  # it has a multiple of these: each block has rows of B for half of them


def pair(state: State) -> State:
    """The first block issues `cta_group::2`, which reads what both have; each has its rows in its tensor memory."""
    if state.unit != "tcgen05":
        state.illegal("two blocks multiply together by `tcgen05`", '`tensorize("tcgen05")` first')
    if state.multicast:
        state.illegal("there is a cluster already")
    tensor, columns = state.tensors[0], state.tensor_columns
    rows = state.of_block(tensor.rows)
    if rows != LANES or columns % COLUMNS or columns > MOST_COLUMNS:
        said = f"a block has {rows} x {columns // (rows // LANES)} of `{tensor.sum}`"
        help = f"`tile({tensor.rows}={LANES}, {tensor.columns}=...)` with a multiple of {COLUMNS} columns"
        state.illegal(f"{said}, and one of a pair has {LANES} rows and up to {MOST_COLUMNS}", help)
    right = next(load for load in state.loads if load.array == tensor.right)
    if right.index[-1] != Linear.of(tensor.depth):
        said = f"`{tensor.right}` has rows along `{tensor.columns}`, of which each block would have a half"
        state.illegal(said, f"a pair reads `{tensor.right}` by rows along `{tensor.depth}`")
    made = multicast(state, tensor.right, 2)
    return replace(made, multicast=tuple(replace(one, is_pair=True) for one in made.multicast))
