"""The command line, one file a subcommand.

`main` is the door; `group.py` names the subcommands; `files.py` has the files that arguments name, `findings.py`
shows what was found in them. A subcommand imports what it needs when it runs, so that `ptxlab --help` is fast.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its status: 0 clean, 1 findings, 2 usage, 130 interrupted."""
    try:
        for stream in (sys.stdout, sys.stderr):
            # A terminal that can't show a character gets an escape, not a traceback.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        from ptxlab.cli.group import run

        status = run()
    except KeyboardInterrupt:
        print("ptxlab: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)
