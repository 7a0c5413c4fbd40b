"""The gradients of sequences of unequal lengths, one after the other in memory.

Tiles are numbered so that no list has to be sorted or counted: the tiles of sequence s begin at number start/size + s,
for a sequence that begins at row `start` and tiles of `size` rows. Between sequences a number may be left over. A
kernel writes for each number which sequence it is of, and for each sequence seven tensor maps that end where it does:
copies fill what comes after it with zeros, and leave it as it is where they write.
"""

from __future__ import annotations

from ptxlab.author import Pointer, Scalar, ptx, u32
from ptxlab.kernels.wgmma_attention.packed import ACQUIRE, LANES, MAP, Range, shorten
from ptxlab.kernels.wgmma_attention_backward.order import Work
from ptxlab.kernels.wgmma_attention_backward.plan import KEYS, Plan

NAMES = ("q", "do", "dq", "k", "v", "dk", "dv")  # the maps of a sequence
OF_QUERIES = 3  # of these; the others are of keys
MAPS = len(NAMES) * MAP  # bytes
LISTING_THREADS = 128


def capacity(rows: int, sequences: int, size: int) -> int:
    """Numbers of the tiles of so many rows in all."""
    return rows // size + sequences


class Sequences:
    """Where sequences are, and which one a tile is of."""

    def __init__(
        self, sizes: tuple[u32, u32], starts: tuple[Pointer, Pointer], count: u32, tables: tuple[Pointer, Pointer]
    ) -> None:
        self.sizes, self.starts, self.count = sizes, starts, count
        self.owners, self.maps = tables

    def tiles(self, which: int, size: int) -> u32:
        """How many numbers there are for tiles of queries, which are 0, or of keys, which are 1."""
        return self.sizes[which] // size + self.count

    def range(self, which: int, sequence: u32) -> Range:
        """The queries or the keys of a sequence."""
        return Range(self.starts[which], sequence, self.sizes[which])

    def first(self, which: int, sequence: u32, size: int) -> u32:
        """The number of the first tile of a sequence."""
        start = ptx.ld["global"].s32(self.starts[which] + sequence).view(u32)
        return ptx.min.u32(start, self.sizes[which]) // size + sequence

    def map(self, sequence: u32 | None, name: str) -> Scalar:
        """The address of one of its tensor maps."""
        found = self.maps.address + ptx.mul.wide.u32(sequence, MAPS) + NAMES.index(name) * MAP
        ACQUIRE(found, MAP)
        return found


class PackedWork(Work):
    """The same for a tile of keys of one of the sequences; blocks without keys exit."""

    def __init__(
        self, plan: Plan, sequences: Sequences, heads: u32, shared_by: u32, together: u32, window: u32
    ) -> None:
        self.sequences = sequences
        super().__init__(plan, (*sequences.sizes, heads, heads), shared_by, together, window)

    def count_tiles(self) -> tuple[u32, u32]:
        """Tiles of queries and of keys that have numbers."""
        return self.sequences.tiles(0, self.plan.rows), self.sequences.tiles(1, KEYS)

    def find(self, tile: u32) -> u32:
        """The first key of a tile, counted in its sequence."""
        sequences = self.sequences
        self.sequence = ptx.ld["global"].u32(sequences.owners + self.tiles + tile)
        query, key = (sequences.range(which, self.sequence) for which in (0, 1))
        self.queries, self.keys, self.first_query, self.first_key = query.length, key.length, query.start, key.start
        self.first_tile = sequences.first(0, self.sequence, self.plan.rows)
        found = (tile - sequences.first(1, self.sequence, KEYS)) * KEYS
        ptx.exit(when=found >= self.keys)
        return found

    def map_of(self, name: str, whole: object) -> Scalar:
        """The address of the tensor map of an array, which ends where the sequence does."""
        return self.sequences.map(self.sequence, name)


def list_sequences(plan: Plan, sequences: Sequences, templates: tuple[Pointer, ...]) -> None:
    """Make tensor maps, and say which sequence a tile is of: a warp for each sequence."""
    sequence = ptx.ctaid.x * (LISTING_THREADS // LANES) + ptx.tid.x // LANES
    ptx.exit(when=sequence >= sequences.count)
    table = sequences.owners
    for which, size in ((0, plan.rows), (1, KEYS)):
        end = sequences.tiles(which, size)
        first = ptx.selp.u32(0, sequences.first(which, sequence, size), sequence == 0)
        last = ptx.selp.u32(end, sequences.first(which, sequence + 1, size), sequence + 1 == sequences.count)
        for tile in ptx.range(first + ptx.laneid, ptx.min.u32(last, end), LANES):
            ptx.st["global"].u32(table + tile, sequence)
        table = table + end
    ends = [sequences.range(which, sequence).end for which in (0, 1)]
    own = sequences.maps + sequence * MAPS
    shorten([(one, own + at * MAP, ends[at >= OF_QUERIES]) for at, one in enumerate(templates)])
