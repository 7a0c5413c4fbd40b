"""The variable of a module that NVSHMEM's device functions read, and the headers by which it has it."""

from __future__ import annotations

import importlib.util
import re
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy

from ptxlab import ir
from ptxlab.device import layout

FOLDER = Path(__file__).parent
STATE, FIELDS = "nvshmemi_device_state_d", "ptxlab_nvshmem_fields"
COUNTER = "region_active_count"  # of regions whose puts are sent together: there are none
_INTEGERS = ("version", "mype", "npes", "node_mype", "node_npes", "job_connectivity")
_ADDRESSES = ("heap_base", "heap_size", "peer_heap_base_p2p")
OF_TEAMS = ("team_pool", "psync_pool", "sync_counter")
MOST_TEAMS = 32  # the most that there are: four of NVSHMEM, and from `OWN_TEAMS` on those of a program
OWN_TEAMS = 7
TEAM_BYTES = 8 * 64 + 4096  # through which a team synchronizes: as `ptxlab_collectives.h` has it
DIRECT = 1  # `NVSHMEMI_JOB_GPU_LDST_ATOMICS`: by loads, stores and atomic operations
NETWORK = 8  # `NVSHMEMI_JOB_GPU_PROXY`: what PEs are not on one machine is sent


def headers() -> Path | None:
    """The folder of NVSHMEM's headers, of its wheel; None where that is not installed."""
    package = importlib.util.find_spec("nvidia")
    for location in () if package is None else package.submodule_search_locations or ():
        folder = Path(location) / "nvshmem" / "include"
        if (folder / "nvshmem.h").is_file():
            return folder
    return None


def options() -> list[str]:
    """Options of nvcc with which a file that includes `nvshmem.h` gets ours, and then NVSHMEM's."""
    found = headers()
    return ["-I", str(FOLDER / "include"), *([] if found is None else ["-I", str(found)])]


class NvshmemModule:
    """A module whose kernels call NVSHMEM: where the fields of its state are. `ValueError` where it has none."""

    def __init__(self, module: ir.Module) -> None:
        known = layout.Variables(module, []).by_name
        source = module.source
        if source is None or STATE not in known or FIELDS not in known:
            called = "the module" if source is None else source.name
            raise ValueError(f"{called} does not have NVSHMEM's state: compile it with `ptxlab.nvshmem.cuda`")
        names = (*_INTEGERS, *_ADDRESSES, *OF_TEAMS, COUNTER)
        offsets = bytes(module.get(FIELDS, dtype=numpy.uint64))
        found = struct.unpack(f"<{len(offsets) // 8}Q", offsets)
        self.module, self.size = module, layout.size_of_variable(known[STATE])
        self.at = dict(zip(names, found, strict=False))
        read = {int(offset) for offset in re.findall(rf"{STATE}\+(\d+)\]", source.text)}
        self.has_teams = bool(read & {self.at[name] for name in OF_TEAMS})

    @staticmethod
    def is_one(module: ir.Module) -> bool:
        """Whether kernels of a module may call NVSHMEM."""
        return FIELDS in layout.Variables(module, []).by_name

    def state(self, values: Mapping[str, int]) -> bytes:
        """What NVSHMEM's host library would write to the variable of a PE."""
        state = bytearray(self.size)
        struct.pack_into("<i", state, self.at["version"], (1 << 16) + len(state))
        for name, value in values.items():
            if self.at.get(name):
                struct.pack_into("<i" if name in _INTEGERS else "<Q", state, self.at[name], value)
        return bytes(state)
