"""Tensor maps outside of a launch: their 128 bytes read by the functions that copies read them by."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

from ptxlab.emulate.abi.bulk import TensorMap
from ptxlab.emulate.runtime.asynchronous.tensor_maps import read_map
from ptxlab.isa.tensor_map import BYTES


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


def _blank(owner: Any) -> Any:
    made = SimpleNamespace()
    for name, (_, type) in owner.__native__.fields.items():
        length = getattr(type, "length", None)
        setattr(made, name, 0 if length is None else [0] * length)
    return made
