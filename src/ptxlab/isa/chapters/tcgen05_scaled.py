"""Multiplication of matrices in tensor memory with a scale factor for each block: tcgen05.mma (PTX ISA 9.7.16.10).

The factors are in tensor memory too. How many elements share one is said by `.scale_vec::NX` (N factors for the K of
the shape) or, for whole families of chips, by `.block16` and `.block32`.
"""

from ..form import Modifiers, Slots, Values, unknown
from ..machine import AddressValue, Machine, Value
from ..units.collector import collector_of
from ..units.instruction_descriptor import PAIR
from ..units.instruction_descriptor import PLAIN as ALONE
from .tcgen05 import CTA_GROUP, is_pair
from .tcgen05_mma import CHIP, COLLECTORS, Operands, multiply, start

MX = "kind::mxf8f6f4"
MX4 = "kind::mxf4 kind::mxf4nvf4"
SINGLE = f"{CHIP} | 8.8 sm_103a | 9.4 sm_107a"  # what each of these chips has, but their families do not share

DEFAULT = "tcgen05.mma.cta_group.kind.block_scale{.collector_a}{.collector_b}"
SIZED = "tcgen05.mma.cta_group.kind.block_scale.size{.collector_a}{.collector_b}"
SP_DEFAULT = "tcgen05.mma.sp.cta_group.kind.block_scale{.collector_a}{.collector_b}"
SP_SIZED = "tcgen05.mma.sp.cta_group.kind.block_scale.size{.collector_a}{.collector_b}"
LUT_SCALED = "tcgen05.mma.cta_group.kind.block_scale.decompress::lut::b{.block32}{.collector_a}{.collector_b}"

# The kinds with the numbers of scale factors they can have for K elements, and with the elements of one factor.
FACTORS = {"kind::mxf8f6f4": "1X", "kind::mxf4": "2X", "kind::mxf4nvf4": "2X 4X"}
BLOCKS = {"kind::mxf8f6f4": "32", "kind::mxf4": "32", "kind::mxf4nvf4": "16 32"}


def of_the_kind(m: Modifiers) -> str | None:
    """Each kind has its own sizes."""
    if m.size.removeprefix("scale_vec::") in FACTORS[m.kind] or m.size.removeprefix("block") in BLOCKS[m.kind]:
        return None
    return f"`.{m.size}` does not go with `.{m.kind}`"


def scaled(kinds: Values, **more: object) -> Slots:
    """The modifiers of a line with scale factors."""
    return {"kind": kinds, "cta_group": CTA_GROUP, **COLLECTORS, **more}


VECTORS: Slots = {"size": "scale_vec::1X scale_vec::2X scale_vec::4X", "where": of_the_kind, "since": SINGLE}
BLOCK_SIZES: Slots = {"size": "block16 block32", "where": of_the_kind, "since": "8.8 sm_100f sm_101f"}
BY_VECTOR = scaled(("kind::mxf8f6f4 kind::mxf4", ("kind::mxf4nvf4", "8.7 sm_100")), **VECTORS)
BY_BLOCK = scaled(f"{MX} {MX4}", **BLOCK_SIZES)
BY_DEFAULT = scaled(f"{MX} kind::mxf4", since="8.8 sm_100f sm_101f")
SP_BY_BLOCK = scaled((MX, (MX4, SINGLE)), **BLOCK_SIZES)
SP_BY_DEFAULT = scaled((MX, ("kind::mxf4", SINGLE)), since="8.8 sm_100f sm_101f")
BY_TABLE = scaled(MX, since="9.4 sm_107f")


@multiply(DEFAULT, "[d], a_desc, b_desc, idesc, [scale_a], [scale_b], {!}enable_d", **BY_DEFAULT)
@multiply(DEFAULT, "[d], [a], b_desc, idesc, [scale_a], [scale_b], {!}enable_d", **BY_DEFAULT)
@multiply(SIZED, "[d], a_desc, b_desc, idesc, [scale_a], [scale_b], {!}enable_d", **BY_BLOCK)
@multiply(SIZED, "[d], [a], b_desc, idesc, [scale_a], [scale_b], {!}enable_d", **BY_BLOCK)
@multiply(SIZED, "[d], a_desc, b_desc, idesc, [scale_a], [scale_b], {!}enable_d", **BY_VECTOR)
@multiply(SIZED, "[d], [a], b_desc, idesc, [scale_a], [scale_b], {!}enable_d", **BY_VECTOR)
@multiply(SP_DEFAULT, "[d], a_desc, b_desc, [sp_meta], idesc, [scale_a], [scale_b], {!}enable_d", **SP_BY_DEFAULT)
@multiply(SP_DEFAULT, "[d], [a], b_desc, [sp_meta], idesc, [scale_a], [scale_b], {!}enable_d", **SP_BY_DEFAULT)
@multiply(SP_SIZED, "[d], a_desc, b_desc, [sp_meta], idesc, [scale_a], [scale_b], {!}enable_d", **SP_BY_BLOCK)
@multiply(SP_SIZED, "[d], [a], b_desc, [sp_meta], idesc, [scale_a], [scale_b], {!}enable_d", **SP_BY_BLOCK)
@multiply(SP_SIZED, "[d], a_desc, b_desc, [sp_meta], idesc, [scale_a], [scale_b], {!}enable_d", **BY_VECTOR)
@multiply(SP_SIZED, "[d], [a], b_desc, [sp_meta], idesc, [scale_a], [scale_b], {!}enable_d", **BY_VECTOR)
def tcgen05_mma_block_scale(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    a: AddressValue | None,
    a_desc: Value | None,
    b_desc: Value,
    sp_meta: AddressValue | None,
    idesc: Value,
    scale_a: AddressValue,
    scale_b: AddressValue,
    enable_d: Value,
) -> None:
    """Start an MMA of A and B, each block of them multiplied by its own scale factor from tensor memory."""
    operands = Operands(d, a, a_desc, b_desc, idesc, enable_d, metadata=sp_meta, scale_a=scale_a, scale_b=scale_b)
    form = PAIR if is_pair(m) else ALONE
    start(k, m, operands, form=form, collector=collector_of(m.collector_a), scale_factors=count_factors(m))


def count_factors(m: Modifiers) -> int:
    """The scale factors of a row."""
    if m.kind == "kind::mxf8f6f4":
        return 1
    return 4 if m.size in ("scale_vec::4X", "block16") else 2


@multiply(LUT_SCALED, "[d], a_desc, b_desc, [table], idesc, [scale_a], [scale_b], {!}enable_d", **BY_TABLE)
@multiply(LUT_SCALED, "[d], [a], b_desc, [table], idesc, [scale_a], [scale_b], {!}enable_d", **BY_TABLE)
@unknown("the tables by which it expands B are not known", effects="tensor_memory.multiply")
def tcgen05_mma_block_scale_lut() -> None:
    """Start such an MMA with a B that a table expands."""
