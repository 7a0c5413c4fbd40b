// cp.async in inline PTX, through __pipeline and cuda::pipeline: a pipelined tile product and a stencil.
// make: sm_80 sm_90a sm_100a sm_120a
// make: sm_80 -lineinfo
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

template <int Bytes> __device__ void copy(void* to, const void* from, bool inside = true) {
    uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    int size = inside ? Bytes : 0;
    if (Bytes == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(size) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" :: "r"(at), "l"(from), "n"(Bytes), "r"(size) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) gemm(const float* a, const float* b, float* c, int m, int n, int k) {
    constexpr int Stages = 3, Depth = 16;
    __shared__ __align__(16) float as[Stages][64][Depth], bs[Stages][Depth][64];
    int t = threadIdx.x, row = blockIdx.y * 64, column = blockIdx.x * 64;
    auto fill = [&](int tile) {
        int s = tile % Stages, k0 = tile * Depth;
        for (int i = t; i < 256; i += 128) {
            copy<16>(&as[s][i / 4][i % 4 * 4], a + (row + i / 4) * k + k0 + i % 4 * 4, row + i / 4 < m && k0 < k);
            copy<16>(&bs[s][i / 16][i % 16 * 4], b + (k0 + i / 16) * n + column + i % 16 * 4, k0 + i / 16 < k);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sum[4][8] = {};
    for (int s = 0; s < Stages - 1; ++s) fill(s);
    int tiles = (k + Depth - 1) / Depth;
    for (int tile = 0; tile < tiles; ++tile) {
        asm volatile("cp.async.wait_group %0;" :: "n"(Stages - 2) : "memory");
        __syncthreads();
        fill(tile + Stages - 1);
        int s = tile % Stages;
#pragma unroll
        for (int d = 0; d < Depth; ++d)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += as[s][t / 8 * 4 + i][d] * bs[s][d][t % 8 * 8 + j];
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 8; ++j) c[(row + t / 8 * 4 + i) * n + column + t % 8 * 8 + j] = sum[i][j];
}

extern "C" __global__ void with_barrier(const int* in, int* out) {
    __shared__ __align__(8) uint64_t barrier;
    __shared__ __align__(16) int tile[512];
    uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(blockDim.x) : "memory");
    __syncthreads();
    copy<4>(&tile[threadIdx.x], in + threadIdx.x);
    copy<8>(&tile[2 * threadIdx.x], in + 2 * threadIdx.x, threadIdx.x & 1);
    uint64_t state;
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at) : "memory");
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(at) : "memory");
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
    asm volatile("{ .reg .pred done;\nwait_%=:\n\tmbarrier.test_wait.shared.b64 done, [%0], %1;\n\t@!done bra wait_%=;\n}" :: "r"(at), "l"(state) : "memory");
    unsigned pending;
    asm volatile("mbarrier.pending_count.b64 %0, %1; mbarrier.arrive_drop.shared.b64 _, [%2]; mbarrier.inval.shared.b64 [%2];" : "=r"(pending) : "l"(state), "r"(at) : "memory");
    out[threadIdx.x] = tile[threadIdx.x ^ 1] + pending;
}

extern "C" __global__ void primitives(const float4* in, float4* out) {
    __shared__ float4 stage[2][64];
    for (int s = 0; s < 2; ++s) {
        __pipeline_memcpy_async(&stage[s][threadIdx.x], in + s * 64 + threadIdx.x, 16);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    out[threadIdx.x] = stage[0][63 - threadIdx.x];
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x + 64] = stage[1][63 - threadIdx.x];
}

extern "C" __global__ void stencil(const float* in, float* out, int width, int rows) {
    namespace cg = cooperative_groups;
    extern __shared__ float lines[];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 4> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    for (int r = 0; r < rows + 2; ++r) {
        if (r < rows) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, lines + r % 4 * width, in + r * width, cuda::aligned_size_t<16>(sizeof(float) * width), pipe);
            pipe.producer_commit();
        }
        if (r < 3) continue;
        pipe.consumer_wait();
        for (int x = block.thread_rank() + 1; x < width - 1; x += block.size()) {
            const float* up = lines + (r - 3) % 4 * width;
            const float* mid = lines + (r - 2) % 4 * width;
            const float* down = lines + (r - 1) % 4 * width;
            out[(r - 2) * width + x] = 0.2f * (up[x] + mid[x - 1] + mid[x] + mid[x + 1] + down[x]);
        }
        block.sync();
        pipe.consumer_release();
    }
}
