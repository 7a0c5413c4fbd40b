"""A record as a picture: bars of what each contender reaches, and its roofline."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any

from ptxlab.measure.record import Record, Sized
from ptxlab.report import KernelError, error

COLORS = {"variant": "#2f6db3", "library": "#8a8f98", "ceiling": "#c3c8d0"}
MARKERS = "osD^vPX*<>ph"  # two more than there are colors, so that these meet others the second time round
ACROSS = 3  # sizes side by side


def draw_bars(record: Record, path: Path) -> None:
    """For each size a bar per contender: TFLOP/s where arithmetic is the limit, GB/s where memory is."""
    bars(record).savefig(path, dpi=150)


def draw_roofline(record: Record, path: Path) -> None:
    """Operations a second over operations a byte, under the ceilings that were measured with them."""
    roofline(record).savefig(path, dpi=150)


def draw_trials(seconds: Sequence[float | None], best: str, path: str | Path) -> None:
    """What each combination of a search takes, in the order in which they were tried, and the best so far."""
    figure = _figure(8, 4.5)
    axis = figure.subplots()
    times = [(number, 1e6 * one) for number, one in enumerate(seconds, 1) if one is not None]
    numbers, found = zip(*times, strict=True) if times else ((), ())
    front = list(accumulate(found, min))
    axis.scatter(numbers, found, s=14, color=COLORS["library"], label="a combination")
    axis.step(numbers, front, where="post", color=COLORS["variant"], label=f"the best so far; in the end {best}")
    if front and max(found) > 10 * front[-1]:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:,g}")
    else:
        axis.set_ylim(bottom=0)
    axis.set(xlabel="combination", ylabel="µs")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def kinds() -> list[str]:
    """The endings of file names that say what a picture is to be: `png`, `svg` and others."""
    return sorted(_figure(1, 1).canvas.get_supported_filetypes())


def bars(record: Record) -> Any:
    """The figure of `draw_bars`: names are beside their bars, so that they can be long."""
    count = len(record.sizes)
    columns = min(count, ACROSS)
    rows = ceil(count / columns)
    most = max(len(sized.contenders) for sized in record.sizes)
    figure = _figure(5.2 * columns, 0.5 + rows * (1.1 + 0.26 * most))
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_visible(False)
    for sized, axis in zip(record.sizes, axes, strict=False):
        by_memory = is_memory_bound(sized)
        contenders = [
            one for one in sized.contenders if one.samples and (one.work.bytes if by_memory else one.work.flops)
        ]
        values = [one.bandwidth / 1e9 if by_memory else one.flops / 1e12 for one in contenders]
        spreads = [value * one.spread for value, one in zip(values, contenders, strict=True)]
        colors = [COLORS[one.kind] for one in contenders]
        drawn = axis.barh([one.name for one in contenders], values, xerr=spreads, color=colors, capsize=3)
        axis.bar_label(drawn, [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in values], padding=3)
        axis.invert_yaxis()
        axis.set_xlabel("GB/s" if by_memory else "TFLOP/s")
        axis.set_title(_wrap(sized.spelled, 46), fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.15)
    figure.suptitle(_wrap(f"{record.title}, {record.machine['gpu']}", 50 * columns))
    return figure


def roofline(record: Record) -> Any:
    """The figure of `draw_roofline`."""
    sizes = [sized for sized in record.sizes if sized.work.flops]
    if not sizes:
        raise KernelError(
            [error("no-roofline", f"`{record.title}` has no operations to count, and so no roofline", None,
                   helps=["`--plot` draws its bars"])]
        )  # fmt: skip
    figure = _figure(7, 5)
    axis = figure.subplots()
    intensities = [sized.work.flops / sized.work.bytes for sized in sizes]
    bandwidth = max((one.bandwidth for one in _ceilings(record) if not one.work.flops), default=0)
    rate = max((one.flops for one in _ceilings(record) if one.work.flops), default=0)
    knees = [rate / bandwidth] if rate and bandwidth else []
    low, high = min(intensities + knees) / 8, max(intensities + knees) * 8
    if bandwidth:
        knee = rate / bandwidth if rate else high
        line = [low, min(knee, high), max(high, knee)]
        axis.plot(line, [min(x * bandwidth, rate or x * bandwidth) / 1e12 for x in line], color="#444", lw=1.5)
        axis.annotate(
            f"{bandwidth / 1e9:,.0f} GB/s", (low, low * bandwidth / 1e12), textcoords="offset points", xytext=(12, -2)
        )
    if rate:
        axis.annotate(
            f"{rate / 1e12:.0f} TFLOP/s", (high, rate / 1e12), textcoords="offset points", xytext=(-4, 5), ha="right"
        )
    names = list(
        dict.fromkeys(one.name for sized in sizes for one in sized.contenders if one.kind != "ceiling" and one.samples)
    )
    for number, name in enumerate(names):
        points = [
            (sized.work.flops / sized.work.bytes, one.flops / 1e12)
            for sized in sizes for one in sized.contenders if one.name == name and one.samples
        ]  # fmt: skip
        axis.scatter(*zip(*points, strict=True), marker=MARKERS[number % len(MARKERS)], label=name, zorder=3)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="operations a byte",
        ylabel="TFLOP/s",
        title=f"{_wrap(record.title, 60)}\n{record.machine['gpu']}",
    )
    ticks = import_module("matplotlib.ticker")
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_formatter("{x:,g}")
        scale.set_minor_formatter(ticks.LogFormatter(minor_thresholds=(1, 0.5)))  # where there are no powers of ten
    axis.legend(frameon=False, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def is_memory_bound(sized: Sized) -> bool:
    """Whether memory is the nearer ceiling: by the ceilings that were measured, else where operations are few."""
    rates = [one.flops for one in sized.contenders if one.kind == "ceiling" and one.work.flops]
    speeds = [one.bandwidth for one in sized.contenders if one.kind == "ceiling" and not one.work.flops]
    if not rates or not speeds:
        return sized.work.flops < 10 * sized.work.bytes
    return sized.work.bytes / max(speeds) > sized.work.flops / max(rates)


def _ceilings(record: Record) -> list[Any]:
    return [one for sized in record.sizes for one in sized.contenders if one.kind == "ceiling" and one.samples]


def _wrap(text: str, width: int) -> str:
    """Lines of at most so many characters; `m = 64` stays together."""
    return fill(text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"), width)


def _figure(width: float, height: float) -> Any:
    """A figure of so many inches that needs no screen."""
    try:
        figures = import_module("matplotlib.figure")
    except ImportError:
        raise KernelError(
            [error("missing-package", "matplotlib, which draws the plots, is not installed", None,
                   helps=["run `pip install 'ptxlab[plots]'`"])]
        ) from None  # fmt: skip
    return figures.Figure(figsize=(width, height), layout="constrained")
