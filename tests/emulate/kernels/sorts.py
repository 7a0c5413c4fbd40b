"""Cases of `cuda/sorts.cu` and `cuda/sparse.cu`."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, floats, same, whole, words


@case("sorts", "sm_80", synchronizes="block")
def bitonic_sort(rng):
    keys = words(rng, 3, 128, type=np.int32)
    return Run([Launch("bitonic_sort", 3, 64, [keys], shared=128 * 4)], [same(keys, np.sort(keys))])


@case("sorts", "sm_80", synchronizes="block")
def odd_even_sort(rng):
    keys = floats(rng, 77)
    return Run([Launch("odd_even_sort", 1, 64, [keys, 77], shared=77 * 4)], [same(keys, np.sort(keys))])


@case("sorts", "sm_80", synchronizes="block")
def radix_sort(rng):
    keys = whole(rng, 0, 1 << 12, 256, type=np.uint32)
    return Run([Launch("radix_sort", 1, 256, [keys, 12])], [same(keys, np.sort(keys))])


@case("sorts", "sm_80")
def rank_sort(rng):
    keys = whole(rng, 0, 90, 150, type=np.float64)
    out = np.zeros_like(keys)
    return Run([Launch("rank_sort", 3, 64, [keys, out, 150])], [same(out, np.sort(keys))])


@case("sorts", "sm_80")
def merge_sorted(rng):
    a, b = np.sort(whole(rng, 0, 99, 130)), np.sort(whole(rng, 0, 99, 75))
    out = np.zeros(205, np.int32)
    launch = Launch("merge_sorted", 4, 64, [a, 130, b, 75, out])
    return Run([launch], [same(out, np.sort(np.concatenate([a, b])))])


def sparse(rng, rows, columns, type):
    """A matrix of small whole numbers, most of them zero, so that sums are exact in any order."""
    return whole(rng, 1, 9, rows, columns, type=type) * (rng.random((rows, columns)) < 0.2)


def compressed(matrix):
    """Starts of rows, columns and values."""
    rows, columns = np.nonzero(matrix)
    starts = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int32)
    return starts, columns.astype(np.int32), matrix[rows, columns]


@case("sparse", "sm_80 sm_80.G")
def csr_by_thread(rng):
    matrix, x = sparse(rng, 90, 60, np.float32), whole(rng, -9, 9, 60, type=np.float32)
    y = np.zeros(90, np.float32)
    return Run([Launch("csr_by_thread", 2, 64, [*compressed(matrix), x, y, 90])], [same(y, matrix @ x)])


@case("sparse", "sm_80 sm_80.G")
def csr_by_warp(rng):
    matrix, x = sparse(rng, 22, 300, np.float32), whole(rng, -9, 9, 300, type=np.float32)
    y = np.zeros(22, np.float32)
    return Run([Launch("csr_by_warp", 6, 128, [*compressed(matrix), x, y, 22])], [same(y, matrix @ x)])


@case("sparse", "sm_80 sm_80.G")
def coo_with_atomics(rng):
    matrix, x = sparse(rng, 40, 70, np.float64), whole(rng, -9, 9, 70, type=np.float64)
    y = np.zeros(40)
    order = rng.permutation(np.count_nonzero(matrix))
    rows, columns = (place[order].astype(np.int32) for place in np.nonzero(matrix))
    args = [rows, columns, matrix[rows, columns], x, y, len(order)]
    return Run([Launch("coo_with_atomics", 2, 96, args)], [same(y, matrix @ x)])
