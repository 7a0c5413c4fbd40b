"""The texture unit of the abstract machine: `k.textures`. Lookups, accesses to surfaces, queries.

Geometries, queries and the like are numbers here, as native code takes them: their positions in the tuples below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from ptxlab.values import dataclass

from ..async_operation import step

V = TypeVar("V")
A = TypeVar("A")

GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms")
LAYERED = ("a1d", "a2d", "acube", "a2dms")
FORMATS = ("u8", "u16", "u32", "s8", "s16", "s32", "f16", "f32")
RESULTS = ("u32", "s32", "f32", "f16", "f16x2")
SAMPLE, FETCH_LEVEL, FOLLOW_GRADIENTS, GATHER = range(4)
BOUNDARIES = ("trap", "clamp", "zero")
QUERIES = (
    "width", "height", "depth", "channel_data_type", "channel_order", "normalized_coords", "array_size",
    "num_mipmap_levels", "num_samples", "memory_layout", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2",
    "force_unnormalized_coords",
)  # fmt: skip
KINDS = ("", "texref", "surfref", "samplerref")


@dataclass(frozen=True, slots=True)
class Lookup(Generic[V]):
    """A `tex` or `tld4`; all operands are words of 32 bits."""

    texture: V
    sampler: V | None
    operation: int
    geometry: int
    component: int  # of a gather
    result: int
    is_integer: bool  # whether coordinates are
    layer: V | int
    coordinates: Sequence[V]
    level: V | int = 0
    gradients: Sequence[V] = ()
    offsets: Sequence[V] = ()
    depth: V | None = None


@dataclass(frozen=True, slots=True)
class SurfaceTexel(Generic[V]):
    """Where a surface is accessed: `bytes` bytes; the first coordinate counts units of `unit` bytes, texels if it is 0.

    With texels, one is accessed, however many bytes it has.
    """

    geometry: int
    boundary: int
    bytes: int
    unit: int
    layer: V | int
    coordinates: Sequence[V]
    access: str  # "load", "store", "update"


class Textures(Protocol[V, A]):
    """Textures, samplers and surfaces, by their handles."""

    @step("", result="u64")
    def handle(self, operand: A) -> V:
        """The handle that an operand in brackets names or holds."""

    @step("look_up")
    def look_up(self, lookup: Lookup[V]) -> None:
        """Read a texture; `found` gives the results."""

    @step("", result="u32")
    def found(self, component: int) -> V:
        """A component of what the last lookup of the instruction found."""

    @step("", result="u32")
    def query(self, handle: V, query: int, level: V | int) -> V:
        """A property of a texture, a surface or a sampler."""

    @step("", result="pred")
    def is_kind(self, handle: V, kind: int) -> V:
        """Whether a handle is that of a texture, a surface or a sampler."""

    @step("locate", address="operand")
    def locate(self, operand: A, where: SurfaceTexel[V]) -> A:
        """The address in global memory that an access to a surface goes to; 0 where it is left out."""

    @step("", result="pred")
    def is_signed(self, handle: V) -> V:
        """Whether texels of a surface are signed integers."""

    @step("", result="u32")
    def texel_bytes(self, handle: V) -> V:
        """Bytes of a texel of a surface."""

    @step("", result="u32")
    def texel_word(self, handle: V, values: Sequence[V], word: int) -> V:
        """A word of a texel of a surface, in its format, made of these components."""
