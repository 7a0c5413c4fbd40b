// One element in, one element out: guards, grid strides, vectors of four, bytes, shorts, halves.
// make: sm_80 sm_90
// make: sm_80 -G
// make: sm_80 -Xcicc -O0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void vector_add(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}

extern "C" __global__ void saxpy_strided(const float* x, float* y, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

// Whole groups of four by vector loads, the tail one by one.
extern "C" __global__ void saxpy_by_four(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int groups = n / 4;
    if (i < groups) {
        float4 u = reinterpret_cast<const float4*>(x)[i];
        float4 v = reinterpret_cast<float4*>(y)[i];
        v.x = fmaf(a, u.x, v.x);
        v.y = fmaf(a, u.y, v.y);
        v.z = fmaf(a, u.z, v.z);
        v.w = fmaf(a, u.w, v.w);
        reinterpret_cast<float4*>(y)[i] = v;
    }
    int tail = 4 * groups + i;
    if (i < 4 && tail < n) y[tail] = fmaf(a, x[tail], y[tail]);
}

extern "C" __global__ void blend_bytes(const unsigned char* a, const unsigned char* b, unsigned char* out, int alpha, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (a[i] * alpha + b[i] * (255 - alpha) + 127) / 255;
}

extern "C" __global__ void add_shorts_saturated(const short* a, const short* b, short* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = min(max(a[i] + b[i], -32768), 32767);
}

extern "C" __global__ void half2_axpy(const __half2* x, __half2* y, float a, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pairs) y[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}

extern "C" __global__ void bf16_average(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2bfloat16((__bfloat162float(x[i]) + __bfloat162float(y[i])) * 0.5f);
}

extern "C" __global__ void half_to_integers(const __half* x, int* rounded, int* floored, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    rounded[i] = __half2int_rn(x[i]);
    floored[i] = __half2int_rd(x[i]);
}
