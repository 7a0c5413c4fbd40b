"""One call for both devices: check the program, choose where to run, run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxlab import ir
from ptxlab.check import check
from ptxlab.emulate.launch import Result
from ptxlab.emulate.launch import launch as emulate
from ptxlab.report import PtxError

Extent = int | Sequence[int]


def launch(
    kernel: ir.Function,
    grid: Extent,
    block: Extent,
    args: Sequence[Any] = (),
    *,
    shared: int = 0,
    cluster: Extent | None = None,
    device: str = "auto",
    checks: bool = True,
    seed: int = 0,
    blocks: Sequence[Sequence[int]] | None = None,
    on_error: str = "raise",
    timeout: float | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    profile: bool = False,
) -> Result:
    """Run a kernel; see `ptxlab.ir.Function.launch`."""
    module = kernel.module
    assert module is not None
    if kernel.kind != "entry":
        raise ValueError(f"`{kernel.name}` is a device function; the kernels are {', '.join(module.entries)}")
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device {device!r}: there are 'auto', 'cpu' and 'cuda'")
    if device == "cuda":
        raise NotImplementedError("running on a GPU is not there yet; device='cpu' runs the kernel on this machine")
    if on_error not in ("raise", "collect"):
        raise ValueError(f"on_error={on_error!r}: there are 'raise' and 'collect'")
    if cluster is not None and extent(cluster) != (1, 1, 1):
        raise NotImplementedError("clusters of several blocks are not emulated yet")
    refuse_wrong(module)
    return emulate(
        module,
        kernel,
        grid=extent(grid),
        block=extent(block),
        args=args,
        shared=shared,
        checks=checks,
        seed=seed,
        blocks=None
        if blocks is None
        else [extent(place) if len(place) == 3 else (*place, 0, 0)[:3] for place in blocks],  # type: ignore[misc]
        on_error=on_error,
        timeout=timeout,
        workers=workers,
        progress=progress,
        profile=profile,
    )


_checked: dict[int, ir.Module] = {}


def refuse_wrong(module: ir.Module) -> None:
    """Refuse a program with errors; one that has passed is not looked at again."""
    if _checked.get(id(module)) is module:
        return
    errors = [found for found in check(module) if found.level == "error"]
    if errors:
        raise PtxError(errors)
    _checked[id(module)] = module


def extent(given: Extent) -> tuple[int, int, int]:
    """`4`, `(4,)`, `(4, 2)` or `(4, 2, 1)` as three numbers."""
    values = (given,) if isinstance(given, int) else tuple(int(value) for value in given)
    if not 1 <= len(values) <= 3:
        raise ValueError(f"{given!r}: one to three numbers are wanted")
    return (*values, 1, 1)[:3]  # type: ignore[return-value]
