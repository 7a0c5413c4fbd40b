"""Tensor maps from words of the command line, of tensors that are nowhere in memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.device.tensor_map_checks import Options
    from ptxlab.device.tensor_maps import TensorMap

ROW = 16  # bytes that rows of a tensor are padded to, as a tensor map needs them
BYTES = {"e4m3": "u8", "e5m2": "u8", "s8": "u8", "e2m1": "b4x16"}  # types that tensor maps have by other names
SLICES = {"16B": 16, "32B": 32}  # bytes of a slice of interleaved elements


@dataclass(frozen=True)
class Described:
    """A tensor: its sizes in the order of NumPy, and what its map says besides."""

    sizes: Sequence[int]
    type: str
    swizzle: str | None
    interleave: str | None
    fill: str
    steps: Sequence[int] | None

    def tiled(self, box: Sequence[int]) -> TensorMap:
        """The map for boxes."""
        from ptxlab.device.tensor_map_checks import check_box, whole
        from ptxlab.device.tensor_maps import tensor_map

        if not self.interleave:
            return tensor_map(self._array(), box, **self._options())
        extents = whole(box, len(self.sizes), "box")
        check_box(extents, self._steps(), self._checked())
        return self._interleaved(box=extents[::-1])

    def im2col(
        self, channels: int | None, pixels: int, lower: Sequence[int] | None, upper: Sequence[int] | None
    ) -> TensorMap:
        """The map for im2col."""
        from ptxlab.device.tensor_map_checks import check_pixels, whole
        from ptxlab.device.tensor_maps import im2col_map

        corners = [list(corner) if corner else [0] * (len(self.sizes) - 2) for corner in (lower, upper)]
        if not self.interleave:
            return im2col_map(
                self._array(), channels or self.sizes[-1], pixels, lower=corners[0], upper=corners[1], **self._options()
            )
        self._checked()
        each = SLICES[self.interleave] * 8 // self._element()[1]
        low, high = (whole(corner, len(self.sizes) - 2, "a corner") for corner in corners)
        check_pixels((self.sizes[0], *self.sizes[2:], each), each, pixels, low, high)
        return self._interleaved(box=(each,), pixels=pixels, lower=low[::-1], upper=high[::-1])

    def _element(self) -> tuple[str, int]:
        """The type as tensor maps name it, and its bits."""
        from ptxlab.isa.units.tensor_map import ELEMENT_TYPES

        name = BYTES.get(self.type, self.type)
        if name not in ELEMENT_TYPES:
            raise ValueError(f"type {self.type!r}: expected one of {', '.join([*ELEMENT_TYPES, *BYTES])}")
        if min(self.sizes) < 1:
            raise ValueError("a tensor has at least one element in each dimension")
        return name, ELEMENT_TYPES[name].bits

    def _array(self) -> Any:
        """An array that takes no memory; its rows are padded to 16 bytes."""
        import numpy as np

        _, bits = self._element()
        if self.sizes[-1] * bits % 8:
            raise ValueError(f"a row of {self.sizes[-1]} elements of {bits} bits is not a number of bytes")
        shape = (*self.sizes[:-1], self.sizes[-1] * bits // 8) if bits < 8 else tuple(self.sizes)
        size = max(bits // 8, 1)
        strides = [size, -(-shape[-1] * size // ROW) * ROW]
        for extent in reversed(shape[1:-1]):
            strides.append(strides[-1] * extent)
        return np.lib.stride_tricks.as_strided(np.zeros(1, f"u{size}"), shape, tuple(reversed(strides[: len(shape)])))

    def _options(self) -> dict[str, Any]:
        return {
            "type": self._element()[0],
            "swizzle": self.swizzle,
            "fill": self.fill,
            "element_strides": self.steps,
        }

    def _steps(self) -> tuple[int, ...]:
        from ptxlab.device.tensor_map_checks import whole

        return whole(self.steps or [1] * len(self.sizes), len(self.sizes), "element_strides")

    def _checked(self) -> Options:
        from ptxlab.device.tensor_map_checks import Options, check_options

        how = Options(self._element()[0], self.swizzle, None, self.fill, self.interleave)
        check_options(how, len(self.sizes))
        return how

    def _interleaved(self, **more: Any) -> TensorMap:
        """A map whose elements are slices: the innermost dimension counts these."""
        from ptxlab.device.tensor_maps import TensorMap

        assert self.interleave is not None
        strides = [SLICES[self.interleave] * self.sizes[-1]]
        for extent in reversed(self.sizes[1:-1]):
            strides.append(strides[-1] * extent)
        return TensorMap(
            array=None,
            offset=0,
            type=self._element()[0],
            sizes=tuple(reversed(self.sizes)),
            strides=tuple(strides),
            steps=self._steps()[::-1],
            swizzle=self.swizzle,
            l2_promotion=None,
            fill=self.fill,
            interleave=self.interleave,
            **more,
        )


def read_numbers(text: str, separator: str) -> list[int]:
    """`8x64` or `-1,2` as numbers."""
    parts = text.split(separator)
    if not all(re.fullmatch(r"-?\d{1,9}", part) for part in parts):
        example = "8x64" if separator == "x" else "96,8"
        raise ValueError(f"`{text}` is not like {example}")
    return [int(part) for part in parts]


def read_optional(text: str | None) -> list[int] | None:
    """`-1,2` as numbers, where it is given."""
    return None if text is None else read_numbers(text, ",")
