"""y = 1 + x + x² + … + x^terms: what asking for data early does for the latency of loads."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.kernels import pipelined
from ptxlab.kernels.pipelined import FEW, FULL
from ptxlab.launch.launches import Launch, ceil_div
from ptxlab.syntax import parse

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 256
_SOURCE = Path(__file__).with_name("prefetch.ptx")


@cache
def kernel(load: str) -> ir.Function:
    """The kernel of prefetch.ptx, its load with a prefetch size."""
    text = Template(_SOURCE.read_text(encoding="utf-8")).substitute(load=load)
    return parse(text, name="prefetch.ptx")["series"]


def series(x: Array, y: Array, terms: int, blocks: int, load: str = "", distance: int = 0) -> Launch:
    """A block takes two steps or more; `distance` is how many steps ahead data is asked for, 0 for not at all."""
    blocks = min(ceil_div(len(y), 8 * BLOCK), blocks)
    return Launch(kernel(load), blocks, BLOCK, [x, y, len(y), terms, distance])


entry = replace(
    pipelined.entry,
    variants={
        "plain loads": series,
        **{f"prefetch.L2, {steps} ahead": partial(series, distance=steps) for steps in (1, 4, 16)},
        **{f"ld.L2::{size}": partial(series, load=f".L2::{size}") for size in ("64B", "128B", "256B")},
    },
    sizes=[
        {"n": 1 << 26, "terms": 16, "blocks": FULL},
        {"n": 1 << 26, "terms": 64, "blocks": FEW},
        {"n": 1 << 26, "terms": 16, "blocks": FEW},
    ],
    small=[
        {"n": 1, "terms": 3, "blocks": FEW},
        {"n": 8 * BLOCK, "terms": 0, "blocks": FEW},
        {"n": 44 * BLOCK + 7, "terms": 5, "blocks": 2},
    ],
)
