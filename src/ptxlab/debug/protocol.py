"""Messages of the Debug Adapter Protocol: JSON with a header that says its length."""

from __future__ import annotations

import json
from typing import BinaryIO

LONGEST = 64 << 20


class ProtocolError(Exception):
    """What came is not a message of the protocol."""


def read_message(stream: BinaryIO) -> dict[str, object] | None:
    """The next message; None at the end of the stream."""
    length: int | None = None
    while True:
        line = stream.readline(4096)
        if not line:
            return None
        header = line.strip()
        if not header:
            if length is None:
                continue
            break
        name, _, value = header.partition(b":")
        if name.strip().lower() == b"content-length":
            if not value.strip().isdigit() or int(value) > LONGEST:
                raise ProtocolError(f"a message has the length {value.strip()!r}")
            length = int(value)
        elif name.strip().lower() != b"content-type":  # such as a page in a browser sends, which is not a client
            raise ProtocolError(f"a message has the header {header[:40]!r}")
    body = stream.read(length)
    if len(body) < length:
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise ProtocolError("a message is not JSON") from None
    if not isinstance(message, dict):
        raise ProtocolError("a message is not an object")
    return message


def write_message(stream: BinaryIO, message: dict[str, object]) -> None:
    """Send a message."""
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()
