"""What instructions do besides writing registers: accesses to memory, barriers, warp collectives."""

from __future__ import annotations

from math import prod

from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.symbolic import WORD
from ptxlab.isa import Match
from ptxlab.isa import effects as isa

from .registers import Registers, address_type
from .segments import Access, Decision, Here, Notes, Segment, UnsupportedError, joined
from .terms import FALSE, TRUE, is_uniform


class Effects:
    """Notes what the instructions of a kernel do."""

    def __init__(self, registers: Registers, notes: Notes) -> None:
        self.registers, self.notes = registers, notes
        self.facts, self.terms = registers.facts, registers.terms
        self._plain: dict[int, bool] = {}

    def happen(self, here: Here) -> Segment:
        """Note what an instruction does; the segment after it."""
        at = here.at
        match, text = self.facts.matches[at], self.facts.instructions[at].opcode.text
        if match is None or match.effects.undefines:
            raise UnsupportedError(at, f"`{text}` is not followed")
        if self._is_plain(match):
            return here.segment
        effects = match.effects
        if effects.barrier is not None:
            return self._barrier(here, match)
        if effects.does("textures", "look_up") and not effects.accesses:
            self.notes.reads_textures = True
            return here.segment
        if effects.uses("async_copy"):
            return self._copy(here, match)
        if effects.steps:
            raise UnsupportedError(at, f"asynchronous operations are not followed: `{text}`")
        segment = self._collective(here, match) if effects.converges else here.segment
        for access in effects.accesses:
            if access.space == "param" or access.kind not in ("load", "store", "update"):
                continue
            is_followed = access.kind == "load" or not effects.converges  # lanes may access memory for each other
            if access.is_async or access.bytes is None or not is_followed:
                raise UnsupportedError(at, f"`{text}` is not followed")
            self._access(here, match, access, access.bytes)
        return segment

    def _copy(self, here: Here, match: Match) -> Segment:
        """Note the start of an asynchronous copy, a commit of those before it, or a wait for groups of them."""
        effects, terms = match.effects, self.terms
        after = self.notes.segment(here.loops)
        here.segment.successors.append((after, None))
        if not effects.accesses and here.guard == TRUE and {one.name for one in effects.steps} <= {"commit", "wait"}:
            count = self._operand(here, match, "n")
            after.commits = int(effects.does("async_copy", "commit"))
            if effects.does("async_copy", "wait") and (count is None or count.is_constant):
                after.waits = 0 if count is None else count.constant
            return after
        size = self._operand(here, match, "size")
        if {one.name for one in effects.steps} != {"start"} or size is None or not size.is_constant:
            raise UnsupportedError(here.at, f"`{self.facts.instructions[here.at].opcode.text}` is not followed")
        for access in effects.accesses:
            read = self._operand(here, match, "read") if access.kind == "load" else None  # fewer bytes than the size
            is_done = TRUE if read is None else terms.negated(terms.equal(read, linear(WORD, 0)))
            if is_done != FALSE:
                self._access(here._replace(guard=terms.every([here.guard, is_done])), match, access, size.constant)
        return after

    def _is_plain(self, match: Match) -> bool:
        """Whether an instruction does nothing but compute."""
        if id(match) not in self._plain:
            e = match.effects
            self._plain[id(match)] = not (e.accesses or e.steps or e.barrier or e.converges)
        return self._plain[id(match)]

    def _operand(self, here: Here, match: Match, name: str) -> Linear | None:
        """An operand that is read, by its name in the table."""
        for operand, expected in zip(self.facts.instructions[here.at].operands, match.expected, strict=True):
            if expected.name == name and expected.role == "read":
                return self.registers.read(here.at, operand, WORD, here.state, here.loops)
        return None

    def _barrier(self, here: Here, match: Match) -> Segment:
        at, effects = here.at, match.effects
        if effects.barrier != "block" or not effects.waits:
            raise UnsupportedError(at, f"`{self.facts.instructions[at].opcode.text}` is not followed")
        number, count = (self._operand(here, match, name) for name in "ab")
        if number is None or not is_uniform([number], lambda loop: loop.is_uniform or loop in here.loops):
            raise UnsupportedError(at, "the number of the barrier may differ between threads")
        if count is not None and (not count.is_constant or count.constant != prod(self.terms.block)):
            raise UnsupportedError(at, "a barrier for a part of the block is not followed")
        after = self.notes.segment(here.loops, at)
        here.segment.successors.append((after, None))
        if here.guard == TRUE:
            return after
        self.notes.decide(at, here.guard, here.path, here.loops)  # all pass it, or none
        both = self.notes.segment(here.loops)
        for one in (here.segment, after):
            one.successors.append((both, None))
        return both

    def _collective(self, here: Here, match: Match) -> Segment:
        """Note where lanes of a warp wait for each other: all of them, or it is not followed."""
        lanes = (1 << min(32, prod(self.terms.block))) - 1
        mask = self._operand(here, match, "membermask")
        if mask is not None and not (mask.is_constant and mask.constant & lanes == lanes):
            raise UnsupportedError(here.at, "a mask of lanes other than a constant for the whole warp is not followed")
        line = self.notes.lines[here.at]
        self.notes.collectives.append(Decision(here.at, line, here.guard, here.path, here.loops))
        if not match.effects.orders or here.guard != TRUE:
            return here.segment
        after = self.notes.segment(here.loops, here.at, is_of_warp=True)
        here.segment.successors.append((after, None))
        return after

    def _access(self, here: Here, match: Match, access: isa.Access, bytes: int) -> None:
        at = here.at
        instruction = self.facts.instructions[at]
        extent = match.effects.extents.get(access.operand)
        align = extent.align if extent is not None and isinstance(extent.align, int) else bytes
        for operand, expected in zip(instruction.operands, match.expected, strict=True):
            if expected.name == access.operand and expected.kind == "address":
                address = self.registers.read(at, operand, address_type(operand), here.state, here.loops)
                data = next((one for one in match.expected if one.kind == "value" and one.type is not None), None)
                element = data.type.width // 8 if data is not None and data.type is not None else bytes
                here.segment.accesses.append(
                    Access(at, self.notes.lines[at], access.kind, (access.space or "generic").partition("::")[0], bytes,
                           align, max(1, min(element, bytes)), access.order, address, joined(here.path, here.guard),
                           here.segment, match.effects.converges, access.is_async)
                )  # fmt: skip
                return
        raise UnsupportedError(at, f"the address of `{instruction.opcode.text}` is not followed")
