"""What instructions do besides writing registers: accesses to memory, barriers, warp collectives."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from ptxlab import ir
from ptxlab.emulate.translate.refuse import reason_of
from ptxlab.flow.expressions import Linear, linear
from ptxlab.flow.symbolic import LONG, WORD
from ptxlab.isa import Match
from ptxlab.isa.types import Type, type_named
from ptxlab.prove.terms.predicates import TRUE
from ptxlab.prove.terms.terms import UNSIGNED, Symbol, is_certain, without_rank

from .alike import Alike
from .asynchronous import Asynchronous
from .registers import UNCHANGED, Registers, stored_words
from .segments import RESULT, Access, Draw, Handed, Here, Notes, Segment, Store, UnsupportedError, joined
from .threads import Threads

VISIBLE = ("shared", "global", "const")  # to all threads of a block
BARRIERS = 16  # of a block, by their numbers
_UNSIGNED_BYTES = {width // 8: type for width, type in UNSIGNED.items()} | {1: type_named("u8")}
INITIALIZED = "mbarrier_init.cluster"  # a fence that makes mbarriers visible to the cluster
PROXY = "proxy"  # of a fence between the proxies, before the state space that it is for


class Effects:
    """Notes what the instructions of a kernel do."""

    def __init__(self, registers: Registers, notes: Notes, unknown: Collection[int]) -> None:
        self.registers, self.notes, self._unknown = registers, notes, unknown
        self.facts, self.terms = registers.facts, registers.terms
        self.asynchronous = Asynchronous(self)
        self._alike, self._threads = Alike(self.facts, self.terms), Threads(self.terms)
        self._plain: dict[int, bool] = {}
        self._awaited: set[int] = set()
        """Where threads wait at the barrier of the cluster that have arrived just before."""

    def happen(self, here: Here) -> Segment:
        """Note what an instruction does; the segment after it."""
        at = here.at
        match, text = self.facts.matches[at], self.facts.instructions[at].opcode.text
        if match is None or match.effects.undefines or reason_of(match.candidate) is not None:
            raise UnsupportedError(at, f"`{text}` is not followed")
        if self._is_plain(match):
            return here.segment
        effects = match.effects
        if effects.barrier is not None:
            return self._barrier(here, match)
        if effects.does("textures", "look_up") and not effects.accesses:
            self.notes.reads_textures = True
            return here.segment
        fenced = frozenset(
            space for fence, _, space in (one.partition(".") for one in effects.fences) if fence == PROXY
        )
        fenced |= {INITIALIZED} & set(effects.fences)
        if fenced:
            self.notes.event("fence", here, spaces=fenced)
        orders = [one for one in effects.fences if one.startswith(("acq_rel.", "sc."))]
        if orders:
            self.notes.point(here, orders)
        if effects.more_registers or effects.fewer_registers:
            count = self.operand(here, "count")
            assert count is not None
            self.notes.event("raise" if effects.more_registers else "lower", here, bytes=count.constant)
        self.notes.elects |= effects.elects
        segment = self._collective(here, match) if effects.converges else here.segment
        if effects.steps:
            return self.asynchronous.happen(here._replace(segment=segment), match)
        for access in effects.accesses:
            if access.kind not in ("load", "store", "update") or self._is_parameter(at, access.space):
                continue
            if access.is_async or access.bytes is None or (access.kind == "update" and effects.converges):
                raise UnsupportedError(at, f"`{text}` is not followed")
            address = self.access(here, match, access.operand, access.kind, access.space, access.bytes, access.order)
            noted = here.segment.accesses[-1]
            if access.kind == "update":
                self._draw(here, match, noted)
            elif noted.space == "shared":
                self._hand(here, noted)
            if access.order in UNCHANGED and noted.space in VISIBLE:
                self._alike.addresses[at] = address, here.loops
            if access.kind == "store" and not effects.converges:  # lanes store parts of what others give
                noted.alike = self._alike.stored(at, match)
        return segment

    def _hand(self, here: Here, access: Access) -> None:
        """Note what is stored in shared memory, and take a load for one of what was stored there last."""
        words = [one for one in stored_words(self.facts, here.at) if one.index in self.registers.relevant]
        if words and is_certain([access.address], here.loops):
            value = self.registers.read(here.at, words[0], words[0].type, here.state, here.loops)
            type = _UNSIGNED_BYTES.get(access.bytes)
            if type is not None and type.width <= value.type.width:
                self.notes.stores.append(Store(access, self.terms.fit(value, words[0].type, type)))
        self.registers.results.pop(here.at, None)
        if not access.writes and len(self.facts.effects.writes[here.at]) == 1:
            found = self._handed(here, access)
            if found is not None:
                self.registers.results[here.at] = found

    def _handed(self, here: Here, access: Access) -> Linear | None:
        """What was stored last where something is read."""
        place = access.address.as_type(LONG), access.bytes
        last = next((one for one in reversed(self.notes.stores)
                     if (one.access.address.as_type(LONG), one.access.bytes) == place), None)  # fmt: skip
        if last is None or here.at in self._unknown:
            return None
        self.notes.handed.append(Handed(access, last))
        return last.value

    def _draw(self, here: Here, match: Match, access: Access) -> None:
        """Note an addition to a counter: what it returns is what the counter held first, and the sum of all before."""
        terms, operation = self.terms, getattr(match.candidate.modifiers, "op", None)
        type = next((one.type for one in match.expected if one.name == "b" and not one.count), None)
        if operation not in ("add", "inc") or type is None or type.kind not in "us":
            return
        unsigned = UNSIGNED[type.width]
        operand = self.operand(here, "b", unsigned)
        assert operand is not None
        is_one = self._threads.mask(access.path)[0].bit_count() == 1 and terms.ranks == 1
        sum = Symbol(RESULT, self.notes.lines[here.at], here.loops, is_one)
        value, first = terms.symbol(sum, unsigned), self._handed(here, access) if access.space == "shared" else None
        first = terms.content(access.address, unsigned) if first is None else first
        is_addition = operation == "add"
        draw = Draw(access, first, sum, value, operand if is_addition else linear(unsigned, 1),
                    None if is_addition else operand, bool(self.facts.effects.writes[here.at]))  # fmt: skip
        access.draw = draw
        self.notes.point(here, (access.order,), draw)
        self.registers.results[here.at] = terms.fit(first.plus(value), unsigned, type)

    def _is_parameter(self, at: int, space: str | None) -> bool:
        """Whether what is accessed is a parameter at a constant place in it."""
        writes = self.facts.effects.writes[at]
        return space == "param" and any(self.facts.loaded_parameter(at, one) is not None for one in writes)

    def _is_plain(self, match: Match) -> bool:
        """Whether an instruction does nothing but compute."""
        if id(match) not in self._plain:
            e = match.effects
            self._plain[id(match)] = not (e.accesses or e.steps or e.barrier or e.converges or e.fences
                                          or e.more_registers or e.fewer_registers)  # fmt: skip
        return self._plain[id(match)]

    def operand(self, here: Here, name: str, type: Type = WORD) -> Linear | None:
        """An operand that is read, by its name in the table."""
        found = self.registers.named(here.at, name)
        return None if found is None else self.registers.read(here.at, found, type, here.state, here.loops)

    def _barrier(self, here: Here, match: Match) -> Segment:
        at, effects = here.at, match.effects
        if effects.barrier == "cluster" and here.guard == TRUE:
            return self._barrier_of_cluster(here, match)
        if effects.barrier != "block" or not effects.waits:
            raise UnsupportedError(at, f"`{self.facts.instructions[at].opcode.text}` is not followed")
        number, count = (self.operand(here, name) for name in "ab")
        if number is not None and self.is_of_part(at, match):
            return self._barrier_of_part(here, number, count)
        if number is None or not is_certain([number], here.loops):
            raise UnsupportedError(at, "the number of the barrier may differ between threads")
        if not 0 <= number.bounds[0] <= number.bounds[1] < BARRIERS:
            raise UnsupportedError(at, f"the number of the barrier may be above {BARRIERS - 1}")
        if count is not None and (not count.is_constant or count.constant != prod(self.terms.block)):
            raise UnsupportedError(at, "the number of threads of this barrier is not a constant")
        if count is not None and count.constant % 32:
            raise UnsupportedError(at, f"a barrier for {count.constant} threads, which are not whole warps")
        after = self._after(here, number)
        if here.guard == TRUE:
            return after
        self.notes.decide(at, here.guard, here.path, here.loops)  # all pass it, or none
        both = self.notes.segment(here.loops)
        for one in (here.segment, after):
            one.successors.append((both, None))
        return both

    def _after(self, here: Here, number: Linear | None) -> Segment:
        """What comes after a barrier of all threads."""
        after = self.notes.after(here, here.at)
        self.notes.event("barrier", here, value=number)
        return after

    def _barrier_of_cluster(self, here: Here, match: Match) -> Segment:
        """Note a barrier of the cluster where threads wait at it, at once after they have arrived."""
        if match.effects.waits:
            if here.at not in self._awaited:
                raise UnsupportedError(here.at, "a wait without an arrival before it is not followed")
            return self._after(here, None)
        at = here.at + 1
        while at < len(self.facts.instructions) and self._is_plain_at(at):
            at += 1
        after = self.facts.matches[at] if at < len(self.facts.instructions) else None
        is_next = after is not None and after.effects.barrier == "cluster" and after.effects.waits
        is_next &= self.facts.flow.block_at(at) == self.facts.flow.block_at(here.at)
        if not is_next or not (match.effects.orders or self._has_only_initialized()):
            raise UnsupportedError(here.at, "an arrival is followed that releases, with its wait at once after it")
        self._awaited.add(at)
        return here.segment

    def _has_only_initialized(self) -> bool:
        """Whether nothing was accessed so far but mbarriers, and a fence has made these visible to the cluster."""
        made = [event for event in self.notes.events if event.kind == "init"]
        shown = [event for event in self.notes.events if INITIALIZED in event.spaces and not event.loops]
        accessed = {access.at for segment in self.notes.segments for access in segment.accesses}
        return accessed <= {event.at for event in made} and all(
            any(event.number < one.number and set(one.path) <= set(event.path) for one in shown) for event in made
        )

    def _is_plain_at(self, at: int) -> bool:
        match, instruction = self.facts.matches[at], self.facts.instructions[at]
        return match is not None and instruction.opcode.jump is None and self._is_plain(match)

    def is_of_part(self, at: int, match: Match) -> bool:
        """Whether a barrier is for a constant number of threads that is not that of the block, or of a cluster."""
        count = self.registers.named(at, "b")
        is_part = self.terms.ranks > 1
        is_part |= isinstance(count, ir.Immediate) and count.value != prod(self.terms.block)
        return match.effects.barrier == "block" and is_part

    def _barrier_of_part(self, here: Here, number: Linear, count: Linear | None) -> Segment:
        """Note a barrier for some warps, which all threads that come to it pass together."""
        is_plain = number.type == WORD and here.guard == TRUE
        is_plain &= not self.facts.effects.writes[here.at]  # what it computes is of these threads only
        count = linear(WORD, prod(self.terms.block)) if count is None else count
        if not count.is_constant or count.constant % 32 or not is_plain:
            raise UnsupportedError(here.at, "this barrier for a part of the block is not followed")
        self.notes.collect(here)
        self.notes.event("part", here, value=number, bytes=count.constant)
        return here.segment

    def _collective(self, here: Here, match: Match) -> Segment:
        """Note where lanes of a warp wait for each other: all of them, or it is not followed."""
        lanes = (1 << min(32, prod(self.terms.block))) - 1
        mask = self.operand(here, "membermask")
        if mask is not None and not (mask.is_constant and mask.constant & lanes == lanes):
            raise UnsupportedError(here.at, "a mask of lanes other than a constant for the whole warp is not followed")
        self.notes.collect(here)
        if not match.effects.orders or here.guard != TRUE:
            last = self.notes.events[-1] if self.notes.events else None
            is_new = last is None or (last.kind, last.path, last.loops) != ("converge", here.path, here.loops)
            if here.guard == TRUE and is_new:
                self.notes.event("converge", here)
            return here.segment
        self.notes.event("warp", here)
        return self.notes.after(here, here.at, is_of_warp=True)

    def access(self, here: Here, match: Match, name: str, kind: str, space: str | None, bytes: int, order: str,
               unit: str = "", rank: int | None = None) -> Linear:  # fmt: skip
        """Note an access by an operand, perhaps at the same place in the block of a rank; its address."""
        at = here.at
        instruction = self.facts.instructions[at]
        extent = match.effects.extents.get(name)
        align = extent.align if extent is not None and isinstance(extent.align, int) else bytes
        operand = self.registers.named(at, name)
        if operand is None:
            raise UnsupportedError(at, f"the address of `{instruction.opcode.text}` is not followed")
        address = self.registers.address(at, operand, space, here.state, here.loops)
        if rank is not None:
            address = without_rank(address)[0].plus(self.terms.of_rank(linear(WORD, rank)).as_type(address.type))
        is_own = space is None or without_rank(address)[1] in (None, self.terms.rank())
        if not is_own and "shared::cluster" not in instruction.opcode.text:
            raise UnsupportedError(at, "the address is in another block, the state space is `shared::cta`")
        types = [one.type for one in match.expected if one.kind == "value" and one.type is not None]
        element = 4 if match.effects.steps else types[0].width // 8 if types else bytes
        self.put(here, kind, space, bytes, align, max(1, min(element, bytes)), order, address,
                 is_collective=match.effects.converges, unit=unit)  # fmt: skip
        return address

    def put(self, here: Here, kind: str, space: str | None, bytes: int, align: int, element: int, order: str,
            address: Linear, *, is_collective: bool, unit: str) -> None:  # fmt: skip
        """Note an access."""
        address = self.terms.placed(address) if space == "shared" else address
        here.segment.accesses.append(
            Access(here.at, self.notes.lines[here.at], kind, (space or "generic").partition("::")[0], bytes, align,
                   element, order, address, joined(here.path, here.guard), here.segment, is_collective, unit,
                   len(self.notes.events), passed=len(self.notes.points))
        )  # fmt: skip
