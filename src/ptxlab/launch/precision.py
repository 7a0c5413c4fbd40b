"""Arrays of doubles, as NumPy makes them by default, for kernels that compute in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab import ir
from ptxlab.ir.origin import at_origin
from ptxlab.report import Diagnostic, warning


def mistyped_arrays(module: ir.Module, kernel: ir.Function, args: Sequence[Any]) -> list[Diagnostic]:
    """A warning for each array of float64 that the kernel accesses as `.f32`."""
    doubles = [number for number, value in enumerate(args) if str(getattr(value, "dtype", "")) == "float64"]
    arrays = [number for number in doubles if getattr(args[number], "shape", ())]
    if not arrays:
        return []
    from ptxlab.check.precision import single_precision

    accessed = single_precision(module, kernel)
    found = [_explain(module, kernel, number, accessed[number]) for number in arrays if number in accessed]
    return at_origin(module, found)


def _explain(module: ir.Module, kernel: ir.Function, number: int, instruction: ir.Instruction) -> Diagnostic:
    return warning(
        "mistyped-array",
        f"argument {number} of `{kernel.title}` is an array of float64, and the kernel accesses it as `.f32`",
        module.span(instruction),
        "4 bytes of an element of 8",
        notes=["float64 is what NumPy makes by default"],
        helps=["pass an array of float32: `x.astype(numpy.float32)`"],
    )
