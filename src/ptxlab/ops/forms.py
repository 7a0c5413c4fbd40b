"""The forms of arrays: all that a launch depends on, as the key of a dictionary, and addresses besides."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ptxlab.gpu.exchange import Describe, describing
from ptxlab.ops.matrices import ROW


@cache
def describe_tensors() -> Describe | None:
    """What describes tensors of torch from machine code, if this version of torch has what that takes."""
    return describing(import_module("torch"))


def forms_of(arrays: list[Any], addresses: list[int]) -> Any:
    """The forms of arrays that have the methods of tensors; their addresses are appended to a list.

    Of an address only the alignment counts. What is not such an array raises AttributeError or RuntimeError.
    """
    key: list[Any] = []
    for one in arrays:
        if one is None:
            key.append(None)
            addresses.append(0)
        else:
            address = one.data_ptr()
            addresses.append(address)
            key += one.shape, one.stride(), one.dtype, one.device, address % ROW
    return tuple(key)
