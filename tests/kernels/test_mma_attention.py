"""What the gallery's random data does not reach: scores that grow, bank conflicts, other plans, wrong arguments."""

from typing import Any

import numpy as np
import pytest

from ptxlab.kernels import mma_attention
from ptxlab.measure import Host, UnsuitedError


def problem(length: int, size: int = 64, type: str = "f16", mask: str = "none", seed: int = 1) -> dict[str, Any]:
    return mma_attention.arrays(Host(seed), 1, 1, length, size, type, mask)


def error(arrays: dict[str, Any]) -> float:
    exact = {name: value if name == "mask" else value.astype(np.float64) for name, value in arrays.items()}
    wanted = mma_attention.reference(np, **exact)["o"]
    return float(np.linalg.norm(exact["o"] - wanted) / np.linalg.norm(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.01, 0.3, 4.0, -4.0])
def test_scores_that_grow_from_key_to_key(step: float) -> None:
    arrays = problem(120)
    arrays["q"][..., 0] = 8  # scores change by `step` from each key to the next
    arrays["k"][..., 0] = np.arange(120) * step
    assert mma_attention.attend(**arrays).run(device="cpu").diagnostics == []
    assert error(arrays) < 1e-3


def test_rows_of_one_warp_that_grow_at_different_keys() -> None:
    arrays = problem(120)
    arrays["q"][...] = 0
    arrays["q"][0, 0, np.arange(120), np.arange(120) % 64] = 64
    arrays["k"][0, 0, np.arange(120), np.arange(120) % 64] += 8
    mma_attention.attend(**arrays).run(device="cpu")
    assert error(arrays) < 1e-3


@pytest.mark.slow
def test_no_bank_is_asked_twice() -> None:
    launch = mma_attention.attend(**problem(100))
    requests = launch.run(device="cpu", profile=True).counters["requests"]
    assert requests["wavefronts"] == requests["ideal_wavefronts"]


@pytest.mark.bulk(one_in=2)
@pytest.mark.slow
@pytest.mark.parametrize("chosen", [{"stages": 3}, {"warps": 2, "tiles": 2, "keys": 16}])
def test_other_plans(chosen: dict[str, int]) -> None:
    arrays = problem(70, mask="causal")
    assert mma_attention.make(**chosen)(**arrays).run(device="cpu").diagnostics == []
    assert error(arrays) < 1e-3


@pytest.mark.bulk
def test_large_heads_under_a_mask() -> None:
    arrays = problem(200, size=128, type="bf16", mask="causal")
    assert mma_attention.attend(**arrays).run(device="cpu").diagnostics == []
    assert error(arrays) < 5e-3


def test_what_it_is_not_for() -> None:
    with pytest.raises(UnsuitedError, match="heads of 96 elements"):
        mma_attention.attend(**problem(10, size=96))
    with pytest.raises(UnsuitedError, match="elements are f32"):
        mma_attention.attend(**problem(10, type="f32"))
