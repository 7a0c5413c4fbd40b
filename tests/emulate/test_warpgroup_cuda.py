"""wgmma in CUDA C++: a ring of stages that bulk copies fill and two warpgroups multiply from."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.descriptor import Descriptor
from tests.tools import is_there

pytestmark = pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")

# Tiles of 64 rows of 128 bytes, swizzled as the host laid them out; one warp fills, two warpgroups of 64 rows read.
SOURCE = r"""
#define STAGES 3
typedef unsigned u32;
typedef unsigned long long u64;

__device__ u32 address_of(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ u64 describe(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

__device__ void wait(u32 barrier, u32 parity) {
    asm volatile("{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" :: "r"(barrier), "r"(parity) : "memory");
}

__device__ void copy(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

struct Ring { char a[STAGES][2][8192], b[STAGES][2048]; u64 full[STAGES], empty[STAGES]; };

extern "C" __global__ void __launch_bounds__(384) gemm(const char* a, const char* b, float* c, int steps) {
    extern __shared__ __align__(1024) char memory[];
    Ring& ring = *reinterpret_cast<Ring*>(memory);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(address_of(&ring.full[s])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" :: "r"(address_of(&ring.empty[s])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    int group = threadIdx.x / 128 - 1;
    if (group < 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int i = 0; i < steps; ++i) {
                int s = i % STAGES;
                u32 full = address_of(&ring.full[s]);
                wait(address_of(&ring.empty[s]), (i / STAGES & 1) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 18432;" :: "r"(full) : "memory");
                copy(address_of(ring.a[s]), a + i * 16384, 16384, full);
                copy(address_of(ring.b[s]), b + i * 2048, 2048, full);
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[8] = {};
    for (int i = 0; i < steps; ++i) {
        int s = i % STAGES;
        wait(address_of(&ring.full[s]), i / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 4; ++k)
            asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, "
                         "%8, %9, 1, 1, 1, 0, 0;"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
                           "+f"(d[7])
                         : "l"(describe(address_of(ring.a[s][group]) + k * 32)),
                           "l"(describe(address_of(ring.b[s]) + k * 32)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        WAIT
        if (threadIdx.x % 128 == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(address_of(&ring.empty[s])) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    for (int j = 0; j < 8; ++j)
        c[(group * 64 + warp * 16 + j / 2 % 2 * 8 + lane / 4) * 16 + j / 4 * 8 + lane % 4 * 2 + j % 2] = d[j];
}
"""
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'
STEPS = 7


def swizzled(matrix: Any) -> Any:
    """Rows of 128 bytes as a tensor copy with a swizzle of 128 bytes leaves them."""
    found = np.zeros_like(matrix)
    descriptor = Descriptor(0, stride=1024, swizzle="128B")
    flat = found.reshape(-1)
    for row in range(matrix.shape[0]):
        for chunk in range(0, 64, 8):
            at = descriptor.offset(row, chunk, 16) // 2
            flat[at : at + 8] = matrix[row, chunk : chunk + 8]
    return found


def run(source: str, **how: Any) -> tuple[Any, Any, Any]:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kernel = ptxlab.cuda(source, "sm_90a", name="ring.cu")["gemm"]
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, (rows, 64 * STEPS)).astype(ml_dtypes.bfloat16) for rows in (128, 16))
    tiles = [np.stack([swizzled(m[:, k : k + 64]) for k in range(0, 64 * STEPS, 64)]).view(np.uint16) for m in (a, b)]
    c = np.zeros((128, 16), np.float32)
    shared = 3 * (16384 + 2048) + 64
    result = kernel.launch(1, 384, [*tiles, c, STEPS], shared=shared, device="cpu", **how)
    return c, a.astype(np.float32) @ b.astype(np.float32).T, result


@pytest.mark.parametrize("seed", [0, 5])
def test_a_ring_of_stages(seed: int) -> None:
    found, wanted, result = run(SOURCE.replace("WAIT", WAIT), seed=seed)
    assert np.array_equal(found, wanted)
    assert result.diagnostics == []


def test_a_stage_is_given_back_too_early() -> None:
    _, _, result = run(SOURCE.replace("WAIT", ""), on_error="collect")
    reported = {(found.code, found.message) for found in result.diagnostics}
    assert reported == {("data-race", "a copy writes shared memory that an MMA still reads")}
