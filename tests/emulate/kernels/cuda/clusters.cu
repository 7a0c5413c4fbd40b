// Blocks of a cluster: distributed shared memory, the cluster's barrier, mbarriers of other blocks.
// make: sm_90
// make: sm_90 -G
#include <cooperative_groups.h>
#include <cuda/ptx>

namespace cg = cooperative_groups;

// Each block shows its tile to the next one of the cluster.
extern "C" __global__ void cluster_ring(const int* x, int* out) {
    __shared__ int tile[64];
    auto cluster = cg::this_cluster();
    int i = blockIdx.x * 64 + threadIdx.x;
    tile[threadIdx.x] = x[i];
    cluster.sync();
    unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    const int* there = cluster.map_shared_rank(tile, next);
    out[i] = there[63 - threadIdx.x];
    cluster.sync();
}

// The sum of what all blocks of a cluster have, for each of them: first in the block, then by every block of all.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sums(const int* x, int* out) {
    __shared__ int sum;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[blockIdx.x * 64 + threadIdx.x]);
    cluster.sync();
    if (threadIdx.x == 0) {
        int total = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) total += *cluster.map_shared_rank(&sum, rank);
        out[blockIdx.x] = total;
    }
    cluster.sync();
}

// A histogram whose bins are spread over the blocks of the cluster.
extern "C" __global__ void cluster_histogram(const int* x, int* bins, int count) {
    __shared__ int mine[32];
    auto cluster = cg::this_cluster();
    if (threadIdx.x < 32) mine[threadIdx.x] = 0;
    cluster.sync();
    for (int i = cluster.block_rank() * blockDim.x + threadIdx.x; i < count; i += cluster.num_blocks() * blockDim.x) {
        int bin = x[i];
        atomicAdd(cluster.map_shared_rank(&mine[bin % 32], bin / 32), 1);
    }
    cluster.sync();
    if (threadIdx.x < 32) bins[cluster.block_rank() * 32 + threadIdx.x] = mine[threadIdx.x];
}

// Blocks of a cluster of 2 x 2 exchange tiles of a matrix across its diagonal.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_transpose(const float* x, float* out, int n) {
    __shared__ float tile[8][9];
    auto cluster = cg::this_cluster();
    dim3 place = cluster.block_index();
    int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 8 + threadIdx.x;
    tile[threadIdx.y][threadIdx.x] = x[row * n + column];
    cluster.sync();
    unsigned across = place.x * cluster.dim_blocks().x + place.y;
    float* there = cluster.map_shared_rank(&tile[0][0], across);
    int from_row = blockIdx.y - place.y + place.x, from_column = blockIdx.x - place.x + place.y;
    // The tile of the block across, turned, and with it the place where it goes in the pair of blocks.
    out[(from_column * 8 + threadIdx.y) * n + from_row * 8 + threadIdx.x] = there[threadIdx.x * 9 + threadIdx.y];
    cluster.sync();
}

// The first block hands tiles to the others, and continues when all of them say that they have read the last one.
extern "C" __global__ void cluster_mail(const int* x, int* out, int tiles) {
    namespace ptx = cuda::ptx;
    __shared__ int tile[32];
    __shared__ alignas(8) uint64_t full, empty;
    auto cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), others = cluster.num_blocks() - 1;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&full, 32);
        ptx::mbarrier_init(&empty, 32 * others);
    }
    cluster.sync();
    auto wait = [](uint64_t* barrier, int phase) {
        while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, phase & 1)) {}
    };
    auto arrive = [](uint64_t* barrier) {
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, barrier);
    };
    for (int k = 0; k < tiles; ++k) {
        if (rank == 0) {
            if (k > 0) wait(&empty, k - 1);
            for (unsigned other = 1; other <= others; ++other) {
                cluster.map_shared_rank(tile, other)[threadIdx.x] = x[k * 32 + threadIdx.x] + other;
                arrive(cluster.map_shared_rank(&full, other));
            }
        } else {
            wait(&full, k);
            out[((rank - 1) * tiles + k) * 32 + threadIdx.x] = tile[31 - threadIdx.x];
            arrive(cluster.map_shared_rank(&empty, 0));
        }
    }
    cluster.sync();
}
