"""Matrices in shared memory that an MMA does not read as they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ptxlab.emulate.abi.findings import FoundMismatch, MismatchReason
from ptxlab.emulate.explain.found import Found
from ptxlab.isa.units import tensor_map
from ptxlab.isa.units.descriptor import MN_MAJOR, Descriptor
from ptxlab.report import Diagnostic, Label, error, warning

_STRIDES = "eight rows are `stride` apart from the next eight, what is beyond a row of the swizzle `leading`"
_OFFSETS = "leading and stride offsets as the tile was written, in multiples of 16 bytes"
_ADVANCE = "advance both start addresses by one slice from one MMA to the next"
_SLICE = 32  # bytes of a row of a K-major matrix that an MMA reads, whatever its elements
_ALIKE = (
    (MismatchReason.SLICE, MismatchReason.DEPTH, MismatchReason.UNREAD_SLICES),
    (MismatchReason.TYPE,),
    (MismatchReason.FRAGMENT,),
)
# Such a matrix is read in the bytes of its tile, each of which a right one has, too: that they race has another cause.
IN_THE_TILE = {
    MismatchReason.OVERLAP,
    MismatchReason.DEPTH,
    MismatchReason.TYPE,
    MismatchReason.UNREAD_SLICES,
    MismatchReason.FRAGMENT,
}
_SWIZZLES = ("no swizzle", "32B swizzle", "64B swizzle", "128B swizzle")


class Mismatch(Found):
    """A descriptor that does not agree with the tensor map of the copy that wrote the tile, or with itself."""

    @property
    def part(self) -> FoundMismatch:
        return self.record.mismatch

    @property
    def reason(self) -> int:
        return self.part.reason

    @property
    def matrix(self) -> str:
        """`matrix A`"""
        if self.access.effects.does("tensor_memory", "copy"):
            return "the matrix that `tcgen05.cp` copies"
        return "matrix B" if self.part.read.is_b else "matrix A"

    @property
    def descriptor(self) -> Descriptor:
        decode = Descriptor.decode_for_tcgen05 if self.part.read.is_tensor else Descriptor.decode
        return decode(self.part.read.descriptor)

    @property
    def is_k_major(self) -> bool:
        return self.part.read.major != MN_MAJOR

    @property
    def swizzle(self) -> str:
        """The one that it is read with."""
        return _SWIZZLES[self.part.swizzle]

    def at_writer(self, text: str) -> list[Label]:
        """A label at what wrote it."""
        return self.label(self.other.instruction, text)

    def warning(
        self,
        message: str,
        label: str | None = None,
        *,
        say: Callable[..., Diagnostic] = warning,
        others: Iterable[Label] = (),
        notes: Iterable[str] = (),
        helps: Iterable[str] = (),
    ) -> Diagnostic:
        """A warning at the MMA; its label says what the descriptor does, unless another one is given."""
        if label is None:
            label = f"the descriptor of {self.matrix.removeprefix('matrix ')} says: {self.descriptor}"
        return say("mismatched-descriptor", message, self.span, label, others=others, notes=notes, helps=helps)


def explain_mismatches(found: Sequence[Mismatch]) -> Iterator[Diagnostic]:
    """All of them; MMAs that are not at the k where they should be are one finding, and those of another type are."""
    alike = [[one for one in found if one.reason in reasons] for reasons in _ALIKE]
    for one in found:
        same = next((group for group in alike if one in group), [one])
        if one is not same[0]:
            continue
        diagnostic = _EXPLAINERS[one.reason](one)
        if len(same) > 1:
            more = f"so {'do' if len(same) > 2 else 'does'} {len(same) - 1} more MMA{'s' * (len(same) > 2)}"
            if one.reason == MismatchReason.FRAGMENT:
                more = f"so are the fragments of {len(same) - 1} more load{'s' * (len(same) > 2)}"
            diagnostic = replace(diagnostic, notes=(*diagnostic.notes, f"{more} of the kernel"))
        yield diagnostic


def _explain_swizzle(found: Mismatch) -> Diagnostic:
    """A tile that was written with another swizzle."""
    written = _SWIZZLES[found.part.tile.swizzle]
    message = f"{found.matrix} is read with {found.swizzle}, and was written with {written}"
    return _explain_tile(found, message, "give the tensor map and the descriptor the same swizzle")


def _explain_matrix(found: Mismatch) -> Diagnostic:
    """A tile that threads read with another swizzle."""
    written = _SWIZZLES[found.part.tile.swizzle]
    message = f"threads read a tile with {found.swizzle}, and it was written with {written}"
    label = f"eight lanes read rows of a matrix, in one column by {found.swizzle} only"
    return _explain_tile(found, message, "give the tensor map the swizzle by which threads compute addresses", label)


def _explain_stride(found: Mismatch) -> Diagnostic:
    """Eight rows that are not where the eight rows after the first were written."""
    lines, bytes = "rows" if found.is_k_major else "k", 8 * found.part.tile.pitch
    message = (
        f"{lines} 8 to 15 of {found.matrix} are read {found.descriptor.stride} bytes after {lines} 0 to 7, "
        f"and were written {bytes} bytes after them"
    )
    return _explain_tile(found, message, f"a stride of {bytes} bytes: `{bytes // 16}` in bits 32 to 45")


def _explain_leading(found: Mismatch) -> Diagnostic:
    """The next elements of a row, where they were not written."""
    further = found.descriptor.leading
    message = f"{found.matrix} continues {further} bytes further, where no box starts that was copied"
    return _explain_tile(found, message, "a leading offset from the box of the first elements to that of the next ones")


def _explain_tile(found: Mismatch, message: str, help: str, label: str | None = None) -> Diagnostic:
    """A tile that a copy wrote, and how; without a swizzle, it may be right to read it with one."""
    tile = found.part.tile
    is_unknown = not tile.swizzle and found.reason in (MismatchReason.SWIZZLE, MismatchReason.MATRIX)
    return found.warning(
        message,
        label,
        say=warning if is_unknown else error,
        others=found.at_writer(f"this copy wrote it: rows of {tile.pitch} bytes, {_SWIZZLES[tile.swizzle]}"),
        notes=["it is right if the tensor itself is stored in swizzled order"] if is_unknown else [],
        helps=[help],
    )


def _explain_unaligned(found: Mismatch) -> Diagnostic:
    """Rows of the swizzle that start in the middle of others."""
    width = found.swizzle.removesuffix("B swizzle")
    return found.warning(
        f"rows of {found.matrix} that should be {width} bytes start at other offsets than multiples of {width}",
        notes=[_STRIDES],
        helps=[f"with a {found.swizzle}, leading and stride offsets are multiples of {width} bytes"],
    )


def _explain_slice(found: Mismatch) -> Diagnostic:
    """A start that is not that of a K slice."""
    start, bytes, where = found.descriptor.start, _SLICE, "in the middle of a K slice"
    note = f"an MMA reads {_SLICE} bytes of each row of a K-major matrix: k of 16 for 16-bit elements"
    if not found.is_k_major:
        rows, pitch = found.part.read.lines, found.part.tile.pitch
        bytes = rows * pitch
        note = f"an MMA reads {rows} rows of {pitch} bytes of an MN-major matrix, one for each k"
    elif start % _SLICE == 0:
        where = "in another row than the slice before it"
    return found.warning(
        f"{found.matrix} starts at byte {start} of shared memory, {where}",
        notes=[note],
        helps=[f"advance the start address by {bytes} bytes from one MMA to the next: `{bytes // 16}` in bits 0 to 13"],
    )


def _explain_depth(found: Mismatch) -> Diagnostic:
    """A and B that are read at different k."""
    a, b = found.part.a_slice, found.part.b_slice
    return found.warning(
        f"A is read at K slice {a} of its tile and B at K slice {b}, which is another k",
        notes=["both tiles have as many K slices, each what one MMA reads, so that the same slices are of the same k"],
        helps=[_ADVANCE],
    )


def _explain_unread_slice(found: Mismatch) -> Diagnostic:
    """A part of k that was copied and that no MMA reads."""
    count, unread = found.part.read.lines, found.part.unread_slice
    slices = ", ".join(str(one) for one in range(32) if found.part.tile.read >> one & 1)
    return found.warning(
        f"MMAs read K slice{'s' * (',' in slices)} {slices} of a tile of {count}, and none reads K slice {unread}",
        "the last MMA that read the tile",
        others=found.at_writer("this copied it"),
        notes=["a K slice is what one MMA reads: of a K-major tile 32 bytes of each row"],
        helps=[_ADVANCE],
    )


_TYPES = {tensor_map.F16: "f16", tensor_map.BF16: "bf16", tensor_map.F64: "f64"}


def _explain_type(found: Mismatch) -> Diagnostic:
    """Floats that are multiplied as others than they were copied as."""
    is_fragment = found.reason == MismatchReason.FRAGMENT
    type = found.part.read.type
    read = "tf32" if type == tensor_map.F32 else _TYPES[type]
    written = _TYPES.get(found.part.tile.type, "f32")
    matrix = "a fragment" if is_fragment else found.matrix
    return found.warning(
        f"{matrix} is multiplied as {read}, and its tensor map has elements of {written}",
        "threads load it here" if is_fragment else None,
        others=found.at_writer(f"this copied elements of {written}"),
        notes=[f"a copy moves bytes: it is right if the tensor holds {read}, whatever its map says"],
        helps=[f"an MMA of {written}, or a tensor map of {read}"],
    )


def _explain_rows(found: Mismatch) -> Diagnostic:
    """Lines of a matrix that are rows of many others."""
    return found.warning(
        f"eight rows of 16 bytes of {found.matrix} are not eight rows that `stmatrix` wrote together",
        others=found.at_writer("this wrote 8x8 matrices in rows of 16 bytes, by another swizzle or pitch"),
        notes=["an MMA reads eight rows of 16 bytes, apart by the width of the swizzle; without one they are adjacent"],
        helps=["store rows where the layout of the descriptor has them: `ptxlab draw descriptor` shows it"],
    )


def _explain_gap(found: Mismatch) -> Diagnostic:
    """Parts of a matrix that leave out bytes that were written with them."""
    return found.warning(
        f"{found.matrix} is read in parts with {found.part.gap} bytes between them, which were written with them and "
        "are not read",
        others=found.at_writer("this wrote the parts and what is between them"),
        notes=[_STRIDES],
        helps=[_OFFSETS],
    )


def _explain_overlap(found: Mismatch) -> Diagnostic:
    """Parts of a matrix that have the same bytes."""
    message = f"parts of {found.matrix} have the same bytes of shared memory"
    return found.warning(message, notes=[_STRIDES], helps=[_OFFSETS])


def _explain_shared(found: Mismatch) -> Diagnostic:
    """A and B that have some bytes in common."""
    message = "matrices A and B have some bytes of shared memory in common"
    return found.warning(message, notes=[_STRIDES], helps=[_OFFSETS])


_EXPLAINERS: dict[int, Callable[[Mismatch], Diagnostic]] = {
    MismatchReason.SWIZZLE: _explain_swizzle,
    MismatchReason.STRIDE: _explain_stride,
    MismatchReason.LEADING: _explain_leading,
    MismatchReason.OVERLAP: _explain_overlap,
    MismatchReason.SHARED: _explain_shared,
    MismatchReason.GAP: _explain_gap,
    MismatchReason.UNALIGNED: _explain_unaligned,
    MismatchReason.ROWS: _explain_rows,
    MismatchReason.SLICE: _explain_slice,
    MismatchReason.DEPTH: _explain_depth,
    MismatchReason.TYPE: _explain_type,
    MismatchReason.UNREAD_SLICES: _explain_unread_slice,
    MismatchReason.MATRIX: _explain_matrix,
    MismatchReason.FRAGMENT: _explain_type,
}
