"""Extensions in C++: host functions as Python, on arrays in place of tensors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxlab.verify.host_code import InlineError
from ptxlab.verify.inline import loader

SOURCE = r"""
#include <torch/extension.h>
#define CHECK_INPUT(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous"); \
    TORCH_CHECK(x.dim() == 2, "two axes")
#define WIDE 8
constexpr int TALL = 4;  // rows of a block

template <typename T>
__global__ void sums(const T* x, T* y, int rows, int columns, T factor) {
    int row = blockIdx.x * TALL + threadIdx.y;
    extern __shared__ float shared[];
    T sum = 0;
    for (int at = threadIdx.x; row < rows && at < columns; at += WIDE) sum += x[row * columns + at];
    shared[threadIdx.y * WIDE + threadIdx.x] = sum;
    __syncthreads();
    if (row < rows && threadIdx.x == 0) {
        for (int at = 1; at < WIDE; at++) sum += shared[threadIdx.y * WIDE + at];
        y[row] += sum * factor;
    }
}
inline unsigned int cdiv(unsigned int a, unsigned int b) { return (a + b - 1) / b; }

torch::Tensor mean(torch::Tensor x, const int times) {
    CHECK_INPUT(x);
    const int rows = x.size(0), columns = x.size(1);  /* of the
    matrix */
    auto y = torch::zeros({rows}, x.options());
    dim3 block(WIDE, TALL);
    size_t shared = WIDE * TALL * sizeof(float);
    float factor;
    for (int turn = 0; turn < times; ++turn) {
        if (times > 1 && columns != 0) {
            factor = turn == 0 ? 1.0f / columns : static_cast<float>(0);
        } else
            factor = 1.0 / (float) columns;
        AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sums", ([&] {
            sums<scalar_t><<<cdiv(rows, block.y), block, shared>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), rows,
                                                                   columns, factor);
        }));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""
LIBRARY = SimpleNamespace(zeros=lambda shape, dtype: np.zeros(shape, dtype))


X = np.random.default_rng(1).standard_normal((6, 11)).astype(np.float32)


def _mean(source: str) -> Any:
    return loader(LIBRARY, "sm_80")("mean", "torch::Tensor mean(torch::Tensor x, int times);", source, ["mean"]).mean


def test_a_host_function_launches_its_kernels() -> None:
    mean = _mean(SOURCE)
    for times in (1, 2):
        assert np.allclose(mean(X, times), X.mean(1), atol=1e-6)


def test_what_is_not_translated_has_its_line() -> None:
    line = SOURCE[: SOURCE.index("    CHECK_INPUT(x);\n    const")].count("\n") + 1
    with pytest.raises(InlineError, match=f"line {line}: `;` is not translated"):
        _mean(SOURCE.replace("    CHECK_INPUT(x);\n    const", "    x = ;\n    const"))


HOST = r"""
int sizes(torch::Tensor in, std::tuple<int, int> pair) {
    const auto [first, second] = pair;
    if (first < 0) throw std::invalid_argument("less than 0");
    double scale = (scalar_t)in.size(0);
    return (int)(scale) + first * second;
}
"""


def test_names_casts_and_exceptions_of_a_host_function() -> None:
    """`in` is a name in C++, and `(word)value` a cast."""
    sizes = loader(LIBRARY, "sm_80")("sizes", "", HOST, ["sizes"]).sizes
    assert sizes(X, (2, 3)) == 12
    with pytest.raises(RuntimeError, match="less than 0"):
        sizes(X, (-1, 3))
    with pytest.raises(InlineError, match="line 5: `=` is not translated"):  # torch would compute
        loader(LIBRARY, "sm_80")("sizes", "", HOST.replace("double scale", "in.index({0})"), ["sizes"])
