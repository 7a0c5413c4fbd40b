"""The floating-point environment of a thread: what the CPU does where a number is subnormal, and how it rounds."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

_DEFAULT = -1  # `FE_DFL_ENV` of glibc


def use_default() -> None:
    """Have this thread round to nearest and keep subnormal numbers, as threads do unless a library says otherwise.

    XLA's threads flush subnormal numbers to zero, and so does a thread after `torch.set_flush_denormal(True)`; threads
    that they start inherit that.
    """
    _set()(ctypes.c_void_p(_DEFAULT))


@cache
def _set() -> Callable[[Any], Any]:
    """The C library's `fesetenv`, where its default is known."""
    if sys.platform != "linux":
        return bool
    function = ctypes.CDLL("libm.so.6").fesetenv
    function.argtypes = [ctypes.c_void_p]
    return function
