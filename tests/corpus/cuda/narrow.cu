// FP8, FP6 and FP4 conversions, with scale factors in E8M0.
// make: sm_80 sm_90a sm_100a sm_120a
// make: sm_100a sm_120a nvcc-13.4
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

extern "C" __global__ void fp8(const float* in, const __half2* half2s, unsigned* out, float* back, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_fp8_e4m3 a(in[i]);
    __nv_fp8_e5m2 b(in[i] * 2);
    __nv_fp8x2_e4m3 a2(make_float2(in[i], in[i + 1]));
    __nv_fp8x2_e5m2 b2(half2s[i]);
    __nv_fp8x4_e4m3 a4(make_float4(in[i], in[i + 1], in[i + 2], in[i + 3]));
    out[i] = a.__x | b.__x << 8 | a2.__x << 16;
    out[i + n] = a4.__x ^ b2.__x;
    float4 f = static_cast<float4>(a4);
    float2 g = static_cast<float2>(b2);
    back[i] = float(a) + float(b) + f.x + f.y + f.z + f.w + g.x + g.y + __half2float(__half(a)) + __low2float(static_cast<__half2>(a2));
    out[i + 2 * n] = __nv_cvt_float2_to_fp8x2(make_float2(in[i], in[i + 2]), __NV_NOSAT, __NV_E5M2) | __nv_cvt_float_to_fp8(in[i], __NV_SATFINITE, __NV_E4M3) << 16;
}

extern "C" __global__ void fp6(const float* in, unsigned* out, float* back, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_fp6x2_e2m3 a(make_float2(in[i], in[i + 1]));
    __nv_fp6x2_e3m2 b(make_float2(in[i], in[i + 1]));
    __nv_fp6x4_e3m2 c(make_float4(in[i], in[i + 1], in[i + 2], in[i + 3]));
    float2 x = static_cast<float2>(a), y = static_cast<float2>(b);
    float4 z = static_cast<float4>(c);
    out[i] = a.__x | b.__x << 16;
    back[i] = x.x + x.y + y.x * y.y + z.x + z.w;
}

extern "C" __global__ void fp4(const float* in, unsigned* out, float* back, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_fp4x2_e2m1 a(make_float2(in[i], in[i + 1]));
    __nv_fp4x4_e2m1 b(make_float4(in[i], in[i + 1], in[i + 2], in[i + 3]));
    float2 x = static_cast<float2>(a);
    float4 y = static_cast<float4>(b);
    out[i] = a.__x | b.__x << 16;
    back[i] = x.x + x.y + y.x + y.y + y.z + y.w;
}

// Quantise 32 numbers to E4M3 with one power-of-two scale, as the MX formats do.
extern "C" __global__ void quantise(const float* in, unsigned char* out, unsigned char* scales, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? in[i] : 0.0f, largest = fabsf(v);
    for (int d = 16; d; d >>= 1) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, d));
    __nv_fp8_e8m0 scale;
    scale.__x = __nv_cvt_float_to_e8m0(largest / 448.0f, __NV_SATFINITE, cudaRoundPosInf);
    if (threadIdx.x % 32 == 0) scales[i / 32] = scale.__x;
    out[i] = __nv_fp8_e4m3(v / float(scale)).__x;
}
