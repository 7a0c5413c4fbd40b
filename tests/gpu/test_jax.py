"""Functions of the gallery for arrays of JAX on a GPU: XLA's stream, its memory, `jit`, gradients and batches."""

from typing import Any

import pytest

from ptxlab import gpu
from ptxlab.kernels import attention, matmul, softmax

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),  # other packages have their own
    pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU"),
]


@pytest.fixture
def jax() -> Any:
    found = pytest.importorskip("jax")
    if all(device.platform == "cpu" for device in found.devices()):
        pytest.skip("JAX is installed without CUDA")
    return found


def normal(jax: Any, seed: int, *shape: int) -> Any:
    return jax.random.normal(jax.random.key(seed), shape).astype("bfloat16")


def error(found: Any, wanted: Any) -> float:
    wide = wanted.astype("float32")
    return float(abs(found.astype("float32") - wide).max() / abs(wide).max())


def attend(jax: Any, q: Any, k: Any, v: Any) -> Any:
    q, k, v = (one.astype("float32") for one in (q, k, v))
    with jax.default_matmul_precision("highest"):
        return jax.nn.softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, -1) @ v


def test_what_is_launched_is_in_line_with_what_xla_does(jax: Any) -> None:
    x = normal(jax, 0, 4096, 4096)
    ours = jax.jit(lambda x: softmax(matmul(x @ x * 1e-2, x) * 1e-2))
    theirs = jax.jit(lambda x: jax.nn.softmax((x @ x * 1e-2) @ x * 1e-2, -1))
    assert error(ours(x), theirs(x)) <= 5e-2


@pytest.mark.parametrize("is_packed", [False, True])
def test_gradients_of_attention_have_memory_of_xla(jax: Any, is_packed: bool) -> None:
    q, k, v = (normal(jax, seed, 256, 2, 64) if is_packed else normal(jax, seed, 1, 2, 256, 64) for seed in range(3))
    starts = jax.numpy.array([0, 256], "int32") if is_packed else None

    def ours(*given: Any) -> Any:
        return attention(*given, cu_seqlens_q=starts).astype("float32")

    def wanted(*given: Any) -> Any:
        turned = [one.swapaxes(0, 1) if is_packed else one for one in given]
        found = attend(jax, *turned)
        return found.swapaxes(0, 1) if is_packed else found

    assert error(jax.jit(ours)(q, k, v), wanted(q, k, v)) <= 2e-2
    for _ in range(2):  # the second call is made ready by the first
        found = jax.jit(jax.grad(lambda *given: (ours(*given) ** 2).sum(), (0, 1, 2)))(q, k, v)
        meant = jax.grad(lambda *given: (wanted(*given) ** 2).sum(), (0, 1, 2))(q, k, v)
        for one, other in zip(found, meant, strict=True):
            assert error(one, other) <= 3e-2


def test_a_batch_of_products(jax: Any) -> None:
    a, b = normal(jax, 0, 3, 64, 72), normal(jax, 1, 3, 72, 40)
    with jax.default_matmul_precision("highest"):
        wanted = a.astype("float32") @ b.astype("float32")
    assert error(jax.jit(jax.vmap(matmul))(a, b), wanted) <= 2e-2
