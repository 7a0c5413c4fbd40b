"""What files that nvcc builds hold: cubins and PTX, in objects, archives, libraries, executables and fat binaries.

A fat binary is a header and entries, one for each target, which may be compressed; files of the host have it among
their data. A cubin that was built with `-lineinfo` has the PTX it was assembled from in a section.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Literal

from ptxlab.report import PtxError, error
from ptxlab.toolchain.elf import MALFORMED, sections_of

_FAT_BINARY = b"\x50\xed\x55\xba"
_ELF = b"\x7fELF"
_MAGICS = (_ELF, _FAT_BINARY, b"!<arch>\n", b"MZ")
_CUDA_MACHINE = 190  # e_machine of a cubin
_HEADER = struct.Struct("<4sHHQ")  # magic, version, its own bytes, those of the entries
_ENTRY = struct.Struct("<HHIQI8xI8xI12xQ")  # kind, version, bytes: own, of the data; compressed, target, flags, in full
_KINDS: dict[int, Literal["ptx", "cubin"]] = {1: "ptx", 2: "cubin"}
_LZ4, _ZSTD = 0x2000, 0x8000
_LARGEST = 1 << 30  # bytes of a program
_PTX_SECTION = ".nv_debug_ptx_txt"


@dataclass(frozen=True)
class EmbeddedProgram:
    """One program in a file: PTX, or a cubin."""

    kind: Literal["ptx", "cubin"]
    packed: bytes
    compression: int = 0
    size: int = 0  # in full, where it is compressed

    @cached_property
    def data(self) -> bytes:
        """The bytes of the program; raises `PtxError` where they are damaged."""
        try:
            if self.size > _LARGEST:
                raise ValueError(f"it would have {self.size:,} bytes")
            if self.compression & _ZSTD:
                return _decompress_zstd(self.packed, self.size)
            return _decompress_lz4(self.packed, self.size) if self.compression & _LZ4 else self.packed
        except (ValueError, IndexError) as wrong:
            raise PtxError(
                [error("damaged-object", f"a part of the file can't be decompressed: {wrong}", None)]
            ) from None

    @property
    def text(self) -> str | None:
        """PTX as text: its own, or what a cubin was assembled from; None where that is not kept."""
        kept = [self.data]
        if self.kind == "cubin":
            kept = [content for name, content in self.sections.items() if name.startswith(_PTX_SECTION)]
        data = kept[0] if len(kept) == 1 else None  # one that was linked has a text of each part
        # A cubin separates lines by zeros.
        return None if data is None else data.rstrip(b"\0").replace(b"\0", b"\n").decode("utf-8", "replace") + "\n"

    @cached_property
    def sections(self) -> dict[str, bytes]:
        """The sections of a cubin, by name; none of a damaged one."""
        with suppress(*MALFORMED):
            found = sections_of(self.data).items()
            return {name: self.data[section.start : section.start + section.size] for name, section in found}
        return {}

    @property
    def functions(self) -> list[str]:
        """The functions that a cubin has code of, as the compiler names them."""
        return [name.removeprefix(".text.") for name in self.sections if name.startswith(".text.")]


def is_object(start: bytes) -> bool:
    """Whether a file that starts like this may hold parts."""
    return start.startswith(_MAGICS)


def parts_of(data: bytes) -> list[EmbeddedProgram]:
    """The programs in a file, in its order, each once."""
    if data.startswith(_ELF) and len(data) > 20 and struct.unpack_from("<H", data, 18)[0] == _CUDA_MACHINE:
        return [EmbeddedProgram("cubin", data)]
    found: dict[tuple[str, bytes], EmbeddedProgram] = {}
    at = data.find(_FAT_BINARY)
    while at >= 0:
        for part in _entries(data, at):
            found.setdefault((part.kind, part.packed), part)
        at = data.find(_FAT_BINARY, at + 1)
    return list(found.values())


def _entries(data: bytes, at: int) -> Iterator[EmbeddedProgram]:
    """The entries of the fat binary at an offset; none where it only looks like one."""
    if at + _HEADER.size > len(data):
        return
    _, version, own, size = _HEADER.unpack_from(data, at)
    end = at + own + size
    if version != 1 or own != _HEADER.size or end > len(data):
        return
    at += own
    while at + _ENTRY.size <= end:
        kind, _, own, length, compressed, _, flags, full = _ENTRY.unpack_from(data, at)
        if own < _ENTRY.size or at + own + length > end:
            return
        compression = flags & (_LZ4 | _ZSTD)
        packed = data[at + own : at + own + (compressed if compression else length)]
        if kind in _KINDS:
            yield EmbeddedProgram(_KINDS[kind], packed, compression, full)
        at += own + length


def _decompress_lz4(data: bytes, size: int) -> bytes:
    """A block of LZ4: literals, and copies of what was before."""
    made, at = bytearray(), 0

    def length(nibble: int) -> int:
        nonlocal at
        total, more = nibble, 255 if nibble == 15 else 0
        while more == 255:
            more = data[at]
            total, at = total + more, at + 1
        return total

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        made += data[at : at + literals]
        at += literals
        if at >= len(data):
            break
        distance = data[at] | data[at + 1] << 8
        at += 2
        count = length(token & 15) + 4
        if not 0 < distance <= len(made) or len(made) + count > size:
            raise ValueError("it is not as LZ4 writes it")
        start = len(made) - distance
        while count > 0:  # a copy may overlap what it makes
            step = bytes(made[start : start + min(count, distance)])
            made += step
            start, count = start + len(step), count - len(step)
    if len(made) != size:
        raise ValueError(f"it has {len(made):,} bytes instead of {size:,}")
    return bytes(made)


def _decompress_zstd(data: bytes, size: int) -> bytes:
    """By the library of the system, by Python's own module, which 3.14 has, or by the package `zstandard`."""
    for name in ("libzstd.so.1", "libzstd.1.dylib"):
        with suppress(OSError):
            library, made = ctypes.CDLL(name), ctypes.create_string_buffer(size)
            library.ZSTD_decompress.restype = ctypes.c_size_t
            library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t] * 2
            count = library.ZSTD_decompress(made, size, data, len(data))
            return _checked(made.raw if count == size else b"", size)
    for name in ("compression.zstd", "zstandard"):
        with suppress(ImportError):
            module = import_module(name)
            try:
                return _checked(bytes(module.decompress(data)), size)
            except module.ZstdError as wrong:
                raise ValueError(str(wrong)) from None
    raise PtxError(
        [error("missing-tool", "the file is compressed by zstd, and nothing here can decompress that", None,
               helps=["run `pip install zstandard`"])]
    )  # fmt: skip


def _checked(made: bytes, size: int) -> bytes:
    if len(made) != size:
        raise ValueError("it is not as zstd writes it")
    return made
