"""The fragments of an instruction as matrices: what the registers of a warp hold, by row and column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxlab.debug.debugger import Debugger
from ptxlab.isa.held import Held
from ptxlab.isa.types import TYPES
from ptxlab.trace import registers as registers_of
from ptxlab.trace.lanes import matrices_of
from ptxlab.trace.operands import uses_of

_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "s32": np.int32,
}  # fmt: skip


@dataclass(frozen=True)
class WarpMatrix:
    """An operand that a warp holds in its registers; elements that are not known are NaN, or 0 of whole numbers."""

    operand: str
    title: str
    values: npt.NDArray[Any]


def matrices(debugger: Debugger) -> Iterator[WarpMatrix]:
    """The matrices of the instruction that the thread executes next; D is as the instruction leaves it."""
    instruction = debugger.instruction(debugger.thread)
    if instruction is None:
        return
    program = debugger.trace.program
    match = program.match(instruction)
    uses = uses_of(program.instructions[instruction][1], match)
    when = debugger.when_lanes_are_here()
    for operand, held in matrices_of(match).items():
        role = "result" if operand == "d" else "value"
        names = {use.index: use.name for use in uses if use.operand == operand and use.role == role}
        if names:
            yield WarpMatrix(operand, held.title, _values(debugger, held, names, when, after=role == "result"))


def _values(
    debugger: Debugger, held: Held, names: dict[int, str], when: dict[int, int], *, after: bool
) -> npt.NDArray[Any]:
    layout = held.layout
    size = debugger.trace.accesses.threads_in_block
    first = debugger.thread - debugger.thread % size % 32
    words = {
        (index, thread - first): _bits(debugger, thread, name, at + after)
        for thread, at in when.items()
        for index, name in names.items()
    }
    kind = next((word for word in re.findall(r"\w+", held.title) if word in TYPES), "")
    dtype = np.dtype(_DTYPES.get(kind, f"u{max(layout.bits // 8, 1)}"))
    found = np.zeros((layout.copies, layout.rows, layout.columns), dtype)
    each = max(layout.bits // 32, 1)
    for copy in range(layout.copies):
        for row in range(layout.rows):
            for column in range(layout.columns):
                register, lane, bit = layout.position(row, column, copy)
                word = words.get((register // each, lane))
                if word is None:
                    found[copy, row, column] = 0 if dtype.kind in "iu" else np.nan
                    continue
                bits = word if kind == "tf32" else word >> bit & (1 << layout.bits) - 1  # an f32 without its low bits
                data = bits.to_bytes(dtype.itemsize, "little")
                found[copy, row, column] = np.frombuffer(data, dtype)[0]
    whole = found[0] if layout.copies == 1 else found
    return whole.T if held.is_transposed and layout.copies == 1 else whole


def _bits(debugger: Debugger, thread: int, name: str, position: int) -> int | None:
    """What a register of a thread holds at a position."""
    columns = debugger.trace.columns
    written = registers_of.last_write(columns, thread, name, 2 * position + 1)
    return None if written is None else int.from_bytes(columns.bytes_at(written.entry, written.slot), "little")
