"""CuTe's tutorials, `examples/cute/tutorial` of CUTLASS, each from its `.cu` file; `tests.corpus.cuda_files` runs them.

A shape such as `make_shape(M, N, K)` is a tuple, one that is static `()`, an atom of a TMA copy a tuple with its map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import ptxlab
from tests.corpus.cuda_sample import RANDOM, Array, Sample, floats, zeros

FOLDER = "examples/cute/tutorial"
OPTIONS = ("-Iinclude", "-Itools/util/include", "-std=c++17", "--expt-relaxed-constexpr")
# The TN and the NT instance of a template differ in strides, layouts or the MMA, which these parts of the names pick.
TN = "gemm_device<..., cute::tuple<int, cute::C<1>>, ...>"
NT = "gemm_device<..., cute::Layout<cute::tuple<cute::C<128>, cute::C<8>>, cute::tuple<cute::C<1>, cute::C<128>>>, ...>"
WGMMA = "gemm_device<...64x64x16_F16F16F16_SS<(cute::SM90::GMMA::Major){}, ...>"
UNORDERED = "each thread waits for its own copies, and nothing orders the MMA after those of other threads"
FENCE = "no `tcgen05.fence::after_thread_sync` between the wait for the MMA and the loads of its result"


def tutorial(file: str, entry: str, *rest: Any, **more: Any) -> Sample:
    return Sample(f"{FOLDER}/{file}", entry, *rest, repository="cutlass", options=OPTIONS, **more)


def small(*shape: int) -> Array:
    """Whole numbers whose sums an f16 holds."""
    return RANDOM.integers(-1, 2, shape).astype(np.float16)


def columns(*args: Any) -> Array:
    """C of A and B with columns that are contiguous, as an array of C's columns."""
    a, b = (array.astype(np.float64) for array in args if isinstance(array, np.ndarray) and array.any())
    return (a.T @ b).T


def rows(*args: Any) -> Array:
    """C of A and B with rows that are contiguous, as an array of C's columns."""
    a, b = (array.astype(np.float64) for array in args if isinstance(array, np.ndarray) and array.any())
    return (a @ b.T).T


def gemm(m: int, n: int, k: int, *, transposed: bool, atoms: int = 2, made: Any = floats) -> list[Any]:
    """The arguments of `gemm_device(shape, tiler, A, dA, sA, tA, B, dB, sB, tB, C, dC, sC, tC, alpha, beta)`."""
    a, b = (made(k, size) if transposed else made(size, k) for size in (m, n))
    of_a, of_b = ((size,) if transposed else (k,) for size in (m, n))
    static: Sequence[Any] = [()] * atoms
    return [(m, n, k), (), a, of_a, *static, b, of_b, *static, np.zeros((n, m), a.dtype), (m,)]


def sgemm(file: str) -> list[Sample]:
    kernels = [(NT, columns, True), (TN, rows, False)]
    return [
        tutorial(
            f"{file}.cu", entry, (2, 1), 256, [*gemm(256, 128, 16, transposed=is_nt), (), (), 1.0, 0.0], 10, wanted
        )
        for entry, wanted, is_nt in kernels
    ]


def tma(is_nt: bool) -> list[Any]:
    """The arguments of `wgmma_tma_sm90`, which takes A and B by maps."""
    m, n, k = 256, 128, 192
    a, b = (small(k, size) if is_nt else small(size, k) for size in (m, n))
    maps = [ptxlab.tensor_map(array, box=(8, 64) if is_nt else (128, 64), swizzle="128B") for array in (a, b)]
    return [(m, n, k), (), a, (maps[0],), b, (maps[1],), np.zeros((n, m), np.float16), (m,), (1,), 1.0, 0.0]


class Blackwell:
    """The arrays of the tutorials of Blackwell: D = alpha A B + beta C, of rows, with results in f32."""

    def __init__(self, m: int, n: int, k: int) -> None:
        self.shape = m, n, k
        self.a, self.b, self.c, self.d = small(m, k), small(n, k), floats(m, n), zeros(m, n)

    def wanted(self, *args: Any) -> Array:
        return 2.0 * (self.a.astype(np.float64) @ self.b.astype(np.float64).T) + 3.0 * self.c

    def tensors(self) -> list[Any]:
        """A, B, C and D with their shapes and strides."""
        m, n, k = self.shape
        return [(m, k, k, self.a), (n, k, k, self.b), (m, n, n, self.c), (m, n, n, self.d)]

    def shapes(self) -> list[Any]:
        """A, B, C and D for TMA: tensors of coordinates."""
        m, n, k = self.shape
        return [(m, k), (n, k), (m, n), (m, n)]

    def maps(self, rows_a: int, rows_b: int) -> list[Any]:
        boxes = [(self.a, rows_a), (self.b, rows_b)]
        return [(ptxlab.tensor_map(array, box=(count, 64), swizzle="128B"),) for array, count in boxes]

    def epilogue_maps(self) -> list[Any]:
        return [(ptxlab.tensor_map(array, box=(128, 32), swizzle="128B"),) for array in (self.c, self.d)]


def blackwell(file: str, arrays: Blackwell, grid: Any, cluster: Any, shared: int, args: Sequence[Any]) -> Sample:
    launch = {"shared": shared, **({"cluster": cluster} if cluster else {})}
    return tutorial(f"blackwell/{file}.cu", "gemm_device", grid, 128, [*args, 2.0, 3.0], arrays.d, arrays.wanted,
                    target="sm_100a", launch=launch, known=FENCE)  # fmt: skip


def descriptor(m: int, n: int) -> tuple[int]:
    """`tiled_mma`, which holds the instruction descriptor: f16 operands, results in f32."""
    return (1 << 4 | n >> 3 << 17 | m >> 4 << 24,)


def copied(*args: Any) -> Array:
    return SOURCE


SOURCE, WHOLE, PART = floats(512, 256), zeros(512, 256), [zeros(300, 528) for _ in range(2)]
ODD = floats(300, 528)
FIRST, SECOND, THIRD, FOURTH = (Blackwell(*shape) for shape in ((128, 256, 128), (256, 256, 128), (512, 1024, 64),
                                                               (512, 1024, 64)))  # fmt: skip
FIFTH = Blackwell(512, 1024, 64)
HALF = {"target": "sm_90a", "tolerance": 0.0}
TUTORIALS = [
    *(sample for file in ("sgemm_1", "sgemm_2", "sgemm_sm70") for sample in sgemm(file)),
    tutorial("sgemm_sm80.cu", "gemm_device", (2, 1), 128,
             [*gemm(256, 128, 192, transposed=False, atoms=3, made=small), (), (), 1.0, 0.0], 12, rows,
             launch={"shared": 98304}, tolerance=0.0),
    tutorial("tiled_copy.cu", "copy_kernel_vectorized", (2, 8), 256,
             [(2, 8, 256, 16384, SOURCE), (2, 8, 256, 16384, WHOLE), ()], WHOLE, copied, tolerance=0.0),
    *(tutorial("tiled_copy_if.cu", name, (5, 5), 256, [(528, 300, 528, ODD), (528, part), (), ()], part,
               lambda *args: ODD, tolerance=0.0)
      for name, part in zip(("copy_if_kernel", "copy_if_kernel_vectorized"), PART, strict=True)),
    *(tutorial("hopper/wgmma_sm90.cu", WGMMA.format(int(is_nt)), (2, 1), 128,
               [*gemm(256, 128, 192, transposed=is_nt, made=small), (1,), 1.0, 0.0], 10, columns if is_nt else rows,
               launch={"shared": 98304}, known=UNORDERED, **HALF)
      for is_nt in (True, False)),
    *(tutorial("hopper/wgmma_tma_sm90.cu", WGMMA.format(int(is_nt)), (2, 1), 128, tma(is_nt), 6,
               columns if is_nt else rows, launch={"shared": 98432, "cluster": 2}, **HALF)
      for is_nt in (True, False)),
    blackwell("01_mma_sm100", FIRST, (1, 1), None, 49280, [*FIRST.tensors(), (), descriptor(128, 256), ()]),
    blackwell("02_mma_tma_sm100", SECOND, (2, 1), None, 49280,
              [*SECOND.shapes()[:2], *SECOND.tensors()[2:], (), descriptor(128, 256), (), *SECOND.maps(128, 256)]),
    blackwell("03_mma_tma_multicast_sm100", THIRD, (4, 4), (4, 4), 49280,
              [*THIRD.shapes()[:2], *THIRD.tensors()[2:], (), descriptor(128, 256), (), *THIRD.maps(32, 64)]),
    blackwell("04_mma_tma_2sm_sm100", FOURTH, (4, 4), (4, 4), 32896,
              [*FOURTH.shapes()[:2], *FOURTH.tensors()[2:], (), descriptor(256, 256), (), *FOURTH.maps(32, 64)]),
    blackwell("05_mma_tma_epi_sm100", FIFTH, (4, 4), (4, 4), 32896,
              [*FIFTH.shapes(), (), (), descriptor(256, 256), (), *FIFTH.maps(32, 64), *FIFTH.epilogue_maps()]),
]  # fmt: skip
