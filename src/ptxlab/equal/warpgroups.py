"""`wgmma` on expressions: A from registers or shared memory, B from shared memory, sums in registers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ptxlab import ir
from ptxlab.equal.codes import load, node_of
from ptxlab.equal.collectives import Warps, elements, product_nodes, spread, take_pending
from ptxlab.equal.factors import sparse_in_warps
from ptxlab.equal.nodes import Ids
from ptxlab.isa.types import type_named
from ptxlab.isa.units.descriptor import CHUNK, K_MAJOR, MN_MAJOR, chunk_offset
from ptxlab.isa.units.fragment import ELEMENT_BITS, extents
from ptxlab.trace.lanes import matrices_of

if TYPE_CHECKING:
    from ptxlab.equal.turns import Turn

ROWS = 16  # of D that each warp of a warpgroup has


def multiply(turn: Turn) -> None:
    """`wgmma.mma_async`: it reads its operands when it is issued, or the launch had a data race."""
    match = turn.plan.match
    assert match is not None
    if not take_pending(turn):
        return
    held, m = matrices_of(match), match.candidate.modifiers
    given = {e.name: operand for e, operand in zip(match.expected, turn.plan.instruction.operands, strict=True)}
    for use in turn.plan.uses:
        if use.operand in ("a_desc", "b_desc", "scale_d") and use.role == "value":
            codes = turn.replay.register(turn.block, use.name)[turn.threads]
            if (codes >= 0).any():
                raise turn.refused("a descriptor depends on the value of an input")
    warps = Warps(turn)
    nodes, bits = turn.nodes, ELEMENT_BITS[m.atype]
    _, columns, depth = extents(m.shape)
    is_sparse = "sp_meta" in given
    stored = depth // 2 if is_sparse else depth
    signs = [_constant(given.get(f"imm_scale_{name}"), 1) for name in "ab"]
    text = f"wgmma {m.atype} {m.btype or m.atype} {m.dtype} {turn.replay.program.module.target} {signs}"
    made = []
    for line in range(len(warps.numbers)):
        lane = int(warps.lanes[line, 0])
        majors = [MN_MAJOR if _constant(given.get(f"trans_{name}"), 0) else K_MAJOR for name in "ab"]
        if "a_desc" in given:
            first = lane // 32 % 4 * ROWS
            at = _places(_number(turn, given["a_desc"], lane, "u64"), first, ROWS, stored, bits, majors[0])
            a = _elements(turn, at, bits, m.atype)
        else:
            a = elements(nodes, warps.registers("a")[line : line + 1], held["a"].layout, m.atype)[0]
        if is_sparse:
            own = Warps(turn, warps.numbers[line : line + 1])
            a = sparse_in_warps(own, a[None], given["sp_meta"], given["sp_sel"], m, bits)[0]
        at = _places(_number(turn, given["b_desc"], lane, "u64"), 0, columns, depth, bits, majors[1])
        b = _elements(turn, at, bits, m.btype or m.atype)
        c = None
        if "scale_d" not in given or _number(turn, given["scale_d"], lane, "pred"):
            c = elements(nodes, warps.registers("d")[line : line + 1], held["d"].layout, m.dtype)
        made.append(product_nodes(nodes, text, m.dtype, a[None], b[None], c, signs[0] * signs[1]).reshape(1, -1))
    warps.write(spread(turn, np.concatenate(made), held["d"].layout, "d"))


def _constant(operand: ir.Operand | None, otherwise: int) -> int:
    return operand.value if isinstance(operand, ir.Immediate) else otherwise


def _number(turn: Turn, operand: ir.Operand, thread: int, type: str) -> int:
    """What a thread has in an operand that is a plain number."""
    codes = turn.replay.read(turn.block, np.array([thread]), operand, type_named(type))
    return int(load(codes)[0])


@cache
def _places(descriptor: int, first: int, rows: int, depth: int, bits: int, major: int) -> Ids:
    """Where in shared memory the elements are of rows of A, or of columns of B."""
    each, size = CHUNK * 8 // bits, bits // 8
    found = np.zeros((rows, depth), np.int64)
    for row in range(rows):
        if major == K_MAJOR:
            for chunk in range(depth // each):
                start = int(chunk_offset(descriptor, first + row, chunk, major))
                found[row, chunk * each : (chunk + 1) * each] = start + size * np.arange(each)
        else:
            inside = (first + row) % each * size
            found[row] = [int(chunk_offset(descriptor, k, (first + row) // each, major)) + inside for k in range(depth)]
    return found


def _elements(turn: Turn, at: Ids, bits: int, type: str) -> Ids:
    """The nodes of elements in shared memory."""
    size = bits // 8
    codes = turn.memory.shared(turn.block)[at[:, :, None] + np.arange(size)]
    return node_of(turn.nodes, codes.reshape(-1, size), type).reshape(at.shape)
