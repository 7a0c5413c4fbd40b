"""Pictures: which lane holds which element, where matrices and boxes are in memory, what a warp requests.

A picture is read from the data that the emulator executes by, so it can't disagree with what runs. It prints as text,
is SVG in a notebook, and saves as a file:

    draw.fragments("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").save("mma.svg")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.draw.accesses import accesses
from ptxlab.draw.descriptors import descriptor
from ptxlab.draw.fragments import fragments
from ptxlab.draw.picture import Cell, Mark, Panel, Picture
from ptxlab.draw.tensor_memory import tensor_memory
from ptxlab.draw.tiles import tile
from ptxlab.draw.timeline import TimelinePicture, timeline
from ptxlab.lazily import load_lazily

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


# Pictures that need the emulator's runtime: it takes longer to load than all others together.
_WITH_THE_RUNTIME = {"blocks": "footprints", "box": "boxes", "cluster": "footprints", "im2col": "boxes"}

load_lazily(__name__, {name: f"{__name__}.{home}" for name, home in _WITH_THE_RUNTIME.items()})
