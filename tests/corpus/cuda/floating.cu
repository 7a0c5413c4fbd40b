// Single and double precision: rounding modes, conversions, comparisons, fused multiply-add, classification.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
// make: sm_80 --use_fast_math
// make: sm_90a --use_fast_math
// make: sm_80 --fmad=false
// make: sm_80 --ftz=true --prec-div=false
// make: sm_75 sm_90a nvcc-13.4
#include <cstdint>

extern "C" __global__ void rounding_f32(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = b[i], r = 0;
    r += __fadd_rn(x, y) + __fadd_rz(x, y) + __fadd_ru(x, y) + __fadd_rd(x, y);
    r *= __fsub_rn(x, y) - __fmul_rz(x, y) + __fmul_ru(x, y);
    r += __fmaf_rn(x, y, r) + __fmaf_rz(x, y, r) + __fmaf_ru(x, y, r) + __fmaf_rd(x, y, r);
    r += __fdiv_rn(x, y) + __fdiv_rz(x, y) + __fdiv_ru(x, y) + __fdiv_rd(x, y);
    r += __frcp_rn(x) + __frcp_rz(y) + __fsqrt_rn(x) + __fsqrt_ru(y) + __frsqrt_rn(x);
    r += __saturatef(x * y) + fabsf(x) - copysignf(y, x) + fminf(x, y) + fmaxf(x, y);
    out[i] = r + x / y + sqrtf(x) + rsqrtf(y) + 1.0f / x;
}

extern "C" __global__ void rounding_f64(const double* a, const double* b, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i], y = b[i], r = 0;
    r += __dadd_rn(x, y) + __dadd_rz(x, y) + __dmul_ru(x, y) + __dmul_rd(x, y) + __fma_rz(x, y, r);
    r += __ddiv_rn(x, y) + __ddiv_ru(x, y) + __drcp_rn(x) + __dsqrt_rd(y);
    out[i] = r + x / y + sqrt(x) + rsqrt(y) + fmin(x, y) + fmax(x, y) + fabs(x) + copysign(x, y) + fma(x, y, 0.1);
}

extern "C" __global__ void conversions(const double* d, const float* f, const int64_t* l, int32_t* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int64_t r = __double2int_rn(d[i]) + __double2int_rz(d[i]) + __double2uint_ru(d[i]) + __double2ll_rd(d[i]);
    r += __float2int_rn(f[i]) + __float2int_rd(f[i]) + __float2uint_ru(f[i]) + __float2ll_rz(f[i]) + __float2ull_rn(f[i]);
    r += (int64_t)(__int2float_rn(l[i]) + __ll2float_rd(l[i]) + __uint2float_ru(l[i]) + __ull2float_rz(l[i]));
    r += (int64_t)(__ll2double_rn(l[i]) + __int2double_rn(l[i]) + __ull2double_ru(l[i]) + __double2float_rn(d[i]) + __double2float_rz(d[i]));
    r ^= __float_as_int(f[i]) ^ __double_as_longlong(d[i]) ^ __double2hiint(d[i]) ^ __double2loint(d[i]);
    r += (int8_t)f[i] + (uint8_t)f[i] + (int16_t)d[i] + (uint16_t)f[i] + (bool)d[i];
    r += (int64_t)__hiloint2double(i, n) + (int64_t)__int_as_float(i) + llrint(d[i]) + lroundf(f[i]) + (int)truncf(f[i]) + (int)ceil(d[i]) + (int)floorf(f[i]) + (int)rint(d[i]);
    out[i] = (int32_t)(r ^ (r >> 32));
}

extern "C" __global__ void comparisons(const float* a, const double* b, uint32_t* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], y = a[(i + 1) % n];
    double u = b[i], v = b[(i + 1) % n];
    uint32_t r = (x < y) | (x <= y) << 1 | (x == y) << 2 | (x != y) << 3 | (x > y) << 4 | !(x >= y) << 5;
    r |= isnan(x) << 6 | isinf(y) << 7 | isfinite(x) << 8 | signbit(y) << 9 | (isnan(x) || isnan(y)) << 10 | (x < y && y < 1e30f) << 11;
    r |= (u < v) << 12 | !(u <= v) << 13 | (u == v) << 14 | isnan(u) << 15 | isinf(v) << 16 | signbit(u) << 17 | (x < u) << 18;
    out[i] = r;
}

extern "C" __global__ void polynomial(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double t = x[i], r = 2.505210838544172e-8;
    const double c[] = {-2.7557319223985893e-6, 1.984126984126984e-4, -8.333333333333333e-3, 0.16666666666666666};
#pragma unroll
    for (double k : c) r = r * t * t - k;
    y[i] = isfinite(t) ? r * t : __longlong_as_double(0x7ff8000000000000ll);
}
