"""Rows of A and B of an MMA that are not as they are stored: with a scale factor for each block, or without zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab import ir
from ptxlab.equal.codes import load, node_of
from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.isa.types import type_named
from ptxlab.isa.units.fragment import ELEMENT_BITS
from ptxlab.isa.units.layouts import Layout, kept_of, metadata

if TYPE_CHECKING:
    from ptxlab.equal.collectives import Warps


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
