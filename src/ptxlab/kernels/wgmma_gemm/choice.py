"""Which variant computes a product: what was measured to be the fastest, or what is estimated to be."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ptxlab.kernels.parts.operands import STRIPE
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.parts.tile_stores import CHUNK
from ptxlab.kernels.wgmma_gemm.candidates import Problem, estimate, shapes

TABLE = Path(__file__).with_name("tuned.json")
FORMATS_TABLE = Path(__file__).with_name("tuned_formats.json")
AT_ONCE = Shape(stages=4, together=16, buffers=2, even=True)  # both warpgroups multiply one tile


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


@cache
def choose(problem: Problem, emulated: bool = False, residual: bool = False, activation: bool = False) -> Shape:
    """The variant for a product: the fastest on an H200, or one that is cheap on the emulator.

    A residual comes through the ring, which two warpgroups in turns need for themselves. An activation takes time: of
    two warpgroups with one tile, one is ahead, so that both do not compute it at the same time.
    """
    if emulated:
        return Shape(groups=1, columns=min(STRIPE, -(-problem.n // CHUNK) * CHUNK), stages=2)
    found = tuned().get(problem)
    if found is None:
        found = min(shapes(problem), key=lambda one: (estimate(problem, one), one.rows * one.columns, one.split))
    if residual:
        return AT_ONCE if found.alternate else replace(found, cluster=1, beside=False)
    if activation and found.even and not found.alternate:
        return replace(found, lead=1, buffers=1 if found.cluster == 1 else found.buffers)
    return found
