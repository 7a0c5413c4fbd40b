"""Machine code kept on disk from one run to the next.

A file is named by what it was made from and holds a checksum before its content: a damaged or unwritable cache costs
time, never more. The folder is `$PTXLAB_CACHE`, or `ptxlab` in the user's cache folder; `PTXLAB_CACHE=` (empty) turns
it off. When it grows beyond its limit, what was not used for the longest time goes first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

LIMIT = 512 << 20


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """What `make` returns, or what it returned for this key on this machine before."""
    folder = _folder()
    if folder is None:
        return make()
    path = folder / hashlib.sha256(f"{_surroundings()}\n{key}".encode()).hexdigest()
    found = _read(path)
    if found is None:
        found = make()
        _write(path, found)
    return found


def _folder() -> Path | None:
    given = os.environ.get("PTXLAB_CACHE")
    if given is not None:
        return Path(given) if given else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "ptxlab"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "ptxlab"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "ptxlab"


@cache
def _surroundings() -> str:
    """All that machine code depends on besides its text."""
    import llvmlite
    import llvmlite.binding as llvm

    version = sys.modules["ptxlab"].__version__
    features = llvm.get_host_cpu_features().flatten()
    return f"{version} {llvmlite.__version__} {llvm.get_host_cpu_name()} {features}"


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, code = content[:32], content[32:]
    if hashlib.sha256(code).digest() != checksum:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used
    return code


def _write(path: Path, code: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, path)  # noqa: PTH105
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        _make_room(path.parent)
    except OSError:
        return


def _make_room(folder: Path) -> None:
    """Remove the files that were not used for the longest time, until the rest fits."""
    files = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            found = entry.stat()
            files.append((found.st_mtime, found.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            return
        with contextlib.suppress(OSError):
            Path(path).unlink()
        total -= size
