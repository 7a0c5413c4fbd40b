"""How a kernel is launched: the one list of launch options, which are the keywords of `kernel.launch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from numbers import Integral, Real
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxlab.device.detectors import DETECTORS
from ptxlab.device.record import Record
from ptxlab.isa.gpus import gpu_named
from ptxlab.report.diagnostic import current_code
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Executor

Extent = int | Sequence[int]
"""Extents as a user writes them: `4`, `(4,)`, `(4, 2)` or `(4, 2, 1)`."""
Extents = tuple[int, int, int]


# Which `mul` and `add` without a rounding modifier become one `fma`; see `ptxlab.isa.contraction`.
CONTRACTIONS = ("none", "all", "ptxas")


@dataclass(frozen=True, init=False)
class LaunchOptions:
    """All that a launch takes beside the kernel and its arguments; `ptxlab.ir.Function.launch` says what each is."""

    grid: Extents
    block: Extents
    shared: int = 0
    cluster: Extents | None = None
    device: str = "auto"
    detectors: frozenset[str] = DETECTORS
    seed: int = 0
    seeds: int | Iterable[int] | None = None
    schedule: str | Sequence[int] | None = None
    executor: Executor | None = None
    blocks: Sequence[Extents] | None = None
    on_error: str = "raise"
    timeout: float | None = None
    workers: int | None = None
    progress: Callable[[int, int], None] | None = None
    profile: bool = False
    gpu: str | None = None
    contract: str | None = None
    cooperative: bool = False
    overlap: bool = False
    stream: Any = None
    compile: str | Path | None = None
    wait: bool = True
    record: Record | None = None
    timeline: bool | int = False

    def __init__(self, grid: Extent, block: Extent, **others: object) -> None:
        """Extents may be given as a user writes them, and `detectors` as true, false or names of detectors."""
        others["grid"], others["block"] = grid, block
        if not others.keys() <= _DEFAULTS.keys():
            raise TypeError(f"a launch has no option {', '.join(sorted(others.keys() - _DEFAULTS.keys()))}")
        self._take(_DEFAULTS | others)

    @classmethod
    def of(cls, given: dict[str, object]) -> LaunchOptions:
        """The options that are given, all of them, by name."""
        options = cls.__new__(cls)
        options._take(given)
        return options

    def _take(self, given: dict[str, Any]) -> None:
        """Set all fields at once: one by one takes longer than all else that a launch on a GPU takes."""
        given["grid"], given["block"] = extent(given["grid"], "grid"), extent(given["block"], "block")
        if given["cluster"] is not None:
            given["cluster"] = extent(given["cluster"], "cluster")
        if given["blocks"] is not None:
            given["blocks"] = [_three(coordinates, 0, "blocks") for coordinates in given["blocks"]]
        given["detectors"] = chosen_detectors(given["detectors"])
        object.__setattr__(self, "__dict__", given)
        self._refuse_wrong()

    def _refuse_wrong(self) -> None:
        """Refuse values that no launch can have."""
        if self.on_error not in ("raise", "strict", "collect"):
            raise ValueError(f"on_error={self.on_error!r}: expected one of 'raise', 'strict', 'collect'")
        if not isinstance(self.seed, Integral) or not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed={self.seed!r}: expected a whole number from 0 to 2**64 - 1")
        if self.timeout is not None and not (isinstance(self.timeout, Real) and self.timeout > 0):
            raise ValueError(f"timeout={self.timeout!r}: expected a number of seconds above 0")
        if self.contract not in (None, *CONTRACTIONS):
            raise ValueError(f"contract={self.contract!r}: expected one of 'none', 'all', 'ptxas'")
        if self.record is not None and not isinstance(self.record, Record):
            raise ValueError(f"record={self.record!r}: expected a `ptxlab.Record`")
        if not isinstance(self.timeline, int) or self.timeline < 0:
            raise ValueError(f"timeline={self.timeline!r}: expected true, or a number of spans for each warp")
        if self.gpu is not None:
            gpu_named(self.gpu)
        if self.compile not in (None, "ptxas", "driver") and Path(self.compile).suffix != ".cubin":
            raise ValueError(f"compile={self.compile!r}: expected 'ptxas', 'driver' or the path of a `.cubin` file")

    @property
    def emulator_only(self) -> str | None:
        """An option that was given and is for the emulator alone."""
        if self.blocks is not None:
            return "blocks"
        if self.profile:
            return "profile"
        if self.record is not None:
            return "record"
        return "seeds" if self.seeds is not None else "schedule" if self.schedule is not None else None

    @property
    def arithmetic(self) -> str | None:
        """An option that was given and says how the emulator computes."""
        return "gpu" if self.gpu is not None else "contract" if self.contract is not None else None

    @property
    def gpu_only(self) -> str | None:
        """An option that was given and is for a GPU alone."""
        return "stream" if self.stream is not None else None if self.wait else "wait"


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(LaunchOptions)}


def chosen_detectors(given: bool | Iterable[str]) -> frozenset[str]:
    """The detectors that are asked for: all, none, or some by their codes."""
    if isinstance(given, bool):
        return DETECTORS if given else frozenset()
    named = frozenset(map(current_code, [given] if isinstance(given, str) else given))
    if unknown := sorted(named - DETECTORS):
        raise ValueError(
            f"detectors={unknown[0]!r}: the detectors that can be chosen are {', '.join(sorted(DETECTORS))}"
        )
    return named


def extent(given: Extent, name: str) -> Extents:
    """Extents as three numbers; `name` is what a message calls them."""
    if type(given) is int:
        return given, 1, 1
    return _three(given, 1, name)


def _three(given: Extent, other: int, name: str) -> Extents:
    """One to three whole numbers, filled up with `other`."""
    try:
        values = [index(value) for value in (given if hasattr(given, "__iter__") else (given,))]
    except TypeError:
        values = []
    if isinstance(given, str) or not 1 <= len(values) <= 3:
        raise ValueError(f"{name}={given!r}: expected one to three whole numbers")
    return (*values, other, other)[:3]  # type: ignore[return-value]
