"""Addresses of the program's own memory, which a GPU cannot read."""

import re
import socket
import struct
from dataclasses import replace
from pathlib import Path

from ptxlab.report import Diagnostic, Help

_ADDRESS = re.compile(r", address 0x([0-9a-f]+)$")
_HELP = "the address is one of the host's memory: give the kernel memory of `cudaMalloc`, and copy into it"


def name_host_memory(found: Diagnostic, connection: socket.socket) -> Diagnostic:
    """Say of an access outside of all memory of the GPU that its address is one of the process at the other end."""
    if found.code != "out-of-bounds" or not found.labels or found.helps:
        return found
    said = _ADDRESS.search(found.labels[0].text)
    if said is None or not _is_mapped(connection, int(said[1], 16)):
        return found
    return replace(found, helps=(Help(_HELP),))


def _is_mapped(connection: socket.socket, address: int) -> bool:
    process, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    maps = Path(f"/proc/{process}/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    own = (line for line in lines if "/memfd:ptxlab" not in line)  # which is the memory of the GPU
    bounds = (line.partition(" ")[0].split("-") for line in own)
    return any(int(start, 16) <= address < int(end, 16) for start, end in bounds)
