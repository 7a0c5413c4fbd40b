"""The PTX in a fatbinary, as nvcc puts it into a program.

A header, then entries: PTX or machine code, each for one architecture, often compressed by Zstandard or, before CUDA
12.8, by LZ4.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Iterator

MAGIC = 0xBA55ED50
_PTX = 1
_LZ4, _ZSTANDARD = 0x2000, 0x8000


class FatbinaryError(Exception):
    """Why the PTX of a fatbinary can't be read."""


def ptx_of(image: bytes) -> list[str]:
    """The PTX texts of an image: a fatbinary, or PTX itself."""
    if image[:4] == b"\x7fELF":
        raise FatbinaryError("the module is machine code, without PTX")
    if int.from_bytes(image[:4], "little") != MAGIC:
        return [image.rstrip(b"\0").decode("utf-8", "replace")]
    return [text.rstrip(b"\0").decode("utf-8", "replace") for text in _entries(image)]


def _entries(image: bytes) -> Iterator[bytes]:
    """The PTX of each entry that has some."""
    _, _, header, size = struct.unpack_from("<IHHQ", image)
    at, end = header, min(header + size, len(image))
    while at + 64 <= end:
        kind, _, head, stored = struct.unpack_from("<HHIQ", image, at)
        (compressed,) = struct.unpack_from("<I", image, at + 16)
        flags, _, plain = struct.unpack_from("<QQQ", image, at + 40)
        if head < 64 or at + head + stored > len(image):
            raise FatbinaryError("the fatbinary is damaged")
        data = image[at + head : at + head + stored]
        if kind == _PTX and flags & _LZ4:
            yield lz4(data[:compressed], plain)
        elif kind == _PTX and flags & _ZSTANDARD:
            yield zstandard(data[:compressed], plain)
        elif kind == _PTX:
            yield data
        at += head + stored


def lz4(data: bytes, size: int) -> bytes:
    """The bytes that a block of LZ4 holds, at most `size`."""
    out = bytearray()
    at = 0
    try:
        while at < len(data) and len(out) < size:
            token = data[at]
            at, count = _length(data, at + 1, token >> 4)
            out += data[at : at + count]
            at += count
            if at >= len(data) or len(out) >= size:
                break
            distance = int.from_bytes(data[at : at + 2], "little")
            at, count = _length(data, at + 2, token & 15)
            if not 0 < distance <= len(out):
                raise FatbinaryError("the fatbinary is damaged")
            start = len(out) - distance
            for number in range(count + 4):
                out.append(out[start + number])
    except IndexError:
        raise FatbinaryError("the fatbinary is damaged") from None
    return bytes(out[:size])


def _length(data: bytes, at: int, count: int) -> tuple[int, int]:
    if count == 15:
        while True:
            count += data[at]
            at += 1
            if data[at - 1] != 255:
                break
    return at, count


def zstandard(data: bytes, size: int) -> bytes:
    """What Zstandard has compressed, by the system's library."""
    name = ctypes.util.find_library("zstd")
    if name is None:
        raise FatbinaryError("its PTX is compressed by Zstandard, and there is no `libzstd` on this machine")
    library = ctypes.CDLL(name)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    if size > 1 << 32:
        raise FatbinaryError("the fatbinary is damaged")
    out = ctypes.create_string_buffer(max(size, 1))
    found = library.ZSTD_decompress(out, size, data, len(data))
    if found > size:
        raise FatbinaryError("the fatbinary is damaged")
    return out.raw[:found]
