// Threads of a block in different roles: named barriers, cuda::barrier, asynchronous copies in two stages.
// make: sm_80 sm_90
#include <cuda/barrier>
#include <cuda_pipeline.h>

// Two warps make tiles, two use them: barriers 1 and 2 say full, 3 and 4 say free.
extern "C" __global__ void named_barriers(const int* x, int* out, int tiles) {
    __shared__ int buffers[2][64];
    int t = threadIdx.x % 64;
    if (threadIdx.x < 64) {
        for (int k = 0; k < tiles; ++k) {
            int b = k % 2;
            if (k >= 2) asm volatile("barrier.sync %0, 128;" ::"r"(3 + b) : "memory");
            buffers[b][t] = x[k * 64 + t] * 2 + 1;
            asm volatile("barrier.arrive %0, 128;" ::"r"(1 + b) : "memory");
        }
    } else {
        for (int k = 0; k < tiles; ++k) {
            int b = k % 2;
            asm volatile("barrier.sync %0, 128;" ::"r"(1 + b) : "memory");
            out[k * 64 + t] = buffers[b][63 - t] + buffers[b][t];
            if (k + 2 < tiles) asm volatile("barrier.arrive %0, 128;" ::"r"(3 + b) : "memory");
        }
    }
}

// The same with cuda::barrier in shared memory, one pair a buffer.
extern "C" __global__ void block_barriers(const int* x, int* out, int tiles) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ int buffers[2][32];
    __shared__ barrier full[2], free_[2];
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], 64);
        init(&free_[threadIdx.x], 64);
    }
    __syncthreads();
    int t = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int k = 0; k < tiles; ++k) {
            int b = k % 2;
            free_[b].arrive_and_wait();
            buffers[b][t] = x[k * 32 + t] - 5;
            (void)full[b].arrive();
        }
    } else {
        (void)free_[0].arrive();
        (void)free_[1].arrive();
        for (int k = 0; k < tiles; ++k) {
            int b = k % 2;
            full[b].arrive_and_wait();
            out[k * 32 + t] = buffers[b][(t + 1) % 32];
            (void)free_[b].arrive();
        }
    }
}

// The next tile is on its way while this one is summed.
extern "C" __global__ void two_stage_copy(const float4* x, float* sums, int tiles) {
    __shared__ float4 stages[2][64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&stages[0][t], &x[t], 16);
    __pipeline_commit();
    float sum = 0;
    for (int k = 0; k < tiles; ++k) {
        if (k + 1 < tiles) __pipeline_memcpy_async(&stages[(k + 1) % 2][t], &x[(k + 1) * 64 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        float4 v = stages[k % 2][63 - t];
        sum += v.x + v.y + v.z + v.w;
        __syncthreads();
    }
    sums[t] = sum;
}

// Four bytes each, fewer at the end: what follows is filled with zeros; an mbarrier counts the copies that have landed.
extern "C" __global__ void copies_on_barrier(const int* x, int* out, int n) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ int tile[128];
    __shared__ barrier landed;
    if (threadIdx.x == 0) init(&landed, blockDim.x);
    __syncthreads();
    unsigned int to = (unsigned int)__cvta_generic_to_shared(&tile[threadIdx.x]);
    int bytes = threadIdx.x < n ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(x + (threadIdx.x < n ? threadIdx.x : 0)), "r"(bytes) : "memory");
    unsigned int at = (unsigned int)__cvta_generic_to_shared(cuda::device::barrier_native_handle(landed));
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at) : "memory");
    landed.arrive_and_wait();
    out[threadIdx.x] = tile[127 - threadIdx.x];
}
