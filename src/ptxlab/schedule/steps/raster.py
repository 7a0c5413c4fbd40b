"""`raster(8)`: blocks with neighbouring numbers go down so many rows of tiles, and then one column on."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State


def raster(state: State, rows: int) -> State:
    """Blocks that run together then read few rows and few columns, which the L2 cache keeps."""
    if not isinstance(rows, int) or rows < 1:
        state.illegal(f"a group of {rows!r:.40} rows of tiles")
    if len(state.blocks) < 2:
        said = f"{len(state.blocks)} loops are run by blocks, expected those over rows and columns"
        state.illegal(said, '`blocks("i", "j")` first')
    return replace(state, group=rows, tiled=())
