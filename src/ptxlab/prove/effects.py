"""What instructions do besides writing registers: accesses to memory, barriers, warp collectives."""

from __future__ import annotations

from ptxlab.flow.expressions import Linear
from ptxlab.flow.symbolic import WORD
from ptxlab.isa import Match

from .registers import Registers, address_type
from .segments import Access, Decision, Notes, Path, Segment, State, UnsupportedError, joined
from .terms import TRUE, Loop, is_uniform


class Effects:
    """Notes what the instructions of a kernel do."""

    def __init__(self, registers: Registers, notes: Notes) -> None:
        self.registers, self.notes = registers, notes
        self.facts, self.terms = registers.facts, registers.terms
        self._plain: dict[int, bool] = {}

    def happen(
        self, at: int, guard: Linear, path: Path, state: State, segment: Segment, loops: tuple[Loop, ...]
    ) -> Segment:
        """Note what an instruction does; the segment after it."""
        match, instruction = self.facts.matches[at], self.facts.instructions[at]
        if match is None:
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        if match.effects.undefines:
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        if self._is_plain(at, match):
            return segment
        effects = match.effects
        if effects.barrier is not None:
            return self._barrier(at, match, guard, path, state, segment, loops)
        if effects.converges and effects.accesses:  # lanes access memory for each other
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        if effects.converges:
            self.notes.collectives.append(Decision(at, self.notes.lines[at], guard, path, loops))
        if effects.steps:
            raise UnsupportedError(at, f"asynchronous operations are not followed: `{instruction.opcode.text}`")
        for access in effects.accesses:
            if access.space == "param" or access.kind not in ("load", "store", "update"):
                continue
            if access.is_async or access.bytes is None:
                raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
            self._access(at, match, access.operand, access.kind, access.space, access.order, access.bytes,
                         joined(path, guard), state, segment, loops)  # fmt: skip
        return segment

    def _is_plain(self, at: int, match: Match) -> bool:
        """Whether an instruction does nothing but compute."""
        if id(match) not in self._plain:
            e = match.effects
            self._plain[id(match)] = not (e.accesses or e.steps or e.barrier or e.converges)
        return self._plain[id(match)]

    def _barrier(
        self, at: int, match: Match, guard: Linear, path: Path, state: State, segment: Segment, loops: tuple[Loop, ...]
    ) -> Segment:
        instruction, effects = self.facts.instructions[at], match.effects
        if effects.barrier != "block" or not effects.waits or any(one.role == "write" for one in match.expected):
            raise UnsupportedError(at, f"`{instruction.opcode.text}` is not followed")
        counts = [
            operand
            for operand, expected in zip(instruction.operands, match.expected, strict=True)
            if expected.name == "b" and expected.role == "read"
        ]
        number = self.registers.read(at, instruction.operands[-1 - len(counts)], WORD, state, loops)
        if not is_uniform([number], lambda loop: loop.is_uniform or loop in loops):
            raise UnsupportedError(at, "the number of the barrier may differ between threads")
        threads = self.terms.block[0] * self.terms.block[1] * self.terms.block[2]
        for operand in counts:
            count = self.registers.read(at, operand, WORD, state, loops)
            if not count.is_constant or count.constant != threads:
                raise UnsupportedError(at, "a barrier for a part of the block is not followed")
        if guard != TRUE:
            self.notes.decide(at, guard, path, loops)
            raise UnsupportedError(at, "a barrier under a guard is not followed")
        after = self.notes.segment(loops, at)
        segment.successors.append((after, None))
        return after

    def _access(
        self, at: int, match: Match, name: str, kind: str, space: str | None, order: str, bytes: int, path: Path,
        state: State, segment: Segment, loops: tuple[Loop, ...],
    ) -> None:  # fmt: skip
        instruction = self.facts.instructions[at]
        extent = match.effects.extents.get(name)
        align = extent.align if extent is not None and isinstance(extent.align, int) else bytes
        for operand, expected in zip(instruction.operands, match.expected, strict=True):
            if expected.name == name and expected.kind == "address":
                address = self.registers.read(at, operand, address_type(operand), state, loops)
                data = next((one for one in match.expected if one.kind == "value" and one.type is not None), None)
                element = data.type.width // 8 if data is not None and data.type is not None else bytes
                segment.accesses.append(
                    Access(at, self.notes.lines[at], kind, (space or "generic").partition("::")[0], bytes, align,
                           max(1, min(element, bytes)), order, address, path, segment)
                )  # fmt: skip
                return
        raise UnsupportedError(at, f"the address of `{instruction.opcode.text}` is not followed")
