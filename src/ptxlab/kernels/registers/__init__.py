"""The variance of each row of 32 numbers: what saying how many registers a thread may have does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.syntax import parse

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 256
COLUMNS = 32
_SOURCE = Path(__file__).with_name("registers.ptx")

DIRECTIVES = {
    "nothing said": "",
    ".maxnreg 128": ".maxnreg 128",
    ".maxnreg 32": ".maxnreg 32",
    ".maxnreg 24": ".maxnreg 24",
    ".minnctapersm 8": f".maxntid {BLOCK}\n.minnctapersm 8",
}


@cache
def text(directives: str) -> str:
    """The PTX with these directives."""
    return Template(_SOURCE.read_text(encoding="utf-8")).substitute(directives=directives)


@cache
def kernel(directives: str) -> ir.Function:
    """The kernel with these directives."""
    return parse(text(directives), name="registers.ptx")["variance"]


def variance(x: Array, variances: Array, directives: str = "") -> Launch:
    """A thread for each row."""
    rows = len(variances)
    return Launch(kernel(directives), ceil_div(rows, BLOCK), BLOCK, [x, variances, rows])


def torch_baseline(torch: ModuleType, x: Array, variances: Array) -> Callable[[], object]:
    """What torch does."""
    return lambda: torch.var(x, dim=1, correction=0, out=variances)


def arrays(draw: Draw, rows: int) -> Arrays:
    """A matrix, and space for the variances of its rows."""
    return {"x": draw.normal((rows, COLUMNS), "f32"), "variances": draw.empty(rows, "f32")}


def reference(xp: ModuleType, x: Array, variances: Array) -> Arrays:
    """The mean of the squared distances from the mean."""
    return {"variances": ((x - x.mean(1)[:, None]) ** 2).mean(1)}


entry = Entry(
    title="the variance of each row of 32 numbers",
    arrays=arrays,
    reference=reference,
    work=lambda rows: Work(flops=4 * COLUMNS * rows, bytes=4 * (COLUMNS + 1) * rows, rate="f32 arithmetic"),
    variants={name: partial(variance, directives=directives) for name, directives in DIRECTIVES.items()},
    libraries={"torch.var": torch_baseline},
    sizes=[{"rows": 1 << 16}, {"rows": 1 << 19}, {"rows": 1 << 22}],
    small=[{"rows": 1}, {"rows": 256}, {"rows": 301}],
    tolerance=1e-6,
)
