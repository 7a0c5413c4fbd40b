// Sums: through shared memory, warp shuffles, hardware warp reductions, vector loads, and a last-block finish.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
// make: sm_80 -G
// make: sm_80 -lineinfo
// make: sm_75 --maxrregcount=24
// make: sm_90a nvcc-13.4

extern "C" __global__ void tree(const float* in, float* out, int n) {
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    part[t] = (i < n ? in[i] : 0.0f) + (i + blockDim.x < n ? in[i + blockDim.x] : 0.0f);
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        __syncthreads();
        if (t < s) part[t] += part[t + s];
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

__device__ float warp_sum(float v) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
    return v;
}

template <int Threads>
__device__ float block_sum(float v) {
    __shared__ float warps[Threads / 32];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < Threads / 32 ? warps[threadIdx.x] : 0.0f;
    return threadIdx.x < 32 ? warp_sum(v) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(256, 4) shuffle(const float4* __restrict__ in, float* out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float4 v = in[i];
        sum += (v.x + v.y) + (v.z + v.w);
    }
    sum = block_sum<256>(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

__device__ unsigned finished = 0;
extern "C" __global__ void __launch_bounds__(128) single_pass(const double* in, volatile double* partial, double* out, int n) {
    __shared__ double part[128];
    __shared__ bool last;
    double sum = 0, compensation = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
        double y = in[i] - compensation, t = sum + y;
        compensation = (t - sum) - y;
        sum = t;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        double total = 0;
        for (unsigned b = 0; b < gridDim.x; ++b) total += partial[b];
        *out = total;
    }
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void hardware(const unsigned* in, unsigned* out) {
    unsigned v = in[blockIdx.x * blockDim.x + threadIdx.x];
    unsigned r = __reduce_add_sync(~0u, v) ^ __reduce_min_sync(~0u, v) ^ __reduce_max_sync(~0u, v);
    r ^= __reduce_and_sync(~0u, v) ^ __reduce_or_sync(~0u, v) ^ __reduce_xor_sync(~0u, v) ^ (unsigned)__reduce_min_sync(~0u, (int)v);
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = r;
}
#endif
