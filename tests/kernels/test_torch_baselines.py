"""Baselines by torch.compile, where torch is installed."""

from typing import Any

import pytest

from ptxlab.kernels.parts.torch_baselines import compiled


def test_more_sizes_than_torch_compiles_of_one_function() -> None:
    torch: Any = pytest.importorskip("torch")
    library = compiled(lambda torch, x: x + 1, "y", mode="default")
    for size in range(1, torch._dynamo.config.recompile_limit + 3):
        assert library(torch, x=torch.ones(size))()["y"].sum() == 2 * size
