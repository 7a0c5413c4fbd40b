"""Memory of several GPUs under one address: multimem (PTX ISA 9.7.9.14, 9.7.9.26, 9.7.9.27).

A vector has 32 to 128 bits in all, so narrow types come only as vectors. Packed types are held in untyped registers.
"""

from collections.abc import Sequence
from functools import partial

from ptxlab.numbers.conversion import convert_bits
from ptxlab.numbers.parameters import FORMAT, RN, modifiers

from ..extent import addresses
from ..form import Modifiers, Slots, Specification, form
from ..machine import AddressValue, Machine, Operand, Value, elements
from ..types import type_named
from ..units.multicast_unit import MOST_REPLICAS
from ..vocabulary import SCOPE, together
from .bulk_copy import BYTES, STRONG, bulk

UNKNOWN = "several GPUs on a fabric are not emulated yet"
FP8 = "8.6 sm_100a sm_110a | 8.7 sm_120a | 8.8 sm_100f sm_110f sm_121a"
PACKED = "f16x2 bf16x2"


def order(m: Modifiers) -> str | None:
    """A weak access has no scope, any other has one."""
    if m.sem == "weak":
        return "`.weak` does not go with a scope" if m.scope else None
    return together(m)


def add_only(m: Modifiers) -> str | None:
    """Only sums are accumulated in another type."""
    return f"`.{m.acc}` goes only with `.add`" if m.acc and m.op != "add" else order(m)


def value(m: Modifiers) -> str:
    """What holds a value: most narrow types have no registers of their own, and ptxas takes any of the same width."""
    held = {"bf16x2": "b32", "bf16": "b16", "f16": "b16"}.get(m.type, m.type)
    if m.type.startswith("e"):
        held = {"x2": "b16", "x4": "b32"}.get(m.type[4:], "b8")
    if m.vec and m.type == "f32":
        held = "b32"
    return f"{m.vec} {held} sink" if m.vec else f"{held} single"


def reduced(m: Modifiers) -> str:
    """What holds a value that is reduced: ptxas takes only untyped registers for bf16 here."""
    held = f"{m.vec or ''} {m.type}" if m.type.startswith("bf16") else value(m)
    return f"{held.replace('sink', '').replace('single', '')} unmixed"


def loaded(m: Modifiers) -> str:
    """What holds a value that is read: for bf16x2, any register of 32 bits."""
    return f"{value(m)} untyped" if m.type == "bf16x2" else value(m)


def stored(m: Modifiers) -> str:
    """What holds a value that is written."""
    return f"{value(m).replace('sink', '')} closing"


COMMON: Slots = {"scope": SCOPE, "where": order, "since": "8.1 sm_90"}
LOAD: Slots = COMMON | {"sem": "weak relaxed acquire", "types": {"a": "global b64"}}
LOAD_VECTOR: Slots = LOAD | {"types": {"a": "global b64", "d": loaded}}
SUM: Slots = LOAD_VECTOR | {"where": add_only}
WIDE: Slots = {"acc": (("acc::f32", "8.2 sm_90"),)}
WIDE_FP8: Slots = {"acc": "acc::f16", "since": FP8}
STORE: Slots = COMMON | {"sem": "weak relaxed release", "types": {"a": "global b64"}}
STORE_VECTOR: Slots = STORE | {"types": {"a": "global b64", "b": stored}}
REDUCE: Slots = COMMON | {"sem": "relaxed release", "types": {"a": "global b64 full"}}
REDUCE_VECTOR: Slots = REDUCE | {"types": {"a": "global b64 full", "b": reduced}}
BULK: Slots = {"types": bulk("global", "shared"), "sem": (("relaxed", STRONG),), "where": together}
BULK |= {"scope": (("cta cluster gpu sys", STRONG),), "name": "multimem.cp.reduce.async.bulk", "since": "9.1 sm_90"}
MASKED: dict[str, Specification] = bulk("global", "shared") | BYTES
MASK: Slots = {"cp_mask": (("cp_mask", "9.1 sm_100"),), "present": {"bytes": "cp_mask"}, "types": MASKED}

LD = "multimem.ld_reduce{.sem}{.scope}{.global}.op"
ST = "multimem.st{.sem}{.scope}{.global}"
RED = "multimem.red{.sem}{.scope}{.global}.op"
CP = "multimem.cp.reduce.async.bulk{.sem}{.scope}.global.shared::cta.bulk_group.op"


@form(
    "multimem.cp.async.bulk{.sem}.global.shared::cta.bulk_group{.cp_mask} [d], [a], size{, bytes}",
    sem=(("weak", STRONG),),
    name="multimem.cp.async.bulk",
    since="9.1 sm_90",
    **MASK,
)
@form(
    "multimem.cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group{.cp_mask}.b128 [d], [a], size{, bytes}",
    scope=SCOPE,
    name="multimem.cp.async.bulk",
    since=STRONG,
    **MASK,
)
@form(f"{CP}.type [d], [a], size", op="add", type="u32 s32 u64 f32 f64", **BULK)
@form(f"{CP}.noftz.type [d], [a], size", op="add", type=("f16 bf16", ("f32", "9.4 sm_90")), **BULK)
@form(f"{CP}.type [d], [a], size", op="min max", type="u32 s32 u64 s64 f16 bf16", **BULK)
@form(f"{CP}.type [d], [a], size", op="inc dec", type="u32", **BULK)
@form(f"{CP}.type [d], [a], size", op="and or xor", type="b32 b64", **BULK)
@addresses(d="size/16", a="size/16")
def multimem_bulk() -> None:
    """Copy or reduce bytes of shared memory to the same offset in the memories of several GPUs."""


@form(f"{LD}.type d, [a]", op="min max", type="u32 s32 u64 s64", **LOAD)
@form(f"{LD}.type d, [a]", op="add", type="u32 s32 u64 f64", **LOAD)
@form(f"{LD}.type d, [a]", op="and or xor", type="b32 b64", **LOAD)
@form(
    f"{LD}{{.vec}}.type d, [a]", op="add", vec="v2 v4", type="f32", **LOAD | {"types": {"a": "global b64", "d": value}}
)
@form(f"{LD}{{.acc}}.vec.type d, [a]", op="min max add", vec="v2 v4 v8", type="f16 bf16", **SUM | WIDE)
@form(f"{LD}{{.acc}}{{.vec}}.type d, [a]", op="min max add", vec="v2 v4", type=PACKED, **SUM | WIDE)
@form(f"{LD}{{.acc}}.vec.type d, [a]", op="min max add", vec="v4 v8", type="e5m2 e4m3", **SUM | WIDE_FP8)
@form(f"{LD}{{.acc}}.vec.type d, [a]", op="min max add", vec="v2 v4 v8", type="e5m2x2 e4m3x2", **SUM | WIDE_FP8)
@form(f"{LD}{{.acc}}{{.vec}}.type d, [a]", op="min max add", vec="v2 v4", type="e5m2x4 e4m3x4", **SUM | WIDE_FP8)
@addresses(a="data")
def multimem_ld_reduce(k: Machine, m: Modifiers, a: AddressValue) -> tuple[Value, ...] | Value:
    """Read the same offset in the memories of several devices, and combine what is there."""
    unit, count = f"b{type_named(m.type).width}", int(m.vec[1:]) if m.vec else 1
    order = f"{m.sem}.{m.scope}" if m.sem and m.sem != "weak" else "weak"
    totals: list[list[Value]] = []
    for number in range(MOST_REPLICAS):
        address = k.multicast.replica(a, number, type_named(unit).width // 8 * count)
        is_there = address.value != 0
        values = [_lanes(k, m, one) for one in k.load(address, unit, count, when=is_there, order=order)]
        if number:
            pairs = [list(zip(old, new, strict=True)) for old, new in zip(totals, values, strict=True)]
            values = [[k.select(is_there, _combine(k, m, x, y), x) for x, y in pair] for pair in pairs]
        totals = values
    found = tuple(_joined(k, m, lanes, unit) for lanes in totals)
    return found if m.vec else found[0]


@form(f"{ST}.type [a], b", type="b32 b64 u32 u64 s32 s64 f64", **STORE)
@form(f"{ST}{{.vec}}.type [a], b", vec="v2 v4", type=f"f32 {PACKED}", **STORE_VECTOR)
@form(f"{ST}.vec.type [a], b", vec="v2 v4 v8", type="f16 bf16", **STORE_VECTOR)
@form(f"{ST}.vec.type [a], b", vec="v4 v8", type="e5m2 e4m3", **STORE_VECTOR | {"since": FP8})
@form(f"{ST}.vec.type [a], b", vec="v2 v4 v8", type="e5m2x2 e4m3x2", **STORE_VECTOR | {"since": FP8})
@form(f"{ST}{{.vec}}.type [a], b", vec="v2 v4", type="e5m2x4 e4m3x4", **STORE_VECTOR | {"since": FP8})
@addresses(a="data")
def multimem_st(k: Machine, m: Modifiers, a: AddressValue, b: Operand) -> None:
    """Write to the same offset in the memories of several devices."""
    unit = f"b{type_named(m.type).width}"
    values = [k.reinterpret(one, unit) for one in elements(b)]
    order = f"{m.sem}.{m.scope}" if m.sem and m.sem != "weak" else "weak"
    for number in range(MOST_REPLICAS):
        address = k.multicast.replica(a, number, type_named(unit).width // 8 * len(values))
        k.store(address, values, when=address.value != 0, order=order)


@form(f"{RED}.type [a], b", op="min max", type="u32 s32 u64 s64", **REDUCE)
@form(f"{RED}.type [a], b", op="add", type="u32 s32 u64 f64", **REDUCE)
@form(f"{RED}.type [a], b", op="and or xor", type="b32 b64", **REDUCE)
@form(f"{RED}{{.vec}}.type [a], b", op="add", vec="v2 v4", type=f"f32 {PACKED}", **REDUCE_VECTOR)
@form(f"{RED}.vec.type [a], b", op="add min max", vec="v2 v4 v8", type="f16 bf16", **REDUCE_VECTOR)
@form(f"{RED}.vec.type [a], b", op="min max", vec="v2 v4", type=PACKED, **REDUCE_VECTOR)
@addresses(a="data")
def multimem_red(k: Machine, m: Modifiers, a: AddressValue, b: Operand) -> None:
    """Combine a value with those at the same offset in the memories of several devices."""
    width = type_named(m.type).width
    values = [_lanes(k, m, k.reinterpret(one, f"b{width}")) for one in elements(b)]
    order = f"{m.sem or 'relaxed'}.{m.scope or 'sys'}"

    def change(old: Value, own: list[Value]) -> Value:
        pairs = zip(_lanes(k, m, old), own, strict=True)
        return _joined(k, m, [_combine(k, m, x, y) for x, y in pairs], f"b{width}")

    for number in range(MOST_REPLICAS):
        address = k.multicast.replica(a, number, width // 8 * len(values))
        for index, own in enumerate(values):
            part = address + index * width // 8 if index else address
            k.update(part, f"b{width}", partial(change, own=own), order, returns=False, when=address.value != 0)


@form(
    "multimem.st.async.release.scope{.global}.type [a], b",
    scope="gpu sys",
    type="b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
    types={"a": "global", "b": "type loose"},
    name="multimem.st.async",
    since="9.3 sm_100",
)
@form(
    "multimem.red.async.release.scope{.global}.add.type [a], b",
    scope="gpu sys",
    type="u32 s32 u64",
    types={"a": "global"},
    name="multimem.red.async",
    since="9.3 sm_100",
)
@addresses(a="data")
def multimem_async() -> None:
    """Start a write or a reduction at the same offset in the memories of several devices."""


def _lanes(k: Machine, m: Modifiers, unit: Value) -> list[Value]:
    """The numbers of a unit, with the type that they are combined in."""
    element = m.type.partition("x")[0]
    if element in ("e4m3", "e5m2"):
        return [_converted(k, lane, element, "f16") for lane in k.unpack(unit, "b8")]
    parts = k.unpack(unit, f"b{type_named(element).width}")
    lanes = [k.reinterpret(part, element) for part in parts]
    return [_converted(k, lane, element, "f32") for lane in lanes] if m.acc == "acc::f32" else lanes


def _joined(k: Machine, m: Modifiers, lanes: Sequence[Value], unit: str) -> Value:
    """Numbers as a unit in memory."""
    element = m.type.partition("x")[0]
    narrow = [_converted(k, lane, lane.type.name, element) for lane in lanes]
    return k.pack(narrow, unit) if len(narrow) > 1 else k.reinterpret(narrow[0], unit)


def _converted(k: Machine, value: Value, source: str, destination: str) -> Value:
    """A float in another format, rounded to nearest; 8-bit ones saturate."""
    if source == destination:
        return value
    held = "b8" if destination in ("e4m3", "e5m2") else destination
    flags = modifiers(satfinite=held == "b8")
    return k.call(convert_bits, value, FORMAT[source], FORMAT[destination], RN, flags, 0, 0, type=held)


def _combine(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Two numbers combined; in the precision of their type, unless another one is asked for."""
    match m.op:
        case "and":
            return x & y
        case "or":
            return x | y
        case "xor":
            return x ^ y
        case "min":
            return k.select((x < y) | (y != y), x, y)
        case "max":
            return k.select((x > y) | (y != y), x, y)
    if x.type.kind != "f":
        return x + y
    total = k.arithmetic("add", x, y)
    element = m.type.partition("x")[0]
    if element in ("e4m3", "e5m2") and not m.acc:
        return _converted(k, _converted(k, total, "f16", element), element, "f16")
    return total
