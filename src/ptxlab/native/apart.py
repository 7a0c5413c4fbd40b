"""LLVM in a process of its own: it can be stopped, and what makes LLVM abort ends that process alone.

Starting one takes as long as compiling a small kernel, so it is for text that is large.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Self

from .cache import kept
from .children import start_python
from .engine import cached, compile_kept, compile_text, kept_as

FOREVER = 3600
_OUT_OF_MEMORY = 3


class OutOfTimeError(Exception):
    """The time that compiling may take is over."""


class GaveUpError(Exception):
    """LLVM cannot compile a text: it aborted, or took more time or memory than it is worth."""


class Compilation:
    """An object file in the making, as by `engine.compile_text`, in a process that ends with this block of Python:

    with Compilation(text, speed=1) as compilation:
        code = compilation.result()

    It may use `seconds` of a core and `memory` bytes. Where no process can be started, that is an `OSError`.
    """

    def __init__(self, text: str, *, speed: int, seconds: int = FOREVER, memory: int = 1 << 40) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(text.encode())
            file.seek(0)
            self._process = start_python(
                __name__,
                *map(str, (speed, seconds, memory)),
                stdin=file,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in a terminal reaches this process alone, which then ends the other
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        with self._process:  # waits, and closes the pipes
            pass

    def result(self, until: float | None = None) -> bytes:
        """The object file; `OutOfTimeError` if it is not there at the time `until` of `time.perf_counter`."""
        try:
            code, said = self._process.communicate(None, None if until is None else max(until - time.perf_counter(), 0))
        except subprocess.TimeoutExpired:
            raise OutOfTimeError from None
        status = self._process.returncode
        if status == 1:  # an exception, as `compile_text` would have raised it here
            raise RuntimeError(said.decode(errors="replace"))
        if status:
            raise GaveUpError
        return code


def compile_at_once(texts: Sequence[tuple[str, int]]) -> list[bytes]:
    """Object files of several texts, each with its speed: on as many cores, or from the cache, as `compile_kept`."""
    found = [kept(kept_as(*text)) for text in texts]
    try:
        with ExitStack() as stack:
            running = [
                None if code is not None else stack.enter_context(Compilation(text, speed=speed))
                for (text, speed), code in zip(texts, found, strict=True)
            ]
            return [
                code or b"" if one is None else cached(kept_as(*text), one.result)
                for text, code, one in zip(texts, found, running, strict=True)
            ]
    except (OSError, GaveUpError):  # another process cannot be started
        return [compile_kept(text, speed=speed) for text, speed in texts]


def serve() -> None:
    """Compile what comes in; this is the other process."""
    speed, seconds, memory = map(int, sys.argv[1:])
    with suppress(ImportError):  # Windows knows no such limits
        import resource

        for kind, limit in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            with suppress(ValueError, OSError):  # the limit is lower already
                resource.setrlimit(kind, (limit, limit))
    try:
        code = compile_text(sys.stdin.buffer.read().decode(), speed=speed)
    except MemoryError:
        sys.exit(_OUT_OF_MEMORY)
    sys.stdout.buffer.write(code)
