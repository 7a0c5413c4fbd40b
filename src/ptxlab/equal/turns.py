"""One instruction of a replay, for the threads of a batch: plain instructions, loads and stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxlab import ir
from ptxlab.equal import collectives, tensor_memory, updates, warpgroups
from ptxlab.equal.batches import Batch
from ptxlab.equal.codes import NOTHING, Codes, is_symbolic, load, node_of, of_bytes
from ptxlab.equal.compute import UnknownStepError
from ptxlab.equal.nodes import Ids
from ptxlab.equal.plans import InstructionPlan
from ptxlab.equal.verdict import RefusedError
from ptxlab.flow.engine import operands_of
from ptxlab.flow.steps import Step
from ptxlab.isa import Match
from ptxlab.isa.types import Type, type_named
from ptxlab.trace.columns import Segment, Slot
from ptxlab.trace.operands import names_in

if TYPE_CHECKING:
    from ptxlab.equal.replay import Replay


class Turn:
    """One instruction of a batch: which threads execute it, what they read and write."""

    def __init__(
        self,
        replay: Replay,
        plan: InstructionPlan,
        number: int,
        segment: Segment,
        instruction: int,
        entries: Ids,
        batch: Batch,
    ) -> None:
        self.replay, self.plan, self.number, self.segment = replay, plan, number, segment
        self.instruction, self.entries, self.block = instruction, entries, batch.block
        self.grid_threads = batch.threads
        self.threads = batch.threads - batch.block * replay.threads_in_block
        """The numbers of its threads in the block."""
        self.memory, self.nodes = replay.memory, replay.nodes

    def refused(self, why: str) -> RefusedError:
        """What says that this instruction cannot be followed."""
        return self.replay.refused(self.instruction, why)

    @property
    def match(self) -> Match:
        """The form of the instruction."""
        assert self.plan.match is not None
        return self.plan.match

    @property
    def operands(self) -> dict[str, ir.Operand]:
        """The operands by their names in the syntax."""
        return dict(zip((e.name for e in self.match.expected), self.plan.instruction.operands, strict=True))

    def plain(self, operand: ir.Operand, thread: int, type: str = "b64") -> Any:
        """What a thread has in an operand that is a plain number, an address included."""
        if isinstance(operand, ir.Vector):
            return tuple(self.plain(one, thread, "b32") for one in operand.elements)
        if isinstance(operand, ir.Negated):
            return int(not self.plain(operand.operand, thread, type))
        if isinstance(operand, ir.Immediate):
            return operand.value
        base = operand.base if isinstance(operand, ir.Address) else operand
        codes = self.replay.read(self.block, np.array([thread]), base, type_named(type))
        if is_symbolic(codes).any():
            raise self.refused("a descriptor or an address depends on the value of an input")
        found = int(load(codes)[0])
        mask = 0xFFFFFFFF if found <= 0xFFFFFFFF else (1 << 64) - 1
        return found + operand.offset & mask if isinstance(operand, ir.Address) else found

    def run(self, guard: int) -> None:
        """Do what the plan says, for those threads whose guard holds."""
        for use in self.plan.inputs:
            if use.role == "guard":
                symbolic = is_symbolic(self.replay.register(self.block, use.name)[self.threads])
                if symbolic.any():
                    self._choose(symbolic)
                    return
        self.keep_guarded(guard)
        if len(self.entries):
            self._do()

    def keep_only(self, held: npt.NDArray[np.bool_]) -> None:
        """Leave some threads out."""
        self.entries, self.threads = self.entries[held], self.threads[held]
        self.grid_threads = self.grid_threads[held]

    def keep_guarded(self, guard: int) -> None:
        """Leave out the threads in which a guard did not hold."""
        held = self.replay.held(self.entries, guard) if guard >= 0 else None
        if held is not None and not held.all():
            self.keep_only(held)

    def _choose(self, symbolic: npt.NDArray[np.bool_]) -> None:
        """An instruction whose guard depends on an input: it chooses between the old value and the new one."""
        effects = self.plan.match.effects if self.plan.match is not None else None
        if effects is not None and effects.jump is not None:
            self.assume()
            predicate = self.plan.instruction.guard
            assert predicate is not None
            codes = self.replay.register(self.block, predicate.register.name)[self.threads[symbolic]]
            self.replay.conditions.append(node_of(self.nodes, codes, "pred"))
            return
        if self.plan.kind not in ("compute", "keep") or self.plan.steps is None:
            raise self.refused("whether it is executed depends on the value of an input")
        guard = self.plan.instruction.guard
        assert guard is not None
        condition = self.replay.register(self.block, guard.register.name)[self.threads]
        if guard.negated:
            condition = self.replay.opposite(condition, self.grid_threads)
        old = {use.name: self.replay.register(self.block, use.name)[self.threads].copy() for use in self.results}
        self.compute(all_symbolic=True)
        for use in self.results:
            register = self.replay.register(self.block, use.name)
            type = self.replay.program.type_of(self.replay.function, use.name)
            step = Step("select", type, (0, 1, 2), type)
            new = register[self.threads]
            register[self.threads] = self.replay.compute.select(
                step, [condition, new, old[use.name]], self.grid_threads
            )

    @property
    def results(self) -> list[Any]:
        return [use for use in self.plan.uses if use.role == "result"]

    def _do(self) -> None:
        if self.plan.kind not in _DONE:
            raise self.refused(f"an input reaches it, and `{self.plan.kind}` is not followed")
        _DONE[self.plan.kind](self)

    # What was recorded.

    def recorded(self, name: str) -> Codes | None:
        """What a register got, as it was recorded."""
        for slot in self.replay.slots(self.number, self.instruction):
            if slot.role == "register" and slot.what == name:
                return self.bytes_at(slot)
        return None

    def bytes_at(self, slot: Slot) -> Codes:
        """The bytes of a slot."""
        columns = self.replay.columns
        at = columns.offset[self.entries][:, None] + slot.offset + np.arange(slot.bytes)
        return of_bytes(columns.payload[at])

    def keep(self) -> None:
        """The results are as they were recorded."""
        for use in self.results:
            found = self.recorded(use.name)
            if found is not None:
                self.write(use.name, found)

    def write(self, name: str, codes: Codes, type: Type | None = None) -> None:
        """Write a register."""
        register = self.replay.register(self.block, name)
        if codes.shape[1] != register.shape[1]:
            codes = self.replay.fit(
                codes, type or self.replay.program.type_of(self.replay.function, name), register.shape[1]
            )
        register[self.threads] = codes

    def read(self, operand: ir.Operand, type: Type) -> Codes:
        """What the threads read of an operand."""
        return self.replay.read(self.block, self.threads, operand, type)

    def is_reached(self) -> npt.NDArray[np.bool_]:
        """In which threads an input reaches what the instruction reads."""
        found = np.zeros(len(self.threads), bool)
        for use in self.plan.inputs:
            found |= is_symbolic(self.replay.register(self.block, use.name)[self.threads])
        return found

    def check(self) -> None:
        """Refuse an instruction that an input reaches."""
        if self.is_reached().any():
            effects = self.plan.match.effects if self.plan.match else None
            if effects is None or not (effects.jump is not None or (effects.uniform and effects.converges)):
                raise self.refused("an input reaches its operands")
            self.assume()
        self.keep()

    def assume(self) -> None:
        """Go the way of the recording where that depends on an input, if that is asked for."""
        if not self.replay.assumes_paths:
            raise self.refused(
                "it branches on the value of an input: say `assume_paths` for inputs that go the same way"
            )
        self.replay.assumed[self.replay.program.line(self.instruction)] = None

    # Plain instructions.

    def compute(self, *, all_symbolic: bool = False) -> None:
        """An instruction on registers."""
        reached = np.ones(len(self.threads), bool) if all_symbolic else self.is_reached()
        if not reached.any():
            self.keep()
            return
        steps, plan = self.plan.steps, self.plan
        if steps is None or plan.match is None:
            raise UnknownStepError
        own, grid = self.threads[reached], self.grid_threads[reached]
        given = operands_of(plan.instruction, plan.match)

        def operand(detail: Any, type: Type) -> Codes:
            return self.replay.read(self.block, own, given[detail], type)

        results = self.replay.compute.run(steps, operand, grid)
        written: list[tuple[Codes, Codes]] = []
        for (name, number), codes in results.items():
            target = _result(plan.instruction, plan.match, name, number)
            if target is None:
                continue
            register = self.replay.register(self.block, target)
            type = steps.results[name, number].type
            written.append((register, self.replay.fit(codes, type, register.shape[1])))
        if not reached.all():  # after the operands were read: a result may be one of them
            self.keep_only(~reached)
            self.keep()
        for register, fitted in written:
            register[own] = fitted

    # Memory.

    def check_addresses(self) -> None:
        """Refuse an address that an input reaches."""
        for use in self.plan.inputs:
            if use.role == "address":
                codes = self.replay.register(self.block, use.name)[self.threads]
                if is_symbolic(codes).any():
                    raise self.refused("its address depends on the value of an input")

    def access(self, role: str, index: int = 0) -> tuple[Slot, Ids, Ids, Ids, int] | None:
        """Where an instruction accesses memory: the slot, state spaces, owners, addresses, and how many bytes."""
        slots = [slot for slot in self.replay.slots(self.number, self.instruction) if slot.role == role]
        if index >= len(slots):
            return None
        slot = slots[index]
        self.keep_guarded(slot.guard)
        if not len(self.entries):
            return None
        named, size = slot.what.split()
        words = self.replay.columns.words(self.entries, slot.offset, slot.bytes).astype(np.int64)
        return slot, *self.replay.trace.accesses.resolve(named, words, self.grid_threads), int(size)

    def load(self) -> None:
        """A load: the codes of memory, which are the plain bytes that were recorded where no input is."""
        self.check_addresses()
        if any(slot.guard >= 0 for slot in self.replay.slots(self.number, self.instruction) if slot.role == "load"):
            self.keep()
        found = self.access("load")
        if found is None:
            return
        _, space, owner, address, size = found
        self.receive(self.memory.load(space, owner, address, size))

    def receive(self, codes: Codes) -> None:
        """Write what was loaded to the results, as far as it is what was recorded."""
        result = self.match.expected[0]
        each = codes.shape[1] // max(result.count or 1, 1)
        for use in self.results:
            if use.operand != result.name:
                continue
            part = codes[:, use.index * each : use.index * each + each]
            type = result.type or self.replay.program.type_of(self.replay.function, use.name)
            fitted = self.replay.fit(part, type, self.replay.register(self.block, use.name).shape[1])
            symbolic, recorded = is_symbolic(part), self.recorded(use.name)
            if not symbolic.all() and recorded is not None:
                fitted = np.where(fitted == NOTHING, recorded, fitted)
                if (fitted[~symbolic] != recorded[~symbolic]).any():
                    raise self.refused("it reads what something has written that is not followed")
            self.write(use.name, fitted)

    def store(self) -> None:
        """A store of registers side by side."""
        self.check_addresses()
        found = self.access("store")
        if found is None:
            return
        _, space, owner, address, size = found
        self.memory.store(space, owner, address, self.values(size))

    def values(self, size: int) -> Codes:
        """The registers that a store writes, side by side, of so many bytes."""
        operand, type = next(
            (operand, expected.type)
            for operand, expected in zip(self.plan.instruction.operands, self.match.expected, strict=True)
            if expected.kind == "value" and expected.role == "read" and expected.name not in ("cache_policy",)
        )
        assert type is not None
        elements = operand.elements if isinstance(operand, ir.Vector) else (operand,)
        width = size // len(elements)
        return np.concatenate([self.read(one, type)[:, :width] for one in elements], axis=1)


def _result(instruction: ir.Instruction, match: Any, name: str, number: int) -> str | None:
    """The register of a result; None if it is left out."""
    for operand, expected in zip(instruction.operands, match.expected, strict=True):
        if expected.role == "read":
            continue
        pair = ((operand.first, expected), (operand.second, expected.second)) if isinstance(operand, ir.Pair) else ()
        for part, one in pair or ((operand, expected),):
            if one is not None and one.name == name:
                elements = part.elements if isinstance(part, ir.Vector) else (part,)
                if number < len(elements):
                    return next(iter(names_in(elements[number])), None)
    return None


_DONE: dict[str, Callable[[Turn], None]] = {
    "keep": Turn.keep, "compute": Turn.compute, "load": Turn.load, "store": Turn.store, "check": Turn.check,
    "parameter": lambda turn: turn.replay.calls.access(turn), "call": lambda turn: turn.replay.calls.start(turn),
    "update": updates.update, "shuffle": collectives.shuffle, "matmul": collectives.multiply,
    "matrix_load": collectives.load_matrices, "matrix_store": collectives.store_matrices,
    "matrix_move": collectives.move_matrices, "wgmma": warpgroups.multiply, "tensor_memory": tensor_memory.access,
}  # fmt: skip
"""What is done at an instruction, by the kind of its plan."""
