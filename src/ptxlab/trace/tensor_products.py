"""What MMAs leave in tensor memory: a recording does not have it, so it is computed again from what they read.

An MMA reads shared memory some time after it is started; here, that is as it is when it starts. The two differ only
where a kernel writes operands before it has waited for the MMA, which the emulator reports.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.isa.asynchronous import Mma
from ptxlab.isa.units.instruction_descriptor import PAIR
from ptxlab.isa.units.tensor_mma import multiply_in_tensor_memory
from ptxlab.isa.units.tensor_tile import TensorMma, Tile, describe_tile
from ptxlab.native import size_of
from ptxlab.native.engine import compiled
from ptxlab.native.types import field_of
from ptxlab.trace.accesses import SHARED, Accesses, unwritten
from ptxlab.trace.lanes import Executed
from ptxlab.trace.operands import names_in
from ptxlab.trace.tensor_memory import address_of
from ptxlab.values import Json

if TYPE_CHECKING:
    from ptxlab.trace.finder import Finder

Cells = npt.NDArray[np.uint32]
_NOT_A_NUMBER = 0x7FFFFFFF  # in each format that words or their parts can have
_LANES_IN_WORDS = 4  # of 32 bits, the lanes of a block


class Products:
    """Computes MMAs of a recorded launch."""

    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self._shared: dict[int, _SharedMemory] = {}

    def multiply(self, step: Executed, block: int, cells: Cells, known: npt.NDArray[np.bool_]) -> bool:
        """Do an MMA on the tensor memory of a block, by lane and column; False if its operands are not known.

        A word of the result is known if it is the same whatever the words are that are not known.
        """
        mma = started(self.finder, step)
        if mma is None:
            return False
        own = step.thread // self.finder.accesses.threads_in_block
        first, second = (own & ~1, own | 1) if mma.form == PAIR else (block, block)
        memories = [self._memory(one, step.key) for one in (block, first, second)]
        lanes = np.zeros(2 * _LANES_IN_WORDS, np.uint32)
        lanes[: len(mma.disabled_lanes)] = mma.disabled_lanes
        own_lanes = lanes[_LANES_IN_WORDS:].copy() if mma.form == PAIR and block & 1 else lanes
        one, other = (np.where(known, cells, np.uint32(fill)) for fill in (0, _NOT_A_NUMBER))
        for found in (one, other):
            _code()(np.frombuffer(_record(mma), np.uint8), found, *memories, own_lanes)
        known[:] = one == other
        cells[:] = one
        return True

    def _memory(self, block: int, key: int) -> npt.NDArray[np.uint8]:
        if block not in self._shared:
            self._shared[block] = _SharedMemory(self.finder.accesses, block)
        return self._shared[block].before(key)


class _SharedMemory:
    """The shared memory of a block, at one time after the other."""

    def __init__(self, accesses: Accesses, block: int) -> None:
        self._accesses = accesses
        rows = accesses.writes
        self._rows = rows.take(np.flatnonzero((rows.space == SHARED) & (rows.owner == block)))
        self._content = unwritten(0, accesses.shared_size)
        self._done = 0

    def before(self, key: int) -> npt.NDArray[np.uint8]:
        """What it holds before `key`."""
        past = int(np.searchsorted(self._rows.key, key))
        if past < self._done:
            self._content[:] = unwritten(0, len(self._content))
            self._done = 0
        self._accesses.write(self._rows.take(slice(self._done, past)), 0, self._content)
        self._done = past
        return self._content


def started(finder: Finder, step: Executed) -> Mma[int, int] | None:
    """An MMA with the values of its operands; None if some are not known."""
    instruction = finder.program.instructions[step.instruction][1]
    return mma_of(
        instruction, finder.program.match(step.instruction), lambda name, given: _value(finder, step, name, given)
    )


def mma_of(
    instruction: ir.Instruction, match: Match | None, value: Callable[[str, ir.Operand], object]
) -> Mma[int, int] | None:
    """The MMA that an instruction starts; `value` gives the value of an operand, or None if it is not known."""
    semantics = None if match is None else match.form.semantics
    if match is None or semantics is None:
        return None
    given: Json = {}
    for expected, operand in zip(match.expected, instruction.operands, strict=True):
        given[expected.name] = found = value(expected.name, operand)
        if found is None:
            return None
    machine = _Starting()
    names = semantics.__code__.co_varnames[2 : semantics.__code__.co_argcount]
    semantics(machine, match.candidate.modifiers, *(given.get(name) for name in names))
    started: Mma[int, int] | None = machine.found
    return started


def tile_of(mma: Mma[int, int]) -> Any:
    """The part of tensor memory of a block that an MMA writes."""
    tile: Any = Tile(cells=None, first=0, lane=0, rows=0, columns=0, width=0, disabled_lanes=())  # type: ignore[arg-type]
    given: Any = SimpleNamespace(
        instruction_descriptor=mma.instruction_descriptor, kind=mma.kind, form=mma.form, d=mma.d,
        is_sparse=int(mma.metadata is not None),
    )  # fmt: skip
    describe_tile(given, tile)
    return tile


class _Starting:
    """A machine whose values are integers, and that only notes which MMA is started."""

    def __init__(self) -> None:
        self.found: Mma[int, int] | None = None
        self.tensor_memory = self

    def cast(self, value: int, type: str) -> int:
        """The bits are the same."""
        return value

    def address(self, given: int) -> int:
        """An address is given as the number that it is."""
        return given

    def multiply(self, mma: Mma[int, int]) -> None:
        """Note an MMA."""
        self.found = mma


def _value(finder: Finder, step: Executed, name: str, operand: Any) -> Any:
    """What an operand was; None if that is not known."""
    match operand:
        case ir.Address():
            return address_of(finder, step, name)
        case ir.Immediate():
            return operand.value
        case ir.Negated():
            opposite = _value(finder, step, name, operand.operand)
            return None if opposite is None else int(not opposite)
        case ir.Vector():
            found = [_value(finder, step, name, element) for element in operand.elements]
            return None if None in found else tuple(found)
    return next((finder.value(step.thread, register, step.key) for register in names_in(operand)), None)


def _record(mma: Mma[int, int]) -> bytes:
    """The structure that the computation takes."""
    found = bytearray(size_of(TensorMma))
    values = {
        "is_sparse": int(mma.metadata is not None), "has_long_rows": 1,
        **{name: int(getattr(mma, name) or 0) for name in TensorMma.__annotations__ if hasattr(mma, name)
           and name != "disabled_lanes"},
    }  # fmt: skip
    for name, value in values.items():
        offset, type = field_of(TensorMma, name)
        found[offset : offset + type.stride] = value.to_bytes(type.stride, "little")
    return bytes(found)


@cache
def _code() -> Any:
    """The computation as machine code."""
    return compiled(multiply_in_tensor_memory, speed=1)
