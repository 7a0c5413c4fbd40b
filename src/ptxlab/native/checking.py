"""Checked native code and the host: what the code is linked with, and which memory of the host it may access.

Unchecked, all of this does nothing.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import Any, TypeVar

from . import bounds
from .modes import CHECKED

T = TypeVar("T")


@cache
def _guard() -> tuple[Any, list[tuple[str, int]]]:
    """The functions of `bounds`, and what the symbols of checked code mean; loaded once, for the whole process."""
    from .engine import compile_kept, load
    from .functions import signature
    from .translate import emit

    functions = {
        "ptxlab.native.check": bounds.check_access,
        "ptxlab.native.check_index": bounds.check_element,
        "ptxlab.native.share": bounds.share_bytes,
        "ptxlab.native.share_constant": bounds.share_host_bytes,
        "ptxlab.native.unshare": bounds.unshare_bytes,
        "ptxlab.native.share_table": bounds.share_table_once,
        "malloc": bounds.checked_malloc,
        "calloc": bounds.checked_calloc,
        "realloc": bounds.checked_realloc,
        "free": bounds.checked_free,
    }
    branches = (ctypes.c_void_p * (1 << 16))()
    code = compile_kept(emit(list(functions.values())))
    library = load([code], [("ptxlab.native.branches", ctypes.addressof(branches))], is_checked=False)
    library.branches = branches  # type: ignore[attr-defined]
    return library, [(name, library.address(signature(function).symbol)) for name, function in functions.items()]


def symbols() -> list[tuple[str, int]]:
    """What checked code is linked with besides the C library."""
    return _guard()[1]


def share(memory: T, size: int | None = None) -> T:
    """Let native code access the memory of a ctypes object, or its first `size` bytes, as long as that is there."""
    if CHECKED:
        address = ctypes.addressof(memory)  # type: ignore[arg-type]
        size = ctypes.sizeof(memory) if size is None else size  # type: ignore[arg-type]
        share_range(address, size)
        weakref.finalize(memory, unshare_range, address, size).atexit = False
    return memory


def share_range(address: int, size: int) -> None:
    """Let native code access memory of the host, until `unshare_range`."""
    if CHECKED:
        _guard()[0].function(bounds.share_host_bytes)(address, size)


def unshare_range(address: int, size: int) -> None:
    """Let native code access memory of the host no longer."""
    if CHECKED:
        _guard()[0].function(bounds.unshare_bytes)(address, size)
