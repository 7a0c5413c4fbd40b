"""C = A·B on tensor cores, the shortest way there: one warp, one `mma.sync` a step, in PTX and inline in CUDA C++."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.syntax import load
from ptxlab.toolchain import cuda

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

_HERE = Path(__file__).parent


@cache
def text() -> ir.Function:
    """The kernel of mma_tile.ptx."""
    return load(_HERE / "mma_tile.ptx")["mma_tile"]


@cache
def inline() -> ir.Function:
    """The kernel of mma_tile.cu, as NVRTC compiles it."""
    return cuda((_HERE / "mma_tile.cu").read_text(encoding="utf-8"), name="mma_tile.cu")["mma_tile"]


def in_ptx(a: Array, b: Array, c: Array) -> Launch:
    """The kernel in PTX."""
    return launch(text(), a, b, c)


def in_cuda(a: Array, b: Array, c: Array) -> Launch:
    """The kernel in CUDA C++ with inline PTX."""
    return launch(inline(), a, b, c)


def launch(kernel: ir.Function, a: Array, b: Array, c: Array) -> Launch:
    """A warp for each 16 by 8 elements of C."""
    (m, k), n = a.shape, b.shape[1]
    return Launch(kernel, (ceil_div(n, 8), ceil_div(m, 16)), 32, [a, b, c, m, n, k])


def by_cublas(torch: ModuleType, a: Array, b: Array, c: Array) -> Callable[[], object]:
    """cuBLAS through torch, with a result of f32 as here."""
    return lambda: torch.mm(a, b, torch.float32, out=c)


def arrays(draw: Draw, m: int, n: int, k: int) -> Arrays:
    """Two matrices of f16, and space for their product in f32."""
    return {"a": draw.normal((m, k), "f16"), "b": draw.normal((k, n), "f16"), "c": draw.empty((m, n), "f32")}


def reference(xp: ModuleType, a: Array, b: Array, c: Array) -> Arrays:
    """The product."""
    return {"c": a @ b}


def work(m: int, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    return Work(flops=2 * m * n * k, bytes=2 * (m * k + k * n) + 4 * m * n, rate="f16")


entry = Entry(
    title="C = A·B, f16 in and f32 out, a warp a tile",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"PTX": in_ptx, "inline in CUDA C++": in_cuda},
    libraries={"cuBLAS": by_cublas},
    sizes=[{"m": extent, "n": extent, "k": extent} for extent in (1024, 2048, 4096)],
    small=[
        {"m": 16, "n": 8, "k": 16},
        {"m": 1, "n": 1, "k": 1},
        {"m": 33, "n": 24, "k": 40},
        {"m": 20, "n": 15, "k": 23},
    ],
    tolerance=1e-5,
)
