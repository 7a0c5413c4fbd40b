// Warp intrinsics: vote, match, shuffle of every width, active masks, elections, named barriers, sleep and clocks.
// make: sm_75 sm_80 sm_90a sm_120a
// make: sm_75 -G
// make: sm_80 sm_120a nvcc-13.4

extern "C" __global__ void votes(const int* in, unsigned* out) {
    int v = in[threadIdx.x];
    unsigned r = __ballot_sync(~0u, v > 0) ^ __all_sync(~0u, v) ^ __any_sync(~0u, v < 5) ^ __activemask() ^ __uni_sync(~0u, v);
    int all;
    r ^= __match_any_sync(~0u, v) ^ __match_all_sync(~0u, (long long)v, &all) ^ all;
    if (v & 1) r ^= __ballot_sync(__activemask(), v > 7);
    __syncwarp();
    __syncwarp(0xffff);
    out[threadIdx.x] = r;
}

extern "C" __global__ void shuffles(const float* f, const double* d, const long long* l, double* out) {
    int lane = threadIdx.x & 31;
    float x = f[threadIdx.x];
    double r = __shfl_sync(~0u, x, 3) + __shfl_up_sync(~0u, x, 1) + __shfl_down_sync(~0u, x, 2) + __shfl_xor_sync(~0u, x, 16);
    r += __shfl_sync(~0u, d[threadIdx.x], lane ^ 5, 16) + __shfl_up_sync(~0u, l[threadIdx.x], 1, 8) + __shfl_xor_sync(0xffu, x, 2, 4);
    unsigned inside, y;
    asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 1, 0x1f, -1; selp.u32 %1, 1, 0, p; }" : "=r"(y), "=r"(inside) : "r"(lane));
    out[threadIdx.x] = r + (inside ? y : 0);
}

extern "C" __global__ void barriers(int* data) {
    __shared__ int tile[256];
    tile[threadIdx.x] = data[threadIdx.x];
    int many = __syncthreads_count(data[threadIdx.x] > 0) + __syncthreads_and(data[1]) + __syncthreads_or(data[2]);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x < 64) asm volatile("bar.arrive 2, 256;" ::: "memory"); else asm volatile("barrier.cta.sync %0, %1;" :: "r"(2), "r"(256) : "memory");
    asm volatile("barrier.sync.aligned 3; bar.warp.sync 0xffffffff;" ::: "memory");
    data[threadIdx.x] = tile[255 - threadIdx.x] + many;
}

extern "C" __global__ void special_registers(unsigned* out, unsigned long long* wide) {
    unsigned r[24];
#define READ(slot, name) asm volatile("mov.u32 %0, " name ";" : "=r"(r[slot]))
    READ(0, "%tid.x"); READ(1, "%ntid.y"); READ(2, "%ctaid.z"); READ(3, "%nctaid.x"); READ(4, "%laneid"); READ(5, "%warpid"); READ(6, "%nwarpid");
    READ(7, "%smid"); READ(8, "%nsmid"); READ(9, "%lanemask_eq"); READ(10, "%lanemask_lt"); READ(11, "%lanemask_le"); READ(12, "%lanemask_gt");
    READ(13, "%lanemask_ge"); READ(14, "%clock"); READ(15, "%clock_hi"); READ(16, "%total_smem_size"); READ(17, "%dynamic_smem_size"); READ(18, "%pm0");
    READ(19, "%envreg3"); READ(20, "%globaltimer_lo"); READ(21, "%globaltimer_hi");
    r[22] = r[23] = 0;
#if __CUDA_ARCH__ >= 900
    READ(22, "%reserved_smem_offset_begin"); READ(23, "%aggr_smem_size");
#endif
#pragma unroll
    for (int i = 0; i < 24; ++i) out[i * blockDim.x + threadIdx.x] = r[i];
    unsigned long long t, g;
    asm volatile("mov.u64 %0, %%globaltimer; mov.u64 %1, %%gridid;" : "=l"(t), "=l"(g));
    wide[threadIdx.x] = t + g + clock64() + clock();
}

// Take a lock with back-off, one warp at a time.
extern "C" __global__ void spin(int* lock, int* counter) {
    if (threadIdx.x % 32 == 0) {
        unsigned wait = 8;
        while (atomicCAS(lock, 0, 1) != 0) {
            __nanosleep(wait);
            if (wait < 256) wait *= 2;
        }
        __threadfence();
        ++*counter;
        __threadfence();
        atomicExch(lock, 0);
    }
    __syncwarp();
    __prof_trigger(3);
}

// Warp-aggregated counters: one atomic a group of equal keys.
extern "C" __global__ void aggregate(const int* keys, int* counters, int* rank, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned peers = __match_any_sync(__activemask(), keys[i]);
    int leader = __ffs(peers) - 1, base = 0;
    if ((threadIdx.x & 31) == leader) base = atomicAdd(counters + keys[i], __popc(peers));
    base = __shfl_sync(peers, base, leader);
    rank[i] = base + __popc(peers & ((1u << (threadIdx.x & 31)) - 1));
}
