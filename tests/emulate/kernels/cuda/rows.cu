// Rows of activations: softmax, layer norm, root mean square norm, one row of attention.
// make: sm_80
// make: sm_80 -use_fast_math
#include <cuda_fp16.h>

template <class F> __device__ float over_block(float v, F combine, float* parts) {
    for (int step = 16; step > 0; step /= 2) v = combine(v, __shfl_xor_sync(0xffffffff, v, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
    for (int w = 1; w < blockDim.x / 32; ++w) v = combine(v, parts[w]);
    return v;
}

__device__ float add(float a, float b) { return a + b; }

__device__ float larger(float a, float b) { return fmaxf(a, b); }

extern "C" __global__ void softmax(const float* x, float* out, int columns) {
    __shared__ float parts[32];
    const float* row = x + blockIdx.x * columns;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
    most = over_block(most, larger, parts);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - most);
    sum = over_block(sum, add, parts);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}

extern "C" __global__ void layer_norm(const float* x, const float* gain, const float* bias, float* out, int columns, float epsilon) {
    __shared__ float parts[32];
    const float* row = x + blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i];
    float mean = over_block(sum, add, parts) / columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
    float scale = rsqrtf(over_block(squares, add, parts) / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[blockIdx.x * columns + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}

extern "C" __global__ void half_norm(const __half* x, __half* out, int columns) {
    __shared__ float parts[32];
    const __half* row = x + blockIdx.x * columns;
    float squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += __half2float(row[i]) * __half2float(row[i]);
    float scale = rsqrtf(over_block(squares, add, parts) / columns + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[blockIdx.x * columns + i] = __float2half(__half2float(row[i]) * scale);
}

// One query against all keys, softmax on the way, a thread for each element of the result.
extern "C" __global__ void attention_row(const float* q, const float* k, const float* v, float* out, int keys, int width) {
    extern __shared__ float scores[];
    float most = -INFINITY, total = 0, sum = 0;
    for (int j = threadIdx.x; j < keys; j += blockDim.x) {
        float dot = 0;
        for (int d = 0; d < width; ++d) dot += q[blockIdx.x * width + d] * k[j * width + d];
        scores[j] = dot * rsqrtf((float)width);
    }
    __syncthreads();
    for (int j = 0; j < keys; ++j) most = fmaxf(most, scores[j]);
    for (int j = 0; j < keys; ++j) {
        float weight = __expf(scores[j] - most);
        total += weight;
        if (threadIdx.x < width) sum += weight * v[j * width + threadIdx.x];
    }
    if (threadIdx.x < width) out[blockIdx.x * width + threadIdx.x] = sum / total;
}
