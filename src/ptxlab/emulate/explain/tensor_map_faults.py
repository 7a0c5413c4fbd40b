"""Explains faults of tensor maps: bytes that are not a map, fields that no copy can use, boxes that start wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.emulate.abi.bulk import MODES
from ptxlab.emulate.abi.faults import CoordinateReason, TensorMapReason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.emulate.explain.found import Found
from ptxlab.emulate.explain.grids import label_of
from ptxlab.emulate.runtime.order.tensor_map_order import NARROW_RELEASE, NO_RELEASE
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

# Fields of a tensor map, as `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` name them, and what they may hold.
_FIELDS = {
    TensorMapReason.RANK: ("tensorRank", "1 to 5, and 3 to 5 of im2col"),
    TensorMapReason.TYPE: ("tensorDataType", "0 to 13"),
    TensorMapReason.ADDRESS: ("globalAddress", "a multiple of 16 below 2**57, or of 32 where that is needed"),
    TensorMapReason.STRIDES: ("globalStrides", "a multiple of 32, as interleaved or padded elements need"),
    TensorMapReason.INTERLEAVE: ("interleave", "0 to 2, and 0 with fewer than 3 dimensions"),
    TensorMapReason.ATOMICITY: ("swizzle_atomicity", "0 to 3, and 0 but with a swizzle of 128 bytes"),
}
_MESSAGES = {
    TensorMapReason.NO_REDUCTION: "a reduction that elements of this tensor map do not have",
    TensorMapReason.IN_SHARED: "a tensor map in shared memory: copies read maps in parameters, constant or global "
    "memory",
    TensorMapReason.NO_INTERLEAVE: "a tensor map with interleaved elements, for a copy that cannot have them",
    TensorMapReason.NEEDS_SWIZZLE: "`.im2col::w` with a tensor map without a swizzle, or with one that flips 8 bytes",
    TensorMapReason.NO_STORE: "a store by a tensor map that is for loads only: with padded 4-bit elements, "
    "or a swizzle that flips 8 bytes",
    TensorMapReason.SWIZZLE: "a damaged tensor map: it has two swizzles at once",
    TensorMapReason.FILL: "a damaged tensor map: `oobFill` is NaN, and its elements are not floats",
    TensorMapReason.TOTAL: "a damaged tensor map: its box has more bytes than shared memory",
}  # fmt: skip
_DAMAGED = (TensorMapReason.SWIZZLE, TensorMapReason.FILL, TensorMapReason.TOTAL)
OVERWRITTEN = "no host makes such a map: its bytes were changed since, or are not all there"
_TILED = (MODES["tile"], MODES["tile::gather4"])


class Wording(NamedTuple):
    """What is wrong in a message, with notes and what to do."""

    message: str
    notes: list[str]
    helps: list[str]


def explain_bad_tensor_map(fault: FaultSnapshot) -> Diagnostic:
    """Bytes that are not a tensor map, a damaged one, or one that does not fit its copy."""
    field = TensorMapReason(fault.reason)
    said = word_field(field, fault.value, fault.record.get("dimension"), fault.limit)
    others = _not_copied(fault.launch) if field == TensorMapReason.NO_MAP else []
    helps = ["copy it to where this reads it, after its changes"] if others else said.helps
    return fault.error("bad-tensor-map", said.message, others=others, notes=said.notes, helps=helps)


def _not_copied(launch: RunningLaunch) -> list[Label]:
    """A label at the first change of a tensor map in shared memory that nothing copies to global memory."""
    compiled = launch.compiled
    changed: list[tuple[int, tuple[str, int] | None]] = []
    copied: set[tuple[str, int] | None] = set()
    for number, (_, instruction) in enumerate(compiled.instructions):
        effects = compiled.effects(number)
        if not effects.does("bulk", "change"):
            continue
        if effects.does("bulk", "release"):
            copied.add(_place(instruction))
        elif all(access.space == "shared::cta" for access in effects.accesses):
            changed.append((number, _place(instruction)))
    for number, place in changed:
        is_known = place is not None and None not in copied
        if (is_known and place not in copied) or not copied:
            span = launch.span_of(number)
            text = "changed here, in shared memory, is a map that no `tensormap.cp_fenceproxy` copies"
            return [] if span is None else [Label(span, text)]
    return []


def _place(instruction: ir.Instruction) -> tuple[str, int] | None:
    """The variable and the byte of it where a tensor map is that an instruction changes or copies, if that is known."""
    address = [operand for operand in instruction.operands if isinstance(operand, ir.Address)][-1]
    base = address.base
    return (base.name, base.offset + address.offset) if isinstance(base, ir.VariableReference) else None


def explain_bad_coordinate(fault: FaultSnapshot) -> Diagnostic:
    """A box of a tensor that starts where it must not."""
    reason = CoordinateReason(fault.reason)
    said = word_start(reason, fault.signed_value, fault.record.get("dimension"), fault.limit)
    is_misaligned = reason in (CoordinateReason.MISALIGNED, CoordinateReason.MISALIGNED_ELEMENT)
    code = "misaligned-access" if is_misaligned else "out-of-bounds"
    return fault.error(code, said.message, notes=said.notes, helps=said.helps)


def word_start(reason: CoordinateReason, value: int, dimension: int, limit: int) -> Wording:
    """Why a box cannot start where it does."""
    match reason:
        case CoordinateReason.NEGATIVE:
            message = f"a box that is stored outside of the tensor: it starts at {value} in dimension {dimension}"
            return Wording(message, [], ["use coordinates from 0 on: only loads may have negative ones"])
        case CoordinateReason.OUT_OF_CORNERS:
            return Wording(
                f"pixels that start out of the bounding box of their tensor map: at {value} in dimension {dimension}",
                ["an H200 takes this for an illegal instruction"],
                ["start between the lower and the upper corner; offsets move what is read, not where it starts"],
            )
        case CoordinateReason.HALO | CoordinateReason.OFFSET:
            name = "halo" if reason == CoordinateReason.HALO else "offset"
            return Wording(f"a copy of pixels along W with {name} {value}: it is at most {limit - 1}", [], [])
    unit, each = ("byte", "bytes") if reason == CoordinateReason.MISALIGNED else ("element", "elements")
    return Wording(
        f"a box that starts at {unit} {value} of a tensor row, not a multiple of {limit}",
        [],
        [f"let the first coordinate be a multiple of {limit} {each}"],
    )


def word_field(field: TensorMapReason, value: int, dimension: int, limit: int) -> Wording:
    """Why a copy cannot use a map: `value` is what the field holds, `limit` the rank or the mode of the copy."""
    if field in _MESSAGES:
        return Wording(_MESSAGES[field], [OVERWRITTEN] if field in _DAMAGED else [], [])
    match field:
        case TensorMapReason.NO_MAP:
            message = "the address of a tensor map points to something else"
            return Wording(message, [], ["make one with `ptxlab.tensor_map(array, box=…)`"])
        case TensorMapReason.OTHER_RANK:
            return Wording(f"a tensor map of {value} dimension{'s' * (value > 1)} for a copy with {limit}", [], [])
        case TensorMapReason.OTHER_MODE if limit in _TILED:
            return Wording("a tensor map for im2col, for a copy of a tile", [], ["make one with `ptxlab.tensor_map`"])
        case TensorMapReason.OTHER_MODE:
            return Wording("a tensor map for tiles, for a copy by im2col", [], ["make one with `ptxlab.im2col_map`"])
        case TensorMapReason.GATHERED_ROWS:
            return Wording(f"a tensor map with a box of {value} rows, for a copy of 4 single rows", [], [])
        case TensorMapReason.PADDED_ROW:
            message = f"a damaged tensor map: a row of its box has {value} padded elements"
            return Wording(message, ["it must have 128, and a row of the tensor a multiple of them", OVERWRITTEN], [])
        case TensorMapReason.ROW:
            message = f"a damaged tensor map: a row of its box has {value} bytes"
            return Wording(
                message, ["it must be a multiple of 16, and no more than the swizzle spans", OVERWRITTEN], []
            )
        case TensorMapReason.STORE_CORNERS:
            message = (
                f"a store by a tensor map whose bounding box is larger than the image in dimension {dimension + 1}"
            )
            notes = ["an H200 takes this for an illegal instruction"]
            return Wording(message, notes, ["use corners within the image"])
        case TensorMapReason.CORNERS:
            message = f"a damaged tensor map: no pixel is between its corners in dimension {dimension + 1}"
            return Wording(message, [OVERWRITTEN], [])
    name, allowed = _FIELDS[field]
    if field == TensorMapReason.STRIDES:
        name += f"[{dimension}]"
    shown = f"{value:#x}" if field == TensorMapReason.ADDRESS else str(value)
    return Wording(f"a damaged tensor map: `{name}` is {shown}, not {allowed}", [OVERWRITTEN], [])


def explain_stale_map(found: Found) -> Diagnostic:
    """A copy may use an older version of a tensor map that the kernel has changed."""
    written, used = found.parties
    is_narrow = found.record.missing == NARROW_RELEASE
    is_unreleased = is_narrow or found.record.missing == NO_RELEASE
    missing = "released" if is_unreleased else "acquired"
    scope = ", with a scope that includes both blocks" if is_narrow or written.block != used.block else ""
    helps = (
        "`fence.proxy.tensormap::generic.release.gpu;` in the thread that changes the map, after the change"
        if is_unreleased
        else "`fence.proxy.tensormap::generic.acquire.gpu [map], 128;` in this block, after the change is known there"
    )
    return error(
        "stale-tensor-map",
        "a copy by a tensor map that the kernel has changed may still see the old one",
        found.span,
        f"{used.who} uses the map here",
        others=label_of(written, "changed it here"),
        notes=[f"copies read tensor maps through a proxy of their own; the change was not {missing} for it{scope}"],
        helps=[helps],
    )  # fmt: skip


def explain_unchanged_map(found: Found) -> Diagnostic:
    """A tensor map is released and acquired again, and is the same as before."""
    written, acquired = found.parties
    return warning(
        "unchanged-tensor-map",
        "a tensor map is made again as it was",
        found.launch.span_of(written.instruction),
        f"{written.who} writes the bytes that were there",
        others=found.label(acquired.instruction, "acquired before, and here again"),
        notes=["a change of a map takes an H200 0.5 to 1 µs: release, acquire, and a copy that reads the map anew"],
        helps=["change maps only where the next one differs, once for each group of tiles"],
    )
