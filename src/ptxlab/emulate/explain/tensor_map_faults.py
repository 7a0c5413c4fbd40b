"""Explains faults of tensor maps: bytes that are not a map, damaged fields, boxes that start where they must not."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import CoordinateReason, TensorMapReason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.report import Diagnostic

# Fields of a tensor map, as `cuTensorMapEncodeTiled` names them, and what they may hold.
_FIELDS = {
    TensorMapReason.RANK: ("tensorRank", "1 to 5"),
    TensorMapReason.WIDTH: ("tensorDataType", "elements of 1, 2, 4 or 8 bytes"),
    TensorMapReason.SWIZZLE: ("swizzle", "0 to 3"),
    TensorMapReason.ADDRESS: ("globalAddress", "a multiple of 16"),
    TensorMapReason.SIZES: ("globalDim", "1 or more"),
    TensorMapReason.BOX: ("boxDim", "1 to 256"),
    TensorMapReason.STEPS: ("elementStrides", "1 to 8"),
    TensorMapReason.STRIDES: ("globalStrides", "a multiple of 16"),
}
_PER_DIMENSION = (TensorMapReason.SIZES, TensorMapReason.BOX, TensorMapReason.STEPS, TensorMapReason.STRIDES)
_OVERWRITTEN = "no host makes such a map: its bytes were changed since, or are not all there"


def explain_bad_tensor_map(fault: FaultSnapshot) -> Diagnostic:
    """Bytes that are not a tensor map, a damaged one, or one that does not fit its copy."""
    message, notes, helps = _explain_map(fault)
    return fault.error("bad-tensor-map", message, notes=notes, helps=helps)


def explain_bad_coordinate(fault: FaultSnapshot) -> Diagnostic:
    """A box of a tensor that starts where it must not."""
    if fault.reason == CoordinateReason.NEGATIVE:
        dimension = fault.record.get("dimension")
        return fault.error(
            "out-of-bounds",
            f"a box that is stored outside of the tensor: it starts at {fault.signed_value} in dimension {dimension}",
            helps=["use coordinates from 0 on: only loads may have negative ones"],
        )
    return fault.error(
        "misaligned",
        f"a box that starts at byte {fault.signed_value} of a tensor row, not a multiple of {fault.limit}",
        helps=[f"let the first coordinate be a multiple of {fault.limit} bytes"],
    )


def _explain_map(fault: FaultSnapshot) -> tuple[str, list[str], list[str]]:
    """Message, notes and helps; `value` is what the field holds, `limit` the rank of the copy."""
    field, value = TensorMapReason(fault.reason), fault.value
    match field:
        case TensorMapReason.NO_MAP:
            return (
                "the address of a tensor map points to something else",
                [],
                ["make one with `ptxlab.tensor_map(array, box=…)`"],
            )
        case TensorMapReason.OTHER_RANK:
            return f"a tensor map of {value} dimension{'s' * (value > 1)} for a copy with {fault.limit}", [], []
        case TensorMapReason.NO_REDUCTION:
            return "a reduction that elements of this tensor map do not have", [], []
        case TensorMapReason.ROW:
            message = f"a damaged tensor map: a row of its box has {value} bytes"
            return message, ["it must be a multiple of 16, and no more than the swizzle spans", _OVERWRITTEN], []
        case TensorMapReason.TOTAL:
            return "a damaged tensor map: its box has more bytes than shared memory", [_OVERWRITTEN], []
    name, allowed = _FIELDS[field]
    if field in _PER_DIMENSION:
        name += f"[{fault.record.get('dimension')}]"
    shown = f"{value:#x}" if field == TensorMapReason.ADDRESS else str(value)
    return f"a damaged tensor map: `{name}` is {shown}, not {allowed}", [_OVERWRITTEN], []
