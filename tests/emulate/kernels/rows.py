"""Cases of `cuda/rows.cu`: softmax, norms, attention."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, close, floats

BUILDS = "sm_80 sm_80.use_fast_math"


@case("rows", BUILDS, synchronizes="block")
def softmax(rng):
    x = floats(rng, 5, 200) * 3
    out = np.zeros_like(x)
    return Run([Launch("softmax", 5, 96, [x, out, 200])], [close(out, softmax_of(x), 1e-4, 1e-6)])


def softmax_of(x):
    """The softmax of each row, in double precision."""
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@case("rows", BUILDS, synchronizes="block")
def layer_norm(rng):
    x, gain, bias = floats(rng, 4, 150) + 3, floats(rng, 150), floats(rng, 150)
    out = np.zeros_like(x)
    v = x.astype(np.float64)
    expected = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * gain + bias
    return Run([Launch("layer_norm", 4, 64, [x, gain, bias, out, 150, 1e-5])], [close(out, expected, 1e-4, 1e-4)])


@case("rows", BUILDS, synchronizes="block")
def half_norm(rng):
    x = floats(rng, 3, 100, type=np.float16)
    out = np.zeros_like(x)
    v = x.astype(np.float64)
    expected = v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-5)
    return Run([Launch("half_norm", 3, 64, [x, out, 100])], [close(out, expected, 1e-3, 1e-4)])


@case("rows", BUILDS, synchronizes="block")
def attention_row(rng):
    q, k, v = floats(rng, 6, 40), floats(rng, 50, 40), floats(rng, 50, 40)
    out = np.zeros_like(q)
    expected = softmax_of(q @ k.T / np.sqrt(40)) @ v
    launch = Launch("attention_row", 6, 64, [q, k, v, out, 50, 40], shared=50 * 4)
    return Run([launch], [close(out, expected, 1e-4, 1e-5)])
