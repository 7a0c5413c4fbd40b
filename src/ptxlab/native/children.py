"""Processes of Python beside this one, which import what this one would import and end when it does.

`python -c` and `PYTHONPATH` would put the current folder, which may be a stranger's, before Python's own modules.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from typing import Any

SERVE = "from {} import serve; serve()"


def start_python(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that calls `serve()` of a module of ptxlab; its output is a pipe to this one."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from ptxlab.native.children import end_with_parent; end_with_parent()\n{SERVE.format(module)}"
    )
    command = [sys.executable, "-I", "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **options)


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
