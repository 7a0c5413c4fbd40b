"""What was measured: every sample, beside the hardware and versions it was measured with; kept as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ptxlab.measure.entry import Work
from ptxlab.values import Json


@dataclass(frozen=True)
class Contender:
    """A variant, library or ceiling that was timed."""

    name: str
    kind: str
    """`variant`, `library` or `ceiling`."""
    samples: list[float]
    """Seconds of one run each, in the order they were taken."""
    work: Work
    error: float | None = None
    """‖answer − reference‖ / ‖reference‖; None for a ceiling, which computes no answer."""
    mean_error: float | None = None
    note: str = ""
    """Why there are no samples."""
    hot: list[float] = field(default_factory=list)
    """Seconds of a run on the data of the run before, as far as the L2 cache holds it."""
    compared: int = 0
    """Answers of timed calls whose fingerprints were compared with that of an earlier call on the same data."""
    same: int = 0
    """How many of these had the same bits."""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def hot_median(self) -> float | None:
        return statistics.median(self.hot) if self.hot else None

    @property
    def spread(self) -> float:
        """Half of the interquartile range, as a fraction of the median."""
        if len(self.samples) < 2:
            return 0.0
        first, _, third = statistics.quantiles(self.samples, n=4)
        return (third - first) / 2 / self.median

    @property
    def flops(self) -> float:
        """Operations a second."""
        return self.work.flops / self.median

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.work.bytes / self.median


@dataclass(frozen=True)
class Sized:
    """All contenders at one size."""

    size: Json
    work: Work
    contenders: list[Contender]
    conditions: dict[str, list[float]] = field(default_factory=dict)
    """Of the GPU's clock, power and temperature, the least, the median and the greatest."""

    @property
    def spelled(self) -> str:
        """`m = 64, n = 8`"""
        return ", ".join(f"{name} = {value}" for name, value in self.size.items())

    def __getitem__(self, name: str) -> Contender:
        for contender in self.contenders:
            if contender.name == name:
                return contender
        raise KeyError(
            f"{name!r} was not measured; expected one of {', '.join(contender.name for contender in self.contenders)}"
        )

    def ratio(self, contender: str, to: str, *, hot: bool = False) -> float:
        """How many times as fast a contender is as another: the median over rounds of the ratio of their times."""
        first, second = (one.hot if hot else one.samples for one in (self[contender], self[to]))
        return statistics.median(other / own for own, other in zip(first, second, strict=True))

    def of_ceiling(self, contender: Contender) -> float | None:
        """The fraction of the nearer ceiling that a contender reaches; None where no ceiling was measured."""
        parts = []
        for ceiling in self.contenders:
            if ceiling.kind != "ceiling" or not ceiling.samples:
                continue
            if ceiling.work.flops and ceiling.work.rate == contender.work.rate:
                parts.append(contender.flops / ceiling.flops)
            elif not ceiling.work.flops:
                parts.append(contender.bandwidth / ceiling.bandwidth)
        return max(parts, default=None)


@dataclass(frozen=True)
class Record:
    """A whole measurement."""

    name: str
    title: str
    baseline: str
    date: str
    commit: str
    machine: Mapping[str, Any]
    sizes: list[Sized] = field(default_factory=list)

    def __str__(self) -> str:
        from ptxlab.measure.table import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from ptxlab.measure.table import rows_of
        from ptxlab.report.notebook import table_html, title_html

        parts = [title_html(f"{self.title}, on {self.machine['gpu']}")]
        for sized in self.sizes:
            parts += [title_html(sized.spelled), table_html(rows_of(sized, self.baseline))]
        return "".join(parts)

    def as_object(self) -> dict[str, object]:
        """The whole record, for JSON; the key of the contenders is `arms`, as in the files under `evidence/`."""
        whole = asdict(self)
        for sized in whole["sizes"]:
            sized["arms"] = sized.pop("contenders")
        return whole

    def write(self, path: Path) -> None:
        """Keep it as JSON; a number is as short as reads back the same within a millionth."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_shortened(self.as_object()), indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Record:
        """A record that `write` kept."""
        given = json.loads(path.read_text(encoding="utf-8"))
        sizes = [
            Sized(
                one["size"],
                Work(**one["work"]),
                [Contender(**{**contender, "work": Work(**contender["work"])}) for contender in one["arms"]],
                one.get("conditions", {}),
            )
            for one in given.pop("sizes")
        ]
        return Record(**given, sizes=sizes)


def _shortened(value: object) -> Any:
    """The value with numbers of seven digits.

    >>> _shortened({"a": [0.1234567891, 3]})
    {'a': [0.1234568, 3]}
    """
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, Mapping):
        return {name: _shortened(part) for name, part in value.items()}
    return [_shortened(part) for part in value] if isinstance(value, list) else value
