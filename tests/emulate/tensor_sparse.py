"""One `tcgen05.mma` with all that it can have: a sparse A, scale factors, a mask of columns, a shift of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import ptxlab
from ptxlab.isa.units.instruction_descriptor import STATIONARY, InstructionDescriptor
from tests.emulate.blackwell import launch
from tests.emulate.tensor_kernels import BODY, CLEAR, FILL, SHARED, TYPES, laid_out, patterns, values

# From column 256 of tensor memory on: A in eight columns, metadata in eight, factors of A in four and of B in four.
OPERANDS = """add.u32 %r31, %r15, 8; add.u32 %r32, %r15, 16; add.u32 %r33, %r15, 20; ld.global.u64 %rd20, [%rd2+80];
    """
# Of how many elements of a row one is stored, and how many bits metadata have for a chunk.
CHUNKS = {"tf32": (2, 1), "mxf4": (8, 4), "mxf4nvf4": (8, 4)}
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


@dataclass(frozen=True)
class Case:
    """An MMA; `size` is that of its scale factors."""

    said: InstructionDescriptor
    size: str = ""
    in_cells: bool = False
    a_mode: str = "128B"
    b_mode: str = "128B"
    ashift: bool = False
    mask: int | None = None
    max_shift: int = 0  # bits 30 and 31 of the instruction descriptor
    lane: int = 0
    metadata_lane: int | None = None
    metadata_column: int = 0
    seed: int = 1

    def __str__(self) -> str:
        place = "cells" if self.in_cells else self.a_mode
        return f"{self.said.kind}{self.said.form} {self.said} {place} {self.b_mode} {self.mask} {self.ashift}".replace(
            "/", ":"
        )


@dataclass
class Product:
    """What came of it: D, what D must be, and what was found."""

    d: np.ndarray
    expected: np.ndarray
    found: list[ptxlab.Diagnostic]


def choose(kind: str, rows: int, depth: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Which elements are stored, a mask of rows by depth, and the two-bit entries of metadata of each row."""
    many, few = CHUNKS.get(kind, (4, 2))
    chosen = random.integers(0, 6, (rows, depth // many))
    kept = np.zeros((rows, depth // many, many), bool)
    entries = np.zeros((rows, depth // many, 2), np.uint32)
    for row, chunk in np.ndindex(chosen.shape):
        if many == 2:
            place = int(chosen[row, chunk]) % 2
            kept[row, chunk, place] = True
            entries[row, chunk] = (2, 3) if place else (0, 1)  # 0b1110 and 0b0100
        else:
            pair = PAIRS[chosen[row, chunk]]
            entries[row, chunk] = pair
            for index in pair:
                kept[row, chunk, index * few // 2 : (index + 1) * few // 2] = True
    return kept.reshape(rows, depth), entries.reshape(rows, -1)


def words_of(entries: np.ndarray, is_long: bool) -> np.ndarray:
    """Metadata as two columns of words, a line for each row (PTX ISA 9.7.16.10.8.4, as JAX's Mosaic writes them)."""
    rows = len(entries)
    if not is_long:
        apart = entries.reshape(rows // 16, 2, 8, 2, 8).transpose(0, 3, 2, 1, 4)
        entries = apart.reshape(rows, 16)
    shifts = 2 * np.arange(16, dtype=np.uint32)
    words = (entries.reshape(rows, -1, 16) << shifts).sum(axis=2, dtype=np.uint32)
    return np.concatenate([words, words ^ 0xFFFFFFFF], axis=1)[:, :2]


def lanes_of(said: InstructionDescriptor, lane: int) -> np.ndarray:
    """The lanes of each row: of 128, of half of them, or several copies."""
    if said.rows == 128:
        return np.arange(128).reshape(1, 128)
    if said.form == STATIONARY:
        return np.arange(128).reshape(128 // said.rows, said.rows)
    return (np.arange(64) % 16 + np.arange(64) // 16 * 32 + lane).reshape(1, 64)


def in_bytes(array: np.ndarray, type: str, kind: str) -> np.ndarray:
    """Rows as they are in tensor memory, 32 bytes each."""
    bits = TYPES[type][1]
    found = patterns(array, type)
    if kind.startswith("mxf4"):
        return (found[:, ::2] | found[:, 1::2] << 4).astype(np.uint8)
    if bits < 8:
        return (found << (2 if bits == 4 else 0)).astype(np.uint8)
    return found.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits]).view(np.uint8)


def run(case: Case) -> Product:
    """Multiply random integers."""
    said, random = case.said, np.random.default_rng(case.seed)
    is_sparse, padded = said.selector is not None, not said.kind.startswith("mxf4")
    stored = said.depth // (2 if is_sparse else 1)
    packed = values(said.atype, said.rows, stored, random, exact=True)
    b = values(said.btype, said.columns + 32, said.depth, random, exact=True)
    whole = packed.astype(np.float64)
    cells = np.zeros((3, 128, 32), np.uint8)
    lanes = lanes_of(said, case.lane)
    cells[0][lanes] = in_bytes(packed, said.atype, said.kind)
    if case.ashift:
        cells[0] = np.roll(cells[0].reshape(4, 32, 32), 1, axis=1).reshape(128, 32)
        last = np.arange(31, said.rows, 32)
        whole[last] = whole[last - 1]
    if is_sparse:
        kept, entries = choose(said.kind, said.rows, said.depth, random)
        dense = np.zeros((said.rows, said.depth))
        dense[kept] = whole.reshape(-1)
        whole = dense
        is_long = said.kind not in ("f16", "tf32")
        words = words_of(entries, is_long)
        if said.selector and not is_long:
            words = words[:, ::-1]
        cells[1].view(np.uint32)[lanes, :2] = words
    left, right, factors = scales(case, random)
    cells[2] = factors
    bytes_of_a, a_descriptor = laid_out(packed, said.atype, 0, case.a_mode, said.transpose_a, padded)
    data = bytes_of_a.ljust(-(-len(bytes_of_a) // 1024) * 1024, b"\0")
    bytes_of_b, b_descriptor = laid_out(b, said.btype, len(data), case.b_mode, said.transpose_b, padded)
    data = (data + bytes_of_b).ljust(-(-len(data + bytes_of_b) // 2048) * 2048, b"\0")
    given = [a_descriptor, b_descriptor, said.encode() | case.max_shift << 30, len(data) // 16, said.columns, 1, 0, 0]
    given += [case.lane << 16, (case.lane << 16) + 256, case.mask or 0]
    out = np.zeros((128, said.columns), np.uint32)
    args: list[Any] = [out, np.frombuffer(data + cells.tobytes(), np.uint8).copy(), np.array(given, np.uint64)]
    body = BODY.replace("PREPARE", CLEAR + FILL.replace("%r13", "3")).replace("MULTIPLY", OPERANDS + text_of(case))
    found = launch(body, args, shared=SHARED).diagnostics
    whole, b = whole * left * (-1 if said.negate_a else 1), b.astype(np.float64)
    shift = 0 if case.mask is None else case.mask >> 56 & 63
    factor = right * (-1 if said.negate_b else 1)
    expected = whole @ (b[shift : shift + said.columns] * factor[: said.columns]).T
    return Product(result_of(out, said, lanes), expected, found)


def text_of(case: Case) -> str:
    """The instruction."""
    said = case.said
    ws = ".ws" if said.form == STATIONARY else ""
    sparse, metadata = (".sp", "[%r31], ") if said.selector is not None else ("", "")
    offset = case.metadata_column
    if case.metadata_lane is not None:
        offset += (case.metadata_lane - case.lane) << 16
    before = f"add.u32 %r31, %r31, {offset};\n    " if offset else ""
    scale, factors = (f".block_scale.{case.size}", "[%r32], [%r33], ") if case.size else ("", "")
    mask = "" if case.mask is None else ", %rd20"
    a = "[%r15]" if case.in_cells else "%rd10"
    ashift = ".ashift" if case.ashift else ""
    opcode = f"tcgen05.mma{ws}{sparse}.cta_group::1.kind::{said.kind}{scale}{ashift}"
    return f"{before}{opcode} [%r14], {a}, %rd11, {metadata}%r10, {factors}%p2{mask}; // here"


def scales(case: Case, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What elements of A and B are multiplied by, and the bytes of tensor memory with it."""
    said = case.said
    cells = np.zeros((128, 8, 4), np.uint8)
    found = []
    for at, rows in ((0, said.rows), (4, said.columns)):
        bits = random.integers(125, 130, (rows, 4)).astype(np.uint8)
        for row in range(rows if case.size else 0):
            cells[row % 32 :: 32, at + row // 32] = bits[row]
        count = int(case.size[-2]) if case.size else 1
        each = said.depth // count
        numbers = 2.0 ** (bits[:, :count].astype(np.float64) - 127) if case.size else np.ones((rows, 1))
        found.append(np.repeat(numbers, each, axis=1))
    return found[0], found[1], cells.reshape(128, 32)


def result_of(out: np.ndarray, said: InstructionDescriptor, lanes: np.ndarray) -> np.ndarray:
    """D as it is in the lanes of tensor memory."""
    copies = len(lanes)
    parts = [out[lane, : said.columns // copies] for lane in lanes]
    whole = np.ascontiguousarray(np.concatenate(parts, axis=1))
    if said.dtype == "f16":
        return whole.astype(np.uint16).view(np.float16)
    return whole.view(np.int32 if said.dtype == "s32" else np.float32)
