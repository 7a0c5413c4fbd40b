// What NVIDIA's libraries make of a block's work: CUB's reduce, scan and sort, pipelines, semaphores, groups by label.
// make: sm_80 sm_90
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/atomic>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/complex>
namespace cg = cooperative_groups;

extern "C" __global__ void cub_reduce(const int* x, int* sums, int n) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    int i = blockIdx.x * 128 + threadIdx.x;
    int sum = Reduce(storage).Sum(i < n ? x[i] : 0);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void cub_scan(const int* x, int* out, int* total) {
    using Scan = cub::BlockScan<int, 64>;
    __shared__ typename Scan::TempStorage storage;
    int items[4], all;
    for (int k = 0; k < 4; ++k) items[k] = x[threadIdx.x * 4 + k];
    Scan(storage).ExclusiveSum(items, items, all);
    for (int k = 0; k < 4; ++k) out[threadIdx.x * 4 + k] = items[k];
    if (threadIdx.x == 0) *total = all;
}

extern "C" __global__ void cub_sort(unsigned int* keys, short* values) {
    using Sort = cub::BlockRadixSort<unsigned int, 64, 2, short>;
    __shared__ typename Sort::TempStorage storage;
    unsigned int k[2] = {keys[threadIdx.x * 2], keys[threadIdx.x * 2 + 1]};
    short v[2] = {values[threadIdx.x * 2], values[threadIdx.x * 2 + 1]};
    Sort(storage).Sort(k, v, 0, 16);
    for (int i = 0; i < 2; ++i) {
        keys[threadIdx.x * 2 + i] = k[i];
        values[threadIdx.x * 2 + i] = v[i];
    }
}

// Three stages of cuda::pipeline; every thread copies and every thread sums.
extern "C" __global__ void pipeline_sums(const int* x, int* sums, int tiles) {
    __shared__ int stages[3][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    int sum = 0, fetched = 0;
    for (int k = 0; k < tiles; ++k) {
        for (; fetched < tiles && fetched < k + 3; ++fetched) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, stages[fetched % 3], x + fetched * 64, sizeof(int) * 64, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum = sum * 3 + stages[k % 3][63 - threadIdx.x];
        pipeline.consumer_release();
    }
    sums[threadIdx.x] = sum;
}

extern "C" __global__ void group_copy(const float4* x, float4* out, int n) {
    extern __shared__ float4 stage[];
    auto block = cg::this_thread_block();
    for (int start = 0; start < n; start += block.size()) {
        cg::memcpy_async(block, stage, x + start, sizeof(float4) * block.size());
        cg::wait(block);
        out[start + block.thread_rank()] = stage[block.size() - 1 - block.thread_rank()];
        block.sync();
    }
}

// Lanes with the same label sum what they have.
extern "C" __global__ void sums_by_label(const int* labels, const int* x, int* out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto alike = cg::labeled_partition(warp, labels[threadIdx.x]);
    out[threadIdx.x] = cg::reduce(alike, x[threadIdx.x], cg::plus<int>()) * 100 + alike.size();
}

// At most two threads of the block are inside at a time; `most` is how many were seen there.
extern "C" __global__ void semaphore_of_two(int* inside, int* most, int* entries) {
    __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 2> rooms;
    if (threadIdx.x == 0) new (&rooms) cuda::counting_semaphore<cuda::thread_scope_block, 2>(2);
    __syncthreads();
    if (threadIdx.x % 32) return;
    for (int k = 0; k < 5; ++k) {
        rooms.acquire();
        atomicMax(most, atomicAdd(inside, 1) + 1);
        cuda::atomic_ref<int, cuda::thread_scope_device>(*entries).fetch_add(1, cuda::memory_order_relaxed);
        atomicSub(inside, 1);
        rooms.release();
    }
}

extern "C" __global__ void complex_powers(const float2* z, float2* out, int power, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    cuda::std::complex<float> base(z[i].x, z[i].y), result(1, 0);
    for (int k = 0; k < power; ++k) result *= base;
    out[i] = make_float2(result.real(), result.imag());
}
