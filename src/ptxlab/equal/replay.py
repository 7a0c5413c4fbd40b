"""A recorded launch once more, on expressions: registers and memory hold bytes of nodes in place of numbers.

Paths, addresses and the order of memory accesses are those of the recording. Where they depend on an input the
recording is only one of several, and the comparison is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxlab import ir
from ptxlab.emulate.translate.operands import immediate_bits
from ptxlab.equal import collectives
from ptxlab.equal.batches import Batch, batches
from ptxlab.equal.calls import ActiveCalls
from ptxlab.equal.codes import NOTHING, ZERO, Codes, is_symbolic, node_of, of_bytes, of_nodes, of_numbers
from ptxlab.equal.compute import Computation, UnknownStepError, bytes_of
from ptxlab.equal.copies import LaunchCopies
from ptxlab.equal.memory import Memory, OutsideError, Placed
from ptxlab.equal.nodes import Ids, Nodes, Origin
from ptxlab.equal.plans import plans_of
from ptxlab.equal.turns import Turn
from ptxlab.equal.verdict import Refusal, RefusedError, source_of
from ptxlab.isa.types import Type
from ptxlab.trace.columns import Slot
from ptxlab.trace.operands import names_in

if TYPE_CHECKING:
    from ptxlab.trace import Trace

LANES = 32


class Replay:
    """The replay of one launch."""

    def __init__(
        self,
        trace: Trace,
        nodes: Nodes,
        placed: Sequence[Placed],
        side: int,
        launch: int,
        *,
        assumes_paths: bool = False,
    ) -> None:
        self.trace = trace
        self.columns = trace.columns
        self.program = trace.program
        self.nodes = nodes
        self.memory = Memory(trace, placed)
        self.compute = Computation(nodes)
        self.copies = LaunchCopies(self)
        self.calls: ActiveCalls = ActiveCalls(self)
        self.function = 0
        """The function that is replayed now; registers are by function and name."""
        self.plans = plans_of(trace.program)
        self.threads_in_block = trace.accesses.threads_in_block
        self.pending: dict[int, dict[int, Any]] = defaultdict(dict)
        """Results of an instruction of several lanes, for those that complete it later."""
        self.addresses: dict[int, dict[int, tuple[str, int]]] = defaultdict(dict)
        """Addresses that were noted when an instruction started to wait."""
        self.side, self.launch = side, launch
        self.assumes_paths = assumes_paths
        self.assumed: dict[int, None] = {}
        """The lines that branch on the value of an input, as they did in the recording."""
        self.conditions: list[Ids] = []
        """What they branch on."""
        self._registers: dict[int, dict[tuple[int, str], Codes]] = {}
        self._slots: dict[tuple[int, int], list[Slot]] = defaultdict(list)
        for number, segment in enumerate(self.columns.segments):
            for slot in segment.slots:
                self._slots[number, slot.instruction].append(slot)
        self.at = 0
        """The instruction that is replayed now."""

    def run(self) -> None:
        """Replay all of it."""
        last = {int(t) // self.threads_in_block: e for e, t in enumerate(self.columns.thread.tolist())}
        for batch in batches(self.trace, self.plans):
            self.copies.advance(batch.until)
            for block in [
                one for one in self._registers if one != batch.block and last[one] < int(batch.entries.min())
            ]:
                del self._registers[block]
            self._run(batch)
        self.copies.advance(len(self.columns) + 1)

    def refused(self, instruction: int, why: str) -> RefusedError:
        """What says that an instruction cannot be followed."""
        program, line = self.program, self.program.line(instruction)
        source = source_of(program.module, line)
        return RefusedError(Refusal(self.side, line, program.text(instruction), why, source))

    def _run(self, batch: Batch) -> None:
        for turn, number in enumerate(batch.path):
            segment, entries = self.columns.segments[number], batch.entries + turn
            if segment.flags:
                self.calls.pass_on(segment.flags, segment.function, batch.block, batch.threads)
            self.function = segment.function
            for slot in segment.slots:
                if slot.role in ("load", "store") and slot.instruction not in segment.index_of:
                    if self._allocates(slot.instruction):
                        self._store_recorded(slot, entries, batch.threads)
                    else:
                        self._note_address(slot, entries, batch.threads)
            for instruction, guard in segment.steps:
                plan = self.plans[instruction]
                if plan.kind == "pass":
                    continue
                self.at = instruction
                self.nodes.set_origin(Origin(self.side, self.launch, instruction))
                step = Turn(self, plan, number, segment, instruction, entries, batch)
                try:
                    step.run(guard)
                except UnknownStepError:
                    raise self.refused(instruction, "what it does with an input is not followed") from None
                except OutsideError:
                    raise self.refused(instruction, "it accesses memory that is not known") from None

    def _note_address(self, slot: Slot, entries: Ids, threads: Ids) -> None:
        held = self.held(entries, slot.guard)
        words = self.columns.words(entries[held], slot.offset, slot.bytes)
        noted = self.addresses[slot.instruction]
        named = slot.what.split()[0]
        for thread in threads[~held].tolist():
            noted.pop(thread, None)
        for thread, address in zip(threads[held].tolist(), words.tolist(), strict=True):
            noted[thread] = named, address

    def _allocates(self, instruction: int) -> bool:
        match = self.plans[instruction].match
        return match is not None and match.effects.does("tensor_memory", "allocate")

    def _store_recorded(self, slot: Slot, entries: Ids, threads: Ids) -> None:
        """Store what was recorded after an address: that of tensor memory which a warp has allocated."""
        held = self.held(entries, slot.guard)
        named, size = slot.what.split()
        words = self.columns.words(entries[held], slot.offset, slot.bytes).astype(np.int64)
        at = self.columns.offset[entries[held]] + slot.offset + slot.bytes
        data = of_bytes(self.columns.payload[at[:, None] + np.arange(int(size))])
        self.memory.store(*self.trace.accesses.resolve(named, words, threads[held]), data)

    def held(self, entries: Ids, guard: int) -> npt.NDArray[np.bool_]:
        """Whether a guard held in entries."""
        if guard < 0:
            return np.ones(len(entries), bool)
        found: npt.NDArray[np.bool_] = self.columns.payload[self.columns.offset[entries] + guard] != 0
        return found

    def slots(self, segment: int, instruction: int) -> list[Slot]:
        """What a segment recorded of an instruction."""
        return self._slots[segment, instruction]

    # Registers.

    def register(self, block: int, name: str) -> Codes:
        """The codes of a register in all threads of a block."""
        own = self._registers.setdefault(block, {})
        key = self.function, name
        if key not in own:
            width = 16 if name == collectives.ROW else bytes_of(self.program.type_of(self.function, name))
            own[key] = np.full((self.threads_in_block, width), NOTHING)
        return own[key]

    def read(self, block: int, threads: Ids, operand: ir.Operand, type: Type) -> Codes:
        """What threads of a block read of an operand, as wide as a type."""
        width = bytes_of(type)
        match operand:
            case ir.Register() | ir.VectorElement() | ir.Selection():
                (name,) = names_in(operand)
                own = self.program.type_of(self.function, name)
                return self.fit(self.register(block, name)[threads], own, width)
            case ir.Immediate():
                bits = immediate_bits(operand, type) & (1 << 8 * width) - 1
                if type.width == 1:
                    bits = int(bits != 0)
                if width > 8:
                    raise UnknownStepError
                return np.repeat(of_numbers(np.array([bits], np.uint64), width), len(threads), 0)
            case ir.Negated():
                given = self.read(block, threads, operand.operand, type)
                if is_symbolic(given).any():
                    return self.opposite(given, block * self.threads_in_block + threads)
                return np.where(given == ZERO, -2, ZERO)
        raise UnknownStepError

    def opposite(self, given: Codes, threads: Ids) -> Codes:
        """A predicate the other way round."""
        ids = node_of(self.nodes, given, "pred")
        made = self.nodes.add(self.nodes.operation("not", "", "pred", 1), ids, thread=threads)
        return np.where(given >= 0, of_nodes(made, 1), np.where(given == ZERO, -2, ZERO))

    def fit(self, codes: Codes, type: Type, width: int) -> Codes:
        """A value of a type as wide as a register: cut, or extended by its sign."""
        own = codes.shape[1]
        if own == width:
            return codes
        if own > width:
            return codes[:, :width]
        top = codes[:, -1:]
        if type.kind != "s":
            return np.pad(codes, ((0, 0), (0, width - own)), constant_values=ZERO)
        if (top >= 0).any():
            raise UnknownStepError
        return np.concatenate([codes, np.repeat(np.where(-1 - top > 127, -256, ZERO), width - own, 1)], axis=1)
