"""Atomic operations on memory: `atom`, which returns the old value, and `red`, which does not (PTX ISA 9.7.13).

An operation came to global memory, to shared memory and to generic addresses at times of their own, so each line of
syntax is declared once for each of the three; shared memory has no cache hints and no vectors.
"""

from collections.abc import Callable
from typing import Any

from ..extent import addresses
from ..floats import each_float
from ..form import F, Modifiers, Slots, form
from ..machine import AddressValue, Machine, Operand, Value
from ..vocabulary import ANY_SHARED

_SCOPE = (("cta gpu sys", "5.0 sm_60"), ("cluster", "7.8 sm_90"))
_B128_SCOPE = (("cta gpu", "5.0 sm_60"), ("cluster", "7.8 sm_90"), ("sys", "8.4"))
_NOFTZ_F32 = (("noftz", "9.4 sm_90"),)
_ATOM: Slots = {"sem": (("relaxed acquire release acq_rel", "6.0 sm_70"),), "name": "atom"}
_RED: Slots = {"sem": (("relaxed release", "6.0 sm_70"),), "name": "red"}

# Since when: in global memory, in shared memory, at generic addresses.
_WORDS = ("1.1 sm_11", "1.2 sm_12", "2.0 sm_20")
_DOUBLE_WORDS = ("1.2 sm_12", "2.0 sm_20", "2.0 sm_20")

_TYPES_OF = {"and": "b32 b64", "or": "b32 b64", "xor": "b32 b64", "exch": "b32 b64", "add": "u32 s32 u64", "inc": "u32",
             "dec": "u32", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64"}  # fmt: skip


def _agree(m: Modifiers) -> str | None:
    fitting = _TYPES_OF[m.op].split()
    return None if m.type in fitting else f"`.{m.op}` goes with {' or '.join(f'`.{type}`' for type in fitting)}"


def _atomic(line: str, since: tuple[str, str, str] | str, **arguments: Any) -> Callable[[F], F]:
    """Declare `line` with `.space` as `.global`, in shared memory without a cache hint, and without a space."""
    dates = (since, since, since) if isinstance(since, str) else since
    arguments = {"scope": _SCOPE} | arguments
    arguments["types"] = {"a": "wide", **arguments.get("types", {})}
    shared = line.replace("{.L2::cache_hint}", "").replace("{, cache_policy}", "")

    def declare(function: F) -> F:
        form(line.replace(".space", ""), since=dates[2], **arguments)(function)
        form(shared, since=dates[1], space=ANY_SHARED, **arguments)(function)
        return form(line.replace(".space", ".global"), since=dates[0], **arguments)(function)

    return declare


_LINE = "atom{.sem}{.scope}.space.op{.L2::cache_hint}.type d, [a], b{, cache_policy}"
_OLD = {"d": "type sink"}


def _vector(m: Modifiers) -> str:
    """A vector that is not wanted may be `_`, but of bf16."""
    return "vec type sink" if m.type.startswith("bf16") else "vec type sink dropped"


@_atomic(_LINE, _WORDS, op="and or xor exch add inc dec min max", type="b32 u32 s32", where=_agree, types=_OLD, **_ATOM)
@_atomic(_LINE, _DOUBLE_WORDS, op="exch add", type="b64 u64", where=_agree, types=_OLD, **_ATOM)
@_atomic(_LINE, "3.1 sm_32", op="and or xor min max", type="b64 u64 s64", where=_agree, types=_OLD, **_ATOM)
@_atomic("atom{.sem}{.scope}.space.exch{.L2::cache_hint}.b128 d, [a], b{, cache_policy}", "8.3 sm_90",
         scope=_B128_SCOPE, types={"d": "b128 sink"}, **_ATOM)  # fmt: skip
@_atomic("atom{.sem}{.scope}.space.cas.b32 d, [a], b, c", ("1.0 sm_11", "1.2 sm_12", "2.0 sm_20"),
         types={"d": "b32 sink"}, **_ATOM)  # fmt: skip
@_atomic("atom{.sem}{.scope}.space.cas.b64 d, [a], b, c", _DOUBLE_WORDS, types={"d": "b64 sink"}, **_ATOM)
@_atomic("atom{.sem}{.scope}.space.cas.b16 d, [a], b, c", "6.3 sm_70", types={"d": "b16 sink"}, **_ATOM)
@_atomic("atom{.sem}{.scope}.space.cas.b128 d, [a], b, c", "8.3 sm_90", scope=_B128_SCOPE,
         types={"d": "b128 sink", "c": "b128 reg"}, **_ATOM)  # fmt: skip
# ptxas has one line for all operations on bits, `.cas` among them.
@_atomic("atom{.sem}{.scope}.space.op.b32 d, [a], b, c", ("1.0 sm_11", "1.2 sm_12", "2.0 sm_20"), op="and or xor exch",
         types={"d": "b32 sink", "c": "b32 reg stray"}, **_ATOM)  # fmt: skip
@_atomic("atom{.sem}{.scope}.space.exch.b128 d, [a], b, c", "8.3 sm_90", scope=_B128_SCOPE,
         types={"d": "b128 sink", "c": "b128 reg stray"}, **_ATOM)  # fmt: skip
@_atomic("atom{.sem}{.scope}.space.add{.L2::cache_hint}.type d, [a], b{, cache_policy}", "2.0 sm_20",
         type=("f32", ("f64", "5.0 sm_60")), types=_OLD, **_ATOM)  # fmt: skip
@_atomic("atom{.sem}{.scope}.space.add.noftz{.L2::cache_hint}.type d, [a], b{, cache_policy}", "6.2 sm_60",
         type=("f16x2", ("f16", "6.3 sm_70"), ("bf16 bf16x2", "7.8 sm_90"), ("f32", "9.4 sm_90")), types=_OLD,
         **_ATOM)  # fmt: skip
@form("atom{.sem}{.scope}{.global}.add{.noftz}{.L2::cache_hint}.vec.f32 d, [a], b{, cache_policy}", vec="v2 v4",
      noftz=_NOFTZ_F32, scope=_SCOPE,
      types={"a": "wide", "d": "vec f32 sink dropped integers", "b": "vec f32 integers"},
      since="8.1 sm_90", **_ATOM)  # fmt: skip
@form("atom{.sem}{.scope}{.global}.op.noftz{.L2::cache_hint}.vec.type d, [a], b{, cache_policy}", op="add min max",
      vec="v2 v4 v8", type="f16 bf16", scope=_SCOPE, types={"a": "wide", "d": _vector, "b": "vec type"},
      since="8.1 sm_90", **_ATOM)  # fmt: skip
@form("atom{.sem}{.scope}{.global}.op.noftz{.L2::cache_hint}.vec.type d, [a], b{, cache_policy}", op="add min max",
      vec="v2 v4", type="f16x2 bf16x2", scope=_SCOPE,
      types={"a": "wide", "d": _vector, "b": "vec type"},
      since="8.1 sm_90", **_ATOM)  # fmt: skip
@addresses(a="data")
def atom(
    k: Machine, m: Modifiers, a: AddressValue, b: Operand, c: Value | None, cache_policy: Value | None
) -> Value | tuple[Value, ...]:
    """Change a value in memory atomically, and return the previous value."""
    return _change(k, m, a, b, c)


_RED_LINE = "red{.sem}{.scope}.space.op{.L2::cache_hint}.type [a], b{, cache_policy}"


@_atomic(_RED_LINE, _WORDS, op="and or xor add inc dec min max", type="b32 u32 s32", where=_agree, **_RED)
@_atomic(_RED_LINE, _DOUBLE_WORDS, op="add", type="u64", **_RED)
@_atomic(_RED_LINE, "3.1 sm_32", op="and or xor min max", type="b64 u64 s64", where=_agree, **_RED)
@_atomic("red{.sem}{.scope}.space.add{.L2::cache_hint}.type [a], b{, cache_policy}", "2.0 sm_20",
         type=("f32", ("f64", "5.0 sm_60")), **_RED)  # fmt: skip
@_atomic("red{.sem}{.scope}.space.add.noftz{.L2::cache_hint}.type [a], b{, cache_policy}", "6.2 sm_60",
         type=("f16x2", ("f16", "6.3 sm_70"), ("bf16 bf16x2", "7.8 sm_90"), ("f32", "9.4 sm_90")), **_RED)  # fmt: skip
@form("red{.sem}{.scope}{.global}.add{.noftz}{.L2::cache_hint}.vec.f32 [a], b{, cache_policy}", vec="v2 v4",
      noftz=_NOFTZ_F32, scope=_SCOPE, types={"a": "wide", "b": "vec f32 integers"},
      since="8.1 sm_90", **_RED)  # fmt: skip
@form("red{.sem}{.scope}{.global}.op.noftz{.L2::cache_hint}.vec.type [a], b{, cache_policy}", op="add min max",
      vec="v2 v4 v8", type="f16 bf16", scope=_SCOPE, types={"a": "wide", "b": "vec type"},
      since="8.1 sm_90", **_RED)  # fmt: skip
@form("red{.sem}{.scope}{.global}.op.noftz{.L2::cache_hint}.vec.type [a], b{, cache_policy}", op="add min max",
      vec="v2 v4", type="f16x2 bf16x2", scope=_SCOPE, types={"a": "wide", "b": "vec type"},
      since="8.1 sm_90", **_RED)  # fmt: skip
@addresses(a="data")
def red(k: Machine, m: Modifiers, a: AddressValue, b: Operand, cache_policy: Value | None) -> None:
    """Change a value in memory atomically, without returning the previous value."""
    _change(k, m, a, b, None, returns=False)


def _change(
    k: Machine, m: Modifiers, a: AddressValue, b: Operand, c: Value | None, returns: bool = True
) -> Value | tuple[Value, ...]:
    """Change one value, or each element of a vector by itself, atomically; return the previous value."""
    order = f"{m.sem or 'relaxed'}.{m.scope or 'gpu'}"
    if not isinstance(b, tuple):
        return _change_one(k, m, a, b, c, order, returns)
    width = b[0].type.width // 8
    k.require(a, width * len(b))  # PTX ISA 6.4.1: the access size is that of the vector
    return tuple(_change_one(k, m, a + width * index, part, None, order, returns) for index, part in enumerate(b))


def _change_one(
    k: Machine, m: Modifiers, a: AddressValue, b: Value, c: Value | None, order: str, returns: bool
) -> Value:
    # PTX ISA 8.4: an atomic operation is a write if it results in one, which a `cas` that fails does not.
    writes = (lambda old: old == b) if m.cas else None
    return k.update(a, b.type.name, lambda old: _changed(k, m, a, old, b, c), order, writes=writes, returns=returns)


def _changed(k: Machine, m: Modifiers, a: AddressValue, old: Value, b: Value, c: Value | None) -> Value:
    """The new value in memory. For `.cas`, `b` is the value to compare with and `c` the new one."""
    if m.cas:
        assert c is not None
        return k.select(old == b, c, old)
    match m.op or ("exch" if m.exch else "add"):
        case "exch":
            return b
        case "and":
            return old & b
        case "or":
            return old | b
        case "xor":
            return old ^ b
        case "inc":
            return k.select(old >= b, k.constant("u32", 0), old + 1)
        case "dec":
            return k.select((old == 0) | (old > b), b, old - 1)
        case "add" if b.type.kind != "f":
            return old + b
        case "add":
            return _sum(k, m, a, old, b)
        case "min" if b.type.kind == "f":
            return each_float(k, lambda x, y: _lesser(k, x, y), old, b)
        case "max" if b.type.kind == "f":
            return each_float(k, lambda x, y: _greater(k, x, y), old, b)
        case "min":
            return k.select(old < b, old, b)
        case "max":
            return k.select(old > b, old, b)
    raise AssertionError(m.op)


def _sum(k: Machine, m: Modifiers, a: AddressValue, old: Value, b: Value) -> Value:
    """The sum of floats; in global memory f32 flushes subnormals, all else keeps them, also in blocks of a cluster."""
    flushes = b.type.name == "f32" and not m.noftz and a.space not in ("shared", "shared::cluster")
    total = each_float(k, lambda x, y: k.arithmetic("add", x, y, ftz=flushes), old, b)
    if not flushes or a.space is not None:
        return total
    return k.select(k.is_in("shared::cluster", a.value), k.arithmetic("add", old, b), total)


def _lesser(k: Machine, a: Value, b: Value) -> Value:
    """The smaller float; a NaN gives way."""
    return k.select((a < b) | (b != b), a, b)


def _greater(k: Machine, a: Value, b: Value) -> Value:
    """The larger float; a NaN gives way."""
    return k.select((a > b) | (b != b), a, b)
