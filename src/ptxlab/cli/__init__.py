"""The command line, one file a subcommand.

`main` is the door; `group.py` names the subcommands; `files.py` has the files that arguments name, `findings.py`
shows what was found in them. A subcommand imports what it needs when it runs, so that `ptxlab --help` is fast; and what
is imported here comes with Python itself, since Ctrl-C is not answered before `main` runs.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command line and exit with its status: 0 clean, 1 findings, 2 usage, 130 interrupted, 141 unread."""
    gc.set_threshold(100_000, 20, 100)  # what is imported stays: to look for garbage in it takes a tenth of the time
    try:
        _open_streams()
        from ptxlab.cli.group import run

        status = run()
    except KeyboardInterrupt:
        print("ptxlab: interrupted", file=sys.stderr)
        status = 130
    except OSError as problem:  # what one can do about a file is said where it is used
        text = problem.strerror or str(problem)
        print(f"ptxlab: {_subject(problem)}{text[:1].lower()}{text[1:]}", file=sys.stderr)
        status = 2
    except MemoryError:
        print("ptxlab: this machine has too little memory for it", file=sys.stderr)
        status = 2
    gc.freeze()  # what is left goes with the process
    sys.exit(status)


def _subject(problem: OSError) -> str:
    """What a problem is with: a file, the standard output where that is full or gone, or nothing that has a name."""
    import errno

    if problem.filename is not None:
        return f"`{os.fsdecode(problem.filename)}` can't be used: "
    is_output = problem.errno in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EBADF, errno.EDQUOT)
    return "the output can't be used: " if is_output else ""


def _open_streams() -> None:
    """Make the standard streams fit for use: one that was closed is empty, or takes everything and keeps nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character gets an escape, not a traceback.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
