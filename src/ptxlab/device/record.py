"""What is to be recorded of a launch: the option `record`, and what of it changes the code of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path

from ptxlab.values import dataclass

LIMIT = 100_000_000  # steps of threads
MOST_WARPS = 64


@dataclass(frozen=True)
class Recorded:
    """Which instructions write down what they do."""

    lines: frozenset[int] | None = None

    def __str__(self) -> str:
        return "recorded" if self.lines is None else f"recorded {sorted(self.lines)}"


@dataclass(frozen=True, init=False)
class Record:
    """What to record of a launch on the emulator, and the file that it goes to.

    `blocks` of the grid, by their indices, and `warps` of each block, by their numbers; by default all. `lines` of the
    PTX, by default all: what others compute is then not known. A recording ends after `limit` steps of threads; the
    kernel continues. Without a `path` the recording is a temporary file, which goes with the result.

    >>> import ptxlab
    >>> ptxlab.Record(blocks=[(0, 0)], warps=[0]).limit
    100000000
    """

    path: Path | None
    blocks: tuple[tuple[int, int, int], ...] | None
    warps: frozenset[int] | None
    lines: frozenset[int] | None
    limit: int

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        blocks: Iterable[int | Sequence[int]] | None = None,
        warps: Iterable[int] | None = None,
        lines: Iterable[int] | None = None,
        limit: int = LIMIT,
    ) -> None:
        chosen = None if warps is None else frozenset(warps)
        if chosen is not None and not all(0 <= warp < MOST_WARPS for warp in chosen):
            raise ValueError(f"warps={sorted(chosen)}: a block has warps 0 to 31")
        if isinstance(limit, bool) or not isinstance(limit, Integral) or not 0 < limit < 1 << 63:
            raise ValueError(f"limit={limit!r}: expected a number of steps from 1 to 2**63 - 1")
        object.__setattr__(self, "path", None if path is None else Path(path))
        object.__setattr__(self, "blocks", None if blocks is None else tuple(_index(block) for block in blocks))
        object.__setattr__(self, "warps", chosen)
        object.__setattr__(self, "lines", None if lines is None else frozenset(lines))
        object.__setattr__(self, "limit", limit)

    def at(self, path: Path) -> Record:
        """The same, to another file."""
        return Record(path, blocks=self.blocks, warps=self.warps, lines=self.lines, limit=self.limit)

    @property
    def recorded(self) -> Recorded:
        """What of it changes the code of a kernel."""
        return Recorded(self.lines)


def _index(block: int | Sequence[int]) -> tuple[int, int, int]:
    given = (block,) if isinstance(block, int) else tuple(block)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"blocks={block!r}: expected one to three whole numbers for a block")
    x, y, z = (*given, 0, 0)[:3]
    return int(x), int(y), int(z)
