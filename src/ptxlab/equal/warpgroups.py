"""`wgmma` on expressions: A from registers or shared memory, B from shared memory, sums in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxlab.equal.collectives import Warps, elements, product_nodes, spread, take_pending
from ptxlab.equal.multiplicands import in_shared, sparse_in_warps
from ptxlab.isa.units.descriptor import CHUNK, K_MAJOR, MN_MAJOR, chunk_offset
from ptxlab.isa.units.fragment import ELEMENT_BITS, extents
from ptxlab.trace.lanes import matrices_of

if TYPE_CHECKING:
    from ptxlab.equal.turns import Turn

ROWS = 16  # of D that each warp of a warpgroup has


def multiply(turn: Turn) -> None:
    """`wgmma.mma_async`: it reads its operands when it is issued, or the launch had a data race."""
    if not take_pending(turn):
        return
    held, m, given = matrices_of(turn.match), turn.match.candidate.modifiers, turn.operands
    warps = Warps(turn)
    nodes, bits = turn.nodes, ELEMENT_BITS[m.atype]
    each, types = CHUNK * 8 // bits, (m.atype, m.btype or m.atype)
    _, columns, depth = extents(m.shape)
    stored = depth // 2 if "sp_meta" in given else depth
    signs = [turn.plain(given[name], 0) if name in given else 1 for name in ("scale_a", "scale_b")]
    majors = [MN_MAJOR if name in given and turn.plain(given[name], 0) else K_MAJOR for name in ("trans_a", "trans_b")]
    text = f"wgmma {types[0]} {types[1]} {m.dtype} {turn.replay.program.module.target} {signs} {bool(m.satfinite)}"
    made = []
    for line in range(len(warps.numbers)):
        lane = int(warps.lanes[line, 0])
        if "a_desc" in given:
            start = chunk_offset, turn.plain(given["a_desc"], lane)
            rows = lane // 32 % 4 * ROWS + np.arange(ROWS)
            a = in_shared(turn, turn.block, start, majors[0], rows, stored, bits, each, types[0])
        else:
            a = elements(nodes, warps.registers("a")[line : line + 1], held["a"].layout, m.atype)[0]
        if "sp_meta" in given:
            own = Warps(turn, warps.numbers[line : line + 1])
            a = sparse_in_warps(own, a[None], given["sp_meta"], given["sp_sel"], m, bits)[0]
        start = chunk_offset, turn.plain(given["b_desc"], lane)
        b = in_shared(turn, turn.block, start, majors[1], np.arange(columns), depth, bits, each, types[1])
        c = None
        if "scale_d" not in given or turn.plain(given["scale_d"], lane, "pred"):
            c = elements(nodes, warps.registers("d")[line : line + 1], held["d"].layout, m.dtype)
        made.append(product_nodes(nodes, text, m.dtype, a[None], b[None], c, signs[0] * signs[1]).reshape(1, -1))
    warps.write(spread(turn, np.concatenate(made), held["d"].layout, "d"))
