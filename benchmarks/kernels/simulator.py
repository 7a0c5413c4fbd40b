"""The kernel of sgemm.ptx under numba's CUDA simulator: prints the seconds of 1024 threads with so many iterations.

Run by a Python that has numba, with NUMBA_ENABLE_CUDASIM=1.
"""

import sys
import time

import numpy as np
from numba import cuda


@cuda.jit
def sgemm(a, b, c, depth):
    row, column = cuda.threadIdx.y, cuda.threadIdx.x
    total = np.float32(0)
    for k in range(depth):
        total += a[row, k] * b[k, column]
    c[row, column] = total


depth = int(sys.argv[1])
a, b, c = np.ones((32, depth), np.float32), np.ones((depth, 32), np.float32), np.zeros((32, 32), np.float32)
start = time.perf_counter()
sgemm[1, (32, 32)](a, b, c, depth)
print(time.perf_counter() - start)
