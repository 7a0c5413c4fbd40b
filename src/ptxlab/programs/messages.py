"""The bytes of requests and answers between a program and its session; `runtime/session.c` is the other side."""

from __future__ import annotations

import struct

Frames = tuple[tuple[str, int], ...]
"""Where the host is: files and offsets in them, innermost first."""


class MessageReader:
    """The parts of a request, in order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """That many bytes."""
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        """An unsigned number of 64 bits."""
        return int.from_bytes(self.take(8), "little")

    def bytes(self) -> bytes:
        """Bytes after their count."""
        return self.take(self.number())

    def text(self) -> str:
        """Text after its length."""
        return self.bytes().decode("utf-8", "replace")

    def frames(self) -> Frames:
        """Return addresses: files and offsets in them."""
        return tuple((self.text(), self.number()) for _ in range(self.number()))


class Writer:
    """An answer: its status, as CUDA numbers errors, and its parts."""

    def __init__(self, status: int = 0) -> None:
        self._status, self._parts = status, bytearray()

    def number(self, value: int) -> Writer:
        """Add a number."""
        self._parts += struct.pack("<q" if value < 0 else "<Q", value)
        return self

    def text(self, value: str) -> Writer:
        """Add a text, ended by a zero as C wants it."""
        data = value.replace("\0", "").encode("utf-8", "surrogateescape")
        self._parts += struct.pack("<Q", len(data)) + data + b"\0"
        return self

    def raw(self, value: bytes) -> Writer:
        """Add bytes as they are."""
        self._parts += value
        return self

    def finished(self) -> bytes:
        """The whole answer."""
        return struct.pack("<QQ", self._status, len(self._parts)) + bytes(self._parts)
