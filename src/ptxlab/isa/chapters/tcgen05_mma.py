"""Multiplication of matrices in tensor memory: tcgen05.mma, .sp and .ws, without scale factors (PTX ISA 9.7.16.10).

One thread starts it. D is in tensor memory, B in shared memory, given by a descriptor, A in either (`a_desc` or `[a]`);
shapes and exact types are in the instruction descriptor `idesc`. Each line of the manual appears for both places of A,
and without and with the mask `disabled` of output lanes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..asynchronous import Mma
from ..form import F, Modifiers, Slots, Specification, form, unknown
from ..machine import AddressValue, Machine, Value, Vector
from ..units.collector import USES, collector_of
from ..units.instruction_descriptor import KINDS as KIND_NUMBERS
from ..units.instruction_descriptor import PAIR, STATIONARY
from ..units.instruction_descriptor import PLAIN as ALONE
from .tcgen05 import BLACKWELL, CTA_GROUP

CHIP = "8.6 sm_100a sm_101a"
KINDS = ("kind::f16 kind::tf32 kind::f8f6f4", ("kind::i8", CHIP), ("kind::ti16", "9.4 sm_107f"))
# ptxas also takes `scale_d` for i8, where the manual has it for f16 and tf32 only (but not with `disabled` and `.sp`).
SCALED_KINDS = (("kind::f16 kind::tf32", "8.6 sm_100a | 8.8 sm_100f"), ("kind::i8", CHIP))

COLLECTORS: Slots = {
    "collector_a": " ".join(f"collector::a::{use}" for use in USES),
    "collector_b": [(" ".join(f"collector::b::{use}" for use in USES), "9.4 sm_107f")],
}
BUFFERS = " ".join(f"collector::b{buffer}::{use}" for buffer in range(4) for use in USES)

OPERANDS: dict[str, Specification] = {
    "a_desc": "u64",
    "b_desc": "u64",
    "idesc": "u32",
    "disabled": lambda m: "8 b32 special apart" if m.cta_group == "cta_group::2" else "4 b32 special apart",
    "enable_d": "pred",
    "scale_d": "imm(0..15)",
    "zero_mask": "u64",
}


def multiply(opcode: str, operands: str, *, since: str = BLACKWELL, **slots: Any) -> Callable[[F], F]:
    """One syntax line; each operand in brackets is an address in tensor memory, an untyped register of 32 bits."""
    names = [name.strip("{} ").removeprefix("!}") for name in operands.split(",")]
    types = {name.strip("[]"): "b32" if name.startswith("[") else OPERANDS[name] for name in names if name}
    name = "tcgen05.mma.ws" if ".ws" in opcode else "tcgen05.mma"  # to ptxas `.sp` is a modifier
    return form(f"{opcode} {operands}", types=types, since=since, name=name, **slots)


def collects(m: Modifiers) -> str | None:
    """A shifted on its way is neither kept in nor had from the collector; no chip has i8 and a collector of B."""
    if getattr(m, "ashift", False) and m.collector_a in ("collector::a::fill", "collector::a::use"):
        return f"`.ashift` does not go with `.{m.collector_a}`"
    if m.kind == "kind::i8" and m.collector_b:
        return f"`.{m.collector_b}` does not go with `.kind::i8`"
    return None


MMA = "tcgen05.mma.cta_group.kind{.collector_a}{.collector_b}"
SHIFT = "tcgen05.mma.cta_group.kind{.ashift}{.collector_a}{.collector_b}"
SP = "tcgen05.mma.sp.cta_group.kind{.collector_a}{.collector_b}"
SP_SHIFT = "tcgen05.mma.sp.cta_group.kind{.ashift}{.collector_a}{.collector_b}"
LUT = "tcgen05.mma.cta_group.kind.decompress::lut::b{.collector_a}{.collector_b}"
PLAIN: Slots = {"kind": KINDS, "cta_group": CTA_GROUP, "where": collects, **COLLECTORS}
SCALED: Slots = PLAIN | {"kind": SCALED_KINDS}
NO_I8: Slots = {"kind": SCALED_KINDS[:1]}
TABLE: Slots = {"kind": "kind::f8f6f4", "cta_group": CTA_GROUP, "since": "9.4 sm_107f", **COLLECTORS}


@multiply(MMA, "[d], a_desc, b_desc, idesc, {!}enable_d", **PLAIN)
@multiply(MMA, "[d], a_desc, b_desc, idesc, disabled, {!}enable_d", **PLAIN)
@multiply(MMA, "[d], a_desc, b_desc, idesc, {!}enable_d, scale_d", **SCALED)
@multiply(MMA, "[d], a_desc, b_desc, idesc, disabled, {!}enable_d, scale_d", **SCALED)
@multiply(SHIFT, "[d], [a], b_desc, idesc, {!}enable_d", **PLAIN)
@multiply(SHIFT, "[d], [a], b_desc, idesc, disabled, {!}enable_d", **PLAIN)
@multiply(SHIFT, "[d], [a], b_desc, idesc, {!}enable_d, scale_d", **SCALED)
@multiply(SHIFT, "[d], [a], b_desc, idesc, disabled, {!}enable_d, scale_d", **SCALED)
@multiply(SP, "[d], a_desc, b_desc, [sp_meta], idesc, {!}enable_d", **PLAIN)
@multiply(SP, "[d], a_desc, b_desc, [sp_meta], idesc, disabled, {!}enable_d", **PLAIN)
@multiply(SP, "[d], a_desc, b_desc, [sp_meta], idesc, {!}enable_d, scale_d", **SCALED)
@multiply(SP, "[d], a_desc, b_desc, [sp_meta], idesc, disabled, {!}enable_d, scale_d", **SCALED | NO_I8)
@multiply(SP_SHIFT, "[d], [a], b_desc, [sp_meta], idesc, {!}enable_d", **PLAIN)
@multiply(SP_SHIFT, "[d], [a], b_desc, [sp_meta], idesc, disabled, {!}enable_d", **PLAIN)
@multiply(SP_SHIFT, "[d], [a], b_desc, [sp_meta], idesc, {!}enable_d, scale_d", **SCALED)
@multiply(SP_SHIFT, "[d], [a], b_desc, [sp_meta], idesc, disabled, {!}enable_d, scale_d", **SCALED | NO_I8)
def tcgen05_mma(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    a: AddressValue | None,
    a_desc: Value | None,
    b_desc: Value,
    sp_meta: AddressValue | None,
    idesc: Value,
    disabled: Vector | None,
    enable_d: Value,
    scale_d: int | None,
) -> None:
    """Start an MMA of A and B, added to D if `enable_d` holds; with `.sp`, half of A is stored."""
    start(
        k,
        m,
        Operands(
            d, a, a_desc, b_desc, idesc, enable_d, metadata=sp_meta, scale_d=scale_d or 0, disabled=disabled or ()
        ),
        form=PAIR if m.cta_group == "cta_group::2" else ALONE,
        collector=collector_of(m.collector_a),
    )


@dataclass(frozen=True)
class Operands:
    """The operands of an MMA; what an instruction does not have is `None` or 0."""

    d: AddressValue
    a: AddressValue | None
    a_desc: Value | None
    b_desc: Value
    idesc: Value
    enable_d: Value
    metadata: AddressValue | None = None
    scale_d: int = 0
    disabled: Vector = ()
    scale_a: AddressValue | None = None
    scale_b: AddressValue | None = None
    zero_mask: Value | None = None


def start(
    k: Machine, m: Modifiers, operands: Operands, *, form: int, collector: int = 0, scale_factors: int = 0
) -> None:
    """Start an MMA; `scale_factors` is how many a row has."""
    # How `ti16` is computed is not known: the emulator refuses it, but its effects are those of any MMA.
    kind = (*KIND_NUMBERS, "ti16").index(m.kind.removeprefix("kind::"))
    a = operands.a
    where = k.cast(k.tensor_memory.address(a), "u64") if a is not None else operands.a_desc
    assert where is not None
    k.tensor_memory.multiply(
        Mma(
            d=operands.d,
            a=where,
            a_in_tensor_memory=a is not None,
            b=operands.b_desc,
            instruction_descriptor=operands.idesc,
            kind=kind,
            accumulate=operands.enable_d,
            scale_d=operands.scale_d,
            disabled_lanes=operands.disabled,
            scale_a=operands.scale_a,
            scale_b=operands.scale_b,
            scale_factors=scale_factors,
            form=form,
            metadata=operands.metadata,
            is_shifted=bool(getattr(m, "ashift", False)),
            collector=collector,
            zero_columns=operands.zero_mask,
        )
    )


@multiply(LUT, "[d], a_desc, b_desc, [table], idesc, {!}enable_d", **TABLE)
@multiply(LUT, "[d], a_desc, b_desc, [table], idesc, disabled, {!}enable_d", **TABLE)
@multiply(LUT, "[d], [a], b_desc, [table], idesc, {!}enable_d", **TABLE)
@multiply(LUT, "[d], [a], b_desc, [table], idesc, disabled, {!}enable_d", **TABLE)
@unknown("the tables by which it expands B are not known", effects="tensor_memory.multiply")
def tcgen05_mma_lut() -> None:
    """Start an MMA of A and B, whose elements a table expands."""


WS = "tcgen05.mma.ws.cta_group::1.kind{.collector}"
WS_SP = "tcgen05.mma.ws.sp.cta_group::1.kind{.collector}"


@multiply(WS, "[d], a_desc, b_desc, idesc, {!}enable_d", kind=KINDS, collector=BUFFERS)
@multiply(WS, "[d], [a], b_desc, idesc, {!}enable_d", kind=KINDS, collector=BUFFERS)
@multiply(WS, "[d], a_desc, b_desc, idesc, {!}enable_d, zero_mask", kind=KINDS, collector=BUFFERS)
@multiply(WS, "[d], [a], b_desc, idesc, {!}enable_d, zero_mask", kind=KINDS, collector=BUFFERS)
@multiply(WS_SP, "[d], a_desc, b_desc, [sp_meta], idesc, {!}enable_d{, zero_mask}", kind=KINDS, collector=BUFFERS)
@multiply(WS_SP, "[d], [a], b_desc, [sp_meta], idesc, {!}enable_d{, zero_mask}", kind=KINDS, collector=BUFFERS)
def tcgen05_mma_ws(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    a: AddressValue | None,
    a_desc: Value | None,
    b_desc: Value,
    sp_meta: AddressValue | None,
    idesc: Value,
    enable_d: Value,
    zero_mask: Value | None,
) -> None:
    """Start an MMA of A and B with B kept in a collector buffer; a mask can leave out columns of B."""
    operands = Operands(d, a, a_desc, b_desc, idesc, enable_d, metadata=sp_meta, zero_mask=zero_mask)
    start(k, m, operands, form=STATIONARY, collector=collector_of(m.collector or "collector::b0::discard"))
