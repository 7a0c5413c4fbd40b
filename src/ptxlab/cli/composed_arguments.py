"""Arguments that refer to arrays or consist of others: null pointers, an array again, tensor maps, structures."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from ptxlab.cli.described_maps import read_numbers
from ptxlab.cli.plain_arguments import TYPES, Argument, Known, Seed
from ptxlab.values import dataclass

NULL, AGAIN, MAP, IM2COL, STRUCTURE = "null", "an array again", "map", "im2col", "a structure"
_COMMON = ("swizzle", "element_strides", "l2_promotion", "fill", "interleave", "type")
# What may follow the array of a tensor map: the keywords of `tensor_map` and `im2col_map`, and where in memory the
# tensor is, as the driver is given it: `strides` are bytes, of all dimensions but the innermost.
OPTIONS = {
    MAP: ("box", *_COMMON, "shape", "strides"),
    IM2COL: ("channels", "pixels", "lower", "upper", *_COMMON, "shape", "strides"),
    AGAIN: ("at",),
}
_WORDS = ("swizzle", "l2_promotion", "fill", "interleave", "type")
_COUNTS = ("channels", "pixels")
_EXAMPLES = {
    "box": "64x64", "element_strides": "2x1", "lower": "-1x-1", "upper": "-1x-1", "channels": "64", "pixels": "128",
    "shape": "2x64x64", "strides": "512", "at": "64",
}  # fmt: skip
_REQUIRED = {MAP: ("box",), IM2COL: ("channels", "pixels", "lower", "upper")}

Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Null(Argument):
    """A null pointer."""

    def make(self, seed: Seed, known: Known | None = None) -> Any:
        """What Python calls it."""
        return None


@dataclass(frozen=True, slots=True)
class Again(Argument):
    """The array of an argument before: the one whose name is `value`, or the last where that is empty."""

    how: Options = ()

    def make(self, seed: Seed, known: Known | None = None) -> Any:
        """The array, or what is from an element of it on."""
        found = (known or {}).get(self.value)
        if found is None:
            named = (
                f"is named `{self.value}`: name one, as `{self.value}:f32[64]=zeros`" if self.value else "is an array"
            )
            raise self.problem(f"no argument before it {named}")
        at = dict(self.how).get("at")
        if at is None:
            return found
        start = _number(self, "at", at)
        if not 0 <= start < found.size:
            raise self.problem(f"at={at}: `{self.value}` has {found.size:,} elements, 0 to {found.size - 1}")
        return found.reshape(-1)[start:]


@dataclass(frozen=True, slots=True)
class Map(Argument):
    """A tensor map of an array; `how` has the options as they are written."""

    array: Argument | None = None
    how: Options = ()

    @property
    def parts(self) -> tuple[Argument, ...]:
        """Its array."""
        assert self.array is not None
        return (self.array,)

    def make(self, seed: Seed, known: Known | None = None) -> Any:
        """The map, as Python's `tensor_map` or `im2col_map` makes it; what these refuse is a usage error."""
        from ptxlab.device.tensor_maps import im2col_map, tensor_map

        given = {name: _option(self, name, value) for name, value in self.how}
        array = self._view(seed, {} if known is None else known, given.pop("shape", None), given.pop("strides", None))
        try:
            return (im2col_map if self.type == IM2COL else tensor_map)(array, **given)
        except (TypeError, ValueError) as wrong:
            row = array.strides[-2] if array.ndim > 1 else 0
            padded = [-(-row // 32) * 32 * stride // row for stride in array.strides[:-1]] if row % 16 else ()
            hint = f": `strides={'x'.join(map(str, padded))}`" if padded else ""
            raise self.problem(f"{wrong}{hint}") from None

    def _view(self, seed: Seed, known: Known, shape: list[int] | None, strides: list[int] | None) -> Any:
        """The array as the tensor: of another shape, or with dimensions as many bytes apart as `strides` says."""
        import numpy

        assert self.array is not None
        made = self.array.make(seed, known)
        if shape is None and strides is None:
            return made
        extents, width = shape or made.shape, made.itemsize
        whole = [*(strides or [prod(extents[at + 1 :]) * width for at in range(len(extents) - 1)]), width]
        if len(whole) != len(extents) or min(extents, default=0) < 1 or any(one < 0 or one % width for one in whole):
            rank = len(extents) - 1
            raise self.problem(
                f"expected strides of {rank} dimensions, all but the innermost, in multiples of {width} bytes"
            )
        end = sum((extent - 1) * stride for extent, stride in zip(extents, whole, strict=True)) + width
        is_again = isinstance(self.array, Again)
        if is_again and end > made.nbytes:
            raise self.problem(f"the tensor ends after {end:,} bytes, the array has {made.nbytes:,}")
        try:
            memory = made.reshape(-1) if is_again else numpy.zeros(end // width, made.dtype)
            view = numpy.lib.stride_tricks.as_strided(memory, extents, whole)
        except (MemoryError, ValueError):
            raise self.problem(f"a tensor of {prod(extents):,} elements is more than there is memory for") from None
        if not is_again:
            view[...] = made
            known[self.array.name] = known[""] = memory
        return view


@dataclass(frozen=True, slots=True)
class Structure(Argument):
    """A structure by its fields, in their order or each with its offset."""

    fields: tuple[Argument, ...] = ()
    offsets: tuple[int, ...] = ()

    @property
    def parts(self) -> tuple[Argument, ...]:
        """Those of its fields."""
        return tuple(part for field in self.fields for part in field.parts)

    def make(self, seed: Seed, known: Known | None = None) -> Any:
        """A tuple of the fields, or a dictionary where their offsets are given."""
        made = [_field(field, (*seed, number), known) for number, field in enumerate(self.fields)]
        return dict(zip(self.offsets, made, strict=True)) if self.offsets else tuple(made)


def _field(field: Argument, seed: Seed, known: Known | None) -> Any:
    """A field; a number with a type keeps it, also where the kernel reads only bits."""
    is_typed = field.shape is None and field.type in TYPES
    return field.make_typed(seed)[0] if is_typed else field.make(seed, known)


def compose_map(text: str, kind: str, array: Argument, how: Options, option: str) -> Map:
    """A tensor map of an array, whose options are known and complete."""
    made = Map(text, kind, None, "", option, array=array, how=how)
    if array.shape is None and not isinstance(array, Again):
        raise made.problem(f"a tensor map is of an array, such as `{kind}:f16[128,256]=random`")
    missing = [name for name in _REQUIRED[kind] if name not in dict(how)]
    if missing:
        raise made.problem(f"a tensor map needs `{missing[0]}=`, such as `{missing[0]}={_EXAMPLES[missing[0]]}`")
    check_options(made, kind, how)
    if not isinstance(array, Again) and "shape" in dict(how):
        raise made.problem("`shape=` is for the array of an argument before, `map:=x,shape=…`; this one has its own")
    return made


def check_options(argument: Argument, kind: str, how: Options) -> None:
    """Refuse options that there are not, and those that are given twice."""
    from ptxlab.report.nearest import nearest

    for at, (name, value) in enumerate(how):
        if name not in OPTIONS[kind]:
            close = nearest(name, OPTIONS[kind])
            meant = f"did you mean `{close}`?" if close else f"expected one of {', '.join(OPTIONS[kind])}"
            raise argument.problem(f"there is no option `{name}`; {meant}")
        if name in dict(how[:at]):
            raise argument.problem(f"`{name}=` is given twice")
        _option(argument, name, value)


def _option(argument: Argument, name: str, value: str) -> Any:
    """The value of an option: a word, a number, or one for each dimension."""
    if name in _WORDS:
        return None if value == "none" else value
    if name in _COUNTS or name == "at":
        return _number(argument, name, value)
    try:
        return read_numbers(value.replace(",", "x"), "x")
    except ValueError:
        raise argument.problem(f"`{name}={value}` is not like `{name}={_EXAMPLES[name]}`") from None


def _number(argument: Argument, name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", value):
        raise argument.problem(f"`{name}={value}` is not like `{name}={_EXAMPLES[name]}`")
    return int(value)
