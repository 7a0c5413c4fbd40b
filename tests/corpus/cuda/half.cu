// Half and bfloat16: scalar and packed arithmetic, comparisons, conversions, transcendental functions, fused operations.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
// make: sm_80 --use_fast_math
// make: sm_80 -G
// make: sm_90a sm_100a nvcc-13.4
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_arithmetic(const __half* a, const __half* b, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = a[i], y = b[i];
    __half r = x + y * x - __hdiv(x, y) + __hfma(x, y, x) + __hfma_sat(x, y, x) + __hadd_sat(x, y) + __habs(x) + __hneg(y);
    r += hsqrt(x) + hrsqrt(y) + hexp(x) + hexp2(y) + hlog(x) + hlog2(y) + hsin(x) + hcos(y) + hrcp(x) + htrunc(x) + hceil(y) + hfloor(x) + hrint(y);
    if (__hlt(x, y) || __hisnan(x) || x >= y || __hequ(x, y)) r = __hmax(x, __hmin(y, r));
    out[i] = r;
}

extern "C" __global__ void half2_arithmetic(const __half2* a, const __half2* b, __half2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 x = a[i], y = b[i];
    __half2 r = __hadd2(x, __hmul2(y, x)) - __hfma2(x, y, __lowhigh2highlow(x)) + __h2div(x, y) + h2exp2(x) + h2rsqrt(y) + h2log(x);
    r = __hadd2(r, __halves2half2(__low2half(x), __high2half(y))) + __hgt2(x, y) + __hne2(x, y) + __hmax2(x, y) + __hmin2_nan(x, y);
    unsigned mask = __hlt2_mask(x, y);
    if (__hbeq2(x, y)) r = __hfma2_relu(x, y, r);
    out[i] = mask ? r : __hneg2(__habs2(r));
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bf16_arithmetic(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 x = a[i], y = b[i];
    __nv_bfloat16 r = x + y * x - x / y + __hfma(x, y, x) + __habs(x) + hsqrt(x) + hexp(y) + hlog2(x) + __hmax(x, y) + __hmin_nan(x, y);
    out[i] = __hle(x, y) ? r : -r;
}

extern "C" __global__ void bf162_arithmetic(const __nv_bfloat162* a, const __nv_bfloat162* b, __nv_bfloat162* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat162 x = a[i], y = b[i];
    out[i] = __hadd2(__hmul2(x, y), __hfma2(x, y, x)) + __hmax2(x, y) + h2exp(x) - __h2div(x, y) + __hge2(x, y) + __hfma2_relu(x, y, x);
}
#endif

extern "C" __global__ void conversions(const float* f, const double* d, const int* s, __half* h, __nv_bfloat16* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    h[i] = __float2half_rn(f[i]) + __float2half_rz(f[i]) + __float2half_ru(f[i]) + __double2half(d[i]) + __int2half_rn(s[i]) + __ll2half_rz(s[i]) + __ushort2half_rn(s[i]);
    b[i] = __float2bfloat16_rn(f[i]) + __float2bfloat16_rz(f[i]) + __double2bfloat16(d[i]) + __int2bfloat16_rn(s[i]);
    __half2 p = __floats2half2_rn(f[i], f[i] + 1);
    __nv_bfloat162 q = __floats2bfloat162_rn(f[i], f[i] + 1);
    float2 pf = __half22float2(p), qf = __bfloat1622float2(q);
    out[i] = __half2float(h[i]) + __bfloat162float(b[i]) + pf.x * pf.y + qf.x * qf.y + __half2int_rn(h[i]) + __half2uint_rz(h[i]) + __half2ll_rd(h[i]) + __bfloat162int_rz(b[i]) + __half_as_short(h[i]);
}

extern "C" __global__ void atomics_and_shuffles(__half2* h, __nv_bfloat162* b, __half* out) {
    __half2 v = __shfl_xor_sync(~0u, h[threadIdx.x], 1);
    __nv_bfloat162 w = __shfl_down_sync(~0u, b[threadIdx.x], 4);
    out[threadIdx.x] = __low2half(v) + __high2half(v) + __float2half(__low2float(w)) + __ldg(out + 64 + threadIdx.x) + __ldcg(out + 128);
}
