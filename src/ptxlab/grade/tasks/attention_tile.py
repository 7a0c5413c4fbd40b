"""Attention of one head of 16 numbers in f16: softmax(Q·Kᵀ)·V, a tile of 16 queries at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab.measure import Work
from ptxlab.verify import Array, Scalar, Size, Task


def reference(q: object, k: Any, v: object) -> Any:
    """The plain way."""
    scores = q @ k.T
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers @ v / powers.sum(-1, keepdims=True)


task = Task(
    "attention_tile",
    reference,
    sizes={"queries": Size(1, 50), "keys": Size(1, 70)},
    arguments=[
        Array("q", "f16", "queries, 16"),
        Array("k", "f16", "keys, 16"),
        Array("v", "f16", "keys, 16"),
        Array("o", "f16", "queries, 16", role="out"),
        Scalar("queries"),
        Scalar("keys"),
    ],
    shapes=[{"queries": 32, "keys": 32}],
    timed=[{"queries": 16384, "keys": 512}],
    tolerance=4e-3,
    slow=0.02,  # tensor cores have little to do for heads of 16 numbers
    work=lambda queries, keys: Work(flops=64 * queries * keys, bytes=64 * (queries + keys), rate="f16"),
    title=__doc__,
)
