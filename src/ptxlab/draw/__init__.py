"""Pictures: which lane holds which element, where matrices and boxes are in memory, what a warp requests.

A picture is read from the data that the emulator executes by, so it can't disagree with what runs. It prints as text,
is SVG in a notebook, and saves as a file:

    draw.fragments("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").save("mma.svg")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptxlab.draw.accesses import accesses
from ptxlab.draw.descriptors import descriptor
from ptxlab.draw.fragments import fragments
from ptxlab.draw.picture import Cell, Mark, Panel, Picture
from ptxlab.draw.tensor_memory import tensor_memory
from ptxlab.draw.tiles import tile
from ptxlab.draw.timeline import TimelinePicture, timeline

if TYPE_CHECKING:
    from ptxlab.draw.boxes import box as box
    from ptxlab.draw.boxes import im2col as im2col
    from ptxlab.draw.footprints import blocks as blocks
    from ptxlab.draw.footprints import cluster as cluster

__all__ = [
    "Cell",
    "Mark",
    "Panel",
    "Picture",
    "TimelinePicture",
    "accesses",
    "blocks",
    "box",
    "cluster",
    "descriptor",
    "fragments",
    "im2col",
    "tensor_memory",
    "tile",
    "timeline",
]


def __getattr__(name: str) -> Any:
    """Pictures that need the emulator's runtime import it on first use: it takes longer than all others together."""
    places = {"blocks": "footprints", "box": "boxes", "cluster": "footprints", "im2col": "boxes"}
    if name not in places:
        raise AttributeError(f"module 'ptxlab.draw' has no attribute {name!r}")
    return getattr(import_module(f"ptxlab.draw.{places[name]}"), name)
