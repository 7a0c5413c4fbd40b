"""Loads and stores: every address is checked, whatever else is switched off.

Shared and local memory are windows: an offset within them is checked against their size. Of global memory each
instruction remembers where it found the last address (a `Hint`); only an address elsewhere costs a search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces, state, thread_parts
from ptxlab.emulate.runtime.schedule import steps
from ptxlab.emulate.translate import ranked_addresses
from ptxlab.emulate.translate.hints import FIELDS, register
from ptxlab.emulate.translate.preemption import LOGGED
from ptxlab.emulate.translate.undefined import DEFINED
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue, bits_of, constant_text, number_of
from ptxlab.isa.types import Type, type_named
from ptxlab.native import offset_of, size_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_WINDOWS = {"shared": ("%shared", "%shared_size"), "local": ("%local", "%local_size")}
SEMANTICS = {"weak": 0, "constant": 1, "relaxed": 2, "acquire": 3, "release": 4, "acq_rel": 5, "sc": 6, "barrier": 7}
SCOPES = {"": 0, "cta": 1, "cluster": 2, "gpu": 3, "sys": 4}
SPACES = {
    None: address_spaces.GENERIC_SPACE,
    "global": address_spaces.GLOBAL_SPACE,
    "const": address_spaces.CONSTANT_SPACE,
    "shared": address_spaces.SHARED_SPACE,
    "shared::cluster": address_spaces.CLUSTER_SPACE,
    "local": address_spaces.LOCAL_SPACE,
    "param": address_spaces.PARAMETER_SPACE,
}


def locate(function: Function, address: LlvmAddress, bytes: int, kind: int, condition: int = -1) -> str:
    """The address in the host's memory of `bytes` bytes, all of which the kernel may touch; or the thread fails."""
    pointer = find(function, address, bytes, kind)
    function.unit.counting.count_access(function, address, bytes, kind, condition)
    return pointer


def find(function: Function, address: LlvmAddress, bytes: int, kind: int) -> str:
    """The same, for what is not counted as an access.

    An offset from the start of memory is rotated right, by as many bits as an aligned one ends in zeros with:
    then a distance that is too far and one that is not aligned are both too large, and one comparison finds them.
    """
    if address.space in (None, "global", "const"):
        return _by_hint(function, address, bytes, kind)
    if address.space == "shared::cluster":
        return _in_cluster(function, address, bytes, kind)
    return _in_window(function, address, bytes, kind)


def _in_window(function: Function, address: LlvmAddress, bytes: int, kind: int) -> str:
    """An address in shared or local memory or among the parameters; what is not there is out of bounds."""
    builder, at = function.builder, address.value.text
    if address.space == "param":
        base = builder.value(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'memory.parameters')}")
        base = builder.value(f"load ptr, ptr {base}, !invariant.load !2")
        least = function.unit.parameter_size
        count = str(least // bytes)
    else:
        base, size = _WINDOWS[address.space or ""]
        least = function.unit.variables.dynamic_offset if address.space == "shared" else 0
        count = function.size_in(size, exponent(bytes))
    number = number_of(at)
    if number is not None and number % bytes == 0 and 0 <= number <= least - bytes:  # a variable: it is there
        return builder.value(f"getelementptr i8, ptr {base}, i64 {at}")
    near, far = builder.new_label("near"), builder.new_label("far")
    inside = builder.value(f"icmp ult i64 {_rotated(function, at, bytes)}, {count}")
    builder.branch(inside, near, far, likely=True)
    builder.label(far)
    is_ranked = function.unit.ranked and address.space == "shared"
    lost = ranked_addresses.beyond(function, address.value).text if is_ranked else at
    builder.emit(_search(function, address.space, lost, bytes, kind))
    function.fail()
    builder.label(near)
    return builder.value(f"getelementptr i8, ptr {base}, i64 {at}")


def _in_cluster(function: Function, address: LlvmAddress, bytes: int, kind: int) -> str:
    """An address in the shared memory of the thread's block, or where it is in that of another block of the cluster."""
    builder, at = function.builder, address.value.text
    near, far, found = (builder.new_label(name) for name in ("near", "far", "found"))
    inside = builder.value(
        f"icmp ult i64 {_rotated(function, at, bytes)}, {function.size_in('%shared_size', exponent(bytes))}"
    )
    builder.branch(inside, near, far, likely=True)
    builder.label(far)
    searched = builder.value(_search(function, address.space, at, bytes, kind))
    builder.branch(builder.value(f"icmp eq ptr {searched}, null"), function.failed, found, likely=False)
    builder.label(near)
    direct = builder.value(f"getelementptr i8, ptr %shared, i64 {at}")
    builder.jump(found)
    builder.label(found)
    return builder.value(f"phi ptr [ {direct}, %{near} ], [ {searched}, %{far} ]")


def _by_hint(function: Function, address: LlvmAddress, bytes: int, kind: int) -> str:
    """An address in the region of the last access, or else in one that a search finds."""
    builder, at = function.builder, address.value.text
    near, far, found = (builder.new_label(name) for name in ("near", "far", "found"))
    number = function.unit.hint()
    hint, is_kept = hint_pointer(function, number), function.hints.keep(number)
    fields = {name: register(number, name) if is_kept else field(function, hint, name) for name in FIELDS}
    base = builder.value(f"load i64, ptr {fields['base']}")
    distance = builder.value(f"sub i64 {at}, {base}")
    count = builder.value(f"load i64, ptr {fields['count']}")
    inside = builder.value(f"icmp ult i64 {_rotated(function, distance, bytes)}, {count}")
    builder.branch(inside, near, far, likely=True)
    builder.label(far)
    searched = builder.value(_search(function, address.space, at, bytes, kind, hint))
    lost = builder.value(f"icmp eq ptr {searched}, null")
    if is_kept:
        moved = builder.new_label("moved")
        builder.branch(lost, function.failed, moved, likely=False)
        builder.label(moved)
        builder.gap().extend(function.hints.reading(number))
        builder.jump(found)
    else:
        moved = far
        builder.branch(lost, function.failed, found, likely=False)
    builder.label(near)
    data = builder.value(f"load ptr, ptr {fields['data']}")
    direct = builder.value(f"getelementptr i8, ptr {data}, i64 {distance}")
    builder.jump(found)
    builder.label(found)
    return builder.value(f"phi ptr [ {direct}, %{near} ], [ {searched}, %{moved} ]")


def _search(function: Function, space: str | None, address: str, bytes: int, kind: int, hint: str = "null") -> str:
    """The call of the runtime that finds memory, or says what is wrong with an address."""
    what = address_spaces.packed_access(function.instruction_number, bytes, SPACES[space], kind)
    return f"call ptr @{function.unit.calls.runtime('find_access')}(ptr %thread, i64 {address}, i64 {what}, ptr {hint})"


def exponent(bytes: int) -> int:
    """The power of two that a size is."""
    assert bytes & (bytes - 1) == 0, f"{bytes} bytes have no alignment"
    return bytes.bit_length() - 1


def _rotated(function: Function, distance: str, bytes: int) -> str:
    """An offset rotated right: as many aligned pieces, or more than there can be."""
    if bytes == 1:
        return distance
    # LLVM knows this for a rotation where it optimizes; elsewhere it takes longer for a call of `fshr`.
    low = function.builder.value(f"lshr i64 {distance}, {exponent(bytes)}")
    high = function.builder.value(f"shl i64 {distance}, {64 - exponent(bytes)}")
    return function.builder.value(f"or i64 {low}, {high}")


def field(function: Function, hint: str, name: str) -> str:
    """The address of a field of a hint."""
    offset = offset_of(address_spaces.Hint, name)
    return function.builder.value(f"getelementptr i8, ptr {hint}, i64 {offset}") if offset else hint


def hint_pointer(function: Function, index: int) -> str:
    """The hint of an instruction."""
    return function.builder.value(f"getelementptr i8, ptr %hints, i64 {index * size_of(address_spaces.Hint)}")


def load(
    function: Function, address: LlvmAddress, type: Type, count: int, when: LlvmValue | None, order: str
) -> tuple[LlvmValue, ...]:
    """Values side by side in memory; zeros where `when` does not hold."""
    builder = function.builder
    size = max(type.width // 8, 1)
    origin, condition = None, -1
    recorded = _begin_recorded(function, when)
    if when is not None:
        origin, then, after = builder.label_here, builder.new_label("load"), builder.new_label("loaded")
        builder.branch(when.text, then, after)
        builder.label(then)
        condition = function.unit.counting.count_here(function)
    pointer = locate(function, address, size * count, address_spaces.LOAD, condition)
    log(function, address, size * count, address_spaces.LOAD)
    function.unit.counting.note_look(function, address.space)
    shadow = function.note_access(address, size * count, address_spaces.LOAD, order, size)
    if function.recording is not None:
        function.recording.note_access(address, "load", (), size * count, recorded)
    texts = [
        builder.value(f"load {bits_of(type)}, ptr {_offset(function, pointer, size * index)}, align 1")
        for index in range(count)
    ]
    if when is not None:
        last = builder.label_here
        builder.jump(after)
        builder.label(after)
        zero = constant_text(0, type)
        texts = [builder.value(f"phi {bits_of(type)} [ {text}, %{last} ], [ {zero}, %{origin} ]") for text in texts]
        if shadow != DEFINED:
            shadow = builder.value(f"phi i32 [ {shadow}, %{last} ], [ 0, %{origin} ]")
    function.undefined.handed_on.append(shadow)
    values = tuple(LlvmValue(function, type, text) for text in texts)
    for value in values:
        value.undefined = shadow
    return values


def store(
    function: Function, address: LlvmAddress, values: Sequence[LlvmValue], when: LlvmValue | None, order: str
) -> None:
    """Values side by side to memory."""
    builder = function.builder
    size = max(values[0].type.width // 8, 1)
    condition = -1
    recorded = _begin_recorded(function, when)
    if when is not None:
        then, after = builder.new_label("store"), builder.new_label("stored")
        builder.branch(when.text, then, after)
        builder.label(then)
        condition = function.unit.counting.count_here(function)
    pointer = locate(function, address, size * len(values), address_spaces.STORE, condition)
    if function.counts_changes:
        unchanged = _holds(function, pointer, values, size)
        changed = builder.value(f"xor i1 {unchanged}, true")
        log(function, address, size * len(values), address_spaces.STORE, changed)
        undefined = function.undefined.stored(address, values, is_strong(order))
        bytes = size * len(values)
        function.note_access(address, bytes, address_spaces.STORE, order, size, unchanged, undefined)
        function.unit.counting.note_change(function, address.space, changed)
    else:
        function.unit.counting.note_change(function, address.space)
    if function.recording is not None:
        function.recording.note_access(address, "store", values, size * len(values), recorded)
    for index, value in enumerate(values):
        builder.emit(f"store {value.typed}, ptr {_offset(function, pointer, size * index)}, align 1")
    if when is not None:
        builder.jump(after)
        builder.label(after)


def is_strong(order: str) -> bool:
    """Whether an access is more than weak."""
    return order.partition(".")[0] not in ("", "weak", "constant", "same-address")


def _holds(function: Function, pointer: str, values: Sequence[LlvmValue], size: int) -> str:
    """Whether memory holds these values already."""
    builder, found = function.builder, "true"
    for index, value in enumerate(values):
        at = _offset(function, pointer, size * index)
        old = builder.value(f"load {bits_of(value.type)}, ptr {at}, align 1")
        same = builder.value(f"icmp eq {bits_of(value.type)} {old}, {value.text}")
        found = builder.value(f"and i1 {found}, {same}") if index else same
    return found


def update(
    function: Function,
    address: LlvmAddress,
    type: Type,
    change: Callable[[LlvmValue], LlvmValue],
    order: str,
    writes: Callable[[LlvmValue], LlvmValue] | None = None,
    returns: bool = True,
    when: LlvmValue | None = None,
) -> LlvmValue:
    """Replace a value in memory by what `change` makes of it, and return the old one; see `isa.machine`.

    A block runs on one core, and blocks that can communicate run on one core together, so a load and a store
    with nothing between them are one step.
    """
    builder, size = function.builder, type.width // 8
    condition = -1
    recorded = _begin_recorded(function, when)
    if when is not None:
        assert not returns
        then, after = builder.new_label("update"), builder.new_label("updated")
        builder.branch(when.text, then, after)
        builder.label(then)
        condition = function.unit.counting.count_here(function)
    pointer = locate(function, address, size, address_spaces.ATOMIC, condition)
    old = LlvmValue(function, type, builder.value(f"load {bits_of(type)}, ptr {pointer}, align 1"))
    function.unit.tracking.note_update(function, address, size, order, writes and writes(old), returns)
    new = change(old)
    if function.recording is not None:
        function.recording.note_access(address, "update", (new,), size, recorded)
    builder.emit(f"store {new.typed}, ptr {pointer}, align 1")
    function.unit.counting.note_look(function, address.space)
    changed = builder.value(f"icmp ne {old.typed}, {new.text}")
    log(function, address, size, address_spaces.ATOMIC, changed)
    function.unit.counting.note_change(function, address.space, changed)
    if when is not None:
        builder.jump(after)
        builder.label(after)
    return old


def _begin_recorded(function: Function, when: LlvmValue | None) -> int:
    """Of an access under a condition, where a recording has that; -1: there is none."""
    if function.recording is None or when is None:
        return -1
    return function.recording.note_condition(when)


def log(function: Function, address: LlvmAddress, bytes: int, kind: int, changed: str = "false") -> None:
    """Where a run is directed step by step, log an access to memory that other threads can name."""
    if function.unit.preemption == LOGGED and address.space not in ("local", "param", "const"):
        otherwise = steps.FAILED if "cas" in function.instructions[function.position].opcode.modifiers else 0
        how = function.builder.value(f"select i1 {changed}, i32 {steps.CHANGED}, i32 {otherwise}")
        given = (address.value, bytes, kind, SPACES[address.space], LlvmValue(function, type_named("u32"), how))
        function.unit.calls.runtime_call(function, "log_access", given, None)


def stop_if_failed(function: Function) -> None:
    """Return if the runtime found something wrong with what this thread just did."""
    builder = function.builder
    failed = builder.value(f"icmp eq i32 {function.load_field('status', 'i32')}, {thread_parts.FAILED}")
    on = builder.new_label("on")
    builder.branch(failed, function.failed, on, likely=False)
    builder.label(on)


def _offset(function: Function, pointer: str, bytes: int) -> str:
    return function.builder.value(f"getelementptr i8, ptr {pointer}, i64 {bytes}") if bytes else pointer
