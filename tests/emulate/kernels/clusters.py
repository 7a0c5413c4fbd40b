"""Cases of `clusters`: blocks that reach each other's shared memory."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, floats, same, whole

BUILDS = "sm_90 sm_90.G"


@case("clusters", BUILDS, synchronizes="cluster")
def cluster_ring(rng):
    x = whole(rng, -999, 999, 4, 3, 64)  # clusters, blocks, threads
    out = np.zeros_like(x)
    return Run([Launch("cluster_ring", 12, 64, [x, out], cluster=3)], [same(out, np.roll(x, -1, 1)[:, :, ::-1])])


@case("clusters", BUILDS, synchronizes="cluster")
def cluster_sums(rng):
    x, out = whole(rng, -999, 999, 3, 256), np.zeros((3, 4), np.int32)
    return Run([Launch("cluster_sums", 12, 64, [x, out])], [same(out, x.sum(1, keepdims=True).repeat(4, 1))])


@case("clusters", BUILDS, synchronizes="cluster")
def cluster_histogram(rng):
    x, bins = whole(rng, 0, 256, 1000), np.zeros(256, np.int32)
    launch = Launch("cluster_histogram", 8, 64, [x, bins, len(x)], cluster=8)
    return Run([launch], [same(bins, np.bincount(x, minlength=256))])


@case("clusters", BUILDS, synchronizes="cluster")
def cluster_transpose(rng):
    x = floats(rng, 32, 32)
    out = np.zeros_like(x)
    return Run([Launch("cluster_transpose", (4, 4), (8, 8), [x, out, 32])], [same(out, x.T)])


@case("clusters", BUILDS)  # without order it uses barriers before they are set up, which is reported first
def cluster_mail(rng):
    x, out = whole(rng, -999, 999, 5, 32), np.zeros((3, 5, 32), np.int32)
    launch = Launch("cluster_mail", 4, 32, [x, out, 5], cluster=(4, 1, 1))
    return Run([launch], [same(out, x[None, :, ::-1] + np.arange(1, 4)[:, None, None])])
