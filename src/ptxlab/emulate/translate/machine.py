"""The machine that semantics run on when a kernel is translated: what they ask for becomes LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import address_spaces, thread_parts
from ptxlab.emulate.abi.barriers import ALIGNED
from ptxlab.emulate.abi.clocks import WITH_COPIES
from ptxlab.emulate.translate import access, floats, generic_addresses
from ptxlab.emulate.translate.async_copies import AsyncCopies
from ptxlab.emulate.translate.bulk import BulkCopies
from ptxlab.emulate.translate.mbarriers import Mbarriers
from ptxlab.emulate.translate.multicast import MulticastUnit
from ptxlab.emulate.translate.records import OperationRecord
from ptxlab.emulate.translate.stack import Stack
from ptxlab.emulate.translate.tensor_memory import TensorMemory
from ptxlab.emulate.translate.textures import TextureUnit
from ptxlab.emulate.translate.undefined import DEFINED
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue, bits_of, constant_text, resize
from ptxlab.emulate.translate.wgmma import WarpgroupMma
from ptxlab.isa import Match, asynchronous
from ptxlab.isa.types import Type, type_named
from ptxlab.isa.undefined import Following
from ptxlab.isa.units.multicast_unit import Multicast
from ptxlab.isa.units.texture_unit import Textures
from ptxlab.native.functions import signature

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function
    from ptxlab.isa.machine import AccessKind, Statics

_PREDICATE = type_named("pred")
_KINDS = {"load": address_spaces.LOAD, "store": address_spaces.STORE, "update": address_spaces.ATOMIC}
_U32 = type_named("u32")


class LlvmMachine:
    """`k` of the semantics, see `isa.machine`; the methods on memory and waiting are the emulator's own."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.instruction: ir.Instruction | None = None
        self.match: Match | None = None
        self.mbarrier: asynchronous.Mbarriers[LlvmValue, LlvmAddress] = Mbarriers(self)
        self.async_copy: asynchronous.AsyncCopies[LlvmValue, LlvmAddress] = AsyncCopies(self)
        self.bulk: asynchronous.BulkCopies[LlvmValue, LlvmAddress] = BulkCopies(self)
        self.wgmma: asynchronous.WarpgroupMma[LlvmValue] = WarpgroupMma(self)
        self.tensor_memory: asynchronous.TensorMemory[LlvmValue, LlvmAddress] = TensorMemory(self)
        self.stack: asynchronous.Stack[LlvmValue] = Stack(self)
        self.textures: Textures[LlvmValue, LlvmAddress] = TextureUnit(self)
        self.multicast: Multicast[LlvmAddress] = MulticastUnit(self)

    def begin(self, instruction: ir.Instruction, match: Match) -> None:
        """Turn to another instruction."""
        self.instruction, self.match = instruction, match

    # Values.

    @property
    def carry(self) -> LlvmValue:
        return LlvmValue(self.function, _PREDICATE, self.function.builder.value("load i1, ptr %carry"))

    @carry.setter
    def carry(self, value: LlvmValue) -> None:
        self.function.builder.emit(f"store i1 {value.text}, ptr %carry")

    @property
    def lane(self) -> LlvmValue:
        """The number of the thread in its warp."""
        return LlvmValue(self.function, _U32, self.function.load_field("lane", "i32"))

    @property
    def warp(self) -> LlvmValue:
        """The number of the warp in its block."""
        return LlvmValue(self.function, _U32, self.function.load_field("number", "i32")) >> 5

    @property
    def target(self) -> str:
        """What the module is compiled for: tensor cores differ."""
        return self.function.unit.arithmetic.architecture

    def _operand(self, name: str) -> ir.Operand | None:
        assert self.match is not None
        assert self.instruction is not None
        pairs = zip(self.match.expected, self.instruction.operands, strict=True)
        return next((operand for expected, operand in pairs if expected.name == name), None)

    def selection(self, operand: str) -> str | None:
        found = self._operand(operand)
        if isinstance(found, ir.Minus):
            found = found.operand
        return found.selector if isinstance(found, ir.Selection) else None

    def has_minus(self, operand: str) -> bool:
        return isinstance(self._operand(operand), ir.Minus)

    def constant(self, type: str, value: int) -> LlvmValue:
        return LlvmValue(self.function, type_named(type), constant_text(value, type_named(type)))

    def select(self, condition: LlvmValue, yes: LlvmValue, no: LlvmValue | int) -> LlvmValue:
        other = constant_text(no, yes.type) if isinstance(no, int) else no.text
        known, name = condition.text, bits_of(yes.type)
        if known in ("true", "false"):
            return LlvmValue(self.function, yes.type, yes.text if known == "true" else other)
        text = self.function.builder.value(f"select i1 {known}, {name} {yes.text}, {name} {other}")
        return LlvmValue(self.function, yes.type, text)

    def cast(self, value: LlvmValue, type: str) -> LlvmValue:
        wanted = type_named(type)
        return LlvmValue(self.function, wanted, resize(value, wanted.width, value.is_signed))

    def reinterpret(self, value: LlvmValue, type: str) -> LlvmValue:
        assert value.type.width == type_named(type).width, f"{value.type} as .{type}"
        return LlvmValue(self.function, type_named(type), value.text)

    def pack(self, parts: Sequence[LlvmValue], type: str) -> LlvmValue:
        builder, wanted = self.function.builder, type_named(type)
        total, at = "0", 0
        for part in parts:
            wide = resize(part, wanted.width, signed=False)
            shifted = builder.value(f"shl {bits_of(wanted)} {wide}, {at}") if at else wide
            total = builder.value(f"or {bits_of(wanted)} {total}, {shifted}") if at else shifted
            at += part.type.width
        return LlvmValue(self.function, wanted, total)

    def unpack(self, value: LlvmValue, type: str) -> tuple[LlvmValue, ...]:
        builder, wanted = self.function.builder, type_named(type)
        parts = []
        for at in range(0, value.type.width, wanted.width):
            shifted = builder.value(f"lshr {value.typed}, {at}") if at else value.text
            text = shifted
            if wanted.width != value.type.width:
                text = builder.value(f"trunc {bits_of(value.type)} {shifted} to {bits_of(wanted)}")
            parts.append(LlvmValue(self.function, wanted, text))
        return tuple(parts)

    def arithmetic(
        self,
        operation: str,
        *operands: LlvmValue,
        rounding: str = "rn",
        ftz: bool = False,
        sat: bool = False,
        relu: bool = False,
    ) -> LlvmValue:
        type = operands[0].type
        if type.name == "f32" and rounding == "rn" and not (ftz or sat or relu) and operation in floats.RAW:
            text, raw = floats.raw(self.function.builder, operation, [operand.raw for operand in operands])
            return LlvmValue(self.function, type, text, raw)
        text = floats.arithmetic(
            self.function.builder,
            operation,
            type.name,
            [operand.text for operand in operands],
            rounding=rounding,
            ftz=ftz,
            sat=sat,
            relu=relu,
            call=self.function.unit.calls.native_call,
        )
        return LlvmValue(self.function, type, text)

    def call(self, function: Callable[..., object], *arguments: LlvmValue | int, type: str) -> LlvmValue:
        known = signature(function)
        texts: list[str | int] = []
        for argument, (_, wanted) in zip(arguments, known.parameters, strict=True):
            if isinstance(argument, int):
                texts.append(argument)
            else:
                texts.append(resize(argument, int(wanted.llvm[1:]), argument.is_signed))
        assert known.result is not None
        text = self.function.builder.value(self.function.unit.calls.native_call(function, texts))
        result = type_named(type)
        width = int(known.result.llvm[1:])
        if width != result.width:
            operation = "trunc" if result.width < width else "zext"
            text = self.function.builder.value(f"{operation} i{width} {text} to {bits_of(result)}")
        return LlvmValue(self.function, result, text)

    # The lanes of a warp.

    def collect(
        self,
        function: Callable[..., object],
        members: LlvmValue | int,
        inputs: Sequence[LlvmValue],
        results: Sequence[str],
        *,
        statics: Statics = (),
        aligned: bool = False,
        reads_shared: bool = False,
        orders: bool = False,
        following: Following | None = None,
    ) -> tuple[LlvmValue, ...]:
        word = self._bring(inputs)
        types = [type_named(name) for name in results]
        total = word + sum(-(-type.width // 32) for type in types)
        if following is not None and not self._follow(following, inputs, total):
            following = None
        site = self.function.unit.calls.site(
            self.function, function, statics, (word, total), aligned, reads_shared, orders, following
        )
        self.function.sites[self.function.position] = site, following is not None
        given = str(members) if isinstance(members, int) else members.text
        self.function.store_field("waiting.members", "i32", given)
        self.function.store_field("waiting.site", "i32", site)
        self.function.frame.wait_here(thread_parts.AT_COLLECTIVE)
        found = self._fetch(types, word)
        if following is not None:
            self._take_shadows(following, found, total, inputs=word)
        return tuple(found)

    def _bring(self, inputs: Sequence[LlvmValue]) -> int:
        """Put values into the exchange buffer; how many words they are."""
        word = 0
        for value in inputs:
            for part in self._words(value):
                self.function.builder.emit(f"store i32 {part}, ptr {self._exchange(word)}")
                word += 1
        return word

    def _fetch(self, types: Sequence[Type], word: int) -> list[LlvmValue]:
        """Values from the exchange buffer, from a word of it on."""
        found = []
        for type in types:
            parts = []
            for _ in range(0, type.width, 32):
                parts.append(LlvmValue(self.function, _U32, self._word(word)))
                word += 1
            if type.width >= 32:
                found.append(self.pack(parts, type.name))
            else:
                found.append(LlvmValue(self.function, type, resize(parts[0], type.width, signed=False)))
        return found

    def _word(self, number: int) -> str:
        """A word of the thread in the exchange buffer."""
        return self.function.builder.value(f"load i32, ptr {self._exchange(number)}")

    def _follow(self, following: Following, inputs: Sequence[LlvmValue], word: int) -> bool:
        """Put the shadows of undefined values into the exchange buffer, unless all are known to be defined."""
        builder, undefined = self.function.builder, self.function.undefined
        shadows = [value.undefined or DEFINED for value in inputs[: following.inputs]]
        some = undefined.combine(shadows)
        if some == DEFINED and not undefined.is_source:
            return False
        builder.emit(f"store i32 {some}, ptr {self._exchange(word)}")
        if some == DEFINED:
            return True
        with undefined.where(some):
            for shadow, value in zip(shadows, inputs, strict=False):
                if following.parts and shadow != DEFINED:
                    shadow = builder.value(f"sext i1 {builder.value(f'icmp ne i32 {shadow}, 0')} to i32")
                for _ in range(0, value.type.width, 32):
                    word += 1
                    builder.emit(f"store i32 {shadow}, ptr {self._exchange(word)}")
        return True

    def _take_shadows(self, following: Following, values: Sequence[LlvmValue], total: int, inputs: int) -> None:
        """Read the shadows of results from the exchange buffer."""
        builder, undefined = self.function.builder, self.function.undefined
        word = total + 1 + inputs
        for number, value in enumerate(values):
            value.undefined = DEFINED
            if number < following.results:
                shadow = builder.value(f"load i32, ptr {self._exchange(word)}")
                value.undefined = undefined.taken(shadow, parts=following.parts)
            word += -(-value.type.width // 32)
        undefined.handed_on = [value.undefined or DEFINED for value in values]

    def _exchange(self, word: int) -> str:
        return self.function.builder.value(f"getelementptr i8, ptr %exchange, i64 {128 * word}")

    def _words(self, value: LlvmValue) -> list[str]:
        if value.type.width <= 32:
            return [resize(value, 32, signed=False)]
        return [part.text for part in self.unpack(value, "u32")]

    def active_mask(self) -> LlvmValue:
        self.function.frame.wait_here(thread_parts.ACTIVE)
        return LlvmValue(self.function, _U32, self.function.load_field("waiting.members", "i32"))

    # Memory.

    def load(
        self,
        address: LlvmAddress,
        type: str,
        count: int = 1,
        *,
        when: LlvmValue | None = None,
        order: str = "",
    ) -> tuple[LlvmValue, ...]:
        """`count` values of `type` from memory; zeros where `when` does not hold."""
        return access.load(self.function, address, type_named(type), count, when, order)

    def store(
        self,
        address: LlvmAddress,
        values: Sequence[LlvmValue],
        *,
        when: LlvmValue | None = None,
        order: str = "",
    ) -> None:
        """Values side by side to memory."""
        access.store(self.function, address, values, when, order)

    def fill(self, address: LlvmAddress, size: LlvmValue) -> None:
        """Write that many zero bytes to shared memory."""
        offset = self.shared_offset(address)
        self.runtime("fill_shared", offset, size, self.number)
        self.check()
        self.function.unit.counting.note_change(self.function, "shared")
        self.function.unit.counting.count_access(
            self.function, LlvmAddress("shared", offset), size, address_spaces.STORE
        )

    def update(
        self,
        address: LlvmAddress,
        type: str,
        change: Callable[[LlvmValue], LlvmValue],
        order: str = "",
        *,
        writes: Callable[[LlvmValue], LlvmValue] | None = None,
        returns: bool = True,
        when: LlvmValue | None = None,
    ) -> LlvmValue:
        """Change a value in memory at one go, and return what it was."""
        return access.update(self.function, address, type_named(type), change, order, writes, returns, when)

    def require(self, address: LlvmAddress, bytes: int, kind: AccessKind = "update") -> None:
        """Stop the thread unless it may do this to all of these bytes and they are aligned."""
        access.find(self.function, address, bytes, _KINDS[kind])

    def runtime(self, name: str, *arguments: LlvmValue | int | str | OperationRecord) -> None:
        """Call a function of the runtime with this thread."""
        self.function.unit.calls.runtime_call(self.function, name, arguments, None)

    def ask_runtime(self, name: str, *arguments: LlvmValue | int | str, result: str) -> LlvmValue:
        """Call a function of the runtime with this thread; what it returns, as the type `result`."""
        found = self.function.unit.calls.runtime_call(self.function, name, arguments, result)
        assert found is not None, name
        return found

    def wait(self, status: int | None = None) -> None:
        """Let others run until this thread can continue; None: the runtime has said why."""
        self.function.frame.wait_here(status)

    def check(self) -> None:
        """Stop the thread here if the runtime has found something wrong."""
        access.stop_if_failed(self.function)

    # Order.

    def fence(self, order: str) -> None:
        """Order the accesses of this thread before it with those after it."""
        semantics, _, scope = order.partition(".")
        if semantics == "mbarrier_init":
            self.runtime("pass_init_fence")
            return
        self.runtime("pass_fence", access.SEMANTICS[semantics], access.SCOPES[scope])

    def cluster_barrier(self, *, waits: bool, releases: bool = False) -> None:
        """Arrive at the barrier of the cluster, or wait there."""
        assert self.match is not None
        how = ALIGNED if self.match.effects.aligned else 0
        if waits:
            self.runtime("wait_at_cluster", how, self.number)
            self.wait()
        else:
            self.runtime("arrive_at_cluster", how, int(releases), self.number)
            self.check()

    def address_in(self, address: LlvmValue, rank: LlvmValue, space: str | None) -> LlvmValue:
        """The address that corresponds, in another block of the cluster, to one in shared memory, generic or not."""
        known = self.select(rank < address_spaces.NO_RANK, rank, address_spaces.NO_RANK)
        type = address.type.name
        if space is None:  # what is not in shared memory is in no block
            known = self.select(self.is_in("shared::cluster", self.cast(address, "u64")), known, address_spaces.NO_RANK)
            window = address_spaces.SHARED_WINDOW
        else:
            window = 0
        return (address & address_spaces.OFFSET_MASK | self.cast(known, type) << address_spaces.RANK_SHIFT) + window

    def rank_of(self, address: LlvmValue) -> LlvmValue:
        """The rank in the cluster of the block whose shared memory contains an address."""
        return self.cast(address >> address_spaces.RANK_SHIFT & address_spaces.NO_RANK, "u32")

    def fence_proxy(self, space: str | None) -> None:
        """Order ordinary accesses of this thread and those of asynchronous copies, to shared or global memory."""
        shared = int(space != "global") and 1 + WITH_COPIES * self.function.unit.copies_as_threads
        self.runtime("pass_proxy_fence", shared, int(space in (None, "global")))

    def wait_for_grids(self) -> None:
        self.runtime("wait_for_grids")

    def start_dependents(self) -> None:
        self.runtime("start_dependents")

    def set_registers(self, count: int, *, more: bool) -> None:
        self.runtime("set_registers", count, int(more), self.number)
        if more:
            self.wait()

    def barrier(
        self, number: LlvmValue, count: LlvmValue | None, *, value: LlvmValue | None = None, waits: bool = True
    ) -> LlvmValue:
        """Arrive at a barrier of the block and, with `waits`, stay until it opens."""
        brought = 0 if value is None else value
        assert self.match is not None
        how = int(waits) | (ALIGNED if self.match.effects.aligned else 0)
        self.runtime("arrive_at_barrier", number, 0 if count is None else count, how, brought, self.number)
        if waits:
            self.wait()
        else:
            self.check()
        return LlvmValue(self.function, type_named("u64"), self.function.load_field("waiting.answer", "i64"))

    @property
    def number(self) -> int:
        """The number of the instruction in the program."""
        return self.function.instruction_number

    def shared_offset(self, address: LlvmAddress) -> LlvmValue:
        """Where an address points to in shared memory."""
        return address.value - address_spaces.SHARED_WINDOW if address.space is None else address.value

    def own_offset(self, address: LlvmValue) -> LlvmValue:
        """An address in shared memory of the cluster as an offset in that of the thread's block, if it is there."""
        return self.ask_runtime("without_own_rank", address, result="u64")

    def owner(self, address: LlvmValue) -> str:
        """The block whose shared memory contains an address."""
        name = self.function.unit.calls.runtime("owner_of")
        return self.function.builder.value(f"call ptr @{name}(ptr %thread, i64 {address.text})")

    def rest(self) -> None:
        """Let other threads run first."""
        self.function.frame.wait_here(thread_parts.YIELDED)

    def window(self, space: str) -> int:
        """Where the addresses of a state space start among generic ones."""
        return generic_addresses.window(self.function, space)

    def is_in(self, space: str, address: LlvmValue) -> LlvmValue:
        """Whether a generic address is in a state space."""
        return generic_addresses.is_in(self.function, space, address)
