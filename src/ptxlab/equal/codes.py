"""Bytes of registers and memory while a launch is replayed: each is a byte of a node, or a plain number.

A code of 0 or more is `node * 8 + byte`; a negative one is a number, -1 for 0 down to -256 for 255. Loads, stores,
copies and packing only move codes, whatever the width of what they move.

>>> load(of_numbers(np.array([258], np.uint64), 4)).tolist()
[258]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ptxlab.equal.nodes import Ids, Nodes, Words

Codes = npt.NDArray[np.int64]
"""A line for each thread, a column for each byte."""
ZERO = -1
NOTHING = -1000
"""The code of a byte of a register, or of tensor memory, that nothing has written."""


def of_bytes(given: npt.NDArray[np.uint8]) -> Codes:
    """The codes of plain bytes."""
    return -1 - given.astype(np.int64)


def of_numbers(numbers: Words, width: int) -> Codes:
    """The codes of plain numbers of up to 8 bytes."""
    found = np.ascontiguousarray(numbers, "<u8").view(np.uint8).reshape(-1, 8)[:, : min(width, 8)]
    codes = of_bytes(found)
    return codes if width <= 8 else np.pad(codes, ((0, 0), (0, width - 8)), constant_values=ZERO)


def of_nodes(ids: Ids, width: int) -> Codes:
    """The codes of whole nodes."""
    return (ids[:, None] << 3) + np.arange(width)


def load(codes: Codes) -> Words:
    """The plain numbers of some codes; of up to 8 bytes."""
    wide = np.zeros((len(codes), 8), np.uint8)
    wide[:, : codes.shape[1]] = (-1 - codes[:, :8]).astype(np.uint8)
    return wide.view("<u8")[:, 0]


def is_symbolic(codes: Codes) -> npt.NDArray[np.bool_]:
    """For each line, whether any byte is one of a node."""
    found: npt.NDArray[np.bool_] = np.logical_or.reduce(codes >= 0, axis=-1)
    return found


def node_of(nodes: Nodes, codes: Codes, type: str) -> Ids:
    """The node of each line: the one whose bytes these are, a constant, or one that puts bytes together."""
    width = codes.shape[1]
    first = codes[:, 0]
    ids = first >> 3
    is_whole = (first >= 0) & (first & 7 == 0)
    if width > 1:
        is_whole &= (codes[:, 1:] == first[:, None] + np.arange(1, width)).all(-1)
    is_whole &= nodes.width[np.where(is_whole, ids, 0)] == width if nodes.count else False
    if is_whole.all():
        return ids
    found = np.where(is_whole, ids, 0)
    is_open = (codes == NOTHING).any(-1)
    if is_open.any():
        found[is_open] = nodes.unwritten(int(is_open.sum()), type, width)
    is_plain = ~is_symbolic(codes) & ~is_open
    if is_plain.any() and width <= 8:
        own = load(codes[is_plain])
        unique, back = np.unique(own, return_inverse=True)
        found[is_plain] = nodes.constants(unique, type, width)[back]
        is_whole |= is_plain
    others = np.flatnonzero(~is_whole & ~is_open)
    if len(others):
        found[others] = _joined(nodes, codes[others], type)
    return found


def _joined(nodes: Nodes, codes: Codes, type: str) -> Ids:
    """Nodes of bytes that are of several nodes, or of a part of one."""
    width = codes.shape[1]
    ids = np.where(codes >= 0, codes >> 3, codes)
    inside = np.where(codes >= 0, codes & 7, 0)
    patterns, back = np.unique(np.concatenate([inside, codes < 0], axis=1), axis=0, return_inverse=True)
    found = np.zeros(len(codes), np.int64)
    for number, pattern in enumerate(patterns):
        chosen = np.flatnonzero(back.ravel() == number)
        text = " ".join("#" if plain else str(at) for at, plain in zip(pattern[:width], pattern[width:], strict=True))
        operation = nodes.operation("bytes", text, type, width)
        found[chosen] = nodes.add(operation, nodes.rows(ids[chosen]))
    return found
