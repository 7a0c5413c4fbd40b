"""Memory that a kernel may touch."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ptxlab.values import dataclass


@dataclass(frozen=True)
class ReadBytes:
    """Bytes that a grid has read, of those that ran together: `marks` has a bit for each from `start` on."""

    grid: int
    start: int
    size: int
    marks: bytes


@dataclass
class Region:
    """Memory at an address of the kernel: `data` is where it is in truth, `name` what a message calls it."""

    base: int
    size: int
    data: int
    name: str
    writable: bool = True
    owner: Any = field(default=None, repr=False)
    tensor: int = 0  # of a tensor map that is pointed to: where its tensor is
    pointers: tuple[int, ...] = ()  # offsets of addresses in it that are others on a GPU
    owner_device: int | None = None  # the GPU of a node whose memory it is; None: of the host, or of one launch
    is_freed: bool = False  # of a node
    is_of_host: bool = False  # of a program: the host may access it, too
    is_mapped: bool = False  # of a program: `cuMemMap` has mapped it, and `cuMemSetAccess` says which GPU may access it
