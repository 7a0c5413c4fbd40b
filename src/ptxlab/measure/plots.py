"""A record as a picture: bars of what each arm reaches, and the roofline they stand under."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ptxlab.measure.record import Record, Sized
from ptxlab.report import KernelError, error

COLOURS = {"variant": "#2f6db3", "library": "#8a8f98", "ceiling": "#d9dce1"}


def draw_bars(record: Record, path: Path) -> None:
    """For each size a bar an arm: TFLOP/s where arithmetic is the limit, GB/s where memory is."""
    plots = _pyplot()
    count = len(record.sizes)
    figure, axes = plots.subplots(1, count, figsize=(1.5 + 4.2 * count, 4), squeeze=False, layout="constrained")
    for sized, axis in zip(record.sizes, axes[0], strict=True):
        by_memory = is_memory_bound(sized)
        arms = [arm for arm in sized.arms if arm.samples and (arm.work.bytes if by_memory else arm.work.flops)]
        values = [arm.bandwidth / 1e9 if by_memory else arm.flops / 1e12 for arm in arms]
        spreads = [value * arm.spread for value, arm in zip(values, arms, strict=True)]
        colours = [COLOURS[arm.kind] for arm in arms]
        bars = axis.bar([arm.name for arm in arms], values, yerr=spreads, color=colours, capsize=3)
        axis.bar_label(bars, [f"{value:.3g}" for value in values], padding=3)
        axis.set_ylabel("GB/s" if by_memory else "TFLOP/s")
        axis.set_title(", ".join(f"{name} = {value}" for name, value in sized.size.items()), fontsize=10)
        axis.tick_params(axis="x", rotation=30)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(y=0.15)
    figure.suptitle(f"{record.title}, {record.machine['gpu']}")
    figure.savefig(path, dpi=150)
    plots.close(figure)


def draw_roofline(record: Record, path: Path) -> None:
    """Operations a second over operations a byte, under the ceilings that were measured with them."""
    plots = _pyplot()
    figure, axis = plots.subplots(figsize=(7, 5), layout="constrained")
    intensities = [sized.work.flops / sized.work.bytes for sized in record.sizes]
    bandwidth = max((arm.bandwidth for arm in _ceilings(record) if not arm.work.flops), default=0)
    rate = max((arm.flops for arm in _ceilings(record) if arm.work.flops), default=0)
    knees = [rate / bandwidth] if rate and bandwidth else []
    low, high = min(intensities + knees) / 8, max(intensities + knees) * 8
    if bandwidth:
        knee = rate / bandwidth if rate else high
        line = [low, min(knee, high), max(high, knee)]
        axis.plot(line, [min(x * bandwidth, rate or x * bandwidth) / 1e12 for x in line], color="#444", lw=1.5)
        axis.annotate(
            f"{bandwidth / 1e9:.0f} GB/s", (low, low * bandwidth / 1e12), textcoords="offset points", xytext=(12, -2)
        )
    if rate:
        axis.annotate(
            f"{rate / 1e12:.0f} TFLOP/s", (high, rate / 1e12), textcoords="offset points", xytext=(-4, 5), ha="right"
        )
    markers = "osD^vPX*<>"
    names = list(
        dict.fromkeys(arm.name for sized in record.sizes for arm in sized.arms if arm.kind != "ceiling" and arm.samples)
    )
    for number, name in enumerate(names):
        points = [
            (sized.work.flops / sized.work.bytes, arm.flops / 1e12)
            for sized in record.sizes for arm in sized.arms if arm.name == name and arm.samples
        ]  # fmt: skip
        axis.scatter(*zip(*points, strict=True), marker=markers[number % len(markers)], label=name, zorder=3)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="operations a byte",
        ylabel="TFLOP/s",
        title=f"{record.title}, {record.machine['gpu']}",
    )
    axis.legend(frameon=False, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plots.close(figure)


def is_memory_bound(sized: Sized) -> bool:
    """Whether memory is the nearer ceiling: by the ceilings that were measured, else where operations are few."""
    rates = [arm.flops for arm in sized.arms if arm.kind == "ceiling" and arm.work.flops]
    speeds = [arm.bandwidth for arm in sized.arms if arm.kind == "ceiling" and not arm.work.flops]
    if not rates or not speeds:
        return sized.work.flops < 10 * sized.work.bytes
    return sized.work.bytes / max(speeds) > sized.work.flops / max(rates)


def _ceilings(record: Record) -> list[Any]:
    return [arm for sized in record.sizes for arm in sized.arms if arm.kind == "ceiling" and arm.samples]


def _pyplot() -> Any:
    try:
        matplotlib: Any = import_module("matplotlib")
    except ImportError:
        raise KernelError(
            [error("missing-package", "matplotlib, which draws the plots, is not installed", None,
                   helps=["run `pip install ptxlab[plots]`"])]
        ) from None  # fmt: skip
    matplotlib.use("Agg")
    return import_module("matplotlib.pyplot")
