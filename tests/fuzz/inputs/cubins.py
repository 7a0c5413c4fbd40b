"""Cubins: what reads the numbers of a kernel from one, and the listing of a disassembler."""

import contextlib
import random
import struct

from ptxlab.frameworks.triton.cubin import needs_of
from ptxlab.report import PtxError
from ptxlab.toolchain.disassembly import disassemble, read_listing
from ptxlab.toolchain.objects import parts_of
from ptxlab.toolchain.tools import can_find
from tests.fuzz.inputs.mutation import change_bytes

LISTING = b"""\
\t.section\t.text.k,"ax",@progbits
k:
.text.k:
\t//## File "k.ptx", line 5
        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */
                                                            /* 0x000fe20000000800 */
.L_x_0:
        /*0010*/                   BRA `(.L_x_0);           /* 0xfffffffc00fc7947 */
                                                            /* 0x000fc0000383ffff */
"""


def elf() -> bytes:
    """A cubin with one kernel: names, symbols and `.nv.info`, as `needs_of` reads them."""
    names = b"\0.strtab\0.symtab\0.nv.info\0k\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", names.index(b"k\0"), 18, 0, 0, 0, 64)
    info = struct.pack("<BBHII", 4, 0x2F, 8, 1, 40) + struct.pack("<BBHII", 4, 0x11, 8, 1, 16)
    parts, at, headers = b"", 64, struct.pack("<IIQQQQIIQQ", *[0] * 10)
    for name, type, data in ((b".strtab", 3, names), (b".symtab", 2, symbols), (b".nv.info", 0x70000000, info)):
        headers += struct.pack("<IIQQQQIIQQ", names.index(name), type, 0, 0, at, len(data), 1, 0, 1, 0)
        parts, at = parts + data, at + len(data)
    start = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at, 0, 64, 0, 0, 64, 4, 1)
    return start + parts + headers


def fat_binary(cubin: bytes) -> bytes:
    """A cubin as it is, and PTX that LZ4 has compressed, in a fat binary."""
    parts = ((2, cubin, 0, 0), (1, b"\x40.tar" + b"\x04\x00\x10!", 0x2000, 9))
    entries = [
        struct.pack("<HHIQI8xI8xI12xQ", kind, 0x101, 64, len(data), len(data), 90, flags, size) + data
        for kind, data, flags, size in parts
    ]
    return struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, sum(map(len, entries))) + b"".join(entries)


def make(choose: random.Random) -> bytes:
    data = choose.choice([elf(), LISTING, fat_binary(elf())])
    for _ in range(choose.choice([1, 1, 2, 5])):
        data = change_bytes(data, choose)
    return data


def examine(data: bytes) -> None:
    read_listing(data.decode("utf-8", "replace"))
    with contextlib.suppress(ValueError):
        needs_of(data, "k")
    with contextlib.suppress(PtxError):
        for part in parts_of(data):
            read = [part.text] if part.kind == "ptx" else part.functions
            assert all(isinstance(text, str) for text in read)
    if data[:4] == b"\x7fELF" and can_find("nvdisasm"):
        with contextlib.suppress(PtxError):
            disassemble(data, timeout=20)
