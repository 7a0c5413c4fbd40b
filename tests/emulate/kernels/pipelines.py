"""Cases of `cuda/pipelines.cu`: threads of a block in different roles, copies on their way."""

import numpy as np

from tests.emulate.kernels.case import Launch, Run, case, same, whole

BUILDS = "sm_80 sm_90"


@case("pipelines", BUILDS, synchronizes="block")
def named_barriers(rng):
    x = whole(rng, -999, 999, 7, 64)
    out = np.zeros_like(x)
    made = 2 * x + 1
    return Run([Launch("named_barriers", 1, 128, [x, out, 7])], [same(out, made[:, ::-1] + made)])


@case("pipelines", BUILDS, synchronizes="block mbarrier")
def block_barriers(rng):
    x = whole(rng, -999, 999, 7, 32)
    out = np.zeros_like(x)
    return Run([Launch("block_barriers", 1, 64, [x, out, 7])], [same(out, np.roll(x - 5, -1, 1))])


@case("pipelines", BUILDS, synchronizes="block copy")
def two_stage_copy(rng):
    x = whole(rng, -99, 99, 6, 64, 4, type=np.float32)
    sums = np.zeros(64, np.float32)
    return Run([Launch("two_stage_copy", 1, 64, [x, sums, 6])], [same(sums, x.sum((0, 2))[::-1])])


@case("pipelines", BUILDS, synchronizes="block mbarrier copy")
def copies_on_barrier(rng):
    x, out = whole(rng, -999, 999, 100), np.full(128, -1, np.int32)
    return Run([Launch("copies_on_barrier", 1, 128, [x, out, 100])], [same(out, np.pad(x, (0, 28))[::-1])])
