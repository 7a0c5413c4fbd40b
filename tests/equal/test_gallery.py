"""Kernels of the gallery against each other and against their references, with right answers and planted mistakes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import ptxlab
from ptxlab.measure.data import Host
from tests.equal.pairs import Gallery, Pair, same

BULK = pytest.mark.bulk
REFERENCE = "reference"
ROW = {"rows": 2, "columns": 70, "type": "f32"}
ATTENTION = {"batch": 1, "heads": 1, "length": 70, "size": 64, "type": "bf16", "mask": "causal"}
HEADS = {"type": "f16", "batch": 1, "heads": (1, 1), "length": 70, "size": 64, "causal": True}
TILE = {"m": 20, "n": 15, "k": 23}
STEPS = {"type": "bf16", "m": 70, "n": 72, "k": 200}
TENSOR = {"type": "bf16", "m": 130, "n": 72, "k": 200}
DECODE = {"type": "f16", "cache": "f16", "batch": 1, "heads": (2, 1), "length": 40, "size": 64}

PAIRS = [
    ("vector_addition", {"n": 67}, "one element a thread", "four elements a thread", "same-bits"),
    pytest.param("transpose", ROW, "elements", "squares", "same-bits", marks=BULK),
    pytest.param("warp_reduction", {"rows": 3, "columns": 45, "type": "f32"}, "shared memory", "shfl", "same-bits",
                 marks=BULK),
    ("mma_tile", TILE, "PTX", REFERENCE, "same-function"),
    pytest.param("wgmma_steps", STEPS, "one_tile", "ring", "same-bits", marks=BULK),
    pytest.param("wgmma_steps", STEPS, "one_tile", "specialized", "same-bits", marks=BULK),
    pytest.param("wgmma_steps", STEPS, "one_tile", "persistent", "same-bits", marks=BULK),
    pytest.param("wgmma_steps", STEPS, "one_tile", "ping_pong", "same-bits", marks=BULK),
    pytest.param("wgmma_steps", STEPS, "one_tile", REFERENCE, "same-function", marks=BULK),
    ("tcgen05_gemm", {"type": "bf16", "m": 128, "n": 64, "k": 72}, "one_tile", REFERENCE, "same-function"),
    pytest.param("tcgen05_gemm", TENSOR, "one_tile", "ring", "same-bits", marks=BULK),
    pytest.param("tcgen05_gemm", TENSOR, "one_tile", "pair", "same-bits", marks=BULK),
    ("block_scaled_mma", {"format": "mxf8", "m": 20, "n": 8, "k": 64}, "mma.sync", REFERENCE, "same-function"),
    ("layer_norm", ROW, "plain", "read once", "same-function"),
    ("cross_entropy", ROW, "read once", REFERENCE, "same-function"),
    pytest.param("softmax", ROW, "plain", "read once", "same-function", marks=BULK),
    ("softmax", ROW, "plain", REFERENCE, "same-function"),
    pytest.param("rms_norm", ROW, "plain", REFERENCE, "same-function", marks=BULK),
    pytest.param("layer_norm", ROW, "plain", REFERENCE, "same-function", marks=BULK),
    pytest.param("gemv", {"batch": 1, "m": 3, "k": 40, "type": "bf16"}, "rows by blocks", REFERENCE, "same-function",
                 marks=BULK),
    pytest.param("mma_attention", ATTENTION, "mma.sync", REFERENCE, "same-function", marks=BULK),
    pytest.param("wgmma_attention", HEADS, "wgmma", REFERENCE, "same-function", marks=BULK),
    pytest.param("decode_attention", DECODE, "plain", REFERENCE, "same-function", marks=BULK),
]  # fmt: skip


@pytest.mark.bulk(one_in=8)
@pytest.mark.parametrize(("name", "size", "a", "b", "level"), PAIRS)
def test_right_pairs(name: str, size: dict[str, Any], a: str, b: str, level: str) -> None:
    gallery = Gallery(name, size)
    other = gallery.reference if b == REFERENCE else gallery.launches(b)
    assert ptxlab.equal(gallery.launches(a), other, **gallery.options).level == level


@BULK
@pytest.mark.parametrize(
    "pair", [pair for pair in same() if "NumPy" in pair.name and ":" not in pair.name], ids=lambda pair: pair.name
)
def test_what_takes_a_reference_of_its_own(pair: Pair) -> None:
    assert pair.compare()["is_right"]


PLANTED = [
    ("vector_addition", {"n": 67}, "one element a thread", ("add.rn.f32", "sub.rn.f32")),
    ("mma_tile", TILE, "PTX", ("%c2, %c3}, {%a0, %a1", "%c2, %c3}, {%a1, %a0")),
    ("tcgen05_gemm", {"type": "bf16", "m": 128, "n": 64, "k": 72}, "one_tile", ("0x8100490, %p6;", "0x8100490, !%p6;")),
    ("mma_tile", TILE, "PTX", ("ldmatrix.sync.aligned.m8n8.x2.trans", "ldmatrix.sync.aligned.m8n8.x2")),
    ("wgmma_steps", {"type": "bf16", "m": 64, "n": 64, "k": 72}, "one_tile", ("1, 1, 1, 0, 0;", "1, -1, 1, 0, 0;")),
    pytest.param("rms_norm", ROW, "plain", ("rsqrt.approx.f32", "sqrt.approx.f32"), marks=BULK),
    pytest.param("layer_norm", ROW, "plain", ("sub.rn.f32", "add.rn.f32"), marks=BULK),
]


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize(("name", "size", "variant", "change"), PLANTED)
def test_planted_mistakes(name: str, size: dict[str, Any], variant: str, change: tuple[str, str]) -> None:
    entry = import_module(f"ptxlab.kernels.{name}").entry
    (launch,) = entry.launches(variant, entry.arrays(Host(), **size))
    found = ptxlab.equal(launch, launch.changed(change))
    assert found.level == "different"
    assert found.witness is not None
    assert found.witness.places[1] is not None
