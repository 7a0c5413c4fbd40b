"""Explains faults of tensor maps: bytes that are not a map, damaged fields, boxes that start where they must not."""

from __future__ import annotations

from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.emulate.runtime.asynchronous import tensor_maps
from ptxlab.report import Diagnostic

# Fields of a tensor map, as `cuTensorMapEncodeTiled` names them, and what they may hold.
_FIELDS = {
    tensor_maps.RANK: ("tensorRank", "1 to 5"),
    tensor_maps.WIDTH: ("tensorDataType", "elements of 1, 2, 4 or 8 bytes"),
    tensor_maps.SWIZZLE: ("swizzle", "0 to 3"),
    tensor_maps.ADDRESS: ("globalAddress", "a multiple of 16"),
    tensor_maps.SIZES: ("globalDim", "1 or more"),
    tensor_maps.BOX: ("boxDim", "1 to 256"),
    tensor_maps.STEPS: ("elementStrides", "1 to 8"),
    tensor_maps.STRIDES: ("globalStrides", "a multiple of 16"),
}
_PER_DIMENSION = (tensor_maps.SIZES, tensor_maps.BOX, tensor_maps.STEPS, tensor_maps.STRIDES)
_OVERWRITTEN = "no host makes such a map: its bytes were changed since, or are not all there"


def explain_bad_tensor_map(fault: FaultSnapshot) -> Diagnostic:
    """Bytes that are not a tensor map, a damaged one, or one that does not fit its copy."""
    message, notes, helps = _explain_map(fault.extra, fault.address, fault.size)
    return fault.error("bad-tensor-map", message, notes=notes, helps=helps)


def explain_bad_coordinate(fault: FaultSnapshot) -> Diagnostic:
    """A box of a tensor that starts where it must not."""
    start, unit = fault.address - (fault.address >> 31 << 32), fault.extra
    if not unit & 0xFFFFFFFF:
        return fault.error(
            "out-of-bounds",
            f"a box that is stored outside of the tensor: it starts at {start} in dimension {unit >> 32}",
            helps=["use coordinates from 0 on: only loads may have negative ones"],
        )
    return fault.error(
        "misaligned",
        f"a box that starts at byte {start} of a tensor row, not a multiple of {unit}",
        helps=[f"let the first coordinate be a multiple of {unit} bytes"],
    )


def _explain_map(reason: int, value: int, rank: int) -> tuple[str, list[str], list[str]]:
    """Message, notes and helps; `value` is what the field holds, `rank` that of the copy."""
    field, dimension = reason & 0xFF, reason >> tensor_maps.DIMENSION_SHIFT
    match field:
        case tensor_maps.NO_MAP:
            return (
                "the address of a tensor map points to something else",
                [],
                ["make one with `ptxlab.tensor_map(array, box=…)`"],
            )
        case tensor_maps.OTHER_RANK:
            return f"a tensor map of {value} dimension{'s' * (value > 1)} for a copy with {rank}", [], []
        case tensor_maps.NO_REDUCTION:
            return "a reduction that elements of this tensor map do not have", [], []
        case tensor_maps.ROW:
            message = f"a damaged tensor map: a row of its box has {value} bytes"
            return message, ["it must be a multiple of 16, and no more than the swizzle spans", _OVERWRITTEN], []
        case tensor_maps.TOTAL:
            return "a damaged tensor map: its box has more bytes than shared memory", [_OVERWRITTEN], []
    name, allowed = _FIELDS[field]
    if field in _PER_DIMENSION:
        name += f"[{dimension}]"
    shown = f"{value:#x}" if field == tensor_maps.ADDRESS else str(value)
    return f"a damaged tensor map: `{name}` is {shown}, not {allowed}", [_OVERWRITTEN], []
