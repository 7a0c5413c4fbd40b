"""Texture instructions (PTX ISA 9.7.10).

How many coordinates there are depends on the geometry, and those of arrays (`.a1d`) start with the index of the layer.
Each lookup may name a sampler beside the texture, give a predicate for whether the data is resident, shift the
coordinates by an offset `e` and compare with a depth `f`; `lookups` declares all of these.
"""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import signature
from typing import Any

from ..form import Modifiers, Slots, Specification, Values, Where, form
from ..machine import AddressValue, Machine, Operand, Value, Vector, elements
from ..units.texture_unit import (
    FETCH_LEVEL,
    FOLLOW_GRADIENTS,
    GATHER,
    GEOMETRIES,
    KINDS,
    LAYERED,
    QUERIES,
    RESULTS,
    SAMPLE,
    Lookup,
)

COORDINATES = {
    "1d": "single padded",
    "2d": "2 padded lone",
    "3d": "4 lone",
    "a1d": "2 padded indexed",
    "a2d": "4 indexed",
    "cube": "4 lone",
    "acube": "4 indexed",
    "2dms": "4",
    "a2dms": "4 indexed",
}
OFFSETS = {
    "1d": "1 padded lone",
    "2d": "2 padded lone",
    "3d": "4 lone typed",
    "a1d": "1 padded lone",
    "a2d": "2 padded lone",
    "2dms": "2 padded lone",
    "a2dms": "2 padded lone",
    "cube": "",  # ptxas leaves it out
    "acube": "",
}
GRADIENTS = {"1d": "1", "2d": "2", "3d": "4", "a1d": "1", "a2d": "2", "cube": "4 short", "acube": "4 short"}

Declared = Callable[..., tuple[Vector, Value]]


def _result(m: Modifiers) -> str:
    # ptxas takes integer registers for floats, but not floats for integers.
    held = {"f32": "b32", "f16": "b16"}
    return f"{m.vec} sink {held.get(m.dtype, m.dtype)}"


def _coordinates(m: Modifiers) -> str:
    shape = COORDINATES[m.geom]
    return f"special integers {shape} {'b32' if 'indexed' in shape else m.ctype}"


def _sampled_coordinates(m: Modifiers) -> str:
    """Beside a sampler, a single coordinate must be written as a vector."""
    return _coordinates(m).replace("single", "1").replace("lone", "")


def _offsets_apart(m: Modifiers) -> str:
    """With gradients and a depth, offsets must be written as a vector."""
    return f"s32 {OFFSETS[m.geom]}".replace("lone", "")


LOOKUP: dict[str, Specification] = {
    "d": _result,
    "p": "pred",
    "a": "texref",
    "b": "samplerref",
    "c": "",
    "lod": "ctype single padded integers",
    "dx": lambda m: f"f32 apart {GRADIENTS[m.geom]}",
    "dy": lambda m: f"f32 apart {GRADIENTS[m.geom]}",
    "e": lambda m: f"s32 {OFFSETS[m.geom]}",
    "f": "f32",
}


# What follows the coordinates, and whether it is an offset of a cube map, which ptxas leaves out. One register of
# bits is a depth, not an offset.
TAILS = ("", False), (", f", False), (", e", False), (", e", True), (", e, f", False)


def lookups(opcode: str, between: str = "", **arguments: Any) -> Callable[[Declared], Declared]:
    """Declare every form of a lookup; `between` names the operands that this one has after the coordinates."""

    def declare(function: Declared) -> Declared:
        plain = _without_predicate(function)
        for result, resident in (("d", ""), ("d|p", "7.1 sm_60")):
            for address in ("[a, c]", "[a, b, c]"):
                coordinates = _coordinates if address == "[a, c]" else _sampled_coordinates
                for tail, is_left_out in TAILS:
                    syntax = f"{opcode} {result}, {address}{between}{tail}"
                    since = resident or ("4.3 sm_30" if tail and not is_left_out else arguments["since"])
                    if since == "1.2" and address == "[a, b, c]":
                        since = "1.5"
                    names = {word.strip("[]") for word in syntax.replace(",", " ").replace("|", " ").split()[1:]}
                    types = {name: LOOKUP[name] for name in names} | {"c": coordinates}
                    if "dx" in names and tail == ", e, f":
                        types["e"] = _offsets_apart
                    written: Callable[..., object] = function if "|" in result else plain
                    where = _where(tail, between, is_left_out)
                    form(syntax, types=types, writes="d p", where=where, **arguments | {"since": since})(written)
        return function

    return declare


@cache
def _without_predicate(function: Declared) -> Callable[..., object]:
    """A lookup that returns the texel alone: at a level, as gradients ask, or neither."""

    def look_up(
        k: Machine,
        m: Modifiers,
        a: AddressValue,
        b: Value | None,
        c: Operand,
        lod: Value | None,
        dx: Operand | None,
        dy: Operand | None,
        e: Operand | None,
        f: Value | None,
    ) -> object:
        return function(k, m, a, b, c, lod, dx, dy, e, f)[0]

    def gather(
        k: Machine, m: Modifiers, a: AddressValue, b: Value | None, c: Operand, e: Operand | None, f: Value | None
    ) -> object:
        return function(k, m, a, b, c, e, f)[0]

    found = look_up if "lod" in signature(function).parameters else gather
    found.__doc__, found.__module__ = function.__doc__, function.__module__
    return found


def _where(tail: str, between: str, is_left_out: bool) -> Where:
    def where(m: Modifiers) -> str | None:
        if (m.vec == "v2") != (m.dtype == "f16x2"):
            return "`.v2` goes with `.f16x2` results, `.v4` with all others"
        if m.geom in ("cube", "acube") and m.ctype != "f32":
            return "cube maps take `.f32` coordinates"
        if m.geom in ("2dms", "a2dms") and m.ctype != "s32":
            return "multi-sample textures take `.s32` coordinates"
        if tail == ", e" and is_left_out != (not OFFSETS[m.geom]):
            return "cube maps have an offset of their own"
        if tail == ", e, f" and "dx" in between and not OFFSETS[m.geom]:
            return "with gradients, cube maps take no offset beside a depth"
        if "f" in tail and m.geom in ("3d", "2dms", "a2dms"):
            return f"`.{m.geom}` textures are compared with no depth"
        if "f" in tail and m.ctype != "f32":
            return "a depth goes with `.f32` coordinates"
        return None

    return where


ARRAYS = ("a1d a2d", "2.3")
CUBES = (("cube", "3.0"), ("acube", "3.0 sm_20"))
UNIFORM = [("uni", "3.2")]  # the manual does not have it, ptxas does
TEX: Slots = {
    "uni": UNIFORM,
    "vec": ("v4", ("v2", "4.2 sm_53")),
    "dtype": ("u32 s32 f32", ("f16 f16x2", "4.2 sm_53")),
    "ctype": "s32 f32",
}
SAMPLED: Values = ("1d 2d 3d", ARRAYS, *CUBES, ("2dms a2dms", "3.2 sm_30"))
GRADED: Values = ("1d 2d 3d a1d a2d", ("cube acube", "4.3 sm_20"))
MIPMAP = "3.1 sm_20"
# PTX 1.0 and 1.1 pad coordinates to four elements.
EARLY = {"d": "v4 sink dtype", "a": "texref"}
EARLY_TYPES: Slots = {"uni": UNIFORM, "dtype": "u32 s32 f32", "ctype": "s32 f32"}


@form("tex.1d{.uni}.v4.dtype.ctype d, [a, c]", name="tex", types={**EARLY, "c": "ctype special"}, **EARLY_TYPES)
@form(
    "tex{.uni}.geom.v4.dtype.ctype d, [a, c]", geom="1d 2d 3d", types={**EARLY, "c": "4 ctype special"}, **EARLY_TYPES
)
def early_tex(k: Machine, m: Modifiers, a: AddressValue, c: Operand) -> tuple[Value, ...]:
    """Look up a texture at coordinates."""
    return _look_up(k, m, a, None, c, SAMPLE, None, None)[0]


@lookups("tex{.uni}.geom.vec.dtype.ctype", geom=SAMPLED, since="1.2", **TEX)
@lookups("tex.base{.uni}.geom.vec.dtype.ctype", geom=SAMPLED, since=MIPMAP, **TEX)
@lookups("tex.level{.uni}.geom.vec.dtype.ctype", ", lod", geom="1d 2d 3d a1d a2d cube acube", since=MIPMAP, **TEX)
@lookups("tex.grad{.uni}.geom.vec.dtype.ctype", ", dx, dy", geom=GRADED, since=MIPMAP, **TEX)
def tex(
    k: Machine,
    m: Modifiers,
    a: AddressValue,
    b: Value | None,
    c: Operand,
    lod: Value | None,
    dx: Operand | None,
    dy: Operand | None,
    e: Operand | None,
    f: Value | None,
) -> tuple[tuple[Value, ...], Value]:
    """Look up a texture at coordinates; of a mipmap, at the base level, at a given level, or as gradients ask."""
    operation = SAMPLE if lod is None and dx is None else FETCH_LEVEL if dx is None else FOLLOW_GRADIENTS
    gradients = (*elements(dx)[:3], *elements(dy)[:3]) if dx is not None else ()
    return _look_up(k, m, a, b, c, operation, e, f, level=0 if lod is None else lod, gradients=gradients)


def _look_up(
    k: Machine,
    m: Modifiers,
    a: AddressValue,
    b: Value | None,
    c: Operand,
    operation: int,
    e: Operand | None,
    f: Value | None,
    *,
    level: Value | int = 0,
    gradients: Sequence[Value] = (),
) -> tuple[tuple[Value, ...], Value]:
    """Texel, and whether it is resident, as memory here always is."""
    geometry = m.geom or "1d"
    words = elements(c)
    is_layered = geometry in LAYERED
    coordinates = words[is_layered : is_layered + _EXTENTS[geometry]]
    lookup: Lookup[Value] = Lookup(
        texture=k.textures.handle(a),
        sampler=b,
        operation=operation,
        geometry=GEOMETRIES.index(geometry),
        component="rgba".index(m.comp or "r"),
        result=RESULTS.index(m.dtype),
        is_integer=m.ctype == "s32",
        layer=words[0] if is_layered else 0,
        coordinates=coordinates,
        level=level,
        gradients=gradients,
        offsets=elements(e if OFFSETS[geometry] else None)[:3],
        depth=f,
    )
    k.textures.look_up(lookup)
    held = {"f16": "b16", "f16x2": "b32"}.get(m.dtype, m.dtype)
    found = [k.textures.found(number) for number in range(2 if m.dtype == "f16x2" else 4)]
    texel = tuple(k.cast(word, held) if held == "b16" else k.reinterpret(word, held) for word in found)
    return texel, k.constant("pred", 1)


# Coordinates of a texel in its texture; that of a sample comes before them.
_EXTENTS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 3, "acube": 3, "2dms": 3, "a2dms": 3}


GATHERED: Slots = {
    "uni": UNIFORM,
    "comp": "r g b a",
    "geom": ("2d", ("a2d cube acube", "4.3 sm_30")),
    "vec": "v4",
    "dtype": "u32 s32 f32",
    "ctype": "f32",
}


@lookups("tld4{.uni}.comp.geom.vec.dtype.ctype", since="2.2 sm_20", **GATHERED)
def tld4(
    k: Machine,
    m: Modifiers,
    a: AddressValue,
    b: Value | None,
    c: Operand,
    e: Operand | None,
    f: Value | None,
) -> tuple[tuple[Value, ...], Value]:
    """Fetch one component of the four texels that bilinear filtering would blend."""
    return _look_up(k, m, a, b, c, GATHER, e, f)


TEXTURE_QUERY = (
    "width height depth normalized_coords",
    ("channel_data_type channel_order", "2.1"),
    ("array_size", "4.1"),
    ("num_mipmap_levels", "4.1 sm_20"),
    ("num_samples", "4.1 sm_30"),
    ("memory_layout", "4.2"),
)
SAMPLER_QUERY = "filter_mode addr_mode_0 addr_mode_1 addr_mode_2"


@form("txq.query.b32 d, [a]", query=TEXTURE_QUERY, types={"a": "texref"}, since="1.5")
@form("txq.query.b32 d, [a]", query=SAMPLER_QUERY, types={"a": "texref"}, since="1.5")
@form("txq.query.b32 d, [a]", query=SAMPLER_QUERY, types={"a": "samplerref"}, since="1.5")
@form("txq.query.b32 d, [a]", query="force_unnormalized_coords", types={"a": "samplerref"}, since="2.2")
@form(
    "txq.level.query.b32 d, [a], lod",
    query="width height depth",
    types={"a": "texref", "lod": "u32"},
    since="4.3 sm_30",
)
def txq(k: Machine, m: Modifiers, a: AddressValue, lod: Value | None) -> Value:
    """Ask for a property of a texture, of one of its mipmap levels, or of a sampler."""
    level = 0 if lod is None else lod
    return k.reinterpret(k.textures.query(k.textures.handle(a), QUERIES.index(m.query), level), "b32")


@form(
    "istypep.type p, a",
    type="texref samplerref surfref",
    types={"p": "pred", "a": "u64"},
    writes="p",
    since="4.0 sm_30",
)
def istypep(k: Machine, m: Modifiers, a: Value) -> Value:
    """Return whether an address is that of a texture, a sampler or a surface."""
    return k.textures.is_kind(a, KINDS.index(m.type))
