"""Loads and stores: every address is checked, whatever else is switched off.

Shared and local memory are windows: an offset within them is checked against their size. Of global memory each
instruction remembers where it found the last address (a `Hint`); only an address elsewhere costs a search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate import state
from ptxlab.emulate.values import Address, Value, bits_of, constant_text
from ptxlab.isa.types import Type
from ptxlab.native import offset_of, size_of

if TYPE_CHECKING:
    from ptxlab.emulate.function import Function

_WINDOWS = {"shared": ("%shared", "%shared_size"), "local": ("%local", "%local_size")}
SEMANTICS = {"weak": 0, "constant": 1, "relaxed": 2, "acquire": 3, "release": 4, "acq_rel": 5, "sc": 6, "barrier": 7}
SCOPES = {"": 0, "cta": 1, "cluster": 2, "gpu": 3, "sys": 4}
SPACES = {
    None: state.GENERIC_SPACE,
    "global": state.GLOBAL_SPACE,
    "const": state.CONSTANT_SPACE,
    "shared": state.SHARED_SPACE,
    "local": state.LOCAL_SPACE,
    "param": state.PARAMETER_SPACE,
}


def locate(function: Function, address: Address, bytes: int, kind: int, condition: int = -1) -> str:
    """The place in the host's memory of `bytes` bytes, all of which the kernel may touch; or the thread fails."""
    builder = function.builder
    fast, slow, found = (builder.new_label(name) for name in ("near", "far", "found"))
    at = address.value.text
    hint = function.unit.hint(function) if address.space in (None, "global", "const") else "null"
    inside, pointer = _near(function, address, bytes, hint)
    mask = bytes - 1
    if mask:
        low = builder.value(f"and i64 {at}, {mask}")
        aligned = builder.value(f"icmp eq i64 {low}, 0")
        inside = builder.value(f"and i1 {inside}, {aligned}")
    builder.branch(inside, fast, slow, likely=True)
    builder.label(slow)
    about = f"i32 {bytes}, i32 {mask + 1}, i32 {SPACES[address.space]}, i32 {kind}, i32 {function.instruction_number}"
    far = builder.value(f"call ptr @{function.unit.runtime('find_memory')}(ptr %thread, i64 {at}, {about}, ptr {hint})")
    lost = builder.value(f"icmp eq ptr {far}, null")
    fail = builder.new_label("fail")
    builder.branch(lost, fail, found, likely=False)
    builder.label(fail)
    function.fail()
    builder.label(fast)
    near = pointer()
    builder.jump(found)
    builder.label(found)
    place = builder.value(f"phi ptr [ {near}, %{fast} ], [ {far}, %{slow} ]")
    function.unit.count_access(function, address, bytes, kind, condition)
    return place


def _near(function: Function, address: Address, bytes: int, hint: str) -> tuple[str, Callable[[], str]]:
    """Whether the address is where it usually is, and what then gives its place."""
    builder, at = function.builder, address.value.text
    if address.space in _WINDOWS or address.space == "param":
        base, size = _WINDOWS.get(address.space or "", ("", ""))
        if address.space == "param":
            base = builder.value(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'parameters')}")
            base = builder.value(f"load ptr, ptr {base}, !invariant.load !2")
            size = str(function.unit.parameter_size)
        last = builder.value(f"sub i64 {size}, {bytes}")
        fits = builder.value(f"icmp sge i64 {last}, 0")
        inside = builder.value(f"icmp ule i64 {at}, {last}")
        inside = builder.value(f"and i1 {fits}, {inside}")
        return inside, lambda: builder.value(f"getelementptr i8, ptr {base}, i64 {at}")
    pointer = builder.value(f"load i64, ptr {hint}")
    distance = builder.value(f"sub i64 {at}, {pointer}")
    last = builder.value(f"load i64, ptr {_field(function, hint, 'last')}")
    inside = builder.value(f"icmp ule i64 {distance}, {last}")

    def place() -> str:
        delta = builder.value(f"load i64, ptr {_field(function, hint, 'delta')}")
        return builder.value(f"inttoptr i64 {builder.value(f'add i64 {at}, {delta}')} to ptr")

    return inside, place


def _field(function: Function, hint: str, name: str) -> str:
    return function.builder.value(f"getelementptr i8, ptr {hint}, i64 {offset_of(state.Hint, name)}")


def hint_pointer(function: Function, index: int) -> str:
    """The hint of an instruction."""
    return function.builder.value(f"getelementptr i8, ptr %hints, i64 {index * size_of(state.Hint)}")


def load(
    function: Function, address: Address, type: Type, count: int, when: Value | None, order: str
) -> tuple[Value, ...]:
    """Values side by side in memory; zeros where `when` does not hold."""
    builder = function.builder
    size = max(type.width // 8, 1)
    origin, condition = None, -1
    if when is not None:
        origin, then, after = builder.new_label("before"), builder.new_label("load"), builder.new_label("loaded")
        builder.jump(origin)
        builder.label(origin)
        builder.branch(when.text, then, after)
        builder.label(then)
        condition = function.unit.count_here(function)
    place = locate(function, address, size * count, state.LOAD, condition)
    function.unit.note_look(function, address.space)
    function.unit.note_access(function, address, size * count, state.LOAD, order, size)
    texts = [
        builder.value(f"load {bits_of(type)}, ptr {_offset(function, place, size * index)}, align 1")
        for index in range(count)
    ]
    if when is not None:
        last = builder.new_label("last")
        builder.jump(last)
        builder.label(last)
        builder.jump(after)
        builder.label(after)
        zero = constant_text(0, type)
        texts = [builder.value(f"phi {bits_of(type)} [ {text}, %{last} ], [ {zero}, %{origin} ]") for text in texts]
    return tuple(Value(function, type, text) for text in texts)


def store(function: Function, address: Address, values: Sequence[Value], when: Value | None, order: str) -> None:
    """Values side by side to memory."""
    builder = function.builder
    size = max(values[0].type.width // 8, 1)
    condition = -1
    if when is not None:
        then, after = builder.new_label("store"), builder.new_label("stored")
        builder.branch(when.text, then, after)
        builder.label(then)
        condition = function.unit.count_here(function)
    place = locate(function, address, size * len(values), state.STORE, condition)
    if function.unit.checks:
        unchanged = _holds(function, place, values, size)
        function.unit.note_access(function, address, size * len(values), state.STORE, order, size, unchanged)
        function.unit.note_change(function, address.space, builder.value(f"xor i1 {unchanged}, true"))
    else:
        function.unit.note_change(function, address.space)
    for index, value in enumerate(values):
        builder.emit(f"store {value.typed}, ptr {_offset(function, place, size * index)}, align 1")
    if when is not None:
        builder.jump(after)
        builder.label(after)


def _holds(function: Function, place: str, values: Sequence[Value], size: int) -> str:
    """Whether memory holds these values already."""
    builder, found = function.builder, "true"
    for index, value in enumerate(values):
        at = _offset(function, place, size * index)
        old = builder.value(f"load {bits_of(value.type)}, ptr {at}, align 1")
        same = builder.value(f"icmp eq {bits_of(value.type)} {old}, {value.text}")
        found = builder.value(f"and i1 {found}, {same}")
    return found


def update(function: Function, address: Address, type: Type, change: Callable[[Value], Value], order: str) -> Value:
    """Replace a value in memory by what `change` makes of it, and return the old one.

    A block runs on one core, and blocks that can talk to each other run on one core together, so a load and a store
    with nothing between them are one step.
    """
    builder, size = function.builder, type.width // 8
    place = locate(function, address, size, state.ATOMIC)
    function.unit.note_access(function, address, size, state.ATOMIC, order, size)
    old = Value(function, type, builder.value(f"load {bits_of(type)}, ptr {place}, align 1"))
    new = change(old)
    builder.emit(f"store {new.typed}, ptr {place}, align 1")
    function.unit.note_look(function, address.space)
    function.unit.note_change(function, address.space, builder.value(f"icmp ne {old.typed}, {new.text}"))
    return old


def stop_if_failed(function: Function) -> None:
    """Return if the runtime found something wrong with what this thread just did."""
    builder = function.builder
    failed = builder.value(f"icmp eq i32 {function.load_field('status', 'i32')}, {state.FAILED}")
    fail, on = builder.new_label("fail"), builder.new_label("on")
    builder.branch(failed, fail, on, likely=False)
    builder.label(fail)
    function.fail()
    builder.label(on)


def _offset(function: Function, place: str, bytes: int) -> str:
    return function.builder.value(f"getelementptr i8, ptr {place}, i64 {bytes}") if bytes else place
