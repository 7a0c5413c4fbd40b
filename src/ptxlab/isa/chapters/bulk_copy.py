"""Copies of many bytes by the asynchronous proxy: cp.async.bulk, st.async, st.bulk, red.async (PTX ISA 9.7.9).

Copies of tensors, `cp.async.bulk.tensor`, are in tensor_copy.py.
"""

from ..asynchronous import Reduction
from ..extent import addresses
from ..form import Modifiers, Slots, Specification, form, unknown
from ..machine import AddressValue, Machine, Operand, Value, elements
from ..vocabulary import SCOPE, together

STRONG = "9.3 sm_90"  # the manual asks for sm_90a, sm_100f or sm_110f everywhere, ptxas only for one direction
STRONG_TO_CLUSTER = "9.3 sm_90a sm_100f sm_110f"
PATTERNS = ("per_16bytes::80000000", "per_16bytes::8000", "per_16bytes::80", "per_16bytes::8", "per_element::ff")
REPORTS = ("mbarrier::report::disabled", *(f"mbarrier::report::validity::{pattern}" for pattern in PATTERNS))
REPORT = ((" ".join(REPORTS), "9.4 sm_107f"),)
HINT = ("L2::cache_hint",)
WEAK = (("weak", STRONG),)
MULTICAST = (
    "multicast::cluster",
    ("multicast::cluster::16b", "9.4 sm_90"),
    ("multicast::cluster::32b", "9.4 sm_107f"),
)


def cta_mask(m: Modifiers) -> str:
    """One bit a block of the cluster."""
    return "u32 within(0..4294967295)" if m.multicast == "multicast::cluster::32b" else "u16 within(0..65535)"


SIZE = "u32 within(0..1048560/16)"


def bulk(to: str, source: str) -> dict[str, Specification]:
    """The operands of a copy between these state spaces."""
    return {"d": to, "a": source, "size": SIZE}


MBAR: dict[str, Specification] = {"mbar": "shared"}
POLICY: dict[str, Specification] = {"policy": "u64"}
MASK: dict[str, Specification] = {"mask": cta_mask}
EDGES: dict[str, Specification] = {"left": "u32 within(0..15)", "right": "u32 within(0..15)"}
BYTES: dict[str, Specification] = {"bytes": "u16"}


def unreported(m: Modifiers) -> str | None:
    """What is out of bounds cannot be reported."""
    if m.oob and m.report not in (None, "mbarrier::report::disabled"):
        return f"`.ignore_oob` does not go with `.{m.report}`"
    return None


TO_CTA: Slots = {
    "report": REPORT,
    "hint": HINT,
    "oob": (("ignore_oob", "9.2 sm_90"),),
    "types": bulk("shared", "global") | MBAR | POLICY | EDGES,
    "present": {"policy": "hint", "left": "oob", "right": "oob"},
    "name": "cp.async.bulk",
}
TO_CLUSTER: Slots = {
    "report": REPORT,
    "hint": HINT,
    "multicast": MULTICAST,
    "types": bulk("shared", "global") | MBAR | MASK | POLICY,
    "present": {"policy": "hint", "mask": "multicast"},
    "name": "cp.async.bulk",
}
BETWEEN: Slots = {"types": bulk("shared", "shared") | MBAR, "name": "cp.async.bulk"}
TO_GLOBAL: Slots = {
    "hint": HINT,
    "cp_mask": (("cp_mask", "8.6 sm_100"),),
    "types": bulk("global", "shared") | POLICY | BYTES,
    "present": {"policy": "hint", "bytes": "cp_mask"},
    "name": "cp.async.bulk",
}

REDUCE: Slots = {"name": "cp.reduce.async.bulk", "sem": (("relaxed", "9.3 sm_90"),)}
INTO_SHARED: Slots = REDUCE | {
    "scope": (("cta cluster", "9.3 sm_90"),),
    "types": bulk("shared", "shared") | MBAR,
    "where": together,
    "since": "8.0 sm_90",
}
INTO_GLOBAL: Slots = REDUCE | {
    "scope": (("cta cluster gpu sys", "9.3 sm_90"),),
    "hint": HINT,
    "types": bulk("global", "shared") | POLICY,
    "present": {"policy": "hint"},
    "where": together,
    "since": "8.0 sm_90",
}
SHARED_REDUCTION = "cp.reduce.async.bulk{.sem}{.scope}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type"
GLOBAL_REDUCTION = "cp.reduce.async.bulk{.sem}{.scope}.global.shared::cta.bulk_group{.hint}.op"


@form(
    "cp.async.bulk{.sem}.shared::cta.global.mbarrier::complete_tx::bytes{.report}{.hint}{.oob}"
    " [d], [a], size{, left, right}, [mbar]{, policy}",
    sem=WEAK,
    where=unreported,
    since="8.6 sm_90",
    **TO_CTA,
)
@form(
    "cp.async.bulk.relaxed.scope.shared::cta.global.mbarrier::complete_tx::bytes{.report}{.hint}{.oob}.b128"
    " [d], [a], size{, left, right}, [mbar]{, policy}",
    scope=SCOPE,
    where=unreported,
    since=STRONG,
    **TO_CTA,
)
@form(
    "cp.async.bulk{.sem}.shared::cluster.global.mbarrier::complete_tx::bytes{.report}{.multicast}{.hint}"
    " [d], [a], size, [mbar]{, mask}{, policy}",
    sem=WEAK,
    since="8.0 sm_90",
    **TO_CLUSTER,
)
@form(
    "cp.async.bulk.relaxed.scope.shared::cluster.global.mbarrier::complete_tx::bytes{.report}{.multicast}{.hint}.b128"
    " [d], [a], size, [mbar]{, mask}{, policy}",
    scope=SCOPE,
    since=STRONG_TO_CLUSTER,
    **TO_CLUSTER,
)
@form(
    "cp.async.bulk{.sem}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [d], [a], size, [mbar]",
    sem=WEAK,
    since="8.0 sm_90",
    **BETWEEN,
)
@form(
    "cp.async.bulk.relaxed.scope.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.b128 [d], [a], size, [mbar]",
    scope="cta cluster",
    since=STRONG,
    **BETWEEN,
)
@form(
    "cp.async.bulk{.sem}.global.shared::cta.bulk_group{.hint}{.cp_mask} [d], [a], size{, policy}{, bytes}",
    sem=WEAK,
    since="8.0 sm_90",
    **TO_GLOBAL,
)
@form(
    "cp.async.bulk.relaxed.scope.global.shared::cta.bulk_group{.hint}{.cp_mask}.b128 [d], [a], size{, policy}{, bytes}",
    scope=SCOPE,
    since=STRONG,
    **TO_GLOBAL,
)
@addresses(d="size/16", a="size/16")
def cp_async_bulk(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    a: AddressValue,
    size: Value,
    left: Value | None,
    right: Value | None,
    mbar: AddressValue | None,
    mask: Value | None,
    policy: Value | None,
    bytes: Value | None,
) -> None:
    """Copy a block of memory asynchronously; completion is by an mbarrier that counts bytes, or by a bulk group.

    `.ignore_oob` lets the first `left` and the last `right` bytes be anywhere, `.cp_mask` writes only some of every
    16 bytes, `.multicast` writes to several blocks of the cluster.
    """
    if m.bulk_group:
        k.bulk.store(d, a, size, 0xFFFF if bytes is None else k.cast(bytes, "u32"), None)
    elif a.space in ("shared", "shared::cluster"):  # the latter is what an address in a register has
        assert mbar is not None
        k.bulk.exchange(d, a, size, mbar, None)
    else:
        assert mbar is not None
        k.bulk.load(d, a, size, mbar, mask, (0 if left is None else left, 0 if right is None else right))


@form(
    "cp.async.bulk.prefetch.L2.global{.hint} [a], size{, policy}",
    hint=HINT,
    types={"a": "global", "size": SIZE, "policy": "u64"},
    present={"policy": "hint"},
    name="cp.async.bulk.prefetch",
    since="8.0 sm_90",
)
@form(
    "cp.async.bulk.prefetch.L2.global.L2::evict_last [a], size",
    types={"a": "global", "size": SIZE},
    name="cp.async.bulk.prefetch",
    since="9.4 sm_107f",
)
@addresses(a="size/16")
def cp_async_bulk_prefetch(k: Machine, m: Modifiers, a: AddressValue, size: Value, policy: Value | None) -> None:
    """Have a block of global memory brought to the L2 cache in the background; its bytes do not change."""
    k.bulk.prefetch(a, size)


@form("cp.async.bulk.commit_group", since="8.0 sm_90")
def cp_async_bulk_commit_group(k: Machine, m: Modifiers) -> None:
    """Make the bulk copies to global memory that this thread has started since the last one a group."""
    k.bulk.commit()


@form("cp.async.bulk.wait_group{.read} n", types={"n": "imm"}, since="8.0 sm_90")
def cp_async_bulk_wait_group(k: Machine, m: Modifiers, n: int) -> None:
    """Wait until at most the `n` latest groups of bulk copies are under way; with `.read`, until the rest are read."""
    k.bulk.wait(n, bool(m.read))


@form(f"{SHARED_REDUCTION} [d], [a], size, [mbar]", op="add", type="u32 s32 u64", **INTO_SHARED)
@form(f"{SHARED_REDUCTION} [d], [a], size, [mbar]", op="min max", type="u32 s32", **INTO_SHARED)
@form(f"{SHARED_REDUCTION} [d], [a], size, [mbar]", op="inc dec", type="u32", **INTO_SHARED)
@form(f"{SHARED_REDUCTION} [d], [a], size, [mbar]", op="and or xor", type="b32", **INTO_SHARED)
@form(f"{GLOBAL_REDUCTION}.type [d], [a], size{{, policy}}", op="add", type="u32 s32 u64 f32 f64", **INTO_GLOBAL)
@form(
    f"{GLOBAL_REDUCTION}.noftz.type [d], [a], size{{, policy}}",
    op="add",
    type=("f16 bf16", ("f32", "9.4 sm_90")),
    **INTO_GLOBAL,
)
@form(
    f"{GLOBAL_REDUCTION}.type [d], [a], size{{, policy}}", op="min max", type="u32 s32 u64 s64 f16 bf16", **INTO_GLOBAL
)
@form(f"{GLOBAL_REDUCTION}.type [d], [a], size{{, policy}}", op="inc dec", type="u32", **INTO_GLOBAL)
@form(f"{GLOBAL_REDUCTION}.type [d], [a], size{{, policy}}", op="and or xor", type="b32 b64", **INTO_GLOBAL)
@addresses(d="size/16", a="size/16")
def cp_reduce_async_bulk(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    a: AddressValue,
    size: Value,
    mbar: AddressValue | None,
    policy: Value | None,
) -> None:
    """Combine each value of a block of memory with one elsewhere, in the background and each in one indivisible step.

    Completion is by an mbarrier that counts bytes, or by a bulk group.
    """
    if mbar is None:
        k.bulk.store(d, a, size, 0xFFFF, Reduction(m.op, m.type))
    else:
        k.bulk.exchange(d, a, size, mbar, Reduction(m.op, m.type))


@form(
    "applypriority.async.bulk{.global}.bulk_group.L2::evict_normal [a], size",
    types={"a": "global b64", "size": SIZE},
    name="applypriority.async.bulk",
    since="9.4 sm_107f",
)
@unknown("what it adds to a group of copies is not emulated")
def applypriority() -> None:
    """Change the eviction priority of a block of memory in the L2 cache, in the background."""


def stored(m: Modifiers) -> str | None:
    """Which vectors and scopes there are."""
    if m.vec == "v4" and m.type.endswith("64"):
        return "a vector holds at most 128 bits"
    if m.sem == "cluster" and m.space in ("shared", "shared::cta"):
        return f"`.cluster` does not go with `.{m.space}`"
    return None


def barrier(m: Modifiers) -> str:
    """The mbarrier of a store; ptxas copies the addresses of one without a state space to registers of their width."""
    return "shared" if m.space else "shared full"


ASYNC_STORE = "st.async{.sem}{.space}.mbarrier::complete_tx::bytes{.vec}.type [a], b, [mbar]"


@form(
    ASYNC_STORE,
    sem="weak cluster",  # ptxas takes the scope from the start, the manual from PTX 8.7 and sm_100 on
    space="shared::cluster shared::cta shared",  # the manual lists only `.shared::cluster`, ptxas takes all three
    vec="v2 v4",
    type="b32 b64 u32 u64 s32 s64 f32 f64",
    types={"a": "shared full", "b": "vec type", "mbar": barrier},
    where=stored,
    since="8.1 sm_90",
)
def st_async(k: Machine, m: Modifiers, a: AddressValue, b: Operand, mbar: AddressValue) -> None:
    """Store asynchronously to a block of the cluster; the bytes are counted by an mbarrier of that block."""
    parts = elements(b)
    k.bulk.put(a, k.pack(parts, f"b{sum(part.type.width for part in parts)}"), mbar, None)


@form(
    "st.async{.sem}{.space}.mbarrier::complete_tx::bytes.type [a], b",  # ptxas takes it; no barrier hears of it
    sem="weak cluster",
    space="shared::cluster shared::cta shared",
    type="b32 b64 u32 u64 s32 s64 f32 f64",
    types={"a": "shared full"},
    where=lambda m: stored(Modifiers(**vars(m), vec=None)),
    since="8.1 sm_90",
)
@unknown("it is not in the manual, and without an mbarrier nothing shows when it is complete")
@addresses(a="data")
def st_async_without_completion() -> None:
    """Store to another block in the background, without a barrier that hears of it."""


@form(
    "st.async{.mmio}.release.scope{.global}.type [a], b",
    scope="gpu sys",
    type="b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
    types={"a": "global full"},
    name="st.async",
    since="8.7 sm_100",
)
def st_async_release(k: Machine, m: Modifiers, a: AddressValue, b: Value) -> None:
    """Store to global memory with release semantics, without waiting for it."""
    # PTX ISA 9.7.9.12: a strong store of the generic proxy; that it is done at once is what it may do.
    k.store(a, (b,), order=f"release.{m.scope}")


BULK_SIZE, BULK_SIZE_32 = "u64 within(0..16777216/8)", "u32 reg typed"


# ptxas takes the name of a variable for the address only where that is generic.
@form("st.bulk{.weak} [a], size, zero", types={"a": "full", "size": BULK_SIZE, "zero": "imm(0)"}, since="8.6 sm_100")
@form(
    "st.bulk{.weak}.shared::cta [a], size, zero",
    types={"a": "shared::cta full reg", "size": BULK_SIZE, "zero": "imm(0)"},
    since="8.6 sm_100",
)
@form("st.bulk{.weak} [a], size, zero", types={"a": "full", "size": BULK_SIZE_32, "zero": "imm(0)"}, since="9.0 sm_100")
@form(
    "st.bulk{.weak}.shared::cta [a], size, zero",
    types={"a": "shared::cta full reg", "size": BULK_SIZE_32, "zero": "imm(0)"},
    since="9.0 sm_100",
)
def st_bulk(k: Machine, m: Modifiers, a: AddressValue, size: Value, zero: int) -> None:
    """Store `size` zero bytes, a multiple of 8, to shared memory."""
    k.fill(a, k.cast(size, "u64"))


ASYNC_REDUCTION = "red.async.relaxed.cluster{.space}.mbarrier::complete_tx::bytes.op.type [a], b, [mbar]"
REDUCTION_WITHOUT_COMPLETION = ASYNC_REDUCTION.removesuffix(", [mbar]")  # as `st.async`
REDUCE_REMOTE: Slots = {
    "space": "shared::cluster",
    "types": {"a": "shared full", "mbar": barrier},
    "name": "red.async",
    "since": "8.1 sm_90",
}
WITHOUT_COMPLETION: Slots = REDUCE_REMOTE | {"types": {"a": "shared full"}}


@form(ASYNC_REDUCTION, op="inc dec", type="u32", **REDUCE_REMOTE)
@form(ASYNC_REDUCTION, op="min max", type="u32 s32", **REDUCE_REMOTE)
@form(ASYNC_REDUCTION, op="and or xor", type="b32", **REDUCE_REMOTE)
@form(ASYNC_REDUCTION, op="add", type="u32 s32 u64 s64", **REDUCE_REMOTE)  # ptxas takes `.s64` as well
def red_async(k: Machine, m: Modifiers, a: AddressValue, b: Value, mbar: AddressValue) -> None:
    """Reduce asynchronously into a block of the cluster; the bytes are counted by an mbarrier of that block."""
    k.bulk.put(a, b, mbar, Reduction(m.op, m.type))


@form(REDUCTION_WITHOUT_COMPLETION, op="inc dec", type="u32", **WITHOUT_COMPLETION)
@form(REDUCTION_WITHOUT_COMPLETION, op="min max", type="u32 s32", **WITHOUT_COMPLETION)
@form(REDUCTION_WITHOUT_COMPLETION, op="and or xor", type="b32", **WITHOUT_COMPLETION)
@form(REDUCTION_WITHOUT_COMPLETION, op="add", type="u32 s32 u64 s64", **WITHOUT_COMPLETION)
@unknown("it is not in the manual, and without an mbarrier nothing shows when it is complete")
@addresses(a="data")
def red_async_without_completion() -> None:
    """Combine a value with one in another block in the background, without a barrier that hears of it."""


@form(
    "red.async{.mmio}.release.scope{.global}.add.type [a], b",
    scope="gpu sys",
    type="u32 s32 u64 s64",
    types={"a": "global full"},
    name="red.async",
    since="8.7 sm_100",
)
def red_async_release(k: Machine, m: Modifiers, a: AddressValue, b: Value) -> None:
    """Add to a value in global memory with release semantics, without waiting for it."""
    k.update(a, m.type, lambda old: old + b, f"release.{m.scope}", returns=False)
