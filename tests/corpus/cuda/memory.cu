// Loads and stores: cache operators, read-only and vector accesses, volatile, local arrays, constant and managed memory.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
// make: sm_80 -G
// make: sm_80 -rdc=true
// make: sm_90a sm_100a nvcc-13.4
#include <cstdint>

__constant__ float coefficients[16] = {1, 2, 3, 4.5f, -1, -2, 0.1f};
__constant__ struct { int rows; double scale; char label[6]; } settings = {3, 0.25, "abc"};
__managed__ int managed_counter = 7;
__managed__ double managed_table[32];
__device__ unsigned long long device_words[] = {0x0123456789abcdefull, 42, ~0ull};
__device__ const char message[] = "bytes in global memory\n\t\"quoted\"";
__device__ int* pointer_to_managed = nullptr;
__device__ const void* addresses[] = {coefficients, device_words + 1, message};

extern "C" __global__ void cache_operators(const int* in, int* out, const float4* v, float4* w) {
    int i = threadIdx.x;
    int r = __ldg(in + i) + __ldca(in + i) + __ldcg(in + i) + __ldcs(in + i) + __ldlu(in + i) + __ldcv(in + i);
    __stwb(out, r); __stcg(out + 1, r); __stcs(out + 2, r); __stwt(out + 3, r);
    float4 x = __ldg(v + i), y = __ldcs(v + i + 1);
    __stcs(w + i, make_float4(x.x + y.x, x.y * y.y, x.z - y.z, x.w));
    const short4* s = (const short4*)in;
    const double2* d = (const double2*)v;
    short4 a = __ldg(s + i);
    double2 b = __ldcg(d + i);
    uchar2 c = __ldg((const uchar2*)in + i);
    out[i + 4] = a.x + a.w + (int)(b.x + b.y) + c.x + c.y;
}

extern "C" __global__ void hints(const int* in, int* out) {
    int a, b, c, d;
    const int* p = in + threadIdx.x * 4;
    asm volatile("ld.global.L1::no_allocate.b32 %0, [%1];" : "=r"(a) : "l"(p));
    asm volatile("ld.global.nc.L1::evict_last.L2::128B.b32 %0, [%1];" : "=r"(b) : "l"(p));
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(c) : "l"(p));
    asm volatile("ld.acquire.sys.b32 %0, [%1];" : "=r"(d) : "l"(p));
    asm volatile("prefetch.global.L2 [%0]; prefetchu.L1 [%0];" :: "l"(p));
#if __CUDA_ARCH__ >= 800
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.v2.b32 {%0, %1}, [%2], %3;" : "=r"(a), "=r"(b) : "l"(p), "l"(policy));
    asm volatile("prefetch.global.L2::evict_last [%0]; applypriority.global.L2::evict_normal [%0], 128; discard.global.L2 [%0], 128;" :: "l"(out));
#endif
    asm volatile("st.release.gpu.global.b32 [%0], %1; st.relaxed.cta.b32 [%0+4], %1; st.volatile.global.u32 [%0+8], %1;" :: "l"(out), "r"(a + b + c + d) : "memory");
    asm volatile("{ .reg .pred p; isspacep.shared p, %0; @p trap; }" :: "l"(out));
}

extern "C" __global__ void local_arrays(const int* in, int* out, int n) {
    int stack[64], depth = 0;
    unsigned char marks[33] = {};
    for (int i = 0; i < n; ++i) {
        if (in[i] > 0) stack[depth++ & 63] = in[i] * i;
        else if (depth) marks[stack[--depth & 63] % 33]++;
    }
    int r = 0;
    for (int i = 0; i < 33; ++i) r = r * 31 + marks[(i * 7) % 33];
    out[threadIdx.x] = r + stack[threadIdx.x & 63];
}

extern "C" __global__ void constants(float* out, const __grid_constant__ int4 by_value) {
    int i = threadIdx.x;
    float r = coefficients[3] * coefficients[i & 15] + settings.rows * settings.scale + settings.label[i % 6] + by_value.z;
    const float* generic = i & 1 ? coefficients : out;
    out[i] = r + generic[i & 15] + message[i % sizeof(message)] + device_words[i % 3];
    managed_table[i & 31] += atomicAdd(&managed_counter, 1);
    *(const volatile int**)&pointer_to_managed = &managed_counter;
    out[i + 32] = *(const float*)addresses[i % 3];
}

extern "C" __global__ void volatile_access(volatile int* p, volatile long long* q) {
    __shared__ volatile short flag;
    flag = p[1];
    while (*p == 0) {}
    *q = *q + flag;
}

extern "C" __global__ void packed(const uint8_t* bytes, uint32_t* out) {
    struct __attribute__((packed)) Record { uint8_t kind; uint32_t value; uint16_t check; };
    Record r = ((const Record*)bytes)[threadIdx.x];
    out[threadIdx.x] = r.kind == 1 ? r.value : r.check;
}
