"""Tracked accesses: what the detectors see, memory that other threads may touch, unless no thread can write it."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import address_spaces, state
from ptxlab.emulate.runtime.order import shadow
from ptxlab.emulate.translate.fragments import MAPPED, Fragments
from ptxlab.emulate.translate.loops import loops_of
from ptxlab.emulate.translate.preemption import takes_turns
from ptxlab.emulate.translate.provenance import UNKNOWN, WINDOW, Roots
from ptxlab.emulate.translate.special import special_register
from ptxlab.emulate.translate.undefined import DEFINED, passes_argument
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.flow.numbers import MOST_THREADS, Threads
from ptxlab.ir.shapes import match_of
from ptxlab.isa.types import type_named
from ptxlab.isa.units.descriptor import CHUNK
from ptxlab.native import offset_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function


class Tracking:
    """What of one kernel is tracked; `written` are the arguments through which it writes."""

    def __init__(self, checks: bool, is_alone: bool) -> None:
        self.checks = checks
        self.is_alone = is_alone  # the kernel calls no function
        self.written = 0
        self.synchronizes = False  # the kernel has fences, acquires or releases
        self.copies_boxes = False  # the kernel has bulk copies, which may be of boxes of tensors
        self._roots: dict[int, Roots] = {}
        self._fragments: dict[int, Fragments] = {}

    def note_access(
        self,
        function: Function,
        address: LlvmAddress,
        bytes: int,
        kind: int,
        order: str,
        element: int,
        unchanged: str = "false",
        undefined: str = DEFINED,
    ) -> str:
        """Track an access to `bytes` bytes in elements of `element`, which may change nothing.

        `undefined` is the shadow of what is stored; what is returned, of what is loaded.
        """
        number = flags_of(kind, order, element)
        if _is_matrix_row(function, bytes) and kind == address_spaces.STORE:
            number |= shadow.MATRIX_ROW
        elif self.checks and self.copies_boxes and kind == address_spaces.LOAD and address.space == "shared":
            self._note_fragment(function, address.value, bytes)
        return self._note(function, address, bytes, kind, number, unchanged, number | shadow.UNCHANGED, undefined)

    def _note_fragment(self, function: Function, offset: LlvmValue, bytes: int) -> None:
        """Compare a load of a fragment with the tensor map of what it reads, by its swizzle and its type."""
        instruction = function.instructions[function.position]
        fragment = self._fragments_of(function).loaded_by(instruction)
        call = function.unit.calls.runtime_call
        lanes = 1 if _is_matrix_row(function, bytes) else 4 if fragment is not None and fragment.has_quads else 0
        if lanes:
            call(function, "note_row", (offset, lanes, function.instruction_number), None)
        if fragment is not None and fragment.type in MAPPED:
            call(function, "note_fragment", (offset, MAPPED[fragment.type], function.instruction_number), None)

    def _fragments_of(self, function: Function) -> Fragments:
        found = self._fragments.get(function.number)
        if found is None:
            found = self._fragments[function.number] = Fragments(function)
        return found

    def note_update(
        self, function: Function, address: LlvmAddress, bytes: int, order: str, writes: LlvmValue | None, returns: bool
    ) -> None:
        """Track an atomic operation, which is only a read if `writes` does not hold."""
        number = flags_of(address_spaces.ATOMIC, order, bytes) | (0 if returns else shadow.REDUCTION)
        failed, otherwise = "false", number
        if writes is not None and self.checks:
            failed = function.builder.value(f"xor i1 {writes.text}, true")
            otherwise = flags_of(address_spaces.LOAD, order, bytes) | shadow.UNCHANGED
        self._note(function, address, bytes, address_spaces.ATOMIC, number, failed, otherwise)

    def _note(
        self,
        function: Function,
        address: LlvmAddress,
        bytes: int,
        kind: int,
        number: int,
        condition: str,
        otherwise: int,
        undefined: str = DEFINED,
    ) -> str:
        """Track an access, which is `number`, and where the condition holds, `otherwise`."""
        space = address.space
        if not self.is_tracked(function, space):
            return DEFINED
        builder = function.builder
        conditions = self.conditions(function, space, kind)
        if kind == address_spaces.LOAD and function.position in function.dead_loads:
            conditions.append(self._is_alive(function, function.dead_loads[function.position]))
        tracked, after = builder.new_label("tracked"), builder.new_label("noted")
        if conditions:
            holds = reduce(lambda a, b: builder.value(f"and i1 {a}, {b}"), conditions)
            origin = builder.label_here
            builder.branch(holds, tracked, after)
            builder.label(tracked)
        name = _NOTES[space]
        follows = kind == address_spaces.LOAD and function.undefined.is_source
        more = (shadow.FOLLOWED if self.is_alone else 0) | (shadow.FOLLOWS_VALUE if follows else 0)
        if self.synchronizes and number & (shadow.STRONG | shadow.OBJECT) == shadow.STRONG:
            is_loop = kind == address_spaces.LOAD and _polls(function)
            more |= shadow.SYNCHRONIZES | shadow.POLLS * (condition != "false" or is_loop)
        if number & (shadow.STRONG | shadow.OBJECT) == shadow.STRONG and kind == address_spaces.LOAD:
            more |= _unused_elements(function) << shadow.UNUSED_SHIFT
        what = str(number | more)
        if condition != "false":
            what = builder.value(f"select i1 {condition}, i32 {otherwise | more}, i32 {number | more}")
        self._note_lockstep(function, address, bytes, kind)
        sources = function.undefined.source if follows else undefined
        flags = f"i32 {bytes}, i32 {what}, i32 {function.instruction_number}, i32 {sources}"
        found = builder.value(
            f"call i32 @{function.unit.calls.runtime(name)}(ptr %thread, i64 {address.value.text}, {flags})"
        )
        if conditions:
            last = builder.label_here
            builder.jump(after)
            builder.label(after)
            if follows:
                found = builder.value(f"phi i32 [ {found}, %{last} ], [ 0, %{origin} ]")
        return found if follows else DEFINED

    def is_tracked(self, function: Function, space: str | None) -> bool:
        """Whether accesses to a state space by the instruction that is being translated are tracked."""
        if not self.checks or space in ("const", "param"):
            return False
        return space != "local" or (self.is_alone and not passes_argument(function.instructions[function.position]))

    def conditions(self, function: Function, space: str | None, kind: int) -> list[str]:
        """What must hold for an access to be tracked, beside what `dead_loads` says."""
        conditions = []
        if space in (None, "global"):
            roots = self.roots_of(function).of_addresses(function.instructions[function.position])
            if kind != address_spaces.LOAD:
                self.written |= roots
            elif not roots & (UNKNOWN | WINDOW):
                conditions.append(self._is_written(function, roots))
        if kind == address_spaces.LOAD and function.is_read is not None:
            conditions.append(function.is_read.text)
        return conditions

    def _note_lockstep(self, function: Function, address: LlvmAddress, bytes: int, kind: int) -> None:
        """Compare a volatile access with what other lanes did; see `runtime.order.lockstep`."""
        match = function.matches[function.position]
        if match is None or not takes_turns(match) or (kind == address_spaces.LOAD and _polls(function, volatile=True)):
            return
        space = address_spaces.GLOBAL_SPACE if address.space in (None, "global") else address_spaces.SHARED_SPACE
        given = (address.value, bytes, kind, function.instruction_number, space)
        function.unit.calls.runtime_call(function, "note_lockstep", given, None)

    def tracks(self, function: Function, operand: int) -> LlvmValue | int:
        """Whether the memory that a copy reads is tracked, by the operand that names it."""
        if not self.checks:
            return 0
        copied = function.instructions[function.position].operands[operand]
        roots = self.roots_of(function).of_address(copied)
        if roots & UNKNOWN:
            return 1
        text = function.builder.value(f"zext i1 {self._is_written(function, roots)} to i32")
        return LlvmValue(function, type_named("u32"), text)

    def note_written(self, function: Function, operand: int) -> None:
        """A copy writes the memory that an operand names."""
        if self.checks:
            self.written |= self.roots_of(function).of_address(
                function.instructions[function.position].operands[operand]
            )

    def watches_map(self, function: Function, operand: int) -> LlvmValue | int:
        """Whether the tensor that a copy reads is tracked, by the operand that names its map."""
        if not self.checks:
            return 0
        roots = self._roots_of_map(function, operand)
        if roots & UNKNOWN:
            return 1
        text = function.builder.value(f"zext i1 {self._is_written(function, roots)} to i32")
        return LlvmValue(function, type_named("u32"), text)

    def note_written_map(self, function: Function, operand: int) -> None:
        """A copy writes the tensor whose map an operand names."""
        if self.checks:
            self.written |= self._roots_of_map(function, operand)

    def _roots_of_map(self, function: Function, operand: int) -> int:
        """The parameter that a tensor map is; of one elsewhere, which the kernel may have changed, nothing is known."""
        found = self.roots_of(function).of_address(function.instructions[function.position].operands[operand])
        return found & ~WINDOW or UNKNOWN if found & WINDOW else UNKNOWN

    def roots_of(self, function: Function) -> Roots:
        found = self._roots.get(function.number)
        if found is None:
            found = self._roots[function.number] = Roots(function)
        return found

    def _is_alive(self, function: Function, dead: Threads) -> str:
        """Whether what a thread loads makes a difference; in a block with rows, `dead` says nothing of it."""
        builder = function.builder
        table, is_flat = self.dead_threads(function, dead)
        at = builder.value(f"getelementptr i8, ptr {table}, i32 {function.load_field('number', 'i32')}")
        is_dead = builder.value(f"trunc i8 {builder.value(f'load i8, ptr {at}, !invariant.load !2')} to i1")
        return builder.value(f"xor i1 {builder.value(f'and i1 {is_dead}, {is_flat}')}, true")

    def dead_threads(self, function: Function, dead: Threads) -> tuple[str, str]:
        """A table with a byte for each thread, 1 for those in `dead`; and whether that says anything of this block."""
        table = function.unit.table(bytes(dead >> thread & 1 for thread in range(MOST_THREADS)))
        y, z = (special_register(function, ir.SpecialRegister("%ntid", axis)) for axis in "yz")
        return table, (y * z == 1).text

    def _is_written(self, function: Function, roots: int) -> str:
        """Whether the kernel writes memory that these parameters point to."""
        builder = function.builder
        pointer = builder.value(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'memory.tracked')}")
        tracked = builder.value(f"load i64, ptr {pointer}, !invariant.load !2")
        return builder.value(f"icmp ne i64 {builder.value(f'and i64 {tracked}, {roots}')}, 0")


def _unused_elements(function: Function) -> int:
    """The elements that an instruction loads into registers from which they are never read, a bit each."""
    loaded = function.instructions[function.position].operands[0]
    elements = loaded.elements if isinstance(loaded, ir.Vector) else (loaded,)
    live = function.live.after(function.position)
    return sum(1 << number for number, element in enumerate(elements) if _is_unused(element, live))


def _is_unused(element: ir.Operand, live: int) -> bool:
    return isinstance(element, ir.Sink) or (isinstance(element, ir.Register) and not live >> element.index & 1)


def _polls(function: Function, *, volatile: bool = False) -> bool:
    """Whether an instruction accesses one address in a loop; with `volatile`, in one without volatile stores."""
    instruction = function.instructions[function.position]
    address = next((operand for operand in instruction.operands if isinstance(operand, ir.Address)), None)
    bodies = [loop.body for loop in loops_of(function.flow) if function.block_number in loop.body]
    if address is None or not isinstance(address.base, ir.Register):
        return bool(bodies)
    blocks = [[function.flow.blocks[number] for number in body] for body in bodies]
    written = [{at for block in body for at in range(block.start, block.end)} for body in blocks]
    if volatile:
        written = [positions for positions in written if not any(_stores_in_turn(function, at) for at in positions)]
    return any(not any(_writes(function, at, address.base) for at in positions) for positions in written)


def _stores_in_turn(function: Function, position: int) -> bool:
    match = function.matches[position]
    return match is not None and takes_turns(match) and match.effects.accesses[0].kind == "store"


def _writes(function: Function, position: int, register: ir.Register) -> bool:
    return bool(function.live.writes[position] >> register.index & 1)


_NOTES = {
    None: "note_generic", "global": "note_global", "local": "note_local", "shared": "note_shared",
    "shared::cluster": "note_cluster",
}  # fmt: skip


def flags_of(kind: int, order: str, element: int) -> int:
    """The flags by which the detectors know what an access is; see `runtime.shadow`."""
    semantics, _, scope = order.partition(".")
    flags = kind | (element.bit_length() - 1) << shadow.SIZE_SHIFT
    if semantics == "barrier":
        return flags | shadow.OBJECT | (0 if kind == address_spaces.STORE else shadow.STRONG)
    if semantics == "same-address":
        return flags | shadow.ANY_PROXY
    if semantics in ("", "weak", "constant"):
        return flags | (shadow.STALE if semantics == "constant" else 0)
    flags |= shadow.STRONG
    if scope in ("gpu", "sys"):
        flags |= shadow.WIDE
    if scope == "sys":
        flags |= shadow.SYSTEM
    if scope != "cta":
        flags |= shadow.CLUSTER
    if semantics in ("acquire", "acq_rel"):
        flags |= shadow.ACQUIRE
    if semantics in ("release", "acq_rel"):
        flags |= shadow.RELEASE
    return flags


def _is_matrix_row(function: Function, bytes: int) -> bool:
    """Whether a lane accesses a row of a matrix that its warp writes or reads together."""
    if bytes != CHUNK:
        return False
    match = match_of(function.instructions[function.position])
    return match is not None and match.effects.converges
