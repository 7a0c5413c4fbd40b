"""What a kernel prints: the driver writes it to the process's own standard output and error, so those are led aside.

That is done only while a kernel runs that can print or assert; what other threads write meanwhile is led aside too.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from ptxlab import ir

_PRINTING = ("vprintf", "__assertfail")


@dataclass
class Captured:
    """What was written, once the kernel has ended."""

    output: str = ""
    errors: str = ""


def can_print(module: ir.Module) -> bool:
    """Whether a kernel of this module may write something."""
    return any(function.name in _PRINTING for function in module.functions)


@contextmanager
def captured(wanted: bool) -> Iterator[Captured]:
    """Collect what is written to the file descriptors 1 and 2 inside."""
    found = Captured()
    if not wanted:
        yield found
        return
    flush()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        kept = [(number, os.dup(number), file) for number, file in ((1, output), (2, errors))]
        try:
            for number, _, file in kept:
                os.dup2(file.fileno(), number)
            yield found
        finally:
            flush()
            for number, copy, _ in kept:
                os.dup2(copy, number)
                os.close(copy)
            found.output, found.errors = text_of(output), text_of(errors)


def text_of(file: IO[bytes]) -> str:
    """All that a file holds."""
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def flush() -> None:
    """Write what Python and the C library still hold back."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    ctypes.CDLL(None).fflush(None) if os.name == "posix" else ctypes.cdll.msvcrt.fflush(None)
