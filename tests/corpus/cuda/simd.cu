// SIMD-within-a-register intrinsics, dot products, the DPX functions, and the video instructions behind them.
// make: sm_75 sm_80 sm_90a sm_120a
// make: sm_90a nvcc-13.4

extern "C" __global__ void bytes(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r = 0;
    r ^= __vadd4(x, y) ^ __vaddss4(x, y) ^ __vaddus4(x, y) ^ __vsub4(x, y) ^ __vsubss4(x, y) ^ __vsubus4(x, y);
    r ^= __vavgs4(x, y) ^ __vavgu4(x, y) ^ __vhaddu4(x, y) ^ __vabs4(x) ^ __vabsss4(x) ^ __vabsdiffs4(x, y) ^ __vabsdiffu4(x, y);
    r ^= __vmins4(x, y) ^ __vminu4(x, y) ^ __vmaxs4(x, y) ^ __vmaxu4(x, y) ^ __vneg4(x) ^ __vnegss4(x) ^ __vsads4(x, y) ^ __vsadu4(x, y);
    r ^= __vcmpeq4(x, y) ^ __vcmpges4(x, y) ^ __vcmpgtu4(x, y) ^ __vcmplts4(x, y) ^ __vsetne4(x, y) ^ __vsetleu4(x, y);
    out[i] = r;
}

extern "C" __global__ void halfwords(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r = 0;
    r ^= __vadd2(x, y) ^ __vaddss2(x, y) ^ __vsubus2(x, y) ^ __vavgs2(x, y) ^ __vabsdiffu2(x, y) ^ __vsads2(x, y);
    r ^= __vmins2(x, y) ^ __vmaxu2(x, y) ^ __vcmpeq2(x, y) ^ __vcmpgts2(x, y) ^ __vsetltu2(x, y) ^ __vneg2(x) ^ __vabsss2(y);
    out[i] = r;
}

extern "C" __global__ void dot_products(const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int r = __dp4a(a[i], b[i], 1) + __dp2a_lo(a[i], b[i], 2) + __dp2a_hi(a[i], b[i], 3);
    unsigned u = __dp4a((unsigned)a[i], (unsigned)b[i], 1u) + __dp2a_lo((unsigned)a[i], (unsigned)b[i], 2u);
    asm("dp4a.s32.u32 %0, %1, %2, %0; dp2a.hi.u32.s32 %0, %2, %1, %0;" : "+r"(r) : "r"(a[i]), "r"(b[i]));
    out[i] = r ^ u;
}

extern "C" __global__ void dynamic_programming(const int* a, const int* b, const int* c, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool p, q;
    int r = __vimax3_s32(a[i], b[i], c[i]) + __vimin3_u32(a[i], b[i], c[i]) + __viaddmax_s32(a[i], b[i], c[i]) + __viaddmin_s32_relu(a[i], b[i], c[i]);
    r ^= __vimax3_s16x2(a[i], b[i], c[i]) ^ __viaddmax_u16x2(a[i], b[i], c[i]) ^ __vimin_s16x2_relu(a[i], b[i]) ^ __vibmax_s32(a[i], b[i], &p) ^ __vibmin_u16x2(a[i], b[i], &p, &q);
    out[i] = r + p + 2 * q;
}

extern "C" __global__ void video(const unsigned* a, const unsigned* b, unsigned* out) {
    unsigned x = a[threadIdx.x], y = b[threadIdx.x], r = 7;
    asm("vadd.s32.u32.s32.sat.add %0, %1.b0, %2.h1, %0;" : "+r"(r) : "r"(x), "r"(y));
    asm("vsub.u32.u32.u32 %0, %1.b3, %2.h0;" : "=r"(r) : "r"(x), "r"(r));
    asm("vabsdiff.s32.s32.s32.min %0, %1, %2.b1, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(r));
    asm("vmax.s32.s32.u32.sat %0.b2, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(r));
    asm("vshl.u32.u32.u32.clamp.add %0, %1, %2.b0, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(r));
    asm("vshr.s32.s32.u32.wrap %0, %1, %2;" : "=r"(r) : "r"(r), "r"(y));
    asm("vmad.s32.s32.u32.sat.shr7 %0, %1.h0, %2.b3, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(r));
    asm("vset.s32.u32.ge %0, %1, %2;" : "=r"(x) : "r"(x), "r"(y));
    asm("vadd4.s32.s32.s32.add %0, %1.b1234, %2.b7650, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(r));
    asm("vavrg2.u32.u32.u32.sat %0.h10, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(r));
    asm("vset4.u32.u32.ne %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(r));
    out[threadIdx.x] = r;
}

// Smith-Waterman: one anti-diagonal cell a thread.
extern "C" __global__ void align(const char* s, const char* t, const int* previous, const int* before, int* current, int* best, int diagonal, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + max(1, diagonal - n), j = diagonal - i;
    if (i > m || j < 1) return;
    int match = before[i - 1] + (s[i - 1] == t[j - 1] ? 3 : -3);
    int score = __vimax3_s32_relu(match, previous[i - 1] - 2, previous[i] - 2);
    current[i] = score;
    atomicMax(best, score);
}
