"""Commands of ptxlab in processes of their own, with limits on time, memory and what is kept of their output."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from ptxlab.native.children import start_python

MOST = 1 << 20  # bytes of output that are kept


@dataclass(frozen=True)
class CommandOutcome:
    """What a command printed, and how it ended: its exit status, or why it was ended."""

    text: str
    status: int | str


def run_limited(arguments: list[str], folder: Path, seconds: float, memory: float) -> CommandOutcome:
    """Run `ptxlab` with arguments in a folder, for so many seconds, with so many GB of memory."""
    options = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": folder}
    process = start_python(__name__, str(int(memory * (1 << 30))), *arguments, **options)
    assert process.stdout is not None
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        with process:
            kept = process.stdout.read(MOST)
            is_long = bool(process.stdout.read(1))
            if is_long:
                process.kill()
    finally:
        timer.cancel()
    status: int | str = process.returncode
    if is_late.is_set():
        status = f"stopped after {seconds:g} seconds"
    elif is_long:
        status = f"stopped after {MOST:,} bytes of output"
    elif process.returncode < 0:
        status = f"ended by signal {-process.returncode}"
    return CommandOutcome(kept.decode("utf-8", "replace"), status)


def serve() -> None:
    """In the new process: limit its memory, and be the command line."""
    memory = int(sys.argv.pop(1))
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limits
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    from ptxlab.cli import main

    main()
