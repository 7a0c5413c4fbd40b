"""Packages that are there only where a user installed them: found, or asked for in a sentence."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy


class MissingPackageError(ImportError):
    """A package that is needed is not installed, or is of a version that is not supported."""


def package(name: str, install: str, purpose: str, least: tuple[int, int] = (0, 0)) -> Any:
    """The package `name`; where it is missing or too old, the error says what to install."""
    try:
        found = import_module(name)
    except ImportError as caught:
        if caught.name is not None and caught.name.split(".")[0] != name.split(".")[0]:
            raise
        raise MissingPackageError(f"{purpose} needs the package `{name}`: pip install {install}") from None
    version = str(getattr(found, "__version__", ""))
    numbers = re.findall(r"\d+", version)[:2]
    if numbers and tuple(map(int, numbers)) < least:
        wanted = ".".join(map(str, least))
        raise MissingPackageError(
            f"{purpose} needs `{name}` {wanted} or later, and {version} is installed: pip install -U {install}"
        )
    return found


def numba_cuda(purpose: str) -> Any:
    """The package `numba.cuda`. It asks NumPy for `row_stack` while it is imported, which NumPy 2.5 does not have."""
    found = package("numba.cuda", '"numba-cuda[cu13]"', purpose)
    if not hasattr(numpy, "row_stack"):
        with patch.object(numpy, "row_stack", lambda *_, **__: None, create=True):
            import_module("numba.cuda.np.arrayobj")
    return found
