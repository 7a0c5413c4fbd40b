// Threads of a warp together: votes, matches, redux, shuffles, tiles of cooperative groups, coalesced threads.
// make: sm_80 sm_90
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void votes(const int* x, unsigned int* out) {
    unsigned int full = 0xffffffff;
    int v = x[blockIdx.x * 32 + threadIdx.x];
    unsigned int ballot = __ballot_sync(full, v & 1);
    unsigned int answers = __all_sync(full, v > 0) | __any_sync(full, v > 90) << 1 | (threadIdx.x == __ffs(ballot) - 1) << 2;
    out[(blockIdx.x * 32 + threadIdx.x) * 2] = ballot;
    out[(blockIdx.x * 32 + threadIdx.x) * 2 + 1] = answers;
}

extern "C" __global__ void matches(const int* x, unsigned int* same, int* all) {
    int v = x[blockIdx.x * 32 + threadIdx.x];
    same[blockIdx.x * 32 + threadIdx.x] = __match_any_sync(0xffffffff, v);
    int alike;
    __match_all_sync(0xffffffff, (long long)v, &alike);
    all[blockIdx.x * 32 + threadIdx.x] = alike;
}

extern "C" __global__ void reduced(const int* x, int* out) {
    unsigned int half = threadIdx.x < 16 ? 0x0000ffff : 0xffff0000;
    int v = x[threadIdx.x];
    int* to = out + threadIdx.x * 6;
    to[0] = __reduce_add_sync(half, v);
    to[1] = __reduce_min_sync(half, v);
    to[2] = __reduce_max_sync(half, v);
    to[3] = __reduce_and_sync(half, (unsigned int)v);
    to[4] = __reduce_or_sync(half, (unsigned int)v);
    to[5] = __reduce_xor_sync(half, (unsigned int)v);
}

// Shuffles within eight lanes; lanes that ask outside keep their own.
extern "C" __global__ void shuffles(const double* x, double* out) {
    double v = x[threadIdx.x];
    double* to = out + threadIdx.x * 4;
    to[0] = __shfl_sync(0xffffffff, v, threadIdx.x * 3, 8);
    to[1] = __shfl_up_sync(0xffffffff, v, 3, 8);
    to[2] = __shfl_down_sync(0xffffffff, v, 2, 8);
    to[3] = __shfl_xor_sync(0xffffffff, v, 5, 8);
}

extern "C" __global__ void tiles(const int* x, int* out, int n) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    int before = cg::exclusive_scan(tile, v);
    int last = tile.shfl(before + v, 7);
    if (i < n) out[i] = before * 1000 + last + tile.any(v > 90) + tile.meta_group_rank() * 1000000;
}

// The threads that happen to be together take their room by one atomic.
extern "C" __global__ void collect_odd(const int* x, int* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (x[i] % 2 == 0) return;
    auto group = cg::coalesced_threads();
    int base = 0;
    if (group.thread_rank() == 0) base = atomicAdd(count, group.size());
    out[group.shfl(base, 0) + group.thread_rank()] = x[i];
}

// Both sides of a branch meet in barriers of their own: lanes talk within their half only.
extern "C" __global__ void separate_ways(const int* x, int* out) {
    __shared__ int mail[32];
    int lane = threadIdx.x;
    if (lane % 2) {
        mail[lane] = x[lane] * 3;
        __syncwarp(0xaaaaaaaa);
        out[lane] = mail[(lane + 2) % 32];
    } else {
        mail[lane] = x[lane] + 7;
        __syncwarp(0x55555555);
        out[lane] = mail[(lane + 30) % 32];
    }
}
