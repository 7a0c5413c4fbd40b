"""What is measured: a problem, the kernels that solve it, and the libraries that are their baselines.

    entry = Entry(
        title="c = a + b",
        arrays=lambda draw, n: {"a": draw.normal(n, "f32"), "b": draw.normal(n, "f32"), "c": draw.empty(n, "f32")},
        reference=lambda xp, a, b, c: {"c": a + b},
        work=lambda n: Work(flops=n, bytes=12 * n, rate="f32"),
        variants={"add": lambda a, b, c: Launch(add, ceil_div(n, 256), 256, [a, b, c, n])},
        libraries={"torch": lambda torch, a, b, c: lambda: torch.add(a, b, out=c)},
        ...
    )

The same functions serve arrays of NumPy on the emulator and tensors of torch on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptxlab.launch.launches import Arrays
from ptxlab.launch.launches import Launch as Launch

Size = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """The least that a problem costs: operations, and bytes moved when each is read or written once."""

    flops: float
    bytes: float
    rate: str
    """The unit that does the operations: the type of a matrix product, or `f32` for ordinary arithmetic."""
    only_reads: bool = False
    """Whether next to nothing is written: then a run that only reads is a ceiling, too."""


@dataclass(frozen=True)
class Entry:
    """A problem, the kernels that solve it, and the libraries to compare them with.

    `arrays(draw, **size)` draws the data and allocates the answer, `reference(xp, **arrays)` computes the answer
    in float64 with NumPy or torch as `xp`, `variants[name](**arrays)` is the launch (or the launches) of a kernel, and
    `libraries[name](torch, **arrays)` returns what calls the library: it writes the answers into the arrays, or returns
    those that the library made, by name.
    """

    title: str
    arrays: Callable[..., Arrays]
    reference: Callable[..., Arrays]
    work: Callable[..., Work]
    variants: Mapping[str, Callable[..., Launch | Sequence[Launch]]]
    sizes: Sequence[Size]
    """The sizes to measure, the one that matters most last."""
    small: Sequence[Size]
    """Sizes for the emulator: enough to reach every edge."""
    tolerance: float | Callable[..., float]
    """The largest ‖answer − reference‖ / ‖reference‖ allowed, or a function of the size; 0 requires equality."""
    libraries: Mapping[str, Callable[..., Callable[[], Any]]] = field(default_factory=dict)
    baseline: str | None = None
    """The contender that others are compared with; by default the first library, else the first variant."""

    def launches(self, variant: str, arrays: Arrays) -> list[Launch]:
        """What to launch, in this order, for a variant."""
        found = self.variants[variant](**arrays)
        return [found] if isinstance(found, Launch) else list(found)

    def allowed(self, size: Size) -> float:
        """The tolerance at a size."""
        return self.tolerance(**size) if callable(self.tolerance) else self.tolerance

    @property
    def measured_against(self) -> str:
        """The name of the baseline."""
        return self.baseline or next(iter([*self.libraries, *self.variants]))
