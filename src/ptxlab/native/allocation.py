"""The C library's memory: blocks of bytes that stay until they are freed."""

from __future__ import annotations

from .functions import external
from .types import Pointer, u8, u64


@external
def malloc(size: u64) -> Pointer[u8]: ...


@external
def calloc(count: u64, size: u64) -> Pointer[u8]: ...


@external
def realloc(memory: Pointer[u8], size: u64) -> Pointer[u8]: ...


@external
def free(memory: Pointer[u8]) -> None: ...
