"""NVRTC through ctypes."""

from __future__ import annotations

import ctypes
from pathlib import Path


def library_version(path: Path) -> str:
    """The version the library states."""
    library = ctypes.CDLL(str(path))
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"
