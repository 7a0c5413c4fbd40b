# ruff: noqa: E501
"""Kernels of cuda-samples."""

from typing import Any

import numpy as np

from tests.equal.projects.stranger import Results, Stranger, f, i, p


def sample(file: str, entry: str, *rest: Any, **more: Any) -> Stranger:
    more["options"] = ("-I../../../Common", "-DUINT_MAX=0xffffffffu")
    return Stranger("cuda-samples", f"Samples/{file}", entry, *rest, **more)


def box(x: Any, y: Any, w: int, rows: int, r: int) -> Results:
    at = np.clip(np.arange(w)[:, None] + np.arange(-r, r + 1), 0, w - 1)
    return {1: x[:, at].sum(-1) * np.float32(1 / (2 * r + 1))}


SAMPLES = [
    sample("0_Introduction/matrixMulDrv/matrixMul_kernel.cu", "matrixMul_bs8_64bit", (3, 2), (8, 8),
           [f(16, 24), f(16, 32), f(32, 24), 32, 24], lambda c, x, y, *_: {0: x @ y}),
    sample("2_Concepts_and_Techniques/boxFilter/boxFilter_kernel.cu", "d_boxfilter_x_global", 1, 8,
           [f(8, 20), f(8, 20), 20, 8, 3], box),
    sample("2_Concepts_and_Techniques/reduction/reduction_kernel.cu", "reduce1<float>", 2, 64, [f(100), f(2), 100],
           lambda x, y, n: {1: np.stack([x[:64].sum(), x[64:].sum()])}, shared=256),
    sample("2_Concepts_and_Techniques/segmentationTreeThrust/kernels.cuh", "makeNewEdges", 1, 32,
           [i(20, 15).astype(np.uint32), i(99, 40).astype(np.uint32), i(40, 20).astype(np.uint32), f(20),
            np.zeros(15, np.uint32), f(15), 15], lambda at, m, e, w, n, y, c: {5: w[at]}),
    sample("2_Concepts_and_Techniques/threadFenceReduction/threadFenceReduction_kernel.cuh", "reduceSinglePass<64, false>", 3,
           64, [f(300), f(3), 300], lambda x, y, n: {1: np.concatenate([x.sum(keepdims=True), y[1:]])}, shared=512,
           mistake="no fence orders the last block's reads after the `atomicInc` that says it is the last",
           instance=["reduceSinglePass<64, false>"]),
    sample("3_CUDA_Features/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu", "MatrixMulNaiveLargeChunk<16>", (2, 2),
           (16, 16), [f(32, 32), f(32, 32), f(32, 32), 32, 32], lambda c, x, y, *_: {0: x @ y},
           mistake="B is read at the place of A; the sample's own B is one number everywhere"),
    sample("3_CUDA_Features/graphMemoryNodes/graphMemoryNodes.cu", "negateArray", 2, 32, [f(50), f(50), 50],
           lambda x, y, n: {1: -x}),
    sample("4_CUDA_Libraries/conjugateGradientCudaGraphs/conjugateGradientCudaGraphs.cu", "initVectors", 1, 32,
           [f(50), f(50), 50], lambda x, y, n: {0: np.ones(50), 1: np.zeros(50)}),
    sample("5_Domain_Specific/NV12toBGRandResize/utils.cu", "floatToChar", 1, 32,
           [100 * p(60), np.zeros(60, np.uint8), 4, 5, 1], None),
    sample("5_Domain_Specific/fluidsGL/fluidsGL_kernels.cu", "advectParticles_k", (1, 1), (8, 2),
           [(p(4, 8, 2) - 0.5), f(4, 8, 2), 8, 4, 0.1, 2, 64], None),
]  # fmt: skip
