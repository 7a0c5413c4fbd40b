"""Surface instructions (PTX ISA 9.7.11); what happens out of bounds must be said: `.trap`, `.clamp` or `.zero`."""

from typing import Any

from .form import Modifiers, form

UNKNOWN = "textures, samplers and surfaces are not emulated yet"
COORDINATES = {"1d": "single padded", "2d": "2 padded lone", "3d": "4 lone", "a1d": "2 padded lone", "a2d": "4 lone"}
GEOMETRIES = ("1d 2d", ("3d a1d a2d", "3.0 sm_20"))
MODE = ("trap", ("clamp zero", "2.0"))


def _coordinates(m: Modifiers) -> str:
    return f"s32 special {COORDINATES[m.geom]}"


def _where(m: Modifiers) -> str | None:
    return "four `.b64` are too wide, use `.v2`" if m.vec == "v4" and m.type == "b64" else None


SURFACE: dict[str, Any] = {"a": "surfref", "b": _coordinates}
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
def suld() -> None:
    """Load bytes from a surface, at coordinates whose first one counts bytes."""


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
def sust() -> None:
    """Store to a surface: bytes (`.b`), or values that are converted to the surface's format (`.p`)."""


REDUCE: dict[str, Any] = {
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
@form("sured.p.op.geom.type.mode [a, b], c", op="add min max and or", type="b32", since="2.0 sm_20", **REDUCE)
@form("sured.p.op.geom.type.mode [a, b], c", op="min max", type="b64", since=WIDE, **REDUCE)
def sured() -> None:
    """Combine a value with one in a surface, addressed in bytes (`.b`) or in samples (`.p`)."""


QUERY = (
    "width height depth",
    ("channel_data_type channel_order", "2.1"),
    ("array_size", "4.1"),
    ("memory_layout", "4.2"),
)


@form("suq.query.b32 d, [a]", query=QUERY, types={"a": "surfref"}, since="1.5")
def suq() -> None:
    """Ask for a property of a surface."""
