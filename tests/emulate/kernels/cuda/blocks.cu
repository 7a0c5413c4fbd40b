// Blocks that talk to each other: a barrier of the whole grid, flags, a token passed along, work taken from a queue.
// make: sm_80
#include <cuda/atomic>

// All blocks must be on the machine at once: few of them.
__device__ void grid_barrier(unsigned int* arrived, unsigned int goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned int*)arrived < goal) {
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void smooth_together(float* now, float* next, unsigned int* arrived, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 1; r <= rounds; ++r) {
        if (i < n) next[i] = 0.25f * now[i ? i - 1 : n - 1] + 0.5f * now[i] + 0.25f * now[i < n - 1 ? i + 1 : 0];
        grid_barrier(arrived, r * gridDim.x);
        float* swap = now;
        now = next;
        next = swap;
    }
}

// Block 0 fills an array, raises a volatile flag; the others wait for it.
extern "C" __global__ void broadcast_by_flag(const int* x, int* shared_by_all, volatile int* flag, int* out, int n) {
    if (blockIdx.x == 0) {
        for (int i = threadIdx.x; i < n; i += blockDim.x) shared_by_all[i] = x[i] * x[i];
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
        return;
    }
    if (threadIdx.x == 0) {
        while (*flag == 0) {
        }
        __threadfence();
    }
    __syncthreads();
    int b = blockIdx.x - 1;
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[b * n + i] = shared_by_all[(i + b) % n];
}

// A sum that travels from block to block, in order, by release and acquire.
extern "C" __global__ void pass_the_token(const int* x, int* sums, int* turn) {
    if (threadIdx.x) return;
    cuda::atomic_ref<int, cuda::thread_scope_device> now(*turn);
    while (now.load(cuda::memory_order_acquire) != blockIdx.x) {
    }
    sums[blockIdx.x] = (blockIdx.x ? sums[blockIdx.x - 1] : 0) + x[blockIdx.x];
    now.store(blockIdx.x + 1, cuda::memory_order_release);
}

// Blocks take pieces of work until none is left.
extern "C" __global__ void work_queue(const int* lengths, int* results, int* next, int pieces) {
    __shared__ int piece;
    for (;;) {
        if (threadIdx.x == 0) piece = atomicAdd(next, 1);
        __syncthreads();
        int mine = piece;
        __syncthreads();
        if (mine >= pieces) return;
        int sum = 0;
        for (int i = threadIdx.x; i < lengths[mine]; i += blockDim.x) sum += i * i % 7;
        atomicAdd(&results[mine], sum);
    }
}
