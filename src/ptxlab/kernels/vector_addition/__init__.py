"""c = a + b: the first kernel one writes."""

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

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 256


@cache
def module() -> ir.Module:
    """Both kernels, as vector_addition.ptx has them."""
    return load(Path(__file__).with_name("vector_addition.ptx"))


def one_element(a: Array, b: Array, c: Array) -> Launch:
    """A thread for each element."""
    n = len(c)
    return Launch(module()["vector_addition"], ceil_div(n, BLOCK), BLOCK, [a, b, c, n])


def four_elements(a: Array, b: Array, c: Array) -> Launch:
    """A thread for each four elements, read and written as 16 bytes: the arrays start at a multiple of that."""
    n = len(c)
    return Launch(module()["vector_addition_by_four"], ceil_div(n, 4 * BLOCK), BLOCK, [a, b, c, n])


def torch_baseline(torch: ModuleType, a: Array, b: Array, c: Array) -> Callable[[], object]:
    """What torch does."""
    return lambda: torch.add(a, b, out=c)


def arrays(draw: Draw, n: int) -> Arrays:
    """Two vectors, and space for their sum."""
    return {"a": draw.normal(n, "f32"), "b": draw.normal(n, "f32"), "c": draw.empty(n, "f32")}


def reference(xp: ModuleType, a: Array, b: Array, c: Array) -> Arrays:
    """The sum."""
    return {"c": a + b}


entry = Entry(
    title="c = a + b for f32 vectors",
    arrays=arrays,
    reference=reference,
    work=lambda n: Work(flops=n, bytes=12 * n, rate="f32 arithmetic"),
    variants={"one element a thread": one_element, "four elements a thread": four_elements},
    libraries={"torch": torch_baseline},
    sizes=[{"n": 1 << 20}, {"n": 1 << 24}, {"n": 1 << 28}],
    small=[{"n": 1}, {"n": 256}, {"n": 1003}],
    tolerance=1e-7,
)
