"""Copies, reductions and atomic operations over the fabric that connects GPUs: fabric (PTX ISA 9.4, 9.7.11).

A fabric handle in brackets is a logical endpoint and an offset in it, with counted completion also that of a counter.
"""

from ..form import Slots, Specification, form
from ..vocabulary import together
from .tensor_copy import OVERRIDE, tensor

UNKNOWN = "several GPUs on a fabric are not emulated yet"
FP8 = "9.3 sm_100f sm_110f sm_120a sm_121a"
HINT = ("L2::cache_hint",)  # the manual asks for PTX 9.4, ptxas does not
HANDLE: dict[str, Specification] = {"endpoint": "u32", "offset": "u64 reg", "mbar": "shared", "size": "u32"}
COUNTER: dict[str, Specification] = {"counter": "u64 reg"}
POLICY: dict[str, Specification] = {"policy": "u64"}

ORDER: Slots = {"sem": "relaxed", "scope": "sys", "where": together, "since": "9.3 sm_100"}
FROM: Slots = ORDER | {"types": HANDLE | {"d": "shared"}}
TO: Slots = ORDER | {"types": HANDLE | {"a": "shared"} | POLICY, "hint": HINT, "present": {"policy": "hint"}}
COUNTED: Slots = TO | {"types": {**TO["types"], **COUNTER}}
ATOM: Slots = {
    "types": {"endpoint": "u32", "offset": "u64 reg", "mbar": "shared", "d": "shared", "a": "shared", "policy": "u64"},
    "hint": HINT,
    "present": {"policy": "hint"},
    "name": "fabric.try_atom.async",
    "since": "9.4 sm_100",
}

GET = "mbarrier::complete_tx::bytes.mbarrier::report::fabric"
PUT = "mbarrier::complete_tx::16B.mbarrier::report::fabric"
RED = f"fabric.try_red.async{{.multimem}}.shared::cta.{PUT}{{.hint}}{{.sem}}{{.scope}}.op.type"
RED_COUNTED = f"fabric.try_red.async{{.multimem}}.shared::cta.{PUT}.counted::bytes{{.hint}}{{.sem}}{{.scope}}.op.type"
PULL = f"fabric.try_pullred.async.multimem.shared::cta.{GET}{{.sem}}{{.scope}}.op"
PULLED = "[d], [endpoint, offset], size, [mbar], mask"
ATOMIC = f"fabric.try_atom.async.shared::cta.{PUT}{{.hint}}.relaxed.sys.op.type"
HANDLED = "[endpoint, offset], [d], [a], [mbar]{, policy}"
SENT = "[endpoint, offset], [a], size, [mbar]{, policy}"
SENT_COUNTED = "[endpoint, offset, counter], [a], size, [mbar]{, policy}"
MINMAX = "u32 s32 u64 s64 f16 bf16"
SUMS = "u32 u64 f16 bf16 f32 f64"
REDUCED: Slots = TO | {"name": "fabric.try_red.async"}
REDUCED_COUNTED: Slots = COUNTED | {"name": "fabric.try_red.async"}
PULLED_BY_WARP: Slots = FROM | {
    "types": {**FROM["types"], "mask": "u32 within(4294967295|4294967295)"},
    "name": "fabric.try_pullred.async",
}
TENSOR: Slots = {"mode": "tile", "since": OVERRIDE}


@form(
    f"fabric.try_get.async.shared::cta.{GET}{{.hint}}{{.sem}}{{.scope}}.b128"
    " [d], [endpoint, offset], size, [mbar]{, policy}",
    name="fabric.try_get.async",
    **FROM | {"types": {**FROM["types"], **POLICY}, "hint": HINT, "present": {"policy": "hint"}},
)
@form(
    f"fabric.try_put.async{{.multimem}}.shared::cta.{PUT}{{.hint}}{{.sem}}{{.scope}}.b128 {SENT}",
    name="fabric.try_put.async",
    **TO,
)
@form(
    f"fabric.try_put.async{{.multimem}}.shared::cta.{PUT}{{.hint}}.cp_mask{{.sem}}{{.scope}}.b128"
    " [endpoint, offset], [a], size, [mbar], bytes{, policy}",
    name="fabric.try_put.async",
    **TO | {"types": {**TO["types"], "bytes": "u16"}},
)
@form(
    f"fabric.try_put.async{{.multimem}}.shared::cta.{PUT}.counted::bytes{{.hint}}{{.sem}}{{.scope}}.b128"
    f" {SENT_COUNTED}",
    name="fabric.try_put.async",
    **COUNTED,
)
@form(f"{RED} {SENT}", op="and or xor", type="b32 b64", **REDUCED)
@form(f"{RED} {SENT}", op="min max", type=MINMAX, **REDUCED)
@form(f"{RED} {SENT}", op="add", type=SUMS, **REDUCED)
@form(f"{RED_COUNTED} {SENT_COUNTED}", op="and or xor", type="b32 b64", **REDUCED_COUNTED)
@form(f"{RED_COUNTED} {SENT_COUNTED}", op="min max", type=MINMAX, **REDUCED_COUNTED)
@form(f"{RED_COUNTED} {SENT_COUNTED}", op="add", type=SUMS, **REDUCED_COUNTED)
@form(f"{PULL}.type.sync {PULLED}", op="and or xor", type="b32 b64", **PULLED_BY_WARP)
@form(f"{PULL}.type.sync {PULLED}", op="min max", type=(MINMAX, ("e4m3 e5m2", FP8)), **PULLED_BY_WARP)
@form(f"{PULL}.type.sync {PULLED}", op="add", type="u32 u64 f16 bf16 f32", **PULLED_BY_WARP)
@form(f"{PULL}.acc::f16.type.sync {PULLED}", op="add", type="e4m3 e5m2", **PULLED_BY_WARP | {"since": FP8})
@form(f"{PULL}.acc::f32.type.sync {PULLED}", op="add", type="f16 bf16", **PULLED_BY_WARP | {"since": FP8})
@form("fabric.submit{.op_restrict::fetching}", since="9.3 sm_100")
@form("fabric.wait.sync_restrict::reads", name="fabric.wait", since="9.3 sm_100")
@form(f"{ATOMIC} {HANDLED}", op="and or xor", type="b32 b64", **ATOM)
@form(f"{ATOMIC} {HANDLED}", op="exch cas", type="b32 b64 b128", **ATOM)
@form(f"{ATOMIC} {HANDLED}", op="min max", type="u32 s32 u64 s64 f16x2 bf16x2", **ATOM)
@form(f"{ATOMIC} {HANDLED}", op="add", type="u32 u64 f16x2 bf16x2 f32 f64", **ATOM)
@tensor(
    f"fabric.try_get.async.tensor.dim.shared::cta{{.mode}}.{GET}{{.hint}}.relaxed.sys.b128"
    " [d], [map], [mbar]{, policy}",
    address="endpoint, offset",
    **TENSOR,
)
@tensor(
    f"fabric.try_put.async.tensor{{.multimem}}.dim.shared::cta{{.mode}}.{PUT}{{.hint}}.relaxed.sys.b128"
    " [map], [a], size, [mbar]{, policy}",
    address="endpoint, offset",
    **TENSOR,
)
@tensor(
    f"fabric.try_put.async.tensor{{.multimem}}.dim.shared::cta{{.mode}}.{PUT}.counted::bytes{{.hint}}.relaxed.sys.b128"
    " [map], [a], size, [mbar]{, policy}",
    address="endpoint, offset, counter",
    **TENSOR,
)
@tensor(
    f"fabric.try_red.async.tensor{{.multimem}}.dim.shared::cta{{.mode}}.{PUT}{{.hint}}.relaxed.sys.op"
    " [map], [a], size, [mbar]{, policy}",
    op="and or xor add min max",
    address="endpoint, offset",
    **TENSOR,
)
@tensor(
    f"fabric.try_red.async.tensor{{.multimem}}.dim.shared::cta{{.mode}}.{PUT}.counted::bytes{{.hint}}.relaxed.sys.op"
    " [map], [a], size, [mbar]{, policy}",
    op="and or xor add min max",
    address="endpoint, offset, counter",
    **TENSOR,
)
def fabric() -> None:
    """Copy, reduce or exchange data with the memory at an endpoint of the fabric, or wait for that."""
