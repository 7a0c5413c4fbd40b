"""Scale factors of an MMA that overlap, or that differ between the sub-partitions of tensor memory."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import FactorReason as Reason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.isa.units.tensor_memory import BAND
from ptxlab.report import Diagnostic

_OVERLAPPING = {
    Reason.OVERLAP: ("the scale factors of A", "those of B"),
    Reason.A_IN_D: ("the scale factors of A", "the accumulators"),
    Reason.B_IN_D: ("the scale factors of B", "the accumulators"),
}
_MODELLED = "modelled, not measured: rows of D are computed with the copy in their own sub-partition of 32 lanes"


def explain_bad_scale_factors(fault: FaultSnapshot) -> Diagnostic:
    """Scale factors that cannot be right."""
    reason = Reason(fault.reason)
    if reason in _OVERLAPPING:
        return _explain_overlap(fault, *_OVERLAPPING[reason])
    matrix = "A" if reason is Reason.UNEQUAL_A else "B"
    lane, column = fault.record.get("cells.lane"), fault.record.get("cells.column")
    found, expected = fault.value & 0xFFFFFFFF, fault.value >> 32
    other = fault.limit * BAND + lane % BAND
    return fault.error(
        "unequal-scale-factors",
        f"the scale factors of {matrix} are not the same in all sub-partitions of tensor memory",
        notes=[f"column {column} has {found:#010x} in lane {lane}, but {expected:#010x} in lane {other}", _MODELLED],
        helps=["`tcgen05.cp` with `.32x128b.warpx4` writes all four copies"],
    )


def _explain_overlap(fault: FaultSnapshot, one: str, other: str) -> Diagnostic:
    numbers = [fault.value >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
    return fault.error(
        "overlapping-scale-factors",
        f"{one} overlap {other} in tensor memory",
        notes=[f"{one} take columns {numbers[0]}..{numbers[1]}, {other} {numbers[2]}..{numbers[3]}"],
        helps=["give each its own columns: a column for every 32 rows of A, and for every 32 columns of B"],
    )
