"""Kernels as operators of JAX, where it is installed."""

import sys
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.cli.samples import SAXPY
from ptxlab.frameworks.jax_operators import jax_operator


def test_jax_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match="`jax_operator` needs the package `jax`: pip install jax"):
        jax_operator(lambda x: x)(print)


def test_an_operator_under_jit_vmap_and_grad() -> None:
    jax = pytest.importorskip("jax")
    kernel = ptxlab.parse(SAXPY)["saxpy"]

    def gradient(kept: Any, change: Any) -> Any:
        return 2 * change, change

    @jax_operator(lambda x, y: jax.ShapeDtypeStruct(y.shape, y.dtype), gradient=gradient)
    def saxpy(x: Any, y: Any, out: Any) -> None:
        out[...] = y
        kernel.launch(-(-x.size // 256), 256, [x, out, 2.0, x.size])

    x, y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)
    np.testing.assert_array_equal(saxpy(x, y), 2 * x + 1)
    np.testing.assert_array_equal(jax.jit(lambda x, y: saxpy(x, y) + 1)(x, y), 2 * x + 2)
    batch = np.stack([x, x + 1])
    np.testing.assert_array_equal(jax.vmap(saxpy, (0, None))(batch, y), 2 * batch + 1)
    of_x, of_y = jax.grad(lambda x, y: saxpy(x, y).sum(), (0, 1))(x, y)
    np.testing.assert_array_equal(of_x, 2)
    np.testing.assert_array_equal(of_y, 1)
