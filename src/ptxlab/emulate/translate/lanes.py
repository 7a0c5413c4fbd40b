"""A kernel for several lanes of a warp at a time: the same semantics, with vectors where lanes differ.

The lanes that are at the same basic block execute it together; of several blocks, the first in the text comes first, so
that lanes which branched apart converge where their paths meet. `%active` are the lanes that execute, `%wait.7` those
that wait at the start of block 7. Which blocks lanes can wait at is known when a block is translated: where there are
none, nothing is asked, and lanes keep no old values for others.

What lanes cannot do together leaves the kernel to the code of single threads (`NotTogetherError`). So does a loop that
runs for very long, in which a thread may poll what others write: the lanes continue as threads at the same blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ptxlab import ir
from ptxlab.emulate.abi import state, thread_parts
from ptxlab.emulate.abi.code import GROUP, WARP
from ptxlab.emulate.translate.function import Function
from ptxlab.emulate.translate.hints import LoopHints
from ptxlab.emulate.translate.lane_frames import LaneFrame, save_each
from ptxlab.emulate.translate.lane_machine import LaneMachine
from ptxlab.emulate.translate.lane_masks import NONE
from ptxlab.emulate.translate.lane_refusals import is_for_each, refuse
from ptxlab.emulate.translate.lane_registers import Key, LaneRegisters
from ptxlab.emulate.translate.lane_shapes import Held, NotTogetherError
from ptxlab.emulate.translate.lane_sides import Side, Sides, sides_of
from ptxlab.emulate.translate.lane_text import LaneBuilder
from ptxlab.emulate.translate.loops import loops_of
from ptxlab.emulate.translate.sharing import sharing
from ptxlab.emulate.translate.undefined import DEFINED, Undefined
from ptxlab.ir.flow import END
from ptxlab.isa import Jump, Match
from ptxlab.native import offset_of, size_of

MOST_TEXT = 240_000  # characters of LLVM IR for lanes, which LLVM optimizes in about a second
PASSES = 12  # over a function, until what its registers hold is known
TURNS = 256  # of as many backward jumps as a thread takes in one turn, until lanes continue as threads


def lanes_of(matches: Iterable[Match | None]) -> int:
    """How many lanes execute a kernel together: all of a warp where they exchange values, else what vectors hold."""
    return WARP if any(match is not None and match.effects.converges for match in matches) else GROUP


class LaneFunction(Function):
    """A kernel while it is translated for lanes; what is known of it is that of the function for threads."""

    is_repeated = True
    builder: LaneBuilder

    def __init__(self, single: Function) -> None:
        """Find out what registers hold and where lanes branch apart; `NotTogetherError` if lanes cannot run it."""
        refuse(single)
        self.__dict__.update(single.__dict__)
        self.single = single
        self.group = lanes_of(self.matches)
        self.name = f"{single.name}.lanes"
        self.divergent: set[int] = set()  # the branches that lanes can take different ways at
        self.sides = sides_of(self)  # by the block that ends with the branch
        self.side_of = {
            block: number
            for number, sides in self.sides.items()
            for block in (sides.passed, sides.taken)
            if block is not None
        }
        self._in_loops = {block for loop in loops_of(self.flow) for block in loop.body}
        self._shapes: dict[Key, Held | None] = {}
        counted, hints = self.unit.counting.mark(), self.unit.hints
        for _ in range(PASSES):
            known = len(self.divergent)
            if len(self.text()) > MOST_TEXT:
                raise NotTogetherError("its size")
            self.unit.counting.go_back(counted)
            self.unit.hints = hints
            if not self.registers.has_changed and known == len(self.divergent):
                return
        raise NotTogetherError("what its registers hold")

    def _begin(self) -> None:
        """Start to translate, as if nothing had been."""
        self.builder = LaneBuilder(self.group)
        self.machine = LaneMachine(self)
        self.frame = LaneFrame(self)
        self.hints = LoopHints(self)
        self.registers: LaneRegisters = LaneRegisters(self, self._shapes)
        self.undefined = Undefined(self, follows=False)
        self.position = self.record_size = 0
        self._sizes = {}
        self.guard: str | None = None  # the lanes in which the guard of an instruction holds, where they differ
        self.side: Side | None = None  # the side of a branch that is being translated
        self.waiting, self.is_partial = self._find_waiting()
        self.entries: set[int] = set()
        self.resumes: list[tuple[int, str]] = []  # points after waits, by the numbers that threads have for them

    def text(self) -> str:
        """The function as LLVM IR; the last time after that for threads."""
        self._begin()
        body = super().text()
        return "\n".join([body, *self.builder.functions.values(), ""])

    def _beginning(self) -> list[str]:
        lines = [
            *self.builder.declarations(),
            *sharing("%addresses", self.wide("i64")),
            f"  %turns = alloca i32\n  store i32 {TURNS}, ptr %turns",
        ]
        masks = self.wide("i1")
        lines += [f"  %active = alloca {masks}\n  store {masks} {self.builder.all_lanes}, ptr %active"]
        lines += [f"  %active.count = alloca i64\n  store i64 {self.group}, ptr %active.count"]
        for block in sorted(self.waiting):
            lines.append(f"  %wait.{block} = alloca {masks}\n  store {masks} {NONE}, ptr %wait.{block}")
        cases = " ".join(f"i32 {number}, label %{label}" for number, label in [(0, "start"), *self.resumes])
        return [*lines, f"  switch i32 %resume, label %elsewhere [ {cases} ]", "elsewhere:", "  ret void"]

    # Which lanes execute.

    def _find_waiting(self) -> tuple[dict[int, set[int]], set[int]]:
        """For each block where other lanes can wait meanwhile; and the blocks that not all lanes need execute."""
        waiting: dict[int, set[int]] = {0: set()}
        exited: set[int] = set()
        pending = [0]
        while pending:
            number = pending.pop()
            for targets in self._ways(number):
                places = sorted((waiting[number] | set(targets)) - {END})
                # Of those that jump, some get to each target that is not the end, if they do not all take one way.
                last = max(targets) if END not in targets else len(self.flow.blocks)
                for next in (place for place in places if place <= last):
                    before = waiting.get(next), next in exited
                    later = {place for place in places if place > next}
                    waiting[next] = waiting.get(next, set()) | later
                    if END in targets or number in exited:
                        exited.add(next)
                    if (waiting[next], next in exited) != before:
                        pending.append(next)
        return waiting, {number for number in waiting if waiting[number] or number in exited}

    def _ways(self, number: int) -> list[tuple[int, ...]]:
        """Where lanes get to from a block: a target for all of them, or several for some of them each."""
        block = self.flow.blocks[number]
        position = block.end - 1
        instruction = self.instructions[position]
        after = number + 1 if number + 1 < len(self.flow.blocks) else END
        if instruction.opcode.jump is None:
            return [(after,)]
        target = self.flow.targets[position][0] if instruction.opcode.jump is Jump.BRANCH else END
        if instruction.guard is None:
            return [(target,)]
        if position not in self.divergent:
            return [(target,), (after,)]
        return [(self.sides[number].join,)] if number in self.sides else [(target, after)]

    @property
    def block_number(self) -> int:
        """The basic block that is being translated, or that a side is part of which is."""
        number = super().block_number
        return self.side_of.get(number, number)

    @property
    def is_in_loop(self) -> bool:
        """Whether what is being translated is in a loop."""
        return self.block_number in self._in_loops

    def wide(self, type: str) -> str:
        """The vector of a type, an element for each lane."""
        return self.builder.wide(type)

    def mask(self) -> str | None:
        """The lanes that execute what is being translated; None: all of them."""
        if self.guard is not None:
            return self.guard
        if self.side is not None:
            return self.side.mask
        if self.block_number not in self.is_partial:
            return None
        return self.builder.loaded_mask("%active")

    @property
    def counts_changes(self) -> bool:
        """No, unless a lane stores alone: all that lanes store counts, since threads continue what takes long."""
        return self.builder.is_alone and super().counts_changes

    def note_access(self, *given: Any) -> str:
        """Nothing, where a uniform access is written as that of one thread: `lane_tracking` notes it for all lanes."""
        return super().note_access(*given) if self.builder.is_alone else DEFINED

    def is_full(self) -> str:
        """Whether those are all lanes."""
        if self.guard is None and self.side is None and self.block_number not in self.is_partial:
            return "true"
        return self.builder.plain(f"icmp eq i64 {self.times('1')}, {self.group}")

    def times(self, amount: str) -> str:
        if self.builder.is_alone:
            return amount
        if amount != "1":
            raise NotTogetherError("an amount")
        if self.guard is not None:
            return self.builder.number_of(self.guard)
        if self.side is not None:
            return self.side.count
        if self.block_number not in self.is_partial:
            return str(self.group)
        return self.builder.plain("load i64, ptr %active.count")

    def bits(self, mask: str | None) -> str:
        """Lanes as a number of 32 bits, the first lane being the lowest; None: all of them."""
        if mask is None:
            return str((1 << self.group) - 1) if self.group < WARP else "-1"
        return self.builder.bits(mask)

    def kept_by(self, register: int) -> str | None:
        """The lanes that a result is for, if others need what they have in its register; otherwise None."""
        if self.guard is not None:
            return self.guard
        places = self.waiting.get(self.block_number, ())
        if self.live.block_of and any(self.live.at_start[block] >> register & 1 for block in places):
            return self.mask()
        return None

    # Instructions.

    def _translate_block(self, number: int) -> None:
        self.position = self.flow.blocks[number].start
        if number not in self.waiting:  # no lane gets there
            self.builder.label(f"b{number}")
            self.builder.close("unreachable")
            return
        super()._translate_block(number)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report what goes wrong of the first thread that executes."""
        builder, mask = self.builder, self.mask()
        outside, builder.is_reporting = builder.thread, True
        if mask is not None:
            builder.thread = self._first_thread(mask)
        yield
        builder.thread, builder.is_reporting = outside, False

    def _first_thread(self, mask: str) -> str:
        builder = self.builder
        first = builder.plain(f"call i32 @llvm.cttz.i32(i32 {builder.bits(mask)}, i1 false)")
        offset = builder.plain(f"mul i64 {builder.plain(f'zext i32 {first} to i64')}, {size_of(state.Thread)}")
        return builder.plain(f"getelementptr i8, ptr %thread, i64 {offset}")

    def _translate_guarded(self, instruction: ir.Instruction, guard: ir.Guard, match: Match | None) -> None:
        builder = self.builder
        assert isinstance(guard.register, ir.Register)
        condition = self.registers.get(guard.register).text
        if condition not in builder.shapes and self.side is None:
            super()._translate_guarded(instruction, guard, match)
            return
        condition = builder.widened("i1", condition)
        taken = self.part_of_active(condition, guard.negated)
        if instruction.opcode.jump is not None:
            self.divergent.add(self.position)
            if self.block_number in self.sides:
                self._take_both(self.sides[self.block_number], guard.negated, condition)
                return
            target = self.flow.targets[self.position][0] if instruction.opcode.jump is Jump.BRANCH else END
            number = self.block_number
            after = number + 1 if number + 1 < len(self.flow.blocks) else END
            self._part(target, taken, after, self.part_of_active(condition, not guard.negated))
            return
        assert match is not None
        outside, self.guard = self.guard, taken
        skips = bool(match.effects.accesses)
        then, end = builder.new_label("then"), builder.new_label("after")
        if skips:
            builder.branch(builder.any(taken), then, end)
            builder.label(then)
            self.registers.begin_guarded()
        self.unit.counting.count_guarded(self)
        self._translate_unguarded(instruction, match)
        if skips:
            builder.jump(end)
            builder.label(end)
            self.registers.end_guarded()
        self.guard = outside

    def _take_both(self, sides: Sides, negated: bool, condition: str) -> None:
        """Execute both sides of a branch with all lanes, and choose for each lane what the side found that it takes."""
        builder, count = self.builder, self.times("1")
        taken = builder.inverse(condition) if negated else builder.mask(condition)
        passed = self.part_of_active(condition, not negated)
        passing = builder.number_of(passed)
        found = []
        for block, mask, number in (
            (sides.passed, passed, passing),
            (sides.taken, self.part_of_active(taken, False), builder.plain(f"sub i64 {count}, {passing}")),
        ):
            self.side = Side(mask, number)
            self.registers.begin_side()
            if block is not None:
                self._translate_side(block)
            found.append(self.registers.end_side())
        self.side = None
        self.registers.choose(taken, found[1], found[0], self.live.at_start[sides.join])
        self.go(sides.join)

    def _translate_side(self, block: int) -> None:
        start, end = self.flow.blocks[block].start, self.flow.blocks[block].end
        self.position = start
        self.unit.counting.count_block(self, start, end)
        for position in range(start, end):
            self.position = position
            instruction = self.instructions[position]
            if instruction.opcode.jump is None:
                self.registers.begin_instruction()
                self._translate(instruction, self.matches[position])

    def _execute(self, instruction: ir.Instruction, match: Match) -> None:
        if not is_for_each(match.effects, bool(self.locals.size)):
            super()._execute(instruction, match)
            return
        with self.builder.each_lane(self.mask()):
            super()._execute(instruction, match)
        self.registers.put_from_lanes()

    def part_of_active(self, condition: str, negated: bool) -> str:
        """The lanes that execute and in which a condition holds, or does not."""
        builder, mask = self.builder, self.mask()
        part = builder.inverse(condition) if negated else builder.mask(condition)
        return part if mask is None else builder.combined("and", mask, part)

    # Control flow.

    def go(self, target: int) -> None:
        """All lanes that execute jump to a block; those that wait at an earlier one come first."""
        if target == END:
            self.leave()
            return
        number = self.block_number
        places = self.waiting.get(number, set())
        earlier = [place for place in sorted(places) if place < target]
        if target <= number:
            self._burn([(target, self._active())])
        if earlier:
            self._wait_at(target, self._active())
            self._dispatch([*earlier, target])
            return
        if target in places:
            self._wait_at(target, self._active())
            self._enter(target)
            return
        self.hints.go(number, target)
        self.builder.jump(f"b{target}")

    def _part(self, target: int, taken: str, after: int, others: str) -> None:
        """Some of the lanes that execute jump to a block, or exit, and others continue."""
        number = self.block_number
        ways = [(target, taken), (after, others)]
        if any(END < place <= number for place, _ in ways):
            self._burn(ways)
        for place, mask in ways:
            if place == END:
                self._exit_lanes(mask)
            else:
                self._wait_at(place, mask)
        places = sorted((self.waiting.get(number, set()) | {target, after}) - {END})
        last = max(target, after) if END not in (target, after) else len(self.flow.blocks)
        self._dispatch([place for place in places if place <= last], is_certain=END not in (target, after))

    def _active(self) -> str:
        return self.mask() or self.builder.all_lanes

    def _wait_at(self, block: int, mask: str) -> None:
        """Have lanes wait at the start of a block."""
        builder = self.builder
        both = builder.combined("or", builder.loaded_mask(f"%wait.{block}"), mask)
        builder.lines.append(f"  store {self.wide('i1')} {both}, ptr %wait.{block}")

    def _dispatch(self, places: Sequence[int], *, is_certain: bool = True) -> None:
        """Execute the first of some blocks at which lanes wait; if it is certain that there is one."""
        builder = self.builder
        for index, place in enumerate(places):
            if is_certain and index == len(places) - 1:
                break
            enter, other = builder.new_label("enter"), builder.new_label("other")
            builder.branch(builder.any(builder.loaded_mask(f"%wait.{place}")), enter, other)
            builder.label(enter)
            self._enter(place)
            builder.label(other)
        if is_certain and places:
            self._enter(places[-1])
        else:
            builder.close("ret void")

    def _enter(self, block: int) -> None:
        """Have the lanes execute that wait at a block."""
        builder = self.builder
        mask = builder.loaded_mask(f"%wait.{block}")
        builder.lines.append(f"  store {self.wide('i1')} {mask}, ptr %active")
        builder.lines.append(f"  store i64 {self.builder.number_of(mask)}, ptr %active.count")
        builder.lines.append(f"  store {self.wide('i1')} {NONE}, ptr %wait.{block}")
        self.hints.resume(block)
        builder.jump(f"b{block}")

    def leave(self) -> None:
        self.exit()

    def exit(self) -> None:
        """End the lanes that execute."""
        self._exit_lanes(self.mask())
        self._dispatch(sorted(self.waiting.get(self.block_number, set())), is_certain=False)

    def _exit_lanes(self, mask: str | None) -> None:
        exits = self.unit.calls.runtime("exit_together")
        self.builder.lines.append(f"  call void @{exits}(ptr %thread, i32 {self.bits(mask)})")

    # Long loops.

    def _burn(self, ways: Sequence[tuple[int, str]]) -> None:
        """A jump backwards costs fuel; in the end lanes continue as threads, at the blocks that they jump to."""
        builder = self.builder
        less = builder.plain(f"sub i32 {builder.plain('load i32, ptr %fuel')}, 1")
        builder.lines.append(f"  store i32 {less}, ptr %fuel")
        rest, apart, more, on = (builder.new_label(name) for name in ("rest", "apart", "more", "on"))
        builder.branch(builder.plain(f"icmp eq i32 {less}, 0"), rest, on, likely=False)
        builder.label(rest)
        stop = builder.plain(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'stop')}")
        stop = builder.plain(f"load ptr, ptr {stop}")
        stopped = builder.plain(f"icmp ne i32 {builder.plain(f'load atomic i32, ptr {stop} monotonic, align 4')}, 0")
        turns = builder.plain(f"sub i32 {builder.plain('load i32, ptr %turns')}, 1")
        builder.lines.append(f"  store i32 {turns}, ptr %turns")
        ends = builder.plain(f"or i1 {stopped}, {builder.plain(f'icmp eq i32 {turns}, 0')}")
        builder.branch(ends, apart, more, likely=False)
        builder.label(more)
        builder.lines.append("  store i32 %quantum, ptr %fuel")
        builder.jump(on)
        builder.label(apart)
        for place, mask in ways:
            self._become_threads(place, mask)
        for place in sorted(self.waiting.get(self.block_number, ())):
            self._become_threads(place, builder.loaded_mask(f"%wait.{place}"))
        builder.close("ret void")
        builder.label(on)

    def _become_threads(self, block: int, mask: str) -> None:
        """Have lanes continue as threads at the start of a block."""
        if block == END:
            self._exit_lanes(mask)
            return
        self.entries.add(block)
        save_each(self, mask, self.live.at_start[block])
        with self.builder.each_lane(mask):
            for name, value in (
                ("resume", self.single.frame.entries.get(block, 0)),
                ("waiting.instruction", self.first + self.flow.blocks[block].start),
                ("status", thread_parts.YIELDED),
            ):
                self.store_field(name, "i32", value)
