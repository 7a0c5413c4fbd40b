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
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxlab.device.limits import available

MAGIC, VERSION = b"ptxtrace", 2
_FIXED = struct.Struct("<8sIIQQQII")
_CHUNK = struct.Struct("<IIQQ")
MEMORY, ENTRIES, PAYLOAD, EVENTS, DATA, REMARK = range(1, 7)

Bytes = npt.NDArray[np.uint8]
_SAMPLE = 4096  # bytes
_LONGEST = 64 << 20  # bytes of a description
_MOST_COMPRESSED = 1032  # bytes become one by deflate, at most

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

    def __init__(self, path: Path, description: dict[str, object]) -> None:
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
        except OSError as problem:
            with contextlib.suppress(OSError):
                self._file.close()
            raise OSError(problem.errno, problem.strerror, str(path)) from None

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
        self.description: dict[str, Any] = self._described(text)
        self._chunks = memoryview(content)[_FIXED.size + size : valid]
        self.contents = self._contents()
        """What the chunks of each kind hold: it is being decompressed, and checked when it is asked for."""

    def _described(self, packed: bytes) -> Any:
        try:
            text = _decompressed(packed, _LONGEST)
            return None if len(text) > _LONGEST else json.loads(text)
        except (zlib.error, ValueError, RecursionError):
            raise TraceError(f"`{self.path}` is damaged: its description cannot be read") from None

    def _contents(self) -> dict[int, Content]:
        chunks = list(self._packed())
        total, most = sum(chunk.size for chunk in chunks), available() // 4
        if total > most:
            raise TraceError(f"`{self.path}` takes {total:,} bytes of memory; {most:,} are the most on this machine")
        found: dict[int, Content] = {}
        pool = ThreadPoolExecutor()
        for kind in sorted({chunk.kind for chunk in chunks}):
            own = [chunk for chunk in chunks if chunk.kind == kind]
            ends = list(accumulate(chunk.size for chunk in own))
            data = np.empty(ends[-1], np.uint8)
            parts = [data[end - chunk.size : end] for chunk, end in zip(own, ends, strict=True)]
            found[kind] = Content(data, parts, [pool.submit(_unpack, *one) for one in zip(own, parts, strict=True)])
        pool.shutdown(wait=False)
        return found

    def _packed(self) -> Iterator[_Chunk]:
        at, number = 0, 0
        while at < len(self._chunks):
            number += 1
            problem = f"`{self.path}` is damaged: chunk {number} "
            if at + _CHUNK.size > len(self._chunks):
                raise TraceError(f"{problem}is not whole")
            kind, crc, size, packed = _CHUNK.unpack_from(self._chunks, at)
            at += _CHUNK.size
            data = self._chunks[at : at + packed]
            if len(data) != packed or size > _MOST_COMPRESSED * packed:
                raise TraceError(f"{problem}does not have the right checksum")
            yield _Chunk(problem, kind, crc, size, data)
            at += packed


class _Chunk(NamedTuple):
    """A chunk as it is in the file."""

    problem: str
    """The start of a message about it."""
    kind: int
    crc: int
    size: int
    data: memoryview


class Content:
    """The bytes of all chunks of a kind."""

    def __init__(self, data: Bytes, parts: list[Bytes], pending: list[Future[None]]) -> None:
        self._data, self._parts, self._pending = data, parts, pending

    @property
    def joined(self) -> Bytes:
        """All bytes, one after the other."""
        self._wait()
        return self._data

    @property
    def parts(self) -> list[Bytes]:
        """The bytes of each chunk."""
        self._wait()
        return self._parts

    def _wait(self) -> None:
        for one in self._pending:
            one.result()
        self._pending.clear()


def _unpack(chunk: _Chunk, target: Bytes) -> None:
    """Write the bytes of a chunk, checked, to memory."""
    if zlib.crc32(chunk.data) != chunk.crc:
        raise TraceError(f"{chunk.problem}does not have the right checksum")
    try:
        found = chunk.data if chunk.size == len(chunk.data) else _decompressed(chunk.data, chunk.size)
    except zlib.error:
        raise TraceError(f"{chunk.problem}cannot be decompressed") from None
    if len(found) != chunk.size:
        raise TraceError(f"{chunk.problem}does not have {chunk.size:,} bytes")
    target[:] = np.frombuffer(found, np.uint8)


def _decompressed(data: bytes | memoryview, size: int) -> bytes:
    """What bytes are compressed from, if it is no larger than `size`; otherwise one byte more."""
    return zlib.decompressobj().decompress(data, size + 1)
