"""Cases of `cuda/library.cu`: CUB, pipelines, semaphores and groups as NVIDIA's libraries write them."""

import numpy as np

from tests.emulate.kernels.case import Check, Launch, Run, case, close, floats, same, whole

BUILDS = "sm_80 sm_90"


@case("library", BUILDS, synchronizes="block")
def cub_reduce(rng):
    x, sums = whole(rng, -999, 999, 300), np.zeros(3, np.int32)
    expected = [part.sum() for part in np.split(x, [128, 256])]
    return Run([Launch("cub_reduce", 3, 128, [x, sums, 300])], [same(sums, expected)])


@case("library", BUILDS, synchronizes="block")
def cub_scan(rng):
    x, total = whole(rng, -999, 999, 256), np.zeros(1, np.int32)
    out = np.zeros_like(x)
    checks = [same(out, x.cumsum() - x), same(total, x.sum())]
    return Run([Launch("cub_scan", 1, 64, [x, out, total])], checks)


@case("library", BUILDS, synchronizes="block")
def cub_sort(rng):
    keys, values = whole(rng, 0, 65536, 128, type=np.uint32), np.arange(128, dtype=np.int16)
    keys[::9] = 777
    order = np.argsort(keys, kind="stable")
    return Run([Launch("cub_sort", 1, 64, [keys, values])], [same(keys, keys[order]), same(values, order)])


@case("library", BUILDS, synchronizes="block mbarrier copy")
def pipeline_sums(rng):
    x, sums = whole(rng, -99, 99, 7, 64), np.zeros(64, np.int32)
    expected = (x * 3 ** np.arange(7)[::-1, None]).sum(0)[::-1]
    return Run([Launch("pipeline_sums", 1, 64, [x, sums, 7])], [same(sums, expected)])


@case("library", BUILDS, synchronizes="block copy")
def group_copy(rng):
    x = floats(rng, 4, 32, 4)
    out = np.zeros_like(x)
    return Run([Launch("group_copy", 1, 32, [x, out, 128], shared=32 * 16)], [same(out, x[:, ::-1])])


@case("library", BUILDS)
def sums_by_label(rng):
    labels, x = whole(rng, 0, 5, 32), whole(rng, -99, 99, 32)
    out = np.zeros_like(x)
    expected = [x[labels == label].sum() * 100 + (labels == label).sum() for label in labels]
    return Run([Launch("sums_by_label", 1, 32, [labels, x, out])], [same(out, expected)])


@case("library", BUILDS, synchronizes="block")
def semaphore_of_two(rng):
    inside, most, entries = (np.zeros(1, np.int32) for _ in range(3))
    launch = Launch("semaphore_of_two", 1, 128, [inside, most, entries])
    return Run([launch], [same(inside, 0), same(entries, 20), between(most, 1, 2)])


def between(array: np.ndarray, low: int, high: int) -> Check:
    """The elements end up from `low` to `high`."""

    def check(printed: str) -> None:
        assert (low <= array).all()
        assert (array <= high).all()

    return check


@case("library", BUILDS)
def complex_powers(rng):
    z = floats(rng, 50, 2)
    out = np.zeros_like(z)
    expected = (z[:, 0].astype(np.float64) + 1j * z[:, 1]) ** 4
    expected = np.stack([expected.real, expected.imag], 1)
    return Run([Launch("complex_powers", 1, 64, [z, out, 4, 50])], [close(out, expected, 1e-4, 1e-3)])
