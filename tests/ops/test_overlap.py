"""Calls one after the other, as on a stream of a GPU: kernels that start early read nothing that is still written."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.author import Kernel
from ptxlab.launch.launches import Launch, on_emulator
from ptxlab.ops import calls

BF16 = ml_dtypes.bfloat16


def drawn(*shape: int, scale: float = 0.2) -> Any:
    return (np.random.default_rng(len(shape)).standard_normal(shape) * scale).astype(BF16)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """What calls start, which is not run."""
    found: list[Launch] = []
    monkeypatch.setattr(calls, "on_emulator", found.extend)
    return found


def test_what_a_call_computes_is_anything_of_the_next(started: list[Launch]) -> None:
    packed = kernels.quantize(drawn(8, 256).astype(np.float32), "nvfp4").pack()
    cache, lengths = drawn(2, 16, 1, 64), np.array([5, 16], np.int32)
    x, w = drawn(2, 64), drawn(64, 64)
    first = kernels.matmul(x, w)
    second = kernels.matmul(first, w, bias=first[0], residual=first, activation="silu")
    row = kernels.matmul(second[:1], w, bias=second[0], residual=second[:1])
    wide = kernels.gated_matmul(drawn(9, 64), drawn(256, 64).T, drawn(256, 64).T)
    decoded = kernels.quantized_matvec(packed, wide[:2])
    answer = kernels.decode_attention(first[:, None], cache, cache + 1, lengths)
    assert {launch.overlap for launch in started} == {True}
    assert not [one.function.name for one in started if ".nc" in text_of(one)]
    on_emulator(started)
    exact = x.astype(float) @ w.astype(float)
    assert abs(first.astype(float) - exact).max() < 0.02
    assert np.isfinite(row.astype(float)).all()
    assert np.isfinite(decoded.astype(float)).all()
    assert np.isfinite(answer.astype(float)).all()


def test_a_load_that_is_not_coherent_is_found(started: list[Launch]) -> None:
    x, w = drawn(2, 64), drawn(64, 64)
    first = kernels.matmul(x, w)
    kernels.matmul(first, w, bias=first[0])
    wrong = started[1].changed(("ld.global.b32", "ld.global.nc.b32"))
    with pytest.raises(
        ptxlab.KernelError, match="through the non-coherent cache of global memory that the grid before"
    ):
        on_emulator([started[0], wrong])


def text_of(launch: Launch) -> str:
    return str(launch.kernel) if isinstance(launch.kernel, Kernel) else ptxlab.format(launch.module)
