"""What a kernel has to compute: launches at several sizes, each with its arguments and what they must hold after it.

    def launch(random, n, block):
        x = random.standard_normal(n).astype(np.float32)
        return Case(-(-n // block), block, {"x": x, "n": np.uint32(n)}, expected={"x": 2.0 * x})

    double = Task("double", launch, sizes=({"n": 100, "block": 64}, {"n": 1000, "block": 256}))

`judging` says whether a kernel does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ptxlab.device.options import Extent

if TYPE_CHECKING:
    from ptxlab.measure.entry import Launch

Size = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One launch: its arguments in the order of the parameters, and the right values of those that it writes."""

    grid: Extent
    block: Extent
    arguments: Mapping[str, Any]
    expected: Mapping[str, Any]
    """Values in float64 or in integers, by the name of the argument; others are not to change."""
    tolerance: float = 0.0
    """A value may differ by this times one plus the size of the expected one; 0 requires equality."""
    mistakes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """What a well-known mistake gives, by what to say of it."""
    arrays: Mapping[str, Any] = field(default_factory=dict)
    """Arrays that arguments only refer to, as tensor maps do; `expected` may name them, too."""
    scratch: Sequence[str] = ()
    """Arguments that may hold anything after the launch."""
    shared: int = 0
    """Bytes of dynamic shared memory."""
    cluster: Extent | None = None

    @classmethod
    def of(cls, launch: Launch, **arrays: tuple[object, object]) -> Case:
        """A launch of the gallery, with each array that it writes and what that must hold after it."""
        names = [parameter.name for parameter in launch.function.parameters]
        return cls(
            launch.grid,
            launch.block,
            dict(zip(names, launch.args, strict=True)),
            expected={name: wanted for name, (_, wanted) in arrays.items()},
            arrays={name: array for name, (array, _) in arrays.items()},
            shared=launch.shared,
            cluster=launch.cluster,
        )

    def held(self, name: str) -> Any:
        """An argument, or an array that one refers to."""
        return self.arrays[name] if name in self.arrays else self.arguments[name]


@dataclass(frozen=True)
class Task:
    """A problem for a kernel: `launch(random, **size)` is a case of it, with data that `random` draws."""

    kernel: str
    launch: Callable[..., Case]
    sizes: Sequence[Size]
    """From one that is easily followed to those that reach the edges."""

    def case(self, number: int) -> Case:
        """The case of a size, with its own data."""
        import numpy as np

        return self.launch(np.random.default_rng(number), **self.sizes[number])
