"""Which unit of an SM executes a SASS instruction, and how many cycles that keeps the unit busy.

Cycles are for one warp on the quarter of an SM that it belongs to, except for shared memory and the L1 cache, which the
whole SM shares. They follow the table "Throughput of Native Arithmetic Instructions" of the CUDA C++ Programming Guide
for compute capability 9.0: 64 results a cycle of an SM are 2 cycles of a warp.
"""

from __future__ import annotations

import re
from functools import cache

from ptxlab.estimate.hardware import Hardware

TENSOR, FMA, MULTIPLIER, ALU = "tensor cores", "FMA pipe", "integer multiplier", "ALU pipe"
SFU, FP64, ISSUE = "SFU", "FP64 pipe", "issue slots"
SHARED, L1, L2, DRAM = "shared memory", "L1 cache", "L2 cache", "DRAM"
LATENCY, LAUNCH = "latency", "launch overhead"
QUARTERS = (ISSUE, TENSOR, FMA, MULTIPLIER, ALU, SFU, FP64)  # one in each quarter of an SM

# Names of SASS instructions without modifiers, and the pipe that executes them for so many cycles.
_PIPES: dict[str, tuple[str, float]] = {
    **dict.fromkeys("FFMA FADD FMUL FSWZADD HFMA2 HADD2 HMUL2".split(), (FMA, 1.0)),
    **dict.fromkeys("DFMA DADD DMUL DSETP".split(), (FP64, 2.0)),
    **dict.fromkeys("MUFU I2F F2I F2F FRND POPC FLO BREV I2FP F2IP".split(), (SFU, 8.0)),
    **dict.fromkeys(
        "IADD3 LOP3 LEA SHF SEL ISETP FSETP FMNMX FMNMX3 FSEL PRMT MOV VIADD VIMNMX VIADDMNMX VIADDMNMX3 SGXT PLOP3 "
        "IABS P2R R2P F2FP CS2R BMSK HSETP2 HMNMX2 VOTE I2I LOP PSETP FCHK VABSDIFF VABSDIFF4 VHMNMX".split(),
        (ALU, 2.0),
    ),
    **dict.fromkeys("IMAD IDP".split(), (MULTIPLIER, 2.0)),
}
_MMA = re.compile(r"(?:HMMA|IMMA|BMMA)(?:\.SP)?\.(\d+)")
_WGMMA = re.compile(r"[HQIB]GMMA(?:\.SP)?\.64x(\d+)x\d+")
# Multiplications of `mma` shapes in terms of those of m16n8k16 in f16, by the extents and the type in its name.
_MMA_PARTS = {"16816": 1.0, "1688": 0.5, "1684": 0.5, "16832": 1.0, "8816": 0.25, "8832": 0.25, "16864": 1.0}


@cache
def stem(opcode: str) -> str:
    """An operation without its modifiers."""
    return opcode.partition(".")[0]


def columns_of(opcode: str) -> int | None:
    """The N of a `wgmma`; None for other instructions."""
    found = _WGMMA.match(opcode)
    return int(found[1]) if found else None


def wgmma_cycles(columns: int, hardware: Hardware) -> float:
    """How long a `wgmma` of so many columns keeps the tensor cores busy."""
    least = hardware.wgmma_least + hardware.wgmma_slope * columns
    return max(columns / hardware.wgmma_columns, least)


def pipe_of(opcode: str, hardware: Hardware) -> tuple[str, float] | None:
    """The pipe of a quarter of an SM that executes an instruction, and the cycles it takes; None: only an issue slot.

    >>> from ptxlab.estimate.hardware import H200
    >>> pipe_of("MUFU.EX2", H200), pipe_of("BRA", H200)
    (('SFU', 8.0), None)
    """
    columns = columns_of(opcode)
    if columns is not None:
        return TENSOR, wgmma_cycles(columns, hardware)
    if multiply := _MMA.match(opcode):
        part = _MMA_PARTS.get(multiply[1], 1.0)
        if "TF32" in opcode:
            part *= 2.0
        if multiply[1] == "16816" and opcode.startswith("IMMA"):
            part = 0.5
        return TENSOR, part * hardware.mma_cycles
    if opcode.startswith("DMMA"):
        return TENSOR, 8.0
    return _PIPES.get(stem(opcode))


_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
SHARED_ACCESSES = frozenset(("LDS", "STS", "LDSM", "STSM", "ATOMS"))
GLOBAL_LOADS = frozenset(("LDG", "LD", "LDGSTS"))
GLOBAL_STORES = frozenset(("STG", "ST", "RED", "REDG", "ATOM", "ATOMG"))
LOCAL_ACCESSES = frozenset(("LDL", "STL"))
LANE_EXCHANGES = {"SHFL": 1.0, "REDUX": 2.0, "MOVM": 4.0}  # cycles of shared memory's data path


def width_of(opcode: str) -> int:
    """Bytes that a lane accesses."""
    return next((_WIDTHS[part] for part in opcode.split(".")[1:] if part in _WIDTHS), 4)
