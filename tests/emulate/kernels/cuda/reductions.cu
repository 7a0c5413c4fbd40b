// Many values to one: a tree in shared memory, shuffles, two stages, the last block, cooperative groups.
// make: sm_80 sm_90
// make: sm_80 -Xcicc -O0
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void tree_sum(const int* x, int* sums, int n) {
    __shared__ int part[256];
    int t = threadIdx.x;
    int i = blockIdx.x * 256 + t;
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 128; step > 0; step >>= 1) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}

__device__ float warp_sum(float v) {
    for (int step = 16; step > 0; step >>= 1) v += __shfl_down_sync(0xffffffff, v, step);
    return v;
}

extern "C" __global__ void shuffle_sum(const float* x, float* total, int n) {
    __shared__ float part[32];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) *total = v;
    }
}

extern "C" __global__ void two_stage_sum(const int* x, unsigned long long* total, int n) {
    long long v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    for (int step = 16; step > 0; step >>= 1) v += __shfl_xor_sync(0xffffffff, v, step);
    __shared__ unsigned long long block;
    if (threadIdx.x == 0) block = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) atomicAdd(&block, (unsigned long long)v);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, block);
}

// Every block leaves its sum; the block that finishes last adds them all, in one launch.
__device__ unsigned int finished = 0;

extern "C" __global__ void last_block_sum(const float* x, volatile float* sums, float* total, int n) {
    __shared__ float part[128];
    __shared__ bool last;
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) v += x[i];
    part[t] = v;
    for (int step = 64; step > 0; step >>= 1) {
        __syncthreads();
        if (t < step) part[t] += part[t + step];
    }
    if (t == 0) {
        sums[blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && t == 0) {
        float sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += sums[b];
        *total = sum;
    }
}

extern "C" __global__ void group_sum(const int* x, int* total, int* largest, int n) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    int sum = cg::reduce(warp, v, cg::plus<int>());
    int most = cg::reduce(warp, v, cg::greater<int>());
    if (warp.thread_rank() == 0) {
        atomicAdd(total, sum);
        atomicMax(largest, most);
    }
}

// The place of the largest value, the first of equals: value and place travel together through shared memory.
extern "C" __global__ void place_of_largest(const float* x, int* place, int n) {
    __shared__ float values[128];
    __shared__ int places[128];
    int t = threadIdx.x;
    float best = -INFINITY;
    int at = n;
    for (int i = t; i < n; i += 128)
        if (x[i] > best) best = x[i], at = i;
    values[t] = best;
    places[t] = at;
    for (int step = 64; step > 0; step >>= 1) {
        __syncthreads();
        if (t < step && (values[t + step] > values[t] || (values[t + step] == values[t] && places[t + step] < places[t]))) {
            values[t] = values[t + step];
            places[t] = places[t + step];
        }
    }
    if (t == 0) *place = places[0];
}

extern "C" __global__ void double_dot(const double* x, const double* y, double* out, int n) {
    extern __shared__ double terms[];
    double v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v = fma(x[i], y[i], v);
    terms[threadIdx.x] = v;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) terms[threadIdx.x] += terms[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = terms[0];
}
