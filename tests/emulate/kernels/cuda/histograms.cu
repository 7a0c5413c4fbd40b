// Histograms: atomics in global memory, in shared memory, a copy for each warp.
// make: sm_80
// make: sm_80 -G

extern "C" __global__ void global_histogram(const unsigned char* data, unsigned int* bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[data[i]], 1u);
}

extern "C" __global__ void shared_histogram(const unsigned char* data, unsigned int* bins, int n) {
    __shared__ unsigned int own[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) own[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (own[b]) atomicAdd(&bins[b], own[b]);
}

extern "C" __global__ void warp_histogram(const unsigned int* words, unsigned int* bins, int n) {
    extern __shared__ unsigned int copies[];
    unsigned int* own = copies + threadIdx.x / 32 * 64;
    for (int b = threadIdx.x; b < blockDim.x / 32 * 64; b += blockDim.x) copies[b] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        for (int shift = 0; shift < 32; shift += 8) atomicAdd(&own[words[i] >> shift & 63], 1u);
    __syncthreads();
    if (threadIdx.x >= 64) return;
    unsigned int sum = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += copies[w * 64 + threadIdx.x];
    bins[threadIdx.x] = sum;
}
