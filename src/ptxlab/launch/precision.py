"""Arrays of doubles, as NumPy makes them by default, and of integers, for kernels that compute in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab import ir
from ptxlab.ir.origin import at_origin
from ptxlab.report import Diagnostic, warning

if TYPE_CHECKING:
    from ptxlab.launch.contexts import Context

_SAMPLE = 4096  # elements of an array of integers that are inspected
_SMALLEST = 1 << 23  # the bits of the smallest float32 with all its digits: what is below is not meant as one


def other_arrays(args: Sequence[object]) -> list[int]:
    """The arrays that hardly hold float32: of float64, or of integers too small for the bits of a float."""
    found = []
    for number, value in enumerate(args):
        name = str(getattr(value, "dtype", ""))
        is_array = bool(getattr(value, "shape", ()))
        if is_array and (name == "float64" or (name in ("int32", "uint32") and _has_small_integers(value))):
            found.append(number)
    return found


def _has_small_integers(array: object) -> bool:
    if not isinstance(array, np.ndarray):
        return False
    sample = array.reshape(-1)[:_SAMPLE].view(np.int32) if array.flags.c_contiguous else np.zeros(0, np.int32)
    return bool(sample.any() and sample.min() >= 0 and sample.max() < _SMALLEST)


def mistyped_arrays(
    module: ir.Module, kernel: ir.Function, context: Context, args: Sequence[object], arrays: Sequence[int]
) -> list[Diagnostic]:
    """A warning for each of the arrays that the kernel accesses as `.f32`."""
    known = context.singles.get(kernel.name)
    if not arrays or (known is not None and known.isdisjoint(arrays)):
        return []
    from ptxlab.check.precision import single_precision

    accessed = single_precision(module, kernel)
    context.singles[kernel.name] = frozenset(accessed)
    found = [
        _explain(module, kernel, number, args[number], accessed[number]) for number in arrays if number in accessed
    ]
    return at_origin(module, found)


def _explain(
    module: ir.Module, kernel: ir.Function, number: int, array: Any, instruction: ir.Instruction
) -> Diagnostic:
    is_double = str(array.dtype) == "float64"
    return warning(
        "mistyped-array",
        f"argument {number} of `{kernel.title}` is an array of {array.dtype}, and the kernel accesses it as `.f32`",
        module.span(instruction),
        "4 bytes of an element of 8" if is_double else "the bits of an integer are read as a float",
        notes=["float64 is what NumPy makes by default" if is_double else "1 has the bits of the float 1.4e-45"],
        helps=["pass an array of float32: `x.astype(numpy.float32)`"],
    )
