"""Loads, stores and hints to the caches (PTX ISA 9.7.9).

`ld` and `st` have forms for each way an access can be ordered: weak, volatile, relaxed or acquire/release, mmio.
`_load` and `_store` take vectors of at most 128 bits; `_load_wide` and `_store_wide` those of 256 bits, which came with
sm_100, are for global memory only, and may also say what the L2 cache should keep.
"""

from collections.abc import Callable
from typing import Any

from ..extent import addresses
from ..form import F, Modifiers, form
from ..machine import AddressValue, Machine, Operand, Value, elements
from ..vocabulary import ANY_SHARED, SCOPE

_NUMBERS = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_TYPE = (_NUMBERS, ("b128", "8.3 sm_70"))
_MMIO_TYPE = (_NUMBERS, ("b128", "8.4"))
_B128_SCOPE = ("cta gpu", ("cluster", "7.8 sm_90"), ("sys", "8.4"))
_L1 = (("L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate", "7.4 sm_70"),)
_L2 = "L2::evict_normal L2::evict_first L2::evict_last"
_PREFETCH = (("L2::64B L2::128B", "7.4 sm_75"), ("L2::256B", "7.4 sm_80"))
_LOAD_CACHE = (("ca cg cs lu cv", "2.0 sm_20"),)
_STORE_CACHE = (("wb cg cs wt", "2.0 sm_20"),)


def _narrow(m: Modifiers) -> str | None:
    if m.vec and (m.type == "b128" or (m.vec == "v4" and m.type.endswith("64"))):
        return "a vector holds at most 128 bits"
    return None


def _wide(m: Modifiers) -> str | None:
    if (m.vec == "v8") != m.type.endswith("32"):
        return "a 256-bit vector is `.v8` of a 32-bit type or `.v4` of a 64-bit type"
    return None


def _loaded(m: Modifiers) -> str:
    return "vec type loose sink integers" if m.vec else "type loose single"


def _stored(m: Modifiers) -> str:
    return "vec type loose integers" if m.vec else "type loose single"


def _order(m: Modifiers) -> str:
    """How an access is ordered with others; `.volatile` is as `.relaxed` for the whole system."""
    if m.volatile:
        return "relaxed.sys"
    if m.nc or m.proxy_readonly:
        return "constant"
    return f"{m.order}.{m.scope or 'sys'}" if m.order else "weak"


def _load(syntax: str, **arguments: Any) -> Callable[[F], F]:
    arguments.setdefault("type", _TYPE)
    return form(syntax, types={"a": "wide element", "d": _loaded}, vec="v2 v4", where=_narrow, name="ld", **arguments)


def _load_wide(syntax: str, since: str = "8.8 sm_100", **arguments: Any) -> Callable[[F], F]:
    types, numbers = {"a": "wide element", "d": "vec type loose sink integers"}, "b32 u32 s32 f32 b64 u64 s64 f64"
    return form(syntax, types=types, vec="v4 v8", type=numbers, where=_wide, name="ld", since=since, **arguments)


def _store(syntax: str, **arguments: Any) -> Callable[[F], F]:
    arguments.setdefault("type", _TYPE)
    return form(syntax, types={"a": "wide element", "b": _stored}, vec="v2 v4", where=_narrow, name="st", **arguments)


def _store_wide(syntax: str, **arguments: Any) -> Callable[[F], F]:
    types, numbers = {"a": "wide element", "b": "vec type loose sink integers"}, "b32 u32 s32 f32 b64 u64 s64 f64"
    return form(syntax, types=types, vec="v4 v8", type=numbers, where=_wide, name="st", since="8.8 sm_100", **arguments)


@_load("ld{.weak}.space{.cop}{.vec}.type d, [a]",
       space=("const local param", ("param::entry param::func", "8.3"), *ANY_SHARED), cop=_LOAD_CACHE)  # fmt: skip
@_load("ld{.weak}.global{.cop}{.L2::cache_hint}{.prefetch}{.vec}.type d, [a]{, cache_policy}",
       cop=_LOAD_CACHE, prefetch=_PREFETCH)  # fmt: skip
@_load("ld{.weak}{.cop}{.L2::cache_hint}{.prefetch}{.vec}.type d, [a]{, cache_policy}",
       cop=_LOAD_CACHE, prefetch=_PREFETCH, since="2.0 sm_20")  # fmt: skip
@_load("ld{.weak}{.global}.l1{.L2::cache_hint}{.prefetch}{.vec}.type d, [a]{, cache_policy}",
       l1=_L1, prefetch=_PREFETCH)  # fmt: skip
@_load("ld.volatile.space{.vec}.type d, [a]", space=(*ANY_SHARED, ("local", "9.1")), since="1.1")
@_load("ld.volatile.global{.prefetch}{.vec}.type d, [a]", prefetch=_PREFETCH, since="1.1")
@_load("ld.volatile{.prefetch}{.vec}.type d, [a]", prefetch=_PREFETCH, since="2.0 sm_20")
@_load("ld.order.scope.space{.vec}.type d, [a]", order="relaxed acquire", scope=SCOPE, space=ANY_SHARED, type=_NUMBERS,
       since="6.0 sm_70")  # fmt: skip
@_load("ld.order.scope{.global}{.l1}{.L2::cache_hint}{.prefetch}{.vec}.type d, [a]{, cache_policy}",
       order="relaxed acquire", scope=SCOPE, l1=_L1, prefetch=_PREFETCH, type=_NUMBERS, since="6.0 sm_70")  # fmt: skip
@form("ld.order.scope.space.b128 d, [a]", order="relaxed acquire", scope=_B128_SCOPE, space=ANY_SHARED,
      types={"a": "wide element", "d": "b128 single"}, since="8.3 sm_70")  # fmt: skip
@form("ld.order.scope{.global}{.l1}{.L2::cache_hint}{.prefetch}.b128 d, [a]{, cache_policy}", order="relaxed acquire",
      scope=_B128_SCOPE, l1=_L1, prefetch=_PREFETCH, types={"a": "wide element", "d": "b128 single"},
      since="8.3 sm_70")  # fmt: skip
@form("ld.mmio.order.sys{.global}.type d, [a]", order=("relaxed", ("acquire", "9.3")), type=_MMIO_TYPE,
      types={"a": "wide element", "d": "type loose single"}, name="ld", since="8.2 sm_70")  # fmt: skip
@_load("ld.global{.cop}.nc{.L2::cache_hint}{.prefetch}{.vec}.type d, [a]{, cache_policy}",
       cop="ca cg cs", prefetch=_PREFETCH, since="3.1 sm_32")  # fmt: skip
@_load("ld.global.nc.l1{.L2::cache_hint}{.prefetch}{.vec}.type d, [a]{, cache_policy}",
       l1=_L1, prefetch=_PREFETCH, since="3.1 sm_32")  # fmt: skip
@_load_wide("ld{.weak}{.global}{.cop}{.l2}{.L2::cache_hint}{.prefetch}.vec.type d, [a]{, cache_policy}",
            cop=_LOAD_CACHE, l2=_L2, prefetch=_PREFETCH)  # fmt: skip
@_load_wide("ld{.weak}{.global}.l1{.l2}{.L2::cache_hint}{.prefetch}.vec.type d, [a]{, cache_policy}",
            l1=_L1, l2=_L2, prefetch=_PREFETCH)  # fmt: skip
@_load_wide("ld.volatile{.global}{.l2}{.prefetch}.vec.type d, [a]", l2=_L2, prefetch=_PREFETCH)
@_load_wide("ld.order.scope{.global}{.l1}{.l2}{.L2::cache_hint}{.prefetch}.vec.type d, [a]{, cache_policy}",
            order="relaxed acquire", scope=SCOPE, l1=_L1, l2=_L2, prefetch=_PREFETCH)  # fmt: skip
@_load_wide("ld.global{.cop}.nc{.l2}{.L2::cache_hint}{.prefetch}.vec.type d, [a]{, cache_policy}",
            cop="ca cg cs", l2=_L2, prefetch=_PREFETCH)  # fmt: skip
@_load_wide("ld.global.nc.l1{.l2}{.L2::cache_hint}{.prefetch}.vec.type d, [a]{, cache_policy}",
            l1=_L1, l2=_L2, prefetch=_PREFETCH)  # fmt: skip
# ptxas also takes vectors and `.nc`, which the manual does not have here.
@_load("ld.proxy::readonly{.global}{.vec}.type d, [a]", type=_NUMBERS, since="9.4 sm_90")
@_load("ld.proxy::readonly.global.nc{.vec}.type d, [a]", type=_NUMBERS, since="9.4 sm_90")
@_load_wide("ld.proxy::readonly{.global}{.l2}.vec.type d, [a]", l2=_L2, since="9.4 sm_100")
@_load_wide("ld.proxy::readonly.global.nc{.l2}.vec.type d, [a]", l2=_L2, since="9.4 sm_100")
def ld(k: Machine, m: Modifiers, a: AddressValue, cache_policy: Value | None) -> Value | tuple[Value, ...]:
    """Load from memory; `.nc` and `.proxy::readonly` read global memory that nothing writes while the kernel runs."""
    values = k.load(a, m.type or "b128", int(m.vec[1:]) if m.vec else 1, order=_order(m))
    return values if m.vec else values[0]


@form("ldu{.global}{.vec}.type d, [a]", vec="v2 v4", type=_TYPE, where=_narrow,
      types={"a": "wide element", "d": _loaded}, since="2.0 sm_20")  # fmt: skip
def ldu(k: Machine, m: Modifiers, a: AddressValue) -> Value | tuple[Value, ...]:
    """Load what does not change from a global address that is the same in every thread of the warp."""
    values = k.load(a, m.type, int(m.vec[1:]) if m.vec else 1, order="constant")
    return values if m.vec else values[0]


@_store("st{.weak}.space{.cop}{.vec}.type [a], b",
        space=("local", ("param", "2.0 sm_20"), ("param::func", "8.3 sm_20"), *ANY_SHARED),
        cop=_STORE_CACHE)  # fmt: skip
@_store("st{.weak}.global{.cop}{.L2::cache_hint}{.vec}.type [a], b{, cache_policy}", cop=_STORE_CACHE)
@_store("st{.weak}{.cop}{.L2::cache_hint}{.vec}.type [a], b{, cache_policy}", cop=_STORE_CACHE, since="2.0 sm_20")
@_store("st{.weak}{.global}.l1{.L2::cache_hint}{.vec}.type [a], b{, cache_policy}", l1=_L1)
@_store("st.volatile.space{.vec}.type [a], b", space=("global", *ANY_SHARED, ("local", "9.1")), since="1.1")
@_store("st.volatile{.vec}.type [a], b", since="2.0 sm_20")
@_store("st.order.scope.space{.vec}.type [a], b", order="relaxed release", scope=SCOPE, space=ANY_SHARED, type=_NUMBERS,
        since="6.0 sm_70")  # fmt: skip
@_store("st.order.scope{.global}{.l1}{.L2::cache_hint}{.vec}.type [a], b{, cache_policy}",
        order="relaxed release", scope=SCOPE, l1=_L1, type=_NUMBERS, since="6.0 sm_70")  # fmt: skip
@form("st.order.scope.space.b128 [a], b", order="relaxed release", scope=_B128_SCOPE, space=ANY_SHARED,
      types={"a": "wide element", "b": "b128 single"}, since="8.3 sm_70")  # fmt: skip
@form("st.order.scope{.global}{.l1}{.L2::cache_hint}.b128 [a], b{, cache_policy}", order="relaxed release",
      scope=_B128_SCOPE, l1=_L1, types={"a": "wide element", "b": "b128 single"}, since="8.3 sm_70")  # fmt: skip
@form("st.mmio.order.sys{.global}.type [a], b", order=("relaxed", ("release", "9.3")), type=_MMIO_TYPE,
      types={"a": "wide element", "b": "type loose single"}, name="st", since="8.2 sm_70")  # fmt: skip
@_store_wide("st{.weak}{.global}{.cop}{.l2}{.L2::cache_hint}.vec.type [a], b{, cache_policy}", cop=_STORE_CACHE, l2=_L2)
@_store_wide("st{.weak}{.global}.l1{.l2}{.L2::cache_hint}.vec.type [a], b{, cache_policy}", l1=_L1, l2=_L2)
@_store_wide("st.volatile{.global}{.l2}.vec.type [a], b", l2=_L2)
@_store_wide("st.order.scope{.global}{.l1}{.l2}{.L2::cache_hint}.vec.type [a], b{, cache_policy}",
             order="relaxed release", scope=SCOPE, l1=_L1, l2=_L2)  # fmt: skip
def st(k: Machine, m: Modifiers, a: AddressValue, b: Operand, cache_policy: Value | None) -> None:
    """Store a register, an immediate or a vector to memory."""
    k.store(a, elements(b), order=_order(m))


@form("prefetch{.space}.tensormap [a]", space="const param", types={"a": "full"}, since="8.0 sm_90")
@addresses(a="128/64")
def prefetch_tensormap(k: Machine, m: Modifiers, a: AddressValue) -> None:
    """Bring a tensor map into a cache before it is needed."""


@form("prefetch{.space}.level [a]", space="global local", level="L1 L2", types={"a": "wide"}, since="2.0 sm_20")
@form("prefetch{.global}.priority [a]", priority="L2::evict_last L2::evict_normal",
      types={"a": "wide"}, since="7.4 sm_80")  # fmt: skip
def prefetch(k: Machine, m: Modifiers, a: AddressValue) -> None:
    """Bring the cache line at `a` into a cache before it is needed."""


@form("prefetch{.global}.L1::32B.valid_addr [a]", types={"a": "wide"}, name="prefetch", since="9.4 sm_90")
@addresses(a="1")
def prefetch_valid(k: Machine, m: Modifiers, a: AddressValue) -> None:
    """Bring the 32 bytes around `a` into the L1 cache; the byte at `a` must be one that could be read."""


@form("prefetchu.L1 [a]", types={"a": "wide"}, name="prefetchu", since="2.0 sm_20")
def prefetchu(k: Machine, m: Modifiers, a: AddressValue) -> None:
    """Bring the cache line at a generic address into the uniform cache."""


@form("applypriority{.global}.L2::evict_normal [a], size", types={"a": "wide", "size": "imm(128)"}, since="7.4 sm_80")
@addresses(a="128")
def applypriority(k: Machine, m: Modifiers, a: AddressValue, size: int) -> None:
    """Give the cache line at `a` back its normal eviction priority."""


@form("discard{.global}.L2 [a], size", types={"a": "wide", "size": "imm(128)"}, since="7.4 sm_80", effects="undefines")
@addresses(a="128")
def discard(k: Machine, m: Modifiers, a: AddressValue, size: int) -> None:
    """Drop the cache line at `a` without writing it to memory; its contents are undefined from then on."""


_PRIMARY = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"
_SECONDARY = "L2::evict_first L2::evict_unchanged"


# What a policy is made of, only the hardware knows; here it is 0, since it changes nothing but speed.
@form("createpolicy.range{.global}.primary{.secondary}.b64 cache_policy, [a], primary_size, total_size",
      primary=_PRIMARY, secondary=_SECONDARY, since="7.4 sm_80", writes="cache_policy",
      types={"a": "full", "cache_policy": "u64", "primary_size": "u32", "total_size": "u32"})  # fmt: skip
def createpolicy_range(k: Machine, m: Modifiers, a: AddressValue, primary_size: Value, total_size: Value) -> Value:
    """Make a cache policy, for use with `.L2::cache_hint`: one for a range of addresses."""
    return k.constant("u64", 0)


@form("createpolicy.fractional.primary{.secondary}.b64 cache_policy{, fraction}", primary=_PRIMARY,
      secondary=_SECONDARY, since="7.4 sm_80", writes="cache_policy",
      types={"cache_policy": "u64", "fraction": "f32"})  # fmt: skip
def createpolicy_fractional(k: Machine, m: Modifiers, fraction: Value | None) -> Value:
    """Make a cache policy, for use with `.L2::cache_hint`: one for a fraction of all accesses."""
    return k.constant("u64", 0)


@form("createpolicy.cvt.L2.b64 cache_policy, access_property", name="createpolicy.cvt", writes="cache_policy",
      types={"cache_policy": "u64", "access_property": "u64"}, since="7.4 sm_80")  # fmt: skip
def createpolicy_cvt(k: Machine, m: Modifiers, access_property: Value) -> Value:
    """Make a cache policy, for use with `.L2::cache_hint`, of an access property of CUDA."""
    return k.constant("u64", 0)
