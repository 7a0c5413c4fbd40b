"""Processes of Python beside this one, which import what this one would import and, unless detached, end when it does.

`python -c` and `PYTHONPATH` would put the current folder, which may be a stranger's, before Python's own modules.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

SERVE = "from {} import serve; serve()"


def start_python(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that calls `serve()` of a module of ptxlab; its output is a pipe to this one."""
    return _start(module, "end_with_parent", *arguments, stdout=subprocess.PIPE, **options)


def start_detached(module: str, *arguments: str, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a process that calls `serve()` of a module of ptxlab, at the lowest priority; it does not end with this."""
    nothing = subprocess.DEVNULL
    return _start(module, "yield_to_others", *arguments, stdin=nothing, stdout=nothing, stderr=nothing,
                  start_new_session=True, pass_fds=pass_fds)  # fmt: skip


def _start(module: str, first: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from ptxlab.native.children import {first}; {first}()\n{SERVE.format(module)}"
    )
    return subprocess.Popen([sys.executable, "-I", "-c", program, *arguments], **options)


def yield_to_others() -> None:
    """Run where no other process wants to."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(19)


def end_with_parent() -> None:
    """End this process as soon as no other one can read its output: the one that started it was killed."""
    if not hasattr(select, "poll"):  # Windows
        return
    poll = select.poll()
    poll.register(os.dup(sys.stdout.fileno()), 0)  # an error is what is left to wait for

    def wait() -> None:
        poll.poll()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
