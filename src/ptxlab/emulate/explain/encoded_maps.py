"""Tensor maps outside of a launch: their 128 bytes read by the functions that copies read them by."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ptxlab.emulate.abi.bulk import TensorMap
from ptxlab.emulate.abi.faults import TensorMapReason
from ptxlab.emulate.explain.encoded import BitField, Explanation
from ptxlab.emulate.explain.matrix_descriptors import name_bits
from ptxlab.emulate.explain.tensor_map_faults import OVERWRITTEN, word_field
from ptxlab.emulate.runtime.asynchronous.tensor_boxes import bytes_of_row, rows_of
from ptxlab.emulate.runtime.asynchronous.tensor_maps import read_map, value_of, wrong_field
from ptxlab.isa.units import tensor_map as layout
from ptxlab.isa.units.tensor_map import BYTES


def blank_map() -> Any:
    """A map whose fields are all 0, for native functions that run as plain Python."""
    return _blank(TensorMap)


def read(encoded: bytes | bytearray) -> tuple[Any, int]:
    """The fields of an encoded map, and 0, or the `TensorMapReason` why it is not one."""
    if len(encoded) != BYTES:
        raise ValueError(f"a tensor map has {BYTES} bytes, not {len(encoded)}")
    words: Any = struct.unpack(f"<{BYTES // 4}I", encoded)
    map = blank_map()
    return map, read_map(map, words)


def _blank(owner: Any) -> SimpleNamespace:
    made = SimpleNamespace()
    for name, (_, type) in owner.__native__.fields.items():
        length = getattr(type, "length", None)
        setattr(made, name, 0 if length is None else [0] * length)
    return made


# In words.


def explain_map(encoded: bytes) -> Explanation:
    """What 128 bytes say as a tensor map, and which constraints of copies they violate."""
    map, reason = read(encoded)
    words = struct.unpack(f"<{BYTES // 4}I", encoded)
    violations = list(_violations(map, reason, words))
    kind = "im2col" if map.mode else "tiles"
    fields = [*_flags(map, words)] if reason else [*_flags(map, words), *_extents(map, words)]
    ordered = sorted(fields, key=lambda field: field.lowest)
    notes = [] if reason or map.rank > 5 or map.type >= len(layout.ELEMENT_BITS) else [_copied(map)]
    return Explanation("tensor-map", f"tensor map for {kind}", "", tuple(ordered), tuple(violations), tuple(notes))


def _violations(map: Any, reason: int, words: Sequence[int]) -> Iterator[str]:
    if reason:
        yield "all bytes are 0: this is not a tensor map" if not any(words) else _unknown_bits(map, words)
        return
    known = 0
    while True:
        field, dimension = wrong_field(map, known)
        if not field or known >> field & 1:
            return
        known |= 1 << field
        said = word_field(TensorMapReason(field), value_of(map, field, dimension), dimension, 0)
        message = said.message.removeprefix("a damaged tensor map: ")
        needs = [note for note in said.notes if note != OVERWRITTEN]
        yield "; ".join([message, *needs])
        if field in (TensorMapReason.RANK, TensorMapReason.TYPE):
            return


def _unknown_bits(map: Any, words: Sequence[int]) -> str:
    """Which bits are set that no map has: those that `read_map` looks for."""
    unknown = (words[layout.FLAGS // 4] & ~layout.FLAGS_MASK) << layout.FLAGS * 8
    unknown |= (words[layout.HIGH_STRIDES // 4] & 0xFFFF0000) << layout.HIGH_STRIDES * 8
    unknown |= (words[layout.STEPS // 4] & 0x1FF << 15) << layout.STEPS * 8
    if map.mode:
        unknown |= (words[layout.PIXELS // 4] & 0xFFFFFC00) << layout.PIXELS * 8
    if not unknown:
        return "its address and its flags are 0: this is not a tensor map"
    return f"{name_bits(unknown)} must be 0: no field is there"


def _flags(map: Any, words: Sequence[int]) -> Iterator[BitField]:
    """The address, and the fields that are small numbers."""
    flags = words[layout.FLAGS // 4]

    def small(name: str, where: layout.FlagBits, says: str) -> BitField:
        lowest = layout.FLAGS * 8 + where.shift
        return BitField(name, lowest, lowest + where.bits - 1, (flags & where.mask) >> where.shift, says)

    yield BitField("globalAddress", 0, 63, int(map.address), "of the tensor")
    yield small("mode", layout.IS_IM2COL, "im2col" if map.mode else "tiles")
    yield small("tensorRank", layout.RANK, f"{map.rank} dimension{'s' * (map.rank != 1)}")
    rounded = bool(flags & layout.TENSOR_FLOAT.mask)
    yield small("tensorDataType", layout.TYPE, _name(layout.ELEMENT_TYPES, (map.type, rounded)))
    yield small("interleave", layout.INTERLEAVE, _name(layout.INTERLEAVES, map.interleave))
    yield small("swizzle", layout.SWIZZLE, _swizzle(flags))
    fill = "NaNs" if flags & layout.FILL.mask else "zeros"
    yield small("oobFill", layout.FILL, f"{fill} outside of the tensor")
    promotion = (flags & layout.PROMOTION.mask) >> layout.PROMOTION.shift
    yield small("l2Promotion", layout.PROMOTION, _name(layout.PROMOTIONS, promotion))


def _extents(map: Any, words: Sequence[int]) -> Iterator[BitField]:
    """Sizes, strides and what is copied; the innermost dimension first."""
    rank, more = min(int(map.rank), 5), int(map.dimensions > map.rank)

    def field(name: str, byte: int, shift: int, bits: int, says: str) -> BitField:
        lowest = byte * 8 + shift
        return BitField(name, lowest, lowest + bits - 1, words[byte // 4] >> shift & (1 << bits) - 1, says)

    for number in range(rank):
        unit = "slices" if more and number == 0 else "elements"
        yield field(f"globalDim[{number}]", layout.SIZES + 4 * number, 0, 32, f"{map.sizes[number + more]} {unit}")
        step = map.steps[number + more]
        says = "all elements are copied" if step == 1 else f"one of {step} elements is copied"
        yield field(f"elementStrides[{number}]", layout.STEPS, layout.STEP_BITS * number, layout.STEP_BITS, says)
    for number in range(rank - 1):
        says = f"{map.strides[number + more]} bytes from one to the next of dimension {number + 1}"
        yield field(f"globalStrides[{number}]", layout.STRIDES + 4 * number, 0, 32, says)
    innermost = (words[layout.STEPS // 4] >> layout.BOX_SHIFT) + 1
    if not map.mode:
        yield field("boxDim[0]", layout.STEPS, layout.BOX_SHIFT, 8, f"{innermost} elements of a box")
        for number in range(rank - 1):
            extent = (words[layout.BOX // 4] >> 8 * number & 255) + 1
            yield field(f"boxDim[{number + 1}]", layout.BOX, 8 * number, 8, f"{extent} elements of a box")
        return
    yield field("channelsPerPixel", layout.STEPS, layout.BOX_SHIFT, 8, f"{innermost} channels of a pixel")
    yield field("pixelsPerColumn", layout.PIXELS, 0, 32, f"{map.pixels} pixels")
    width = layout.CORNER_BITS[rank - 3] if rank >= 3 else 0
    for number in range(max(rank - 2, 0)):
        for name, corner, shift in (("Lower", map.lower, 0), ("Upper", map.upper, layout.CORNER_SHIFT)):
            says = f"{_signed(corner[number])} along {'whd'[number]}"
            yield field(f"pixelBox{name}Corner[{number}]", layout.CORNERS, shift + width * number, width, says)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _name(names: Mapping[Any, object], number: object) -> str:
    """The name that has this number; of types, the number and whether f32 is rounded."""
    for name, value in names.items():
        known = (value.number, value.is_tensor_float) if isinstance(value, layout.ElementType) else value
        if known == number:
            return name or "none"
    return "there is no such value"


def _swizzle(flags: int) -> str:
    mode = (flags & layout.SWIZZLE.mask) >> layout.SWIZZLE.shift
    if flags & layout.SWIZZLE_96.mask:
        mode = layout.SWIZZLE_96_MODE if mode == 0 else -1
    atomicity = (flags & layout.ATOMICITY.mask) >> layout.ATOMICITY.shift
    for name, known in layout.SWIZZLES.items():
        if (known.mode, known.atomicity) == (mode, atomicity):
            return name or "none"
    return "there is no such swizzle"


def _copied(map: Any) -> str:
    copied = int(rows_of(map, map.mode, 0)) * int(bytes_of_row(map))
    return f"a copy moves {copied} bytes: what an mbarrier has to expect"
