"""Matrices in shared memory that an MMA does not read as they were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.runtime.order import tile_layouts
from ptxlab.isa.units import tensor_map
from ptxlab.isa.units.descriptor import MN_MAJOR, Descriptor
from ptxlab.report import Diagnostic, Label, Span, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_STRIDES = "eight rows are `stride` apart from the next eight, what is beyond a row of the swizzle `leading`"
_HELP = "leading and stride offsets as the tile was written, in multiples of 16 bytes"
_SLICE = 32  # bytes of a row of a K-major matrix that an MMA reads, whatever its elements
_ASTRAY = (tile_layouts.SLICE, tile_layouts.DEPTH, tile_layouts.UNREAD_SLICES)
_MISTYPED = (tile_layouts.TYPE,)
_FRAGMENTS = (tile_layouts.FRAGMENT,)
_SWIZZLES = ("no swizzle", "32B swizzle", "64B swizzle", "128B swizzle")


def explain_mismatches(launch: RunningLaunch, found: StructArray, numbers: Sequence[int]) -> Iterator[Diagnostic]:
    """All of them; MMAs that are not at the k where they should be are one finding, and those of another type are."""
    alike = [
        [one for one in numbers if found.get("bytes", one) in reasons] for reasons in (_ASTRAY, _MISTYPED, _FRAGMENTS)
    ]
    for number in numbers:
        same = next((group for group in alike if number in group), [number])
        if number != same[0]:
            continue
        diagnostic = explain_mismatch(launch, found, number)
        if len(same) > 1:
            more = f"so {'do' if len(same) > 2 else 'does'} {len(same) - 1} more MMA{'s' * (len(same) > 2)}"
            if found.get("bytes", number) in _FRAGMENTS:
                more = f"so are the fragments of {len(same) - 1} more load{'s' * (len(same) > 2)}"
            diagnostic = replace(diagnostic, notes=(*diagnostic.notes, f"{more} of the kernel"))
        yield diagnostic


def explain_mismatch(launch: RunningLaunch, found: StructArray, number: int) -> Diagnostic:
    """A descriptor that does not agree with the tensor map of the copy that wrote the tile, or with itself."""
    flags, reason = found.get("flags", number), found.get("bytes", number)
    decode = Descriptor.decode_for_tcgen05 if flags >> 8 & 1 else Descriptor.decode
    said = decode(found.get("address", number))
    matrix, is_k_major = "matrix B" if flags >> 10 & 1 else "matrix A", flags >> 9 & 1 != MN_MAJOR
    if launch.compiled.effects(found.get("instruction", number)).does("tensor_memory", "copy"):
        matrix = "the matrix that `tcgen05.cp` copies"
    span = launch.span_of(found.get("instruction", number))
    label = f"the descriptor of {matrix.removeprefix('matrix ')} says: {said}"
    if reason in (tile_layouts.OVERLAP, tile_layouts.SHARED):
        return _explain_overlap(matrix, reason, span, label)
    if reason == tile_layouts.UNALIGNED:
        return _explain_unaligned(matrix, _SWIZZLES[flags >> 4 & 3], span, label)
    if reason == tile_layouts.SLICE and is_k_major:
        return _explain_slice(matrix, said.start, span, label)
    if reason == tile_layouts.SLICE:
        rows = found.get("missing", number), found.get("other_thread", number)
        return _explain_rows_of_k(matrix, said.start, rows, (span, label))
    if reason == tile_layouts.DEPTH:
        slices = found.get("other_flags", number), found.get("other_thread", number)
        return _explain_depth(slices, span, label)
    if reason == tile_layouts.UNREAD_SLICES:
        return _explain_unread_slice(launch, found, number, span)
    if reason == tile_layouts.FRAGMENT:
        copy = launch.span_of(found.get("other_instruction", number))
        return _explain_type("a fragment", found.get("weak", number), (span, "threads load it here"), copy)
    if reason == tile_layouts.TYPE:
        copy = launch.span_of(found.get("other_instruction", number))
        return _explain_type(matrix, found.get("weak", number), (span, label), copy)
    if reason == tile_layouts.ROWS:
        return _explain_rows(matrix, (span, label), launch.span_of(found.get("other_instruction", number)))
    if reason == tile_layouts.GAP:
        other = launch.span_of(found.get("other_instruction", number))
        return _explain_gap(matrix, found.get("other_flags", number), (span, label), other)
    written, pitch = found.get("other_flags", number), found.get("other_thread", number)
    read = _SWIZZLES[flags >> 4 & 3]
    say = error
    if reason == tile_layouts.MATRIX:
        message = f"threads read a tile with {read}, and it was written with {_SWIZZLES[written]}"
        helps = ["give the tensor map the swizzle by which threads compute addresses"]
        label = f"eight lanes read rows of a matrix, in one column by {read} only"
        say = error if written else warning
    elif reason == tile_layouts.SWIZZLE:
        message = f"{matrix} is read with {read}, and was written with {_SWIZZLES[written]}"
        helps = ["give the tensor map and the descriptor the same swizzle"]
        say = error if written else warning
    elif reason == tile_layouts.STRIDE:
        lines = "rows" if is_k_major else "k"
        message = (
            f"{lines} 8 to 15 of {matrix} are read {said.stride} bytes after {lines} 0 to 7, "
            f"and were written {8 * pitch} bytes after them"
        )
        helps = [f"a stride of {8 * pitch} bytes: `{8 * pitch // 16}` in bits 32 to 45"]
    else:
        message = f"{matrix} continues {said.leading} bytes further, where no box starts that was copied"
        helps = ["a leading offset from the box of the first elements to that of the next ones"]
    other = launch.span_of(found.get("other_instruction", number))
    text = f"this copy wrote it: rows of {pitch} bytes, {_SWIZZLES[written]}"
    others = [] if other is None else [Label(other, text)]
    notes = [] if say is error else ["it is right if the tensor itself is stored in swizzled order"]
    return say("mismatched-descriptor", message, span, label, others=others, notes=notes, helps=helps)


def _explain_unaligned(matrix: str, swizzle: str, span: Span | None, label: str) -> Diagnostic:
    """Rows of the swizzle that start in the middle of others."""
    width = swizzle.removesuffix("B swizzle")
    return warning(
        "mismatched-descriptor",
        f"rows of {matrix} that should be {width} bytes start at other offsets than multiples of {width}",
        span,
        label,
        notes=[_STRIDES],
        helps=[f"with a {swizzle}, leading and stride offsets are multiples of {width} bytes"],
    )


def _explain_slice(matrix: str, start: int, span: Span | None, label: str) -> Diagnostic:
    """A start that is not that of a K slice."""
    where = "in the middle of a K slice" if start % _SLICE else "in another row than the slice before it"
    return warning(
        "mismatched-descriptor",
        f"{matrix} starts at byte {start} of shared memory, {where}",
        span,
        label,
        notes=[f"an MMA reads {_SLICE} bytes of each row of a K-major matrix: k of 16 for 16-bit elements"],
        helps=[
            f"advance the start address by {_SLICE} bytes from one MMA to the next: `{_SLICE // 16}` in bits 0 to 13"
        ],
    )


def _explain_rows_of_k(matrix: str, start: int, rows: tuple[int, int], label: tuple[Span | None, str]) -> Diagnostic:
    """A start of an MN-major matrix that is not that of a K slice; `rows` are those of k, and their bytes."""
    lines, pitch = rows
    return warning(
        "mismatched-descriptor",
        f"{matrix} starts at byte {start} of shared memory, in the middle of a K slice",
        *label,
        notes=[f"an MMA reads {lines} rows of {pitch} bytes of an MN-major matrix, one for each k"],
        helps=[
            f"advance the start address by {lines * pitch} bytes from one MMA to the next: "
            f"`{lines * pitch // 16}` in bits 0 to 13"
        ],
    )


def _explain_depth(slices: tuple[int, int], span: Span | None, label: str) -> Diagnostic:
    """A and B that are read at different k."""
    return warning(
        "mismatched-descriptor",
        f"A is read at K slice {slices[0]} of its tile and B at K slice {slices[1]}, which is another k",
        span,
        label,
        notes=["both tiles have as many K slices, each what one MMA reads, so that the same slices are of the same k"],
        helps=["advance both start addresses by one slice from one MMA to the next"],
    )


def _explain_unread_slice(launch: RunningLaunch, found: StructArray, number: int, span: Span | None) -> Diagnostic:
    """A part of k that was copied and that no MMA reads."""
    unread, read = found.get("third_instruction", number), found.get("commit", number)
    slices = ", ".join(str(one) for one in range(32) if read >> one & 1)
    count = found.get("missing", number)
    other = launch.span_of(found.get("other_instruction", number))
    return warning(
        "mismatched-descriptor",
        f"MMAs read K slice{'s' * (',' in slices)} {slices} of a tile of {count}, and none reads K slice {unread}",
        span,
        "the last MMA that read the tile",
        others=[Label(other, "this copied it")] if other else [],
        notes=["a K slice is what one MMA reads: of a K-major tile 32 bytes of each row"],
        helps=["advance both start addresses by one slice from one MMA to the next"],
    )


_TYPES = {tensor_map.F16: "f16", tensor_map.BF16: "bf16", tensor_map.F64: "f64"}


def _explain_type(matrix: str, types: int, label: tuple[Span | None, str], copy: Span | None) -> Diagnostic:
    """Floats that are multiplied as others than they were copied as."""
    read = "tf32" if types >> 8 == tensor_map.F32 else _TYPES[types >> 8]
    written = _TYPES.get(types & 255, "f32")
    return warning(
        "mismatched-descriptor",
        f"{matrix} is multiplied as {read}, and its tensor map has elements of {written}",
        *label,
        others=[Label(copy, f"this copied elements of {written}")] if copy else [],
        notes=[f"a copy moves bytes: it is right if the tensor holds {read}, whatever its map says"],
        helps=[f"an MMA of {written}, or a tensor map of {read}"],
    )


def _explain_rows(matrix: str, label: tuple[Span | None, str], writer: Span | None) -> Diagnostic:
    """Lines of a matrix that are rows of many others."""
    return warning(
        "mismatched-descriptor",
        f"eight rows of 16 bytes of {matrix} are not eight rows that `stmatrix` wrote together",
        *label,
        others=[Label(writer, "this wrote 8x8 matrices in rows of 16 bytes, by another swizzle or pitch")]
        if writer
        else [],
        notes=["an MMA reads eight rows of 16 bytes, apart by the width of the swizzle; without one they are adjacent"],
        helps=["store rows where the layout of the descriptor has them: `ptxlab draw descriptor` shows it"],
    )


def _explain_gap(matrix: str, bytes: int, label: tuple[Span | None, str], writer: Span | None) -> Diagnostic:
    """Parts of a matrix that leave out bytes that were written with them."""
    return warning(
        "mismatched-descriptor",
        f"{matrix} is read in parts with {bytes} bytes between them, which were written with them and are not read",
        *label,
        others=[Label(writer, "this wrote the parts and what is between them")] if writer else [],
        notes=[_STRIDES],
        helps=[_HELP],
    )


def _explain_overlap(matrix: str, reason: int, span: Span | None, label: str) -> Diagnostic:
    """Parts of a matrix, or of A and B, that have the same bytes."""
    message = f"parts of {matrix} have the same bytes of shared memory"
    if reason == tile_layouts.SHARED:
        message = "matrices A and B have some bytes of shared memory in common"
    return warning(
        "mismatched-descriptor",
        message,
        span,
        label,
        notes=[_STRIDES],
        helps=[_HELP],
    )
