"""Machine code kept on disk from one run to the next.

A file is named by a digest of all that it was made from, and starts with a checksum over that name and its content: a
damaged, renamed or unwritable cache costs time, never more. The folder is `$PTXLAB_CACHE`, or `ptxlab` in the user's
cache folder; `PTXLAB_CACHE=` (empty) turns it off. Machine code is run as it is found, so a folder that others can
write to is not used. When it grows beyond its limit, what was not used for the longest time goes first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from .modes import mode

LIMIT = 512 << 20
PATIENCE = 60  # seconds to wait for a process that makes the same
SHARE = 16  # processes that may fill a cache at the same time


def cached(key: str, make: Callable[[], bytes], *, takes_long: bool = False) -> bytes:
    """What `make` returns, or what it returned for this key on this machine before.

    Where that `takes_long`, a process waits for another one that is making it.
    """
    folder = cache_folder()
    if folder is None:
        return make()
    path = _path(folder, key)
    found = _read(path)
    if found is None and takes_long:
        with _alone(path):
            found = _read(path) or _make(path, make)
    return _make(path, make) if found is None else found


def kept(key: str) -> bytes | None:
    """What `cached` keeps for this key, if it does."""
    folder = cache_folder()
    return None if folder is None else _read(_path(folder, key))


@contextlib.contextmanager
def claim(key: str) -> Iterator[tuple[int, ...] | None]:
    """Lock what `cached` would keep for this key, which `takes_long`, for a process that inherits these descriptors.

    None if another process makes it; no descriptors where the system has no locks.
    """
    folder = cache_folder()
    with contextlib.ExitStack() as stack:
        held: tuple[int, ...] | None = ()
        try:
            import fcntl

            if folder is not None:
                file = stack.enter_context(_lock_of(_path(folder, key)).open("wb"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = (file.fileno(),)
        except BlockingIOError:
            held = None
        except (ImportError, OSError):
            pass
        yield held


def make_claimed(key: str, make: Callable[[], bytes]) -> None:
    """Make what `cached` is to keep for this key, in the process that has inherited its lock."""
    cached(key, make)
    folder = cache_folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            _lock_of(_path(folder, key)).unlink(missing_ok=True)


def _lock_of(path: Path) -> Path:
    return path.with_name(f".lock-{path.name}")


def _path(folder: Path, key: str) -> Path:
    return folder / hashlib.sha256(f"{_surroundings()}\n{key}".encode()).hexdigest()


def _make(path: Path, make: Callable[[], bytes]) -> bytes:
    found = make()
    if not isinstance(found, Provisional):
        _write(path, found)
    return found


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process after the other make a file, where the system has locks; none waits longer than `PATIENCE`."""
    lock = _lock_of(path)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            file = stack.enter_context(lock.open("wb"))
            stack.callback(lock.unlink, missing_ok=True)
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(0.05)
        yield


class Provisional(bytes):
    """What is made again next time: there was too little time to make it well."""


def cache_folder() -> Path | None:
    """The folder for what can be made again; `None` if it is turned off, cannot be made, or is not ours alone."""
    folder = _named_folder()
    if folder is None:
        return None
    if not folder.is_absolute():  # it would be inside the current folder, which may be a stranger's
        say_once(folder, "is not an absolute path and is not used")
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = _distrust(folder)
    except OSError as failure:
        problem = f"cannot be used ({failure.strerror})"
    if problem is None:
        return folder
    say_once(folder, problem)
    return None


def say_once(folder: Path, problem: str) -> None:
    """Say on stderr why nothing is kept, once in a process."""
    if (folder, problem) not in _said:
        _said.add((folder, problem))
        print(f"ptxlab: the cache folder {folder} {problem}; every process compiles anew", file=sys.stderr)


_said: set[tuple[Path, str]] = set()


def _named_folder() -> Path | None:
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


def _distrust(folder: Path) -> str | None:
    """Why another user could have put machine code into a folder. Windows guards the user's folders by itself."""
    if sys.platform == "win32":
        return None
    found = folder.stat()
    if _is_others(found) or _is_others(folder.lstat()):
        return "belongs to another user and is not used"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users and is not used (`chmod go-w` and empty it)"
    return None


def _is_others(found: os.stat_result) -> bool:
    """Whether a file or folder belongs to another user, other than root."""
    return sys.platform != "win32" and found.st_uid not in (0, os.geteuid())


@cache
def _surroundings() -> str:
    """All that machine code depends on besides its text: LLVM, the processor, and how LLVM is used."""
    import llvmlite
    import llvmlite.binding as llvm

    version = sys.modules["ptxlab"].__version__
    features = llvm.get_host_cpu_features().flatten()
    compiler = f"{sys.implementation.cache_tag} {llvmlite.__version__} {llvm.llvm_version_info} {sources(__package__)}"
    return f"{version} {compiler} {llvm.get_host_cpu_name()} {features} {mode()}"


def sources(*packages: str) -> str:
    """A digest of the source of packages, with what is inside them.

    It is kept, by what the system says of each file: to read them all takes as long as many a launch. Where a file was
    edited after this process loaded ptxlab, the digest is that of no other process: what runs here may be what was
    there before.
    """
    folder, stamps = cache_folder(), _stamps(packages)
    if folder is None or stamps is None:
        return _digest(packages)
    path = folder / hashlib.sha256(f"sources\n{stamps}".encode()).hexdigest()
    return (_read(path) or _make(path, lambda: _digest(packages).encode())).decode()


def _stamps(packages: Sequence[str]) -> str | None:
    """What changes with the source of packages: files, times, sizes; None if these do not say enough."""
    loaded: float = sys.modules["ptxlab"]._loaded_at
    found = []
    pending = [folder for package in packages for folder in import_module(package).__path__]
    while pending:
        folder = pending.pop()
        if not os.path.isdir(folder):  # noqa: PTH112 - in an archive
            return None
        for entry in os.scandir(folder):
            if entry.name.endswith(".py"):
                known = entry.stat()
                if known.st_ctime > loaded:
                    return None
                found.append(f"{entry.path} {known.st_ino} {known.st_size} {known.st_mtime_ns} {known.st_ctime_ns}")
            elif entry.name != "__pycache__" and entry.is_dir():
                pending.append(entry.path)
    return "\n".join(sorted(found))


def _digest(packages: Sequence[str]) -> str:
    from importlib.resources import files

    loaded: float = sys.modules["ptxlab"]._loaded_at
    digest = hashlib.sha256()
    for package in packages:
        for name, file in _python_files(files(package), package):
            content = file.read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
            if isinstance(file, Path) and file.stat().st_ctime > loaded:
                digest.update(os.urandom(32))
    return digest.hexdigest()


def _python_files(folder: Any, name: str) -> Iterator[tuple[str, Any]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: str(entry.name)):
        if entry.name.endswith(".py"):
            yield f"{name}.{entry.name}", entry
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _python_files(entry, f"{name}.{entry.name}")


def _checksum(path: Path, code: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + code).digest()


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            if _is_others(os.fstat(file.fileno())):  # put there when the folder was not ours alone
                return None
            content = file.read()
    except OSError:
        return None
    checksum, code = content[:32], content[32:]
    if _checksum(path, code) != checksum:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used
    return code


def _write(path: Path, code: bytes) -> None:
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_checksum(path, code) + code)
            os.replace(name, path)  # noqa: PTH105
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        _keep_within_limit(path.parent, len(code))
    except OSError as failure:
        say_once(path.parent, f"cannot be written ({failure.strerror})")


def _keep_within_limit(folder: Path, written: int) -> None:
    """Note that `written` bytes are new in a folder; read how much is there now and then, not at every file."""
    left = _left.get(folder, 0) - written
    _left[folder] = left if left >= 0 else _remove_oldest(folder) // SHARE


_left: dict[Path, int] = {}  # bytes that this process may write to a folder before it reads how much is there


def _remove_oldest(folder: Path) -> int:
    """Remove the files that were not used for longest where there is too much; the bytes that are free then."""
    files = []
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            found = entry.stat()
            files.append((found.st_mtime, found.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    wanted = LIMIT if total <= LIMIT else LIMIT - LIMIT // SHARE
    for _, size, path in sorted(files):
        if total <= wanted:
            break
        with contextlib.suppress(OSError):
            Path(path).unlink()
        total -= size
    return LIMIT - total
