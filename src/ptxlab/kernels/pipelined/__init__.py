"""y = 1 + x + x² + … + x^terms: loads that overlap with arithmetic, by `cp.async` in a ring of 2 to N tiles."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.syntax import load, parse

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 256
TILE = 4 * BLOCK
FULL = 8 * 132  # blocks that an H200 holds at once
FEW = 2 * 132  # a quarter of that, so that the latency of loads is seen
_HERE = Path(__file__).parent


@cache
def plain_kernel() -> ir.Function:
    """The kernel of plain.ptx."""
    return load(_HERE / "plain.ptx")["series"]


@cache
def pipelined_kernel(stages: int) -> ir.Function:
    """The kernel of pipelined.ptx with a ring of that many tiles."""
    text = Template((_HERE / "pipelined.ptx").read_text(encoding="utf-8"))
    numbers = {"stages": stages, "ahead": stages - 1, "ring": 4 * TILE * stages}
    return parse(text.substitute(numbers), name="pipelined.ptx")["series"]


def launch(kernel: ir.Function, x: Any, y: Any, terms: int, blocks: int) -> Launch:
    """So many blocks at most that each has two tiles or more."""
    return Launch(kernel, min(ceil_div(len(y), 2 * TILE), blocks), BLOCK, [x, y, len(y), terms])


def plain(x: Array, y: Array, terms: int, blocks: int) -> Launch:
    """Load, then compute."""
    return launch(plain_kernel(), x, y, terms, blocks)


def pipelined(x: Array, y: Array, terms: int, blocks: int, stages: int = 2) -> Launch:
    """Compute while the next tiles are loaded."""
    return launch(pipelined_kernel(stages), x, y, terms, blocks)


def arrays(draw: Draw, n: int, terms: int, blocks: int) -> Arrays:
    """Numbers for which the series converges, and space for its values; how many terms, by how many blocks."""
    x, y = draw.uniform(n, "f32", -0.95, 0.95), draw.empty(n, "f32")
    return {"x": x, "y": y, "terms": terms, "blocks": blocks}


def reference(xp: ModuleType, x: Array, y: Array, terms: int, blocks: int) -> Arrays:
    """The series in closed form."""
    return {"y": (1 - x ** (terms + 1)) / (1 - x)}


def work(n: int, terms: int, blocks: int) -> Work:
    """A multiplication and an addition for each term."""
    return Work(flops=2 * terms * n, bytes=8 * n, rate="f32 arithmetic")


entry = Entry(
    title="y = 1 + x + x² + … + x^terms for f32 vectors",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        "plain loads": plain,
        **{f"cp.async, {stages} stages": partial(pipelined, stages=stages) for stages in (2, 3, 4)},
    },
    sizes=[
        {"n": 1 << 26, "terms": 16, "blocks": FEW},
        {"n": 1 << 26, "terms": 16, "blocks": FULL},
        {"n": 1 << 26, "terms": 64, "blocks": FULL},
    ],
    small=[
        {"n": 1, "terms": 3, "blocks": FULL},
        {"n": 4 * TILE, "terms": 0, "blocks": FULL},
        {"n": 11 * TILE + 7, "terms": 5, "blocks": 2},
    ],
    tolerance=1e-6,
)
