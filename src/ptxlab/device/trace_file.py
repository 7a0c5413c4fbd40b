"""The file of a recorded launch: a header that is kept up to date while recording, then compressed chunks.

    fixed    "ptxtrace", u32 version, u32 how it ended, u64 valid bytes of the file, u64 steps, u64 bytes and u32 CRC of
             the description, u32 0
    text     the description: JSON, compressed by zlib
    chunk    u32 kind, u32 CRC, u64 bytes, u64 bytes as they are compressed, or the same if they are not; then these

All numbers are little-endian. What comes after the valid bytes was being written when the recording stopped.
"""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

MAGIC, VERSION = b"ptxtrace", 2
_FIXED = struct.Struct("<8sIIQQQII")
_CHUNK = struct.Struct("<IIQQ")
MEMORY, ENTRIES, PAYLOAD, EVENTS, DATA, REMARK = range(1, 7)

_SAMPLE = 4096  # bytes

# How a recording ended.
UNFINISHED, COMPLETE, LIMITED, INTERRUPTED, FAILED, TIMED_OUT, NO_SPACE = range(7)
ENDS = {
    UNFINISHED: "the process that recorded it ended before the kernel did",
    COMPLETE: "the kernel ended",
    LIMITED: "the limit of the recording was reached",
    INTERRUPTED: "the launch was interrupted",
    FAILED: "the kernel was stopped by a fault",
    TIMED_OUT: "the kernel was stopped by its time limit",
    NO_SPACE: "the file could not be written any further",
}


class TraceError(Exception):
    """A file that cannot be read as a recorded launch."""


class TraceWriter:
    """A recording while it is written: at any time, what was written so far can be read."""

    def __init__(self, path: Path, description: dict[str, Any]) -> None:
        self.path = path
        self.end = UNFINISHED
        self.steps = 0
        packed = zlib.compress(json.dumps(description).encode(), 6)
        self._described = len(packed), zlib.crc32(packed)
        self._valid = self._position = _FIXED.size + len(packed)
        self._file: BinaryIO = path.open("wb")
        try:
            self._file.write(self._fixed() + packed)
            self._file.flush()
        except OSError:
            self._file.close()
            raise

    def _fixed(self) -> bytes:
        return _FIXED.pack(MAGIC, VERSION, self.end, self._valid, self.steps, *self._described, 0)

    def write(self, kind: int, data: bytes | memoryview) -> None:
        """Add a chunk; it counts from the next `note` on."""
        packed = zlib.compress(data, 1) if _is_worth_it(data) else data
        self._file.write(_CHUNK.pack(kind, zlib.crc32(packed), len(data), len(packed)))
        self._file.write(packed)
        self._position += _CHUNK.size + len(packed)

    def note(self, steps: int, end: int = UNFINISHED) -> None:
        """Declare what has been written valid."""
        self._file.flush()
        self._valid, self.steps, self.end = self._position, steps, end
        self._rewrite()

    def give_up(self) -> None:
        """Keep what is valid: the file cannot be written any further."""
        self.end = NO_SPACE
        with contextlib.suppress(OSError):
            self._file.close()  # which tries to write what is left, and fails
        with self.path.open("r+b") as file:
            file.truncate(self._valid)
            file.write(self._fixed())

    def _rewrite(self) -> None:
        self._file.seek(0)
        self._file.write(self._fixed())
        self._file.flush()
        self._file.seek(self._valid)

    def close(self) -> None:
        self._file.close()


def _is_worth_it(data: bytes | memoryview) -> bool:
    """Whether bytes become many fewer by compression, as those at their start do."""
    sample = data[:_SAMPLE]
    return len(zlib.compress(sample, 1)) < 0.8 * len(sample)


class TraceFile:
    """The description and the chunks of a recorded launch."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self.path.open("rb") as file:
            content = file.read()
        if len(content) < len(MAGIC) or content[: len(MAGIC)] != MAGIC:
            raise TraceError(f"`{path}` is not a recorded launch of ptxlab")
        if len(content) < _FIXED.size:
            raise TraceError(f"`{path}` is truncated: its header is not whole")
        _, version, end, valid, steps, size, crc, _ = _FIXED.unpack_from(content)
        self.end: int = end
        self.steps: int = steps
        if version != VERSION:
            raise TraceError(f"`{path}` has version {version} of the format; this ptxlab reads version {VERSION}")
        if len(content) < valid:
            raise TraceError(f"`{path}` is truncated: it has {len(content):,} of {valid:,} bytes")
        text = content[_FIXED.size : _FIXED.size + size]
        if zlib.crc32(text) != crc or self.end not in ENDS:
            raise TraceError(f"`{path}` is damaged: its header does not have the right checksum")
        self.description: dict[str, Any] = json.loads(zlib.decompress(text))
        self._chunks = memoryview(content)[_FIXED.size + size : valid]

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """The kind and the bytes of each chunk, checked; several at a time are decompressed."""
        with ThreadPoolExecutor() as pool:
            yield from pool.map(_unpacked, self._packed())

    def _packed(self) -> Iterator[tuple[str, int, int, int, memoryview]]:
        """What each chunk is called in a message, its kind, checksum and size, and its bytes in the file."""
        at, number = 0, 0
        while at < len(self._chunks):
            number += 1
            problem = f"`{self.path}` is damaged: chunk {number} "
            if at + _CHUNK.size > len(self._chunks):
                raise TraceError(f"{problem}is not whole")
            kind, crc, size, packed = _CHUNK.unpack_from(self._chunks, at)
            at += _CHUNK.size
            data = self._chunks[at : at + packed]
            if len(data) != packed:
                raise TraceError(f"{problem}does not have the right checksum")
            yield problem, kind, crc, size, data
            at += packed


def _unpacked(given: tuple[str, int, int, int, memoryview]) -> tuple[int, bytes]:
    """The kind and the bytes of a chunk, checked."""
    problem, kind, crc, size, data = given
    if zlib.crc32(data) != crc:
        raise TraceError(f"{problem}does not have the right checksum")
    found = bytes(data) if size == len(data) else zlib.decompress(data)
    if len(found) != size:
        raise TraceError(f"{problem}has {len(found):,} bytes instead of {size:,}")
    return kind, found
