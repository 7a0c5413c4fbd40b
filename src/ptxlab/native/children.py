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
from contextlib import suppress
from pathlib import Path
from typing import Any

SERVE = "from {} import serve; serve()"


def start_python(module: str, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
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
        have_session_yield()


def have_session_yield() -> None:
    """Have this process's session, if it is its own, run at no higher priority than the process.

    Linux shares a machine between sessions first, and then between the processes of each.
    """
    group = Path("/proc/self/autogroup")
    if group.exists() and os.getsid(0) == os.getpid() and os.nice(0) > 0:
        with suppress(OSError):  # one such change in a tenth of a second, and none where /proc is read-only
            group.write_text(str(os.nice(0)))


def end_with_parent() -> None:
    """End this process as soon as no other one can read its output: the one that started it was killed."""
    if not hasattr(select, "poll"):  # Windows
        return
    have_session_yield()
    poll = select.poll()
    poll.register(os.dup(sys.stdout.fileno()), 0)  # an error is what is left to wait for

    def wait() -> None:
        poll.poll()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
