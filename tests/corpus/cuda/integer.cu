// Scalar integer code of every width: division, shifts, wide multiplies, 128-bit arithmetic, saturation, bit tricks.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
// make: sm_80 -G
// make: sm_80 -lineinfo
// make: sm_90a -G
// make: sm_80 sm_100a nvcc-13.4
// make: sm_80 nvcc-13.4 -G
#include <cstdint>

template <typename T>
__device__ T arithmetic(T a, T b) {
    T r = a + b * 3 - (a ^ b);
    r += b ? a / b : a;
    r -= b ? a % b : b;
    r = (r << (b & 7)) | (r >> (a & 3));
    return a < b ? r : T(~r);
}

template <typename T>
__device__ void apply(const void* a, const void* b, void* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        static_cast<T*>(out)[i] = arithmetic(static_cast<const T*>(a)[i], static_cast<const T*>(b)[i]);
}

extern "C" __global__ void arithmetic_s8(const int8_t* a, const int8_t* b, int8_t* o, int n) { apply<int8_t>(a, b, o, n); }
extern "C" __global__ void arithmetic_u8(const uint8_t* a, const uint8_t* b, uint8_t* o, int n) { apply<uint8_t>(a, b, o, n); }
extern "C" __global__ void arithmetic_s16(const int16_t* a, const int16_t* b, int16_t* o, int n) { apply<int16_t>(a, b, o, n); }
extern "C" __global__ void arithmetic_u16(const uint16_t* a, const uint16_t* b, uint16_t* o, int n) { apply<uint16_t>(a, b, o, n); }
extern "C" __global__ void arithmetic_s32(const int32_t* a, const int32_t* b, int32_t* o, int n) { apply<int32_t>(a, b, o, n); }
extern "C" __global__ void arithmetic_u32(const uint32_t* a, const uint32_t* b, uint32_t* o, int n) { apply<uint32_t>(a, b, o, n); }
extern "C" __global__ void arithmetic_s64(const int64_t* a, const int64_t* b, int64_t* o, int n) { apply<int64_t>(a, b, o, n); }
extern "C" __global__ void arithmetic_u64(const uint64_t* a, const uint64_t* b, uint64_t* o, int n) { apply<uint64_t>(a, b, o, n); }

extern "C" __global__ void wide(const unsigned __int128* a, const unsigned __int128* b, unsigned __int128* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 sum = a[i] + b[i], product = a[i] * b[i];
    __int128 difference = (__int128)a[i] - (__int128)b[i];
    out[4 * i] = sum;
    out[4 * i + 1] = product >> (i & 127);
    out[4 * i + 2] = difference < 0 ? -difference : difference;
    out[4 * i + 3] = b[i] ? a[i] / b[i] + a[i] % b[i] : 0;
}

extern "C" __global__ void bits(const uint32_t* in, const uint64_t* in64, uint32_t* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t x = in[i], y = in[(i + 1) % n];
    uint64_t w = in64[i];
    uint32_t r = __brev(x) ^ __clz(y) ^ __ffs(x) ^ __popc(y);
    r += __funnelshift_l(x, y, i) ^ __funnelshift_r(x, y, i) ^ __funnelshift_lc(x, y, i) ^ __funnelshift_rc(x, y, i);
    r ^= __byte_perm(x, y, 0x5140) + __mulhi((int)x, (int)y) + __umulhi(x, y) + __mul24(x, y) + __umul24(x, y);
    r += __sad(x, y, 7) + __usad(x, y, 9) + __hadd(x, y) + __rhadd(x, y) + __uhadd(x, y) + __urhadd(x, y);
    r ^= __fns(x, y & 31, 3) + __popcll(w) + __clzll(w) + __ffsll(w) + (uint32_t)__brevll(w) + (uint32_t)__umul64hi(w, w + 1);
    out[i] = r ^ (uint32_t)(__mul64hi((long long)w, -3) >> 7);
}

extern "C" __global__ void extended(const uint32_t* a, const uint32_t* b, uint32_t* out, int limbs) {
    // 128-bit add, subtract and multiply-add with carry, in PTX.
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    uint32_t r0, r1, r2, r3;
    asm("add.cc.u32 %0, %4, %8;\n\t addc.cc.u32 %1, %5, %9;\n\t addc.cc.u32 %2, %6, %10;\n\t addc.u32 %3, %7, %11;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(a[i]), "r"(a[i + 1]), "r"(a[i + 2]), "r"(a[i + 3]), "r"(b[i]), "r"(b[i + 1]), "r"(b[i + 2]), "r"(b[i + 3]));
    asm("sub.cc.u32 %0, %0, %4; subc.cc.u32 %1, %1, %5; subc.cc.u32 %2, %2, %6; subc.u32 %3, %3, %7;"
        : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3) : "r"(b[i + 3]), "r"(b[i + 2]), "r"(b[i + 1]), "r"(b[i]));
    asm("mad.lo.cc.u32 %0, %2, %3, %0; madc.hi.u32 %1, %2, %3, %1;" : "+r"(r0), "+r"(r1) : "r"(a[i]), "r"(b[i]));
    asm("{ .reg .b32 t; bfe.u32 t, %1, 3, 8; bfi.b32 %0, t, %0, 16, 8; bfind.u32 t, %1; xor.b32 %0, %0, t; }" : "+r"(r2) : "r"(r3));
    asm("{ .reg .u32 t; lop3.b32 t, %1, %2, %3, 0x96; szext.clamp.s32 %0, t, %1; bmsk.clamp.b32 t, %2, %3; add.sat.s32 %0, %0, t; }"
        : "=r"(r3) : "r"(r0), "r"(r1), "r"(r2));
    out[i] = r0; out[i + 1] = r1; out[i + 2] = r2; out[i + 3] = r3;
}
