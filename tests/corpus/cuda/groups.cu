// Cooperative groups: tiles, coalesced groups, partitions, collectives, asynchronous copies, grid and cluster.
// make: sm_75 sm_80 sm_90a sm_100a
// make: sm_80 -rdc=true
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const int* in, int* out) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    auto warp = cg::tiled_partition<32>(block);
    int v = in[block.thread_rank()];
    int r = cg::reduce(tile, v, cg::plus<int>()) + cg::reduce(warp, v, cg::greater<int>()) + cg::inclusive_scan(tile, v) + cg::exclusive_scan(warp, v, cg::plus<int>());
    r += tile.shfl_xor(v, 1) + tile.any(v > 3) + tile.ballot(v) + tile.match_any(v) + warp.shfl_down(v, tile.meta_group_rank());
    auto part = cg::labeled_partition(warp, v & 3);
    r += part.size() + cg::reduce(part, v, cg::bit_xor<int>());
    if (v > 0) {
        auto active = cg::coalesced_threads();
        r += active.thread_rank() + active.shfl(v, 0);
        active.sync();
    }
    auto split = cg::binary_partition(warp, v > 2);
    r += split.num_threads();
    block.sync();
    out[block.thread_rank()] = r;
}

extern "C" __global__ void copies(const float4* in, float4* out, int n) {
    extern __shared__ float4 stage[];
    auto block = cg::this_thread_block();
    for (int i = 0; i < n; i += block.size()) {
        cg::memcpy_async(block, stage, in + i, sizeof(float4) * block.size());
        cg::wait(block);
        out[i + block.thread_rank()] = stage[block.size() - 1 - block.thread_rank()];
        block.sync();
    }
}

extern "C" __global__ void whole_grid(float* x, int n, int steps) {
    auto grid = cg::this_grid();
    for (int s = 0; s < steps; ++s) {
        for (int i = grid.thread_rank(); i < n; i += grid.size()) x[i] = 0.5f * (x[i] + x[(i + (1 << s)) % n]);
        grid.sync();
    }
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster(const int* in, int* out) {
    __shared__ int bins[64];
    auto cluster = cg::this_cluster();
    bins[threadIdx.x & 63] = 0;
    cluster.sync();
    int* remote = cluster.map_shared_rank(bins, (cluster.block_rank() + 1) % cluster.num_blocks());
    atomicAdd(remote + (in[threadIdx.x] & 63), 1);
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
    out[blockIdx.x * 64 + (threadIdx.x & 63)] = bins[threadIdx.x & 63] + cluster.query_shared_rank(remote) + cluster.thread_rank();
}
#endif
