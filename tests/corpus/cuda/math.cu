// The mathematical library, precise and fast, single and double.
// make: sm_75 sm_80 sm_90a sm_120a
// make: sm_80 --use_fast_math
// make: sm_100a --use_fast_math
// make: sm_80 -G
// make: sm_90a nvcc-13.4

#define ONE(function) \
    extern "C" __global__ void f32_##function(const float* x, float* y, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x; \
        if (i < n) y[i] = function##f(x[i]); \
    } \
    extern "C" __global__ void f64_##function(const double* x, double* y, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x; \
        if (i < n) y[i] = function(x[i]); \
    }
#define TWO(function) \
    extern "C" __global__ void f32_##function(const float* a, const float* b, float* y, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x; \
        if (i < n) y[i] = function##f(a[i], b[i]); \
    } \
    extern "C" __global__ void f64_##function(const double* a, const double* b, double* y, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x; \
        if (i < n) y[i] = function(a[i], b[i]); \
    }

ONE(sin) ONE(cos) ONE(tan) ONE(sinpi) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(tanh) ONE(asinh)
ONE(exp) ONE(exp2) ONE(exp10) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(cbrt) ONE(rcbrt)
ONE(erf) ONE(erfc) ONE(erfinv) ONE(normcdf) ONE(lgamma) ONE(tgamma) ONE(j0) ONE(y1) ONE(round) ONE(nearbyint)
TWO(pow) TWO(fmod) TWO(remainder) TWO(atan2) TWO(hypot) TWO(fdim) TWO(nextafter)

extern "C" __global__ void intrinsics(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float t = x[i], s, c;
    __sincosf(t, &s, &c);
    float r = s + c + __sinf(t) + __cosf(t) + __tanf(t) + __expf(t) + __exp10f(t) + __logf(t) + __log2f(t) + __log10f(t);
    int e;
    r += __powf(t, 1.5f) + __fdividef(t, 3.0f) + frexpf(t, &e) + ldexpf(t, i) + norm3df(t, s, c) + rhypotf(t, s);
    double ds, dc, whole;
    sincos((double)t, &ds, &dc);
    r += (float)(ds * dc + modf(ds * 100, &whole) + whole) + e;
    y[i] = r;
}
