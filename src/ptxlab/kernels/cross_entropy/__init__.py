"""Cross entropy of the rows of a matrix."""

from __future__ import annotations

import math
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer
from ptxlab.device.array_types import type_of
from ptxlab.kernels.cross_entropy.kernel import THREADS, cross_entropy, gradient, sum_losses
from ptxlab.kernels.parts.elements import SIZES
from ptxlab.kernels.parts.rows import launch_rows
from ptxlab.kernels.parts.spreads import MEASURED, SMALL, Spread, extents
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.launch.launches import Arrays, Launch
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

IGNORED = -100  # the target of rows without a loss, unless another is given


def read_once(x: Array, targets: object, loss: object, logarithms: object, ignored: int = IGNORED) -> Launch:
    """A warp or a block for each row."""
    rows, columns = extents(x)
    arguments = [x, targets, loss, logarithms, rows, columns, ignored]
    spread = Spread.of([x], is_kept=False)  # a row is gone over once
    return launch_rows(cross_entropy, spread, rows, arguments, index=type_of(targets))


def find_gradient(
    x: Pointer, targets: Pointer, logarithms: Array, factors: object, y: object, ignored: int = IGNORED
) -> Launch:
    """The gradient of the loss, by each row's factor; nothing has to be summed."""
    rows, columns = extents(x)
    arguments = [x, targets, logarithms, factors, y, rows, columns, ignored]
    spread = Spread.of([x], [y], is_kept=False)
    return launch_rows(gradient, spread, rows, arguments, index=type_of(targets))


def sum_up(losses: object, targets: Array, total: object, count: object, ignored: int, is_mean: bool) -> Launch:
    """The sum of the losses, or their mean over rows that are not ignored, always in the same order."""
    rows = math.prod(targets.shape)
    made = sum_losses.specialize(INDEX=type_of(targets), IS_MEAN=is_mean)
    return Launch(made, 1, THREADS, [losses, targets, total, count, rows, ignored])


def expression(torch: ModuleType, x: Any, targets: object, loss: Array, logarithms: Array) -> object:
    """The same in torch."""
    return torch.nn.functional.cross_entropy(x.float(), targets, reduction="none")


def arrays(draw: Draw, rows: int, columns: int, type: str) -> Arrays:
    """A matrix, a class for each row, and space for the loss of each."""
    return {
        "x": draw.normal((rows, columns), type),
        "targets": draw.integers(rows, "s64", 0, columns),
        "loss": draw.empty(rows, "f32"),
        "logarithms": draw.empty(rows, "f32"),
    }


def reference(xp: ModuleType, x: Any, targets: Any, loss: Array, logarithms: Array) -> Arrays:
    """By the definition, with the largest x of a row taken away from all, which changes nothing but the range."""
    highest = xp.amax(x, -1)
    found = xp.log(xp.exp(x - highest[:, None]).sum(-1)) + highest
    first = xp.arange(len(targets), device=x.device) * x.shape[1]
    chosen = x.reshape(-1)[first + xp.asarray(targets, dtype=xp.int64)]
    return {"loss": found - chosen}


def work(rows: int, columns: int, type: str) -> Work:
    """Each element is read once."""
    return Work(4 * rows * columns, rows * (columns * SIZES[type] + 16), "f32 arithmetic")


entry = Entry(
    title="loss = log Σ exp(x) - x[target] of the rows of a matrix",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"read once": read_once},
    libraries={"torch.compile": compiled(expression, "loss"), "torch": eager(expression, "loss")},
    sizes=MEASURED,
    small=SMALL[::2],
    tolerance=1e-6,
)
