"""Arrays with gaps, as kernels take them: the memory that they cover, and the steps along each dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


def strides(array: Any) -> list[int]:
    """Steps along each dimension, in elements."""
    if hasattr(array, "stride"):
        return list(array.stride())
    return [step // array.itemsize for step in array.strides]


def byte_strides(array: Any) -> list[int]:
    """Steps along each dimension, in bytes."""
    size = array.element_size() if hasattr(array, "stride") else array.itemsize
    return [step * size for step in strides(array)]


def flat(array: Array) -> Any:
    """The memory of an array; the kernel knows its strides."""
    if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
        return array
    last = sum((extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True))
    return np.lib.stride_tricks.as_strided(array, (last // array.itemsize + 1,), (array.itemsize,))
