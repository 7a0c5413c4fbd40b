"""Attention of 16 queries with n keys, heads of 64 numbers in f16: softmax(Q·Kᵀ / 8)·V, one head a block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab.measure import Work
from ptxlab.verify import Array, Scalar, Size, Task


def reference(q: Any, k: Any, v: Any) -> Any:
    """The plain way."""
    scores = np.einsum("hmd,hnd->hmn", q, k) * 0.125
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hmn,hnd->hmd", powers / powers.sum(-1, keepdims=True), v)


task = Task(
    "attention_tile",
    reference,
    sizes={"heads": Size(1, 3), "n": Size(1, 70)},
    arguments=[
        Array("q", "f16", "heads, 16, 64"),
        Array("k", "f16", "heads, n, 64"),
        Array("v", "f16", "heads, n, 64"),
        Array("o", "f16", "heads, 16, 64", role="out"),
        Scalar("heads"),
        Scalar("n"),
    ],
    shapes=[{"heads": 2, "n": 32}],
    timed=[{"heads": 1056, "n": 512}],
    tolerance=4e-3,
    work=lambda heads, n: Work(flops=4 * heads * 16 * 64 * n, bytes=256 * heads * (16 + n), rate="f16"),
    title=__doc__,
)
