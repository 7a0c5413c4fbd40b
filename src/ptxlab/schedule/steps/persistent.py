"""`persistent()`: a block computes tile after tile; copies for the next one run while a tile is stored."""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import State


def persistent(state: State) -> State:
    """As many blocks as there are SMs, each for every so many tiles."""
    if not state.specialized:
        state.illegal("no warp of its own copies: tiles of a block would share memory", "`specialize` first")
    if state.cluster:
        state.illegal("blocks of a cluster compute one tile together, and are over then")
    if state.persistent:
        state.illegal("a block computes tile after tile already")
    if not state.group:
        state.illegal("tiles have no order", "`raster(8)` first")
    return replace(state, persistent=True, tiled=())
