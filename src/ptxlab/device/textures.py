"""Textures, surfaces and samplers as arguments of a launch, from NumPy arrays.

An array has its dimensions in NumPy's order: a row of texels is the last one, or the last but one where texels have
several channels. PTX goes the other way: coordinates in an instruction start with the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ptxlab.values import dataclass

if TYPE_CHECKING:
    Array = NDArray[Any]

HANDLES = 5 << 56  # where handles of textures, surfaces and samplers start in the generic address space
HANDLE_BYTES = 8  # from one handle to the next: an array of `.texref` has one for each element
FILTERS = ("point", "linear")
ADDRESSES = ("wrap", "mirror", "clamp", "border")
READS = ("element", "normalized")
STORAGES = ("array", "linear", "pitch")
FORMATS = {
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "int8": "s8", "int16": "s16", "int32": "s32",
    "float16": "f16", "float32": "f32",
}  # fmt: skip
# Dimensions of an array without channels, by geometry; `layers` of which the first one counts textures.
_RANKS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 3}
GEOMETRIES = tuple(_RANKS)
LAYERED = ("a1d", "a2d", "cube", "acube")
FACES = 6
_SURFACES = ("1d", "2d", "3d", "a1d", "a2d")
_BY_RANK = {1: "1d", 2: "2d", 3: "3d"}


@dataclass(frozen=True, slots=True)
class Texels:
    """The shape of a texture or surface: `layers` images of `depth` x `height` x `width` texels."""

    geometry: str
    format: str
    channels: int
    width: int
    height: int
    depth: int
    layers: int

    @property
    def texel_bytes(self) -> int:
        """Bytes of a texel."""
        return int(self.format[1:]) // 8 * self.channels


@dataclass(frozen=True, slots=True)
class Sampler:
    """How a texture is read: an argument for a `.samplerref`, and a part of each texture.

    `address` is one mode for all dimensions, or one for each, from the innermost on.
    """

    filter: str = "point"
    address: str | tuple[str, ...] = "clamp"
    normalized: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    mip_filter: str = "point"
    level_bias: float = 0.0
    level_clamp: tuple[float, float] = (0.0, 15.0)

    def __post_init__(self) -> None:
        _check_one("filter", self.filter, FILTERS)
        _check_one("mip_filter", self.mip_filter, FILTERS)
        for mode in self.addresses:
            _check_one("address", mode, ADDRESSES)
        if len(self.border) != 4:
            raise ValueError(f"border has {len(self.border)} numbers: a texel has 4")
        if not self.level_clamp[0] <= self.level_clamp[1]:
            raise ValueError(f"level_clamp={self.level_clamp}: the first level is above the last")

    @property
    def addresses(self) -> tuple[str, str, str]:
        """The address modes of three dimensions, from the innermost on."""
        modes = (self.address,) if isinstance(self.address, str) else tuple(self.address)
        if not 1 <= len(modes) <= 3:
            raise ValueError(f"address has {len(modes)} modes: there is one for all dimensions, or one for each")
        first, second, third = (*modes, *modes[-1:] * (3 - len(modes)))
        return first, second, third


@dataclass(frozen=True, eq=False, init=False)
class Texture:
    """An array to be read by `tex`, `tld4` and `txq`: an argument for a 64-bit parameter or a `.texref`.

    >>> import numpy
    >>> import ptxlab
    >>> image = ptxlab.Texture(numpy.zeros((480, 640, 4), numpy.uint8), geometry="2d", read="normalized")
    >>> image.texels.width, image.texels.height, image.texels.channels
    (640, 480, 4)
    """

    levels: tuple[Any, ...]
    texels: Texels
    sampler: Sampler
    read: str
    srgb: bool
    storage: str
    seamless: bool

    def __init__(
        self,
        array: object,
        *,
        geometry: str | None = None,
        filter: str = "point",
        address: str | Sequence[str] = "clamp",
        normalized: bool = False,
        read: str = "element",
        srgb: bool = False,
        border: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        storage: str = "array",
        mip_filter: str = "point",
        level_bias: float = 0.0,
        level_clamp: tuple[float, float] = (0.0, 15.0),
        seamless: bool = False,
    ) -> None:
        """Describe a texture; a list of arrays is a mipmap, the largest level first."""
        levels = tuple(array) if isinstance(array, (list, tuple)) else (array,)
        if not levels:
            raise ValueError("a mipmap has at least one level")
        texels = texels_of(levels[0], geometry, GEOMETRIES)
        modes = (address,) if isinstance(address, str) else tuple(address)
        if isinstance(address, str) and texels.geometry in ("1d", "a1d"):
            modes = (address, "clamp")  # of the one row
        x, y, z, w = (*map(float, border), *[0.0] * (4 - len(border)))
        clamp = float(level_clamp[0]), float(level_clamp[1])
        sampler = Sampler(filter, modes, normalized, (x, y, z, w), mip_filter, float(level_bias), clamp)
        _check_one("read", read, READS)
        _check_one("storage", storage, STORAGES)
        _check_sampling(texels, sampler, read, srgb)
        _check_storage(texels, storage, len(levels))
        _check_levels(levels, texels)
        values = (levels, texels, sampler, read, srgb, storage, seamless)
        for name, value in zip(Texture.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False, init=False)
class Surface:
    """An array to be read and written by `suld`, `sust` and `sured`; a launch leaves in it what the kernel wrote.

    >>> import numpy
    >>> import ptxlab
    >>> ptxlab.Surface(numpy.zeros((4, 8, 2), numpy.float32), geometry="2d").texels.texel_bytes
    8
    """

    array: Any
    texels: Texels

    def __init__(self, array: object, *, geometry: str | None = None) -> None:
        """Describe a surface."""
        texels = texels_of(array, geometry, _SURFACES)
        flags = getattr(array, "flags", None)
        if flags is None or not flags.c_contiguous:
            raise ValueError("a surface needs a NumPy array without gaps, as numpy.ascontiguousarray makes it")
        if not flags.writeable:
            raise ValueError("the array is read-only: a surface is written")
        object.__setattr__(self, "array", array)
        object.__setattr__(self, "texels", texels)


OPAQUE = (Texture, Surface, Sampler)


def texels_of(array: Any, geometry: str | None, known: Sequence[str]) -> Texels:
    """The shape of an array as texels; where it has one dimension more than the geometry, that is of channels."""
    name = str(getattr(array.dtype, "name", array.dtype)).rpartition(".")[2]
    if name not in FORMATS:
        raise TypeError(f"texels of type {name}: expected one of {', '.join(FORMATS)}")
    shape = tuple(int(extent) for extent in array.shape)
    if geometry is None:
        if len(shape) not in _BY_RANK:
            raise ValueError(f"an array of {len(shape)} dimensions: say which `geometry` it has, as 'a2d'")
        geometry = _BY_RANK[len(shape)]
    _check_one("geometry", geometry, known)
    rank = _RANKS[geometry]
    if len(shape) not in (rank, rank + 1):
        raise ValueError(
            f"a {geometry} texture has {rank} dimensions, and one of channels: this array has {len(shape)}"
        )
    channels = shape[rank] if len(shape) > rank else 1
    if channels not in (1, 2, 4):
        raise ValueError(f"texels of {channels} channels: there are 1, 2 and 4")
    if min(shape) < 1:
        raise ValueError("the array is empty")
    extents = shape[rank - 1 :: -1] if rank > 0 else ()
    width, height, depth = (*extents, *[1] * (3 - len(extents)))
    layers = 1
    if geometry == "a1d":
        layers, height = height, 1
    elif geometry in LAYERED:
        layers, depth = depth, 1
    if geometry in ("cube", "acube"):
        if width != height:
            raise ValueError(f"faces of a cube are squares, not {height} x {width}")
        if layers % FACES or (geometry == "cube" and layers != FACES):
            raise ValueError(f"a cube has {FACES} faces, this array {layers}")
    return Texels(geometry, FORMATS[name], channels, width, height, depth, layers)


def _check_one(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, known))}")


def _check_sampling(texels: Texels, sampler: Sampler, read: str, srgb: bool) -> None:
    """Whether the driver makes a texture that is read so."""
    is_float = texels.format.startswith("f")
    if read == "normalized" and (is_float or texels.format[1:] == "32"):
        raise ValueError(f"read='normalized' is for integers of 8 or 16 bits, not for {texels.format}")
    if sampler.filter == "linear" and not is_float and read == "element":
        raise ValueError("filter='linear' needs floats: say read='normalized', or pass an array of floats")
    if srgb and (texels.format != "u8" or read != "normalized"):
        raise ValueError("srgb is for uint8 texels that are read='normalized'")


def _check_storage(texels: Texels, storage: str, levels: int) -> None:
    wanted = {"linear": "1d", "pitch": "2d"}.get(storage)
    if wanted is not None and (texels.geometry != wanted or levels > 1):
        raise ValueError(f"storage={storage!r} is for {wanted} textures of one level")


def _check_levels(levels: Sequence[Any], first: Texels) -> None:
    """Each level of a mipmap has half the extents of the one before."""
    for number, level in enumerate(levels):
        found = texels_of(level, first.geometry, GEOMETRIES)
        wanted = [max(1, extent >> number) for extent in (first.width, first.height, first.depth)]
        same = (first.format, first.channels, first.layers) == (found.format, found.channels, found.layers)
        if [found.width, found.height, found.depth] != wanted or not same:
            raise ValueError(
                f"level {number} of the mipmap has the shape {tuple(level.shape)}: half of the level before"
            )
