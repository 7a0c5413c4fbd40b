"""The sum of each row: five steps of `shfl`, one `redux`, or a tree in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.syntax import parse

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 256
ROWS = BLOCK // 32  # that a block sums
_HERE = Path(__file__).parent


@cache
def kernel(way: str, type: str) -> ir.Function:
    """The kernel of `way`.ptx for f32 or s32."""
    text = Template((_HERE / f"{way}.ptx").read_text(encoding="utf-8"))
    add = {"f32": "add.rn.f32", "s32": "add.s32"}[type]
    return parse(text.substitute(add=add), name=f"{way}.ptx")["sum_rows"]


def sum_rows(x: Array, sums: Array, way: str = "shuffle") -> Launch:
    """A warp for each row, its lanes' sums added in one of three ways: shuffle, redux, shared."""
    type = "s32" if "int32" in str(x.dtype) else "f32"
    if way == "redux" and type == "f32":
        raise UnsuitedError("`redux` adds integers only")
    rows, columns = x.shape
    return Launch(kernel(way, type), ceil_div(rows, ROWS), BLOCK, [x, sums, rows, columns])


def torch_baseline(torch: ModuleType, x: Array, sums: Array) -> Callable[[], object]:
    """What torch does."""
    return lambda: torch.sum(x, dim=1, dtype=x.dtype, out=sums)


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, and space for the sums of its rows."""
    shape = (rows, columns)
    x = draw.integers(shape, type, -1000, 1000) if type == "s32" else draw.normal(shape, type)
    return {"x": x, "sums": draw.empty(rows, type)}


def reference(xp: ModuleType, x: Array, sums: Array) -> Arrays:
    """The sums."""
    return {"sums": x.sum(1)}


def work(rows: int, columns: int, type: str) -> Work:
    """An addition for each element; each is read once."""
    return Work(flops=rows * columns, bytes=4 * rows * (columns + 1), rate=f"{type} arithmetic")


def allowed(rows: int, columns: int, type: str) -> float:
    """Sums of integers are exact."""
    return 0 if type == "s32" else 1e-6


entry = Entry(
    title="the sum of each row of a matrix",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        "shared memory": partial(sum_rows, way="shared"),
        "shfl": partial(sum_rows, way="shuffle"),
        "redux": partial(sum_rows, way="redux"),
    },
    libraries={"torch.sum": torch_baseline},
    sizes=[
        {"rows": 1 << 17, "columns": 1024, "type": "f32"},
        {"rows": 1 << 22, "columns": 32, "type": "s32"},
        {"rows": 1 << 22, "columns": 32, "type": "f32"},
    ],
    small=[
        {"rows": 1, "columns": 1, "type": "f32"},
        {"rows": 21, "columns": 32, "type": "s32"},
        {"rows": 13, "columns": 77, "type": "f32"},
    ],
    tolerance=allowed,
)
