"""Kernels of NVIDIA's cuda-samples; `tests.corpus.cuda_files` runs them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.corpus.cuda_sample import RANDOM, Array, Sample, floats, zeros

CONCEPTS, FEATURES, DOMAINS = (
    "Samples/2_Concepts_and_Techniques",
    "Samples/3_CUDA_Features",
    "Samples/5_Domain_Specific",
)


def product(_: Array, a: Array, b: Array, *rest: Any) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


def walsh(_: Array, given: Array, log: int) -> Array:
    matrix = np.ones((1, 1))
    for _step in range(log):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix @ given.astype(np.float64)


def black_scholes(*args: Any) -> Array:
    from math import erf

    s, x, t = (values.astype(np.float64) for values in args[2:5])
    rate, spread = args[5:7]
    normal = np.vectorize(lambda value: 0.5 * (1 + erf(value / 2**0.5)))
    first = (np.log(s / x) + (rate + 0.5 * spread**2) * t) / (spread * np.sqrt(t))
    call: Array = s * normal(first) - x * np.exp(-rate * t) * normal(first - spread * np.sqrt(t))
    return call


def histogram(_: Array, data: Array, *rest: Any) -> Array:
    return np.bincount(data.view(np.uint8) >> 2, minlength=64)


def gemm(element: Any) -> list[Any]:
    a, b = (RANDOM.integers(-4, 4, (64, 64)).astype(element) for _ in range(2))
    return [a, b, floats(64, 64), zeros(64, 64), 64, 64, 64, 1.0, 2.0]


def wmma(a: Array, b: Array, c: Array, *rest: Any) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64).T + 2.0 * c


def rows_convolved(_: Array, image: Array, *rest: Any) -> Array:
    return np.stack([np.convolve(row.astype(np.float64), FILTER, "same") for row in image])


ASYNCHRONOUS = f"{FEATURES}/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu"
FILTER = floats(17)
MATRICES = [zeros(32, 32), floats(32, 32), floats(32, 32), 32, 32]
SAMPLES = [
    Sample("Samples/0_Introduction/vectorAdd/vectorAdd.cu", "vectorAdd", 4, 256,
           [floats(1000), floats(1000), zeros(1000), 1000],
           2, lambda a, b, *_: a + b),
    Sample("Samples/0_Introduction/matrixMul/matrixMul.cu", "MatrixMulCUDA<16>", (2, 2), (16, 16), MATRICES, 0,
           product),
    Sample("Samples/6_Performance/transpose/transpose.cu", "transposeNoBankConflicts", (2, 2), (32, 16),
           [zeros(64, 64), floats(64, 64), 64, 64], 0, lambda _, given, *rest: given.T),
    Sample("Samples/6_Performance/transpose/transpose.cu", "transposeDiagonal", (2, 2), (32, 16),
           [zeros(64, 64), floats(64, 64), 64, 64], 0, lambda _, given, *rest: given.T),
    Sample(f"{CONCEPTS}/shfl_scan/shfl_scan.cu", "shfl_scan_test", 1, 256,
           [RANDOM.integers(0, 9, 256).astype(np.int32), 32, np.zeros(1, np.int32)], 0,
           lambda given, *_: np.cumsum(given), launch={"shared": 32}),
    Sample(f"{CONCEPTS}/scan/scan.cu", "scanExclusiveShared", 1, 256,
           [np.zeros(1024, np.uint32), RANDOM.integers(0, 9, 1024).astype(np.uint32), 1024], 0,
           lambda _, given, size: np.concatenate([[0], np.cumsum(given)[:-1]])),
    Sample(f"{CONCEPTS}/sortingNetworks/bitonicSort.cu", "bitonicSortShared", 1, 512,
           [np.zeros(1024, np.uint32), np.zeros(1024, np.uint32), RANDOM.permutation(1024).astype(np.uint32),
            np.arange(1024, dtype=np.uint32), 1024, 1], 0, lambda a, b, keys, *_: np.sort(keys)),
    Sample(f"{CONCEPTS}/histogram/histogram64.cu", "histogram64Kernel", 1, 64,
           [np.zeros(64, np.uint32), RANDOM.integers(0, 256, 4096).astype(np.uint8), 256], 0, histogram),
    Sample(f"{CONCEPTS}/convolutionSeparable/convolutionSeparable.cu", "convolutionRowsKernel", (1, 2), (16, 4),
           [zeros(8, 128), floats(8, 128), 128, 8, 128], 0, rows_convolved, variables={"c_Kernel": FILTER}),
    Sample(f"{CONCEPTS}/reduction/reduction_kernel.cu", "reduce3<int>", 2, 128,
           [RANDOM.integers(0, 99, 512).astype(np.int32), np.zeros(2, np.int32), 512], 1,
           lambda given, *_: given.reshape(2, 256).sum(1), launch={"shared": 512}),
    Sample(f"{CONCEPTS}/reduction/reduction_kernel.cu", "reduce6<float, 128, true>", 2, 128,
           [floats(1024), zeros(2), 1024], 1, lambda given, *_: given.reshape(2, 2, 256).sum((0, 2)),
           launch={"shared": 512}),
    Sample(f"{CONCEPTS}/threadFenceReduction/threadFenceReduction.cu", "reduceSinglePass<128, true>", 4, 128,
           [floats(2048), zeros(4), 2048], 1, lambda given, out, n: np.array([given.sum()]), launch={"shared": 512},
           known="no fence orders the last block's reads after the `atomicInc` that says it is the last"),
    Sample(f"{FEATURES}/cudaTensorCoreGemm/cudaTensorCoreGemm.cu", "simple_wmma_gemm", (1, 1), (128, 4),
           gemm(np.float16), 3, wmma),
    Sample(f"{FEATURES}/bf16TensorCoreGemm/bf16TensorCoreGemm.cu", "simple_wmma_bf16gemm", (1, 1), (128, 4),
           gemm(ml_dtypes.bfloat16), 3, wmma,
           known="B is loaded from `bRow + bCol * ldb`, where its columns are `bCol + bRow * ldb`"),
    *[Sample(ASYNCHRONOUS, f"{name}<16>", (2, 2), (16, 16), MATRICES, 0, product)
      for name in ("MatrixMulAsyncCopySingleStage", "MatrixMulAsyncCopyMultiStage")],
    Sample(ASYNCHRONOUS, "MatrixMulAsyncCopyMultiStageSharedState<16>", (2, 2), (16, 20), MATRICES, 0, product),
    Sample(ASYNCHRONOUS, "MatrixMulAsyncCopyMultiStageLargeChunk<16>", (2, 2), (16, 16), MATRICES, 0, product,
           known="B is read at the place of A; the sample's own B is one number everywhere"),
    Sample(ASYNCHRONOUS, "MatrixMulAsyncCopyLargeChunkAWBarrier<16>", (2, 2), (16, 16), MATRICES, 0, product,
           known="16 threads initialise the barrier, `threadIdx.x == 0` of a block of 16 × 16; B as above"),
    Sample(f"{FEATURES}/binaryPartitionCG/binaryPartitionCG.cu", "oddEvenCountAndSumCG", 2, 64,
           [np.arange(500, dtype=np.int32), np.zeros(1, np.int32), np.zeros(2, np.int32), 500], 2,
           lambda given, *_: np.array([given[1::2].sum(), given[::2].sum()])),
    Sample(f"{FEATURES}/warpAggregatedAtomicsCG/warpAggregatedAtomicsCG.cu", "filter_arr", 2, 64,
           [np.zeros(300, np.int32), np.zeros(1, np.int32), RANDOM.integers(-9, 9, 300).astype(np.int32), 300], 1,
           lambda a, b, given, n: np.array([(given > 0).sum()])),
    Sample(f"{DOMAINS}/BlackScholes/BlackScholes.cu", "BlackScholesGPU", 1, 128,
           [zeros(256), zeros(256), 5 + 25 * floats(256), 1 + 99 * floats(256), 0.25 + 9 * floats(256), 0.02, 0.3, 256],
           0, black_scholes, tolerance=1e-3),
    Sample(f"{DOMAINS}/fastWalshTransform/fastWalshTransform.cu", "fwtBatch1Kernel", 1, 128,
           [zeros(512), floats(512), 9], 0, walsh, launch={"shared": 2048}),
    Sample("Samples/0_Introduction/simpleAWBarrier/simpleAWBarrier.cu", "normVecByDotProductAWBarrier", 2, 128,
           [floats(500), floats(500), np.zeros(2), 500], 0,
           lambda a, b, *_: a / np.sqrt((a.astype(np.float64) * b).sum()), launch={"shared": 256, "cooperative": True}),
]  # fmt: skip
