"""How native code is made in this process, as environment variables say; the cache keeps the kinds apart.

`PTXLAB_NATIVE_CHECKED=1` checks every access through a pointer, see `bounds`; `PTXLAB_NATIVE_DEBUG=1` adds the lines of
the Python source to the machine code, see `debug`.
"""

from __future__ import annotations

import os

CHECKED = os.environ.get("PTXLAB_NATIVE_CHECKED", "") not in ("", "0")
DEBUG = os.environ.get("PTXLAB_NATIVE_DEBUG", "") not in ("", "0")


def mode() -> str:
    """A word for the key of what is cached."""
    return f"checked={int(CHECKED)} debug={int(DEBUG)}"
