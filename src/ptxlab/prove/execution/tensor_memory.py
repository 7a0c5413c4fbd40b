"""Tensor memory: what `tcgen05` instructions read and write, and how threads know that they are complete.

An address is what an allocation wrote to shared memory, and a distance from there: lanes in its upper half, columns in
its lower one. Every access is taken to be to all lanes of its columns. MMAs are complete when an mbarrier says so at
which their thread arrives by a commit after them; loads when their warp has waited for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.symbolic import LONG, WORD
from ptxlab.isa import Match
from ptxlab.isa.chapters.tcgen05_scaled import count_factors
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor
from ptxlab.isa.units.tensor_memory import SHAPES, SPLIT
from ptxlab.prove.terms.predicates import TRUE
from ptxlab.prove.terms.terms import Symbol, is_own_rank, leaves

from .alike import LANES
from .descriptors import tensor_matrix
from .segments import Here, Segment, Store, UnsupportedError

if TYPE_CHECKING:
    from .effects import Effects

CELL = 4  # bytes of a column of a lane
MOST_COLUMNS = 512
WORK, LOADS = "tensor work", "tensor loads"  # units of asynchronous operations
STRONG = "relaxed.cluster"
BAND = 32  # rows whose scale factors are in a column
OPERANDS, FACTORS = {"d", "a_desc", "b_desc", "idesc", "enable_d"}, {"scale_a", "scale_b"}
SCALED_KINDS = ("kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4")
ALONE, PAIR = "cta_group::1", "cta_group::2"
PLAIN_KINDS = ("kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8")


class TensorMemory:
    """Notes what instructions do to tensor memory."""

    def __init__(self, effects: Effects) -> None:
        self.effects, self.terms, self.notes = effects, effects.terms, effects.notes
        self._covered: tuple[object, int] = (None, 0)
        """Where the last MMA is, and how many events were before it."""

    def happen(self, here: Here, match: Match, names: set[str]) -> Segment | None:
        """Note what an instruction does; the segment after it. None: it is not followed."""
        modifiers = match.candidate.modifiers
        group = getattr(modifiers, "cta_group", None)
        if len(names) != 1 or (group == PAIR and self.terms.ranks != 2) or (group == ALONE and self.terms.ranks > 1):
            return None  # of two blocks, memory is allocated in both, at one address
        (name,) = names
        if name in ("relinquish", "fence_before"):
            return here.segment
        if name == "fence_after":
            self.notes.event("tensor", here)
            return here.segment
        if name == "allocate":
            return here.segment if self._allocate(here, match) else None
        if name == "wait":
            return self._wait(here)
        after = self.notes.after(here)
        done = {
            "multiply": self._multiply,
            "copy": self._copy,
            "load": self._load,
            "commit": self._commit,
            "free": self._free,
        }.get(name)
        return after if done is not None and done(here, match) else None

    def _allocate(self, here: Here, match: Match) -> bool:
        columns = self.effects.operand(here, "columns")
        if columns is None or not columns.is_constant or here.loops or not self._is_of_all_blocks(here):
            return False
        self.effects.access(here, match, "dst", "store", "shared", 4, "weak")
        store = here.segment.accesses[-1]
        store.alike = LANES  # one lane of the warp stores
        base = Symbol("tensor memory", self.notes.lines[here.at], (), True, columns=columns.constant)
        self.notes.stores.append(Store(store, self.terms.symbol(base, WORD, (0, MOST_COLUMNS - 1))))
        return True

    @staticmethod
    def _is_of_all_blocks(here: Here) -> bool:
        """Whether all blocks of a cluster come to an instruction if one does."""
        return not any(is_own_rank(atom) for atom in leaves([*here.path, here.guard]))

    def _wait(self, here: Here) -> Segment:
        """Note a wait of a warp for its loads."""
        after = self.notes.after(here)
        after.units, after.condition, after.commits, after.waits = (LOADS,), here.guard, 1, 0
        self.notes.event("group", here, after)
        return after

    def _ranks(self) -> list[Linear]:
        """The blocks whose memory an MMA or a copy accesses: of two, each has a half of the rows."""
        return [linear(WORD, rank) for rank in range(self.terms.ranks)] if self.terms.ranks > 1 else [self.terms.rank()]

    def _put(self, here: Here, kind: str, address: Linear | None, columns: int, unit: str) -> bool:
        """Note an access to columns from an address on: of its own block, or by an MMA or a copy of all."""
        if address is None:
            return False
        near = {atom: factor for atom, factor in address.terms if factor % (1 << 16)}  # without lanes
        column = linear(WORD, address.constant % (1 << 16), near)
        bases = [atom for atom in near if isinstance(atom.detail, Symbol) and atom.detail.columns and near[atom] == 1]
        if len(bases) != 1:
            raise UnsupportedError(here.at, "which tensor memory this is is not known")
        offset = column.plus(linear(WORD, 0, {bases[0]: 1}), -1).times(CELL)
        for rank in self._ranks() if unit == WORK else [self.terms.rank()]:
            place = offset.plus(linear(WORD, 0, {bases[0]: 1}))
            place = place.plus(self.terms.of_rank(rank).as_type(WORD)) if self.terms.ranks > 1 else place
            self.effects.put(here, kind, "tensor", CELL * columns, CELL, CELL, "weak", place, is_collective=False,
                             unit=unit)  # fmt: skip
        return True

    def _multiply(self, here: Here, match: Match) -> bool:
        """Note what an MMA reads of shared memory, and its accumulators."""
        modifiers, named = match.candidate.modifiers, {one.name for one in match.expected}
        bits = self.effects.operand(here, "idesc")
        kind, is_scaled = getattr(modifiers, "kind", None), named >= FACTORS
        if kind not in (SCALED_KINDS if is_scaled else PLAIN_KINDS) or named - FACTORS != OPERANDS or bits is None:
            return False
        if not bits.is_constant:
            raise UnsupportedError(here.at, "the instruction descriptor is not a constant")
        found = InstructionDescriptor.decode(bits.constant, modifiers.kind.partition("::")[2])
        share = self.terms.ranks  # of rows, each block has a part
        sides = (("a_desc", found.rows // share, found.transpose_a),
                 ("b_desc", found.columns // share, found.transpose_b))  # fmt: skip
        for name, rows, is_across in sides:
            self._read(here, match, name, rows, is_across, 2)
        if is_scaled:
            last = max(found.a_id, found.b_id) + count_factors(modifiers)
            if found.long or last > CELL:  # factors of a row in more than one column
                return False
            for name, rows in (("scale_a", found.rows), ("scale_b", found.columns)):
                address = self.effects.operand(here, name)
                self._put(here, "load", address, -(-rows // BAND), WORK)
        address = self.effects.operand(here, "d")
        is_put = self._put(here, "update", address, found.columns, WORK)
        for access in here.segment.accesses[-share:] if is_put else ():
            access.form = (modifiers.kind, found.rows, found.columns)
        return is_put

    def _read(self, here: Here, match: Match, name: str, rows: int, is_across: bool, chunks: int) -> None:
        """Note what an MMA or a copy to tensor memory reads of shared memory, by a descriptor."""
        given = self.effects.operand(here, name, LONG)
        assert given is not None
        matrix = tensor_matrix(self.terms, given, rows, is_across, chunks)
        if matrix is None:  # the stage of a ring, for one, is found in a later round
            matrix = self.effects.registers.symbol(f"the descriptor `{name}`", here.at, here.loops, LONG), 16
        address, bytes = matrix
        for rank in self._ranks():
            place = address.plus(self.terms.of_rank(rank).as_type(address.type)) if self.terms.ranks > 1 else address
            self.effects.put(here, "load", "shared", bytes, 16, 1, "weak", place, is_collective=False, unit=WORK)
        self._covered = (self._where(here) if here.guard == TRUE else None, len(self.notes.events))

    def _copy(self, here: Here, match: Match) -> bool:
        """Note a copy from shared memory to columns of tensor memory."""
        modifiers = match.candidate.modifiers
        if getattr(modifiers, "from", None):
            return False
        rows, bits = map(int, modifiers.shape.removesuffix("b").split("x"))
        self._read(here, match, "s_desc", rows, False, bits // 128)
        address = self.effects.operand(here, "taddr")
        return self._put(here, "store", address, bits // 32, WORK)

    def _load(self, here: Here, match: Match) -> bool:
        modifiers = match.candidate.modifiers
        shape, count = SHAPES.get(modifiers.shape), str(modifiers.num).removeprefix("x")
        is_plain = shape is not None and not any(SPLIT in one for one in shape.threads) and count.isdecimal()
        if shape is None or not is_plain or "split" in {one.name for one in match.expected}:
            return False
        columns = shape.columns * int(count) * (2 if getattr(modifiers, "pack_16b", False) else 1)
        return self._put(here, "load", self.effects.operand(here, "taddr"), columns, LOADS)

    def _free(self, here: Here, match: Match) -> bool:
        columns = self.effects.operand(here, "columns")
        if columns is None or not columns.is_constant or here.loops or not self._is_of_all_blocks(here):
            return False
        is_put = self._put(here, "store", self.effects.operand(here, "taddr"), columns.constant, "")
        here.segment.accesses[-1].alike = LANES
        return is_put

    def _where(self, here: Here) -> object:
        """What two instructions have in common that are executed one after the other, in one turn."""
        return here.path, here.loops, self.notes.rounds

    def _commit(self, here: Here, match: Match) -> bool:
        """Note an arrival that comes when the MMAs of this thread so far are complete."""
        if match.candidate.modifiers.read:
            return False
        is_for_more = "mask" in {one.name for one in match.expected}
        where, epoch = self._covered
        covers = epoch if where == self._where(here) else 0
        blocks = self.effects.asynchronous.blocks(here, match) if is_for_more else [(None, here)]
        for rank, there in blocks:
            address = self.effects.access(there, match, "mbar", "update", "shared", 8, STRONG, "phase", rank)
            self.notes.event("arrive", there, address=address, value=linear(WORD, 1), covers=covers)
            here.segment.accesses[-1].epoch = len(self.notes.events)
        return True
