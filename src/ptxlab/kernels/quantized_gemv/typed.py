"""Arrays of NumPy, CuPy and torch as arrays of other types, under the names that PTX has for these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import DTYPES, TORCH_NAMES
from ptxlab.gpu.arrays import framework

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


def view_as(array: Any, type: str) -> Any:
    """The same bits as another type."""
    return array.view(_of(array, type))


def convert(array: Any, type: str) -> Any:
    """The same numbers in another type, as near as it has them."""
    kind = _of(array, type)
    return array.astype(kind) if hasattr(array, "astype") else array.to(kind)


def _of(array: Array, type: str) -> Any:
    xp = framework(array)
    return getattr(xp, TORCH_NAMES[type]) if xp.__name__ == "torch" else DTYPES[type]
