"""The types of elements of arrays of NumPy and torch, by the names that PTX has for them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64,
}  # fmt: skip
TORCH_NAMES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "s8": "int8", "u8": "uint8", "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64",
}  # fmt: skip
_PTX_NAMES = {name: type for type, name in TORCH_NAMES.items()}


def type_of(array: Any) -> str:
    """What PTX calls the type of an array of NumPy or torch.

    >>> type_of(np.zeros(3, np.int8))
    's8'
    """
    name = str(array.dtype).removeprefix("torch.")
    if name not in _PTX_NAMES:
        raise TypeError(f"elements of type {name}: the gallery has {', '.join(_PTX_NAMES)}")
    return _PTX_NAMES[name]
