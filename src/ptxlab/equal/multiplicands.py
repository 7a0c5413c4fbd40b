"""Rows of A and columns of B as an MMA multiplies them: from shared memory, with scale factors, with zeros."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab import ir
from ptxlab.equal.codes import NOTHING, Codes, load, node_of
from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.equal.rules import is_constant
from ptxlab.isa.types import type_named
from ptxlab.isa.units.descriptor import MN_MAJOR
from ptxlab.isa.units.fragment import ELEMENT_BITS
from ptxlab.isa.units.layouts import Layout, kept_of, metadata

if TYPE_CHECKING:
    from ptxlab.equal.collectives import Warps
    from ptxlab.equal.turns import Turn


@cache
def chunks(offset: Any, descriptor: int, rows: int, count: int, major: int) -> Ids:
    """Where in shared memory chunks of 16 bytes start, by row and chunk; transposed, by k and chunk of rows."""
    return np.array([[int(offset(descriptor, row, chunk, major)) for chunk in range(count)] for row in range(rows)])


def in_shared(
    turn: Turn,
    block: int,
    start: tuple[object, int],
    major: int,
    lines: Ids,
    depth: int,
    bits: int,
    each: int,
    type: str,
) -> Ids:
    """Rows of A, or columns of B, in shared memory: `start` is the function of the chunks, and the descriptor."""
    k, line, last = np.arange(depth), lines[:, None], int(lines[-1]) + 1
    if major == MN_MAJOR:
        first, bit = chunks(*start, depth, -(-last // each), MN_MAJOR)[k, line // each], line % each * bits + 0 * k
    else:
        first, bit = chunks(*start, last, -(-depth // each), major)[line, k // each], k % each * bits + 0 * line
    memory = turn.memory.shared(block)
    return at_bits(turn, lambda byte: memory[first + byte], bit, bits, type)


def at_bits(turn: Turn, byte_at: Callable[[Ids], Codes], bit: Ids, bits: int, type: str) -> Ids:
    """Elements of so many bits, by the bit where each starts."""
    if bits == 6 and (bit % 8 + bits > 8).any():
        raise turn.refused("elements of six bits side by side are not followed")
    codes = np.stack([byte_at(bit // 8 + n) for n in range(max(bits // 8, 1))], axis=-1)
    if (codes == NOTHING).any():
        raise turn.refused("it reads tensor memory that nothing has written")
    if bits >= 8:
        return node_of(turn.nodes, codes.reshape(-1, bits // 8), type).reshape(bit.shape)
    return parts_of_bytes(turn.nodes, node_of(turn.nodes, codes.reshape(-1, 1), "b8"), (bit % 8).ravel(), bits,
                          type).reshape(bit.shape)  # fmt: skip


def parts_of_bytes(nodes: Nodes, ids: Ids, bit: Ids, bits: int, type: str) -> Ids:
    """The nodes of elements of less than a byte, by the nodes of the bytes, and the lowest bit of each."""
    found = np.zeros_like(ids)
    is_open = ~is_constant(nodes, ids)
    if not is_open.all():
        numbers = nodes.operands[0, ids[~is_open]] >> bit[~is_open] & (1 << bits) - 1
        unique, back = np.unique(numbers.view(np.uint64), return_inverse=True)
        found[~is_open] = nodes.constants(unique, type, 1)[back]
    for start in np.unique(bit[is_open]).tolist():
        chosen = (bit == start) & is_open
        found[chosen] = nodes.add(nodes.operation("part", f"{bits} bits at {start}", type, 1), ids[chosen])
    return found


def scaled(nodes: Nodes, rows: Ids, factors: Ids, types: str) -> Ids:
    """Elements, each by the factor of its block: lines of elements, and of factors; `types` are those of both."""
    own = np.repeat(factors, rows.shape[-1] // factors.shape[-1], axis=-1)
    operation = nodes.operation("scaled", types, "f64", 8)
    return nodes.add(operation, rows.ravel(), own.ravel()).reshape(rows.shape)


def with_zeros(nodes: Nodes, stored: Ids, choices: Ids, kept: int, type: str) -> Ids:
    """Rows of a sparse A as they are multiplied, by the two bits that metadata have for each stored element."""
    index = np.arange(stored.shape[-1])
    columns = 2 * (index - index % kept) + (choices * kept >> 1) + (index & kept >> 2)
    width = max(ELEMENT_BITS[type] // 8, 1)
    (zero,) = nodes.constants(np.zeros(1, np.uint64), type, width)
    found = np.full((*stored.shape[:-1], 2 * stored.shape[-1]), zero)
    np.put_along_axis(found, columns, stored, axis=-1)
    return found


def sparse_in_warps(warps: Warps, stored: Ids, operand: ir.Operand, selector: ir.Operand, m: Any, bits: int) -> Ids:
    """Rows of a sparse A in registers, by warp; the metadata are in the registers of some lanes."""
    assert isinstance(selector, ir.Immediate)
    layout: Layout = metadata(m.shape, m.atype, selector.value, bits)
    codes = warps.read(operand, type_named("b32"))
    if (codes >= 0).any():
        raise warps.turn.refused("the metadata of a sparse matrix depend on the value of an input")
    words = load(codes.reshape(-1, 4)).astype(np.int64).reshape(codes.shape[:2])
    at = np.array(layout.positions)
    choices = (words[:, at >> 5 & 31] >> (at & 31) & 3).reshape(len(words), layout.rows, layout.columns)
    return with_zeros(warps.turn.nodes, stored, choices, kept_of(bits), m.atype)


def scales_in_warps(warps: Warps, given: dict[str, ir.Operand], name: str, rows: int, blocks: int, type: str) -> Ids:
    """The scale factors of rows of A, or of columns of B, by warp: in bytes of some lanes of each four."""
    turn = warps.turn
    select = given[f"select_{name}"]
    assert isinstance(select, ir.Vector)
    byte, lane = (int(load(warps.read(one, type_named("u16"))[0, :1])[0]) for one in select.elements)
    row = np.arange(rows)
    lanes = row % 8 * 4 + (2 * lane + row // 8 if name == "a" else lane)
    codes = warps.read(given[f"scale_{name}"], type_named("b32"))[:, lanes][:, :, byte : byte + blocks]
    return node_of(turn.nodes, codes.reshape(-1, 1), type).reshape(codes.shape)
