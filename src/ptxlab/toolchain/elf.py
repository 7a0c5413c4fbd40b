"""The sections of ELF files of 64 bits, which cubins are."""

from __future__ import annotations

import struct
from typing import NamedTuple

MALFORMED = (struct.error, LookupError, OverflowError, ValueError)  # what a damaged file raises


class Section(NamedTuple):
    """Where a section is in the file, and of which type."""

    type: int
    start: int
    size: int


def sections_of(data: bytes) -> dict[str, Section]:
    """The sections of a file, by name; raises one of `MALFORMED` where it is not such a file."""
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + entry * number) for number in range(count)]
    table = headers[names][4]
    found = {}
    for name, type, _, _, start, size in headers:
        end = data.index(b"\0", table + name)
        found[data[table + name : end].decode()] = Section(type, start, size)
    return found
