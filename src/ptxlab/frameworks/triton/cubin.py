"""What a kernel in a cubin needs, as the driver says it: registers, spilled words, threads of a block."""

from __future__ import annotations

import struct

from ptxlab.toolchain.elf import MALFORMED, Section, sections_of

_REGISTERS, _FRAME = 0x2F, 0x11  # attributes of `.nv.info` that have the number of a symbol and a value
_SIZED = 4  # the form of an attribute that has a size
_SYMBOLS = 2  # the type of a section
_REGISTER_FILE = 65536


def needs_of(cubin: bytes, name: str) -> tuple[int, int, int]:
    """Registers a thread, words of its stack frame, and the most threads that a block can have.

    What is not a cubin is a `ValueError`.
    """
    try:
        return _needs_of(cubin, name)
    except MALFORMED as wrong:
        raise ValueError(f"this is not a cubin: {wrong}") from None


def _needs_of(cubin: bytes, name: str) -> tuple[int, int, int]:
    found = {_REGISTERS: 0, _FRAME: 0}
    sections = sections_of(cubin)
    symbols = _symbols(cubin, sections)
    for section, (_, start, size) in sections.items():
        if section != ".nv.info":
            continue
        at = start
        while at + 4 <= start + size:
            form, attribute, length = struct.unpack_from("<BBH", cubin, at)
            at += 4
            if form != _SIZED:
                continue
            if attribute in found and length == 8:
                symbol, value = struct.unpack_from("<II", cubin, at)
                if symbols[symbol] == name:
                    found[attribute] = value
            at += length
    registers = found[_REGISTERS]
    warp = -(-max(registers, 1) * 32 // 256) * 256
    return registers, found[_FRAME] // 4, min(1024, _REGISTER_FILE // warp * 32)


def _symbols(cubin: bytes, sections: dict[str, Section]) -> list[str]:
    """The names of symbols, by number."""
    names = sections[".strtab"].start
    found = []
    for type, start, size in sections.values():
        if type != _SYMBOLS:
            continue
        for at in range(start, start + size, 24):
            (name,) = struct.unpack_from("<I", cubin, at)
            found.append(cubin[names + name : cubin.index(b"\0", names + name)].decode())
    return found
