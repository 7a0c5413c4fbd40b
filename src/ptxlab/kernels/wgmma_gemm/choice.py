"""Which variant computes a product: what was measured to be the fastest, or what is estimated to be."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ptxlab.kernels.parts.choices import Choice
from ptxlab.kernels.parts.operands import STRIPE
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.correction import best, ranked

TABLE = Path(__file__).with_name("tuned.json")
FORMATS_TABLE = Path(__file__).with_name("tuned_formats.json")
TRIED, ALIKE = 24, 2  # variants that `tune` measures, and how many of them may have the same tile


def read_table(path: Path) -> dict[Problem, Shape]:
    """The fastest variants, as they were found."""
    if not path.exists():
        return {}
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["fastest"]
    return {Problem(**row["problem"]): shape_of(row["shape"]) for row in rows}


@cache
def tuned() -> dict[Problem, Shape]:
    """The fastest variants, as `benchmarks/tune_gemm.py` found them."""
    return read_table(TABLE) | read_table(FORMATS_TABLE)


def shape_of(fields: dict[str, Any]) -> Shape:
    """A variant as JSON keeps it."""
    plain: dict[str, Any] = {**fields, "keep": tuple(fields.get("keep", Shape.keep))}
    return Shape(**plain)


def choose(problem: Problem, emulated: bool = False, residual: bool = False, activation: bool = False) -> Shape:
    """The variant for a product: the fastest on the GPU, or one that is cheap on the emulator."""
    if emulated:
        return Shape(groups=1, columns=min(STRIPE, problem.columns_for(problem.n)), stages=2)
    found: Shape = PRODUCTS(problem, residual, activation)
    return found


@cache
def _chosen(problem: Problem, residual: bool, activation: bool) -> Shape:
    measured = None if residual else tuned().get(problem)
    return _fitting(measured or ranked(problem, residual)[0], activation)


def _candidates(problem: Problem, residual: bool, activation: bool) -> list[Shape]:
    return [_fitting(one, activation) for one in best(problem, TRIED, ALIKE, residual)]


def _fitting(shape: Shape, activation: bool) -> Shape:
    """The same, or one like it, for an activation, which takes time.

    Of two warpgroups with one tile, one is ahead, so that both do not compute it at the same time.
    """
    if activation and shape.even and not shape.pingpong:
        return replace(shape, lead=1, buffers=1 if shape.cluster == 1 else shape.buffers)
    return shape


PRODUCTS = Choice("product", _chosen, _candidates)
