"""Surface instructions (PTX ISA 9.7.11); what happens out of bounds must be said: `.trap`, `.clamp` or `.zero`."""

from collections.abc import Callable

from ..form import Modifiers, Slots, form
from ..machine import AddressValue, Machine, Operand, Value, elements
from ..types import type_named
from ..units.texture_unit import BOUNDARIES, LAYERED, QUERIES, SurfaceTexel
from ..units.texture_unit import GEOMETRIES as KNOWN

COORDINATES = {"1d": "single padded", "2d": "2 padded lone", "3d": "4 lone", "a1d": "2 padded lone", "a2d": "4 lone"}
GEOMETRIES = ("1d 2d", ("3d a1d a2d", "3.0 sm_20"))
MODE = ("trap", ("clamp zero", "2.0"))


def _coordinates(m: Modifiers) -> str:
    return f"s32 special {COORDINATES[m.geom]}"


def _where(m: Modifiers) -> str | None:
    return "four `.b64` are too wide, use `.v2`" if m.vec == "v4" and m.type == "b64" else None


SURFACE: Slots = {"a": "surfref", "b": _coordinates}
LOAD = ("ca cg cs cv", "2.0 sm_20")
STORE = ("wb cg cs wt", "2.0 sm_20")


@form(
    "suld.b.geom{.cop}{.vec}.type.mode d, [a, b]",
    geom=GEOMETRIES,
    cop=(LOAD,),
    vec="v2 v4",
    type="b8 b16 b32 b64",
    mode=MODE,
    types={**SURFACE, "d": lambda m: f"type loose {m.vec} sink" if m.vec else "type loose single padded"},
    where=_where,
    since="1.5",
)
def suld(k: Machine, m: Modifiers, a: AddressValue, b: Operand) -> tuple[Value, ...] | Value:
    """Load bytes from a surface, at coordinates whose first one counts bytes."""
    count = int(m.vec[1:]) if m.vec else 1
    address = _locate(k, m, a, b, type_named(m.type).width // 8 * count, "load")
    values = k.load(address, m.type, count, when=address.value != 0)
    return values if m.vec else values[0]


def _locate(
    k: Machine, m: Modifiers, a: AddressValue, b: Operand, bytes: int, access: str, unit: int = 1
) -> AddressValue:
    """The address of what a surface has at coordinates, the first of which counts units of so many bytes."""
    words = elements(b)
    is_layered = m.geom in LAYERED
    coordinates = words[is_layered : is_layered + int(m.geom[-2])]
    layer = words[0] if is_layered else 0
    geometry, boundary = KNOWN.index(m.geom), BOUNDARIES.index(m.mode)
    address: SurfaceTexel[Value] = SurfaceTexel(geometry, boundary, bytes, unit, layer, coordinates, access)
    return k.textures.locate(a, address)


STORED = {**SURFACE, "c": lambda m: f"type loose special {m.vec or 'single padded'}"}


@form(
    "sust.b.geom{.cop}{.vec}.type.mode [a, b], c",
    geom=GEOMETRIES,
    cop=(STORE,),
    vec="v2 v4",
    type="b8 b16 b32 b64",
    mode=MODE,
    types=STORED,
    where=_where,
    since="1.5",
)
def sust(k: Machine, m: Modifiers, a: AddressValue, b: Operand, c: Operand) -> None:
    """Store bytes to a surface, at coordinates whose first one counts bytes."""
    values = elements(c)
    address = _locate(k, m, a, b, type_named(m.type).width // 8 * len(values), "store")
    k.store(address, values, when=address.value != 0)


@form(
    "sust.p.geom{.cop}{.vec}.type.mode [a, b], c",
    geom=("1d 2d", ("3d", "3.0"), ("a1d a2d", "4.1 sm_30")),
    cop=(STORE,),
    vec="v2 v4",
    type="b32",
    mode=MODE,
    types=STORED,
    since="2.0 sm_20",
)
def sust_p(k: Machine, m: Modifiers, a: AddressValue, b: Operand, c: Operand) -> None:
    """Store the components of a texel to a surface, in its format; coordinates count texels."""
    address = _locate(k, m, a, b, 0, "store", unit=0)
    values = elements(c)
    handle = k.textures.handle(a)
    held = k.textures.texel_bytes(handle)
    words = [k.textures.texel_word(handle, values, word) for word in range(4)]
    for size in (1, 2, 4, 8, 16):
        parts = [k.cast(words[0], f"u{8 * size}")] if size < 4 else words[: size // 4]
        k.store(address, parts, when=(address.value != 0) & (held == size))


REDUCE: Slots = {
    "geom": ("1d 2d", ("3d", "3.0")),
    "mode": "trap clamp zero",
    "types": {**SURFACE, "c": "type loose"},
}
WIDE = "8.1 sm_50"


@form("sured.b.op.geom.type.mode [a, b], c", op="add", type="u32 s32 u64", since="2.0 sm_20", **REDUCE)
@form(
    "sured.b.op.geom.type.mode [a, b], c",
    op="min max",
    type=("u32 s32", ("u64 s64", WIDE)),
    since="2.0 sm_20",
    **REDUCE,
)
@form("sured.b.op.geom.type.mode [a, b], c", op="and or", type="b32", since="2.0 sm_20", **REDUCE)
def sured(k: Machine, m: Modifiers, a: AddressValue, b: Operand, c: Value) -> None:
    """Combine a value with one in a surface, at coordinates whose first one counts bytes."""
    _reduce(k, m, _locate(k, m, a, b, type_named(m.type).width // 8, "update"), m.type, c)


@form("sured.p.op.geom.type.mode [a, b], c", op="add min max and or", type="b32", since="2.0 sm_20", **REDUCE)
@form("sured.p.op.geom.type.mode [a, b], c", op="min max", type="b64", since=WIDE, **REDUCE)
def sured_p(k: Machine, m: Modifiers, a: AddressValue, b: Operand, c: Value) -> None:
    """Combine a value with one in a surface of the type that this has; coordinates count values."""
    bytes = type_named(m.type).width // 8
    address = _locate(k, m, a, b, bytes, "update", unit=bytes)
    if m.op not in ("min", "max"):
        _reduce(k, m, address, m.type.replace("b", "u"), c)
        return
    is_signed = k.textures.is_signed(k.textures.handle(a))
    unsigned, signed = (k.reinterpret(c, f"{kind}{m.type[1:]}") for kind in "us")

    def change(old: Value) -> Value:
        other = k.reinterpret(old, signed.type.name)
        is_less = k.select(is_signed, signed < other, unsigned < old)
        return k.select(is_less if m.op == "min" else ~is_less, unsigned, old)

    k.update(address, unsigned.type.name, change, "relaxed.gpu", returns=False, when=address.value != 0)


def _reduce(k: Machine, m: Modifiers, address: AddressValue, type: str, c: Value) -> None:
    value = k.reinterpret(c, type)
    k.update(address, type, _CHANGES[m.op](k, value), "relaxed.gpu", returns=False, when=address.value != 0)


_CHANGES: dict[str, Callable[[Machine, Value], Callable[[Value], Value]]] = {
    "add": lambda k, value: lambda old: old + value,
    "min": lambda k, value: lambda old: k.select(value < old, value, old),
    "max": lambda k, value: lambda old: k.select(value > old, value, old),
    "and": lambda k, value: lambda old: old & value,
    "or": lambda k, value: lambda old: old | value,
}


QUERY = (
    "width height depth",
    ("channel_data_type channel_order", "2.1"),
    ("array_size", "4.1"),
    ("memory_layout", "4.2"),
)


@form("suq.query.b32 d, [a]", query=QUERY, types={"a": "surfref"}, since="1.5")
def suq(k: Machine, m: Modifiers, a: AddressValue) -> Value:
    """Ask for a property of a surface."""
    return k.reinterpret(k.textures.query(k.textures.handle(a), QUERIES.index(m.query), 0), "b32")
