"""Files: from a path to a program, with an explanation for whatever is not a PTX file."""

from __future__ import annotations

import os
import select
import stat
from typing import BinaryIO, NoReturn

from ptxlab.ir import Module
from ptxlab.report import PtxError, error
from ptxlab.syntax.parser import parse

_MAGIC = {
    b"\x7fELF": "an ELF file, perhaps a cubin",
    b"\x50\xed\x55\xba": "a fat binary",
    b"\xba\x55\xed\x50": "a fat binary",
    b"BC\xc0\xde": "LLVM bitcode",
    b"\x1f\x8b": "compressed by gzip",
    b"\xfd7zXZ\x00": "compressed by xz",
    b"PK\x03\x04": "a zip archive",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
LARGEST = 256 << 20  # bytes that are read of a file; a PTX file of hundreds of kernels has some ten million
PATIENCE = 10  # seconds that a pipe may be silent
_PART = 1 << 20
# Of files of which nothing can be said, not even that their PTX is wrong.
UNREADABLE = frozenset(
    "missing-file is-a-directory unreadable-file oversized-file silent-pipe binary-file utf16-file".split()
)


def load(path: str | os.PathLike[str]) -> Module:
    """Read a PTX file; raises `PtxError` with every syntax error, or with why the file cannot be read."""
    return parse(read_text(path), os.fspath(path))


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file that looks like PTX; raises `PtxError` for one that does not."""
    name = os.fspath(path)
    try:
        data = _read(path, name)
    except FileNotFoundError:
        _refuse_missing(name)
    except IsADirectoryError:
        _refuse("is-a-directory", f"`{name}` is a directory", "name a `.ptx` file inside of it")
    except (OSError, ValueError) as problem:
        if "\n" in name:
            _refuse_missing(name)
        reason = getattr(problem, "strerror", None) or str(problem)
        _refuse("unreadable-file", f"`{name}` cannot be read: {reason.lower()}", "check the path and its permissions")
    return decode(data, name)


def _read(path: str | os.PathLike[str], name: str) -> bytes:
    # A pipe that nothing writes to would keep an ordinary `open` for ever.
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(file, "rb", buffering=0) as opened:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise IsADirectoryError
        if stat.S_ISFIFO(os.fstat(file).st_mode):
            if not select.select([opened], [], [], PATIENCE)[0]:
                _refuse("silent-pipe", f"`{name}` is a pipe that nothing writes to", "start what writes to it first")
            os.set_blocking(file, True)
        return read_bytes(opened, name)


def read_bytes(opened: BinaryIO, name: str) -> bytes:
    """What a file or a stream has; raises `PtxError` as soon as it is certain that this is not PTX."""
    parts: list[bytes] = []
    size = 0
    while part := opened.read(_PART):
        parts.append(part)
        size += len(part)
        if b"\0" in part:
            break  # not text, whatever follows
        if size > LARGEST:
            _refuse("oversized-file", f"`{name}` has more than {LARGEST >> 20} MB", "name a PTX file, or divide it")
    return b"".join(parts)


def decode(data: bytes, name: str) -> str:
    """The text of the bytes of a file; raises `PtxError` where they are not text."""
    if data.startswith(_UTF16) or (data[1:2] == b"\0" and data[:1] in b"./\n\r \t"):
        _refuse("utf16-file", f"`{name}` is encoded in UTF-16", "save it as ASCII: `iconv -f UTF-16 -t ASCII`")
    if b"\0" in data:
        if data.startswith((b".version", b"//")) and b"\0" not in data.rstrip(b"\0"):
            message = f"`{name}` ends with a NUL character, as NVRTC and Warp write it: ptxas refuses that"
            _refuse("binary-file", message, f"remove it: `tr -d '\\0' < {name} > without.ptx`")
        kind = next((words for magic, words in _MAGIC.items() if data.startswith(magic)), "a binary file")
        _refuse("binary-file", f"`{name}` is {kind}, not PTX text", "name a file that `nvcc -ptx` wrote")
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # Any single byte is a character in Latin-1; the reader then points at the first that is not ASCII.
        return data.decode("latin-1")


def _refuse_missing(name: str) -> NoReturn:
    first, *more = name.strip().split("\n")
    if more:
        _refuse("missing-file", f"there is no file `{first:.60} …`", "`ptxlab.load` takes a path, `ptxlab.parse` text")
    _refuse("missing-file", f"there is no file `{name}`", "check the path")


def _refuse(code: str, message: str, help: str) -> NoReturn:
    raise PtxError([error(code, message, None, helps=(help,))])
