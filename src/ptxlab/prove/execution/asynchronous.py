"""What instructions do beside the thread: copies, mbarriers, MMAs of warpgroups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.symbolic import LONG, WORD
from ptxlab.isa import Jump, Match
from ptxlab.isa.units.fragment import extents
from ptxlab.prove.terms.predicates import FALSE, TRUE

from .descriptors import matrix
from .maps import coordinates_of, map_of
from .segments import ARRIVE, INITIALIZE, Here, Segment, UnsupportedError
from .tensor_memory import TensorMemory

if TYPE_CHECKING:
    from .effects import Effects

STRONG = "relaxed.cluster"  # operations of mbarriers do not race with each other
BULK = 16  # bytes that a bulk copy copies multiples of
GROUPS = {"async_copy": ("async_copy",), "bulk": ("bulk", "bulk.read"), "wgmma": ("wgmma",)}


class Asynchronous:
    """Notes asynchronous operations, and how threads know that they are complete."""

    def __init__(self, effects: Effects) -> None:
        self.effects, self.terms, self.facts, self.notes = effects, effects.terms, effects.facts, effects.notes
        self.tensor_memory = TensorMemory(effects)
        self.waits: dict[int, int] = {}
        """The predicate of each wait that is repeated until it is true, by the wait."""

    def happen(self, here: Here, match: Match) -> Segment:
        """Note what an instruction does; the segment after it."""
        (unit, *others) = {step.unit for step in match.effects.steps}
        names = {step.name for step in match.effects.steps}
        if not others and unit == "mbarrier":
            return self._mbarrier(here, match, names)
        if not others and unit == "tensor_memory":
            after = self.tensor_memory.happen(here, match, names)
            if after is None:
                raise self._unsupported(here)
            return after
        if not others and unit in GROUPS:
            if unit == "wgmma" and names == {"fence"}:
                return here.segment
            if names <= {"commit", "wait"}:
                return self._group(here, match, unit)
            if names == {"start"}:
                after = self.notes.after(here)
                start = {"async_copy": self._copy, "bulk": self._bulk, "wgmma": self._multiply}[unit]
                start(here, match)
                return after
        raise self._unsupported(here)

    def _unsupported(self, here: Here) -> UnsupportedError:
        return UnsupportedError(here.at, f"`{self.facts.instructions[here.at].opcode.text}` is not followed")

    def _number(self, here: Here, name: str) -> int | None:
        value = self.effects.operand(here, name)
        return value.constant if value is not None and value.is_constant else None

    # Copies.

    def _group(self, here: Here, match: Match, unit: str) -> Segment:
        """Note a commit of the operations before it, or a wait for groups of them."""
        after = self.notes.after(here)
        count = self.effects.operand(here, "n")
        after.units, after.condition = GROUPS[unit], here.guard
        after.commits = int(match.effects.does(unit, "commit"))
        if match.effects.does(unit, "wait") and (count is None or count.is_constant):
            after.waits = 0 if count is None else count.constant
            if match.candidate.modifiers.read:
                after.units = ("bulk.read",)
            self.notes.event("group", here, after)
        return after

    def _copy(self, here: Here, match: Match) -> None:
        """Note the start of a copy of one thread."""
        terms, size = self.terms, self._number(here, "size")
        if size is None:
            raise self._unsupported(here)
        given = self.effects.operand(here, "read")
        if given is not None and not _is_at_most(given, size):
            raise UnsupportedError(here.at, f"the bytes that are read may be more than the {size} that are copied")
        for access in match.effects.accesses:
            read = self.effects.operand(here, "read") if access.kind == "load" else None  # of the size
            is_done = TRUE if read is None else terms.negated(terms.equal(read, linear(WORD, 0)))
            if is_done != FALSE:
                self.effects.access(here._replace(guard=terms.every([here.guard, is_done])), match, access.operand,
                                    access.kind, access.space, size, access.order, "async_copy")  # fmt: skip

    def _bulk(self, here: Here, match: Match) -> None:
        """Note the start of a bulk copy, of a box of a tensor or of bytes in a row."""
        accesses = {access.operand: access for access in match.effects.accesses}
        modifiers = match.candidate.modifiers
        is_load = "mbar" in accesses
        is_other = modifiers.mode not in (None, "tile") or modifiers.oob or modifiers.cp_mask
        if is_other or match.effects.reduction is not None or not accesses:
            raise self._unsupported(here)
        address = self.effects.operand(here, "map", LONG)
        if address is not None:
            name = map_of(address)
            if name not in self.terms.boxes:
                reason = "how many bytes a box of a tensor map has is not known"
                raise UnsupportedError(here.at, reason, "give an example launch with its tensor maps")
            size: int | None = self.terms.boxes[name].bytes
        else:
            name, size = "", self._number(here, "size")
        # The block whose memory is read may exit before a wait in another one is over.
        is_lent = is_load and self.terms.ranks > 1 and match.effects.accesses[1].space == "shared"
        if size is None or is_lent or not (is_load or modifiers.bulk_group):
            raise self._unsupported(here)
        if size % BULK:
            raise UnsupportedError(here.at, f"a copy of {size} bytes, which are not a multiple of {BULK}")
        if address is not None:
            registers = self.effects.registers
            values = [registers.read(here.at, one, WORD, here.state, here.loops)
                      for one in coordinates_of(registers.named(here.at, "map"))]  # fmt: skip
            self.notes.tensor(here, name, accesses.pop("map").kind != "load", values)
        for rank, there in self.blocks(here, match) if modifiers.multicast else [(None, here)]:
            noted = len(here.segment.accesses)
            for operand, access in accesses.items():
                is_there = access.kind != "load"  # what is read, is read where it is
                unit = "mbarrier" if is_load else "bulk" if is_there else "bulk.read"
                if operand == "mbar":
                    address = self.effects.access(there, match, operand, "update", "shared", 8, STRONG, "phase", rank)
                    self.notes.event("copy", there, address=address, bytes=size)
                else:
                    self.effects.access(there, match, operand, access.kind, access.space, size, access.order, unit,
                                        rank if is_there else None)  # fmt: skip
            for one in here.segment.accesses[noted:] if is_load else ():  # those of this copy come with its event
                one.epoch = len(self.notes.events)

    def blocks(self, here: Here, match: Match) -> Iterator[tuple[int, Here]]:
        """The blocks that a copy or a commit is for: where the bit of their rank is set."""
        mask = self.effects.operand(here, "mask")
        if mask is None or mask.bounds[1] >> self.terms.ranks:
            raise UnsupportedError(here.at, "which blocks of the cluster this copy is for is not known")
        for rank in range(self.terms.ranks):
            bit = self.terms.bit(mask, rank)
            if bit != FALSE:
                yield rank, here._replace(guard=self.terms.every([here.guard, bit]))

    # MMAs.

    def _multiply(self, here: Here, match: Match) -> None:
        """Note what an MMA of a warpgroup reads of shared memory."""
        modifiers = match.candidate.modifiers
        if modifiers.sp or here.guard != TRUE:
            raise self._unsupported(here)
        m, n, _ = extents(modifiers.shape)
        for name, rows in (("a", m), ("b", n)):
            bits = self.effects.operand(here, f"{name}_desc", LONG)
            if bits is None:
                continue  # A in registers
            is_across = self._number(here, f"trans_{name}") == 1
            found = matrix(self.terms, bits, rows, is_across)
            if found is None:  # the stage of a ring, for one, is found in a later round
                reason = f"the descriptor of matrix {name.upper()}"
                found = self.effects.registers.symbol(reason, here.at, here.loops, LONG), 16
            address, bytes = found
            self.effects.put(here, "load", "shared", bytes, 16, 1, "weak", address, is_collective=True, unit="wgmma")

    # mbarriers.

    def _mbarrier(self, here: Here, match: Match, names: set[str]) -> Segment:
        modifiers = match.candidate.modifiers
        is_other = modifiers.sem == "relaxed" or modifiers.nocomplete or modifiers.phase or modifiers.layout
        is_narrow = self.terms.ranks > 1 and modifiers.scope == "cta"  # it may not be that of other blocks
        if is_other or is_narrow:
            raise self._unsupported(here)
        if names == {"initialize"}:
            count = self.effects.operand(here, "count")
            address = self.effects.access(here, match, "a", INITIALIZE, "shared", 8, "weak")
            self.notes.event("init", here, address=address, value=count)
            return here.segment
        parity = self.effects.operand(here, "parity")
        if names == {"wait"} and parity is not None and here.guard == TRUE:
            self.waits[here.at] = self._repeated(here)
            address = self.effects.access(here, match, "a", "load", "shared", 8, STRONG)
            self.notes.event("wait", here, address=address, value=parity)
            return here.segment
        if "arrive" in names and names <= {"arrive", "expect"}:
            count = self.effects.operand(here, "count")
            bytes = self._number(here, "bytes") if "expect" in names else 0
            if bytes is None:
                raise self._unsupported(here)
            address = self.effects.access(here, match, "a", ARRIVE, "shared", 8, STRONG)
            self.notes.event("arrive", here, address=address, value=count or linear(WORD, 1), bytes=bytes)
            return here.segment
        raise self._unsupported(here)

    def _repeated(self, here: Here) -> int:
        """The predicate of a wait that is asked again until it is true; nothing happens in between."""
        flow, instructions = self.facts.flow, self.facts.instructions
        (predicate,) = self.facts.effects.writes[here.at]
        block = flow.block_at(here.at)
        jumps = list(range(here.at + 1, min(here.at + 3, len(instructions))))
        if flow.blocks[block].start == here.at and jumps:
            first = instructions[jumps[0]]
            guard = first.guard
            is_asked = guard is not None and getattr(guard.register, "index", None) == predicate
            if is_asked and guard is not None and first.opcode.jump is Jump.BRANCH:
                if guard.negated and flow.targets.get(jumps[0]) == (block,):
                    return predicate
                again = instructions[jumps[-1]]
                is_again = len(jumps) == 2 and again.guard is None and again.opcode.jump is Jump.BRANCH
                if not guard.negated and is_again and flow.targets.get(jumps[1]) == (block,):
                    return predicate
        raise UnsupportedError(here.at, "a wait that is not repeated at once until it is over is not followed")


def _is_at_most(value: Linear, most: int) -> bool:
    """Whether a number is from 0 to another, by its bounds; of a choice, both are."""
    if 0 <= value.bounds[0] <= value.bounds[1] <= most:
        return True
    chosen = [atom for atom, factor in value.terms if atom.kind == "select" and factor == 1]
    is_choice = bool(chosen) and len(value.terms) == 1 and not value.constant
    return is_choice and all(_is_at_most(part, most) for part in chosen[0].parts[1:])
