// mma.sync in inline PTX: every type and shape, dense and sparse, with ldmatrix, stmatrix and movmatrix.
// make: sm_75 sm_80 sm_89 sm_90a sm_120a
// make: sm_120a sm_80 nvcc-13.4
#include <cstdint>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

extern "C" __global__ void turing(const uint32_t* in, uint32_t* out) {
    uint32_t a = in[0], b = in[1], c = in[2], d = in[3];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};" : "+r"(c), "+r"(d) : "r"(a), "r"(b), "r"(in[4]));
    float f[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a), "r"(b), "r"(c));
    int s[2] = {0, 1};
    asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+r"(s[0]), "+r"(s[1]) : "r"(a), "r"(b));
    asm volatile("mma.sync.aligned.m8n8k32.row.col.s32.u4.s4.s32 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+r"(s[0]), "+r"(s[1]) : "r"(a), "r"(b));
    asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%0, %1}, {%2}, {%3}, {%0, %1};" : "+r"(s[0]), "+r"(s[1]) : "r"(a), "r"(b));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(a) : "r"(b));
    __shared__ __align__(128) uint16_t tile[4 * 64];
    uint32_t r[4];
    uint32_t at = shared_address(tile) + (threadIdx.x & 31) * 16;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2+16];" : "=r"(r[1]), "=r"(r[2]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared::cta.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    out[threadIdx.x] = a + c + d + s[0] + s[1] + (int)(f[0] + f[1] + f[2] + f[3]) + r[0] + r[1] + r[2] + r[3];
}

#if __CUDA_ARCH__ >= 800
#define F32_16816(types) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." types ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
    : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define S32(shape, tail) asm volatile("mma.sync.aligned." shape ".row.col" tail " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
    : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
extern "C" __global__ void ampere(const uint32_t* in, const double* wide, float* out, int* out32, double* out64) {
    uint32_t a[4] = {in[0], in[1], in[2], in[3]}, b[4] = {in[4], in[5], in[6], in[7]};
    float f[4] = {};
    int s[4] = {};
    double d[4] = {};
    F32_16816("f16.f16"); F32_16816("bf16.bf16");
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
        : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(0.0f));
    S32("m16n8k32", ".s32.s8.s8.s32"); S32("m16n8k32", ".satfinite.s32.u8.s8.s32"); S32("m16n8k64", ".s32.s4.u4.s32"); S32("m16n8k64", ".satfinite.s32.u4.u4.s32");
    S32("m16n8k256", ".s32.b1.b1.s32.and.popc"); S32("m16n8k256", ".s32.b1.b1.s32.xor.popc");
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(d[0]), "+d"(d[1]) : "d"(wide[0]), "d"(wide[1]));
    // Two of four: the metadata register says which.
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x1;"
        : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(in[8]));
    asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0;"
        : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(in[8]));
    for (int i = 0; i < 4; ++i) { out[i] = f[i]; out32[i] = s[i]; out64[i] = d[i]; }
}
#endif

#if __CUDA_ARCH__ >= 890
#define F32_16832(types) asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
    : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
extern "C" __global__ void ada(const uint32_t* in, float* out) {
    uint32_t a[4] = {in[0], in[1], in[2], in[3]}, b[2] = {in[4], in[5]};
    float f[4] = {};
    F32_16832("e4m3.e4m3"); F32_16832("e5m2.e4m3"); F32_16832("e4m3.e5m2"); F32_16832("e5m2.e5m2");
    for (int i = 0; i < 4; ++i) out[i] = f[i];
}
#endif

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void hopper(const uint32_t* in, const double* wide, double* out64) {
    __shared__ __align__(128) uint16_t tile[4 * 64];
    uint32_t at = shared_address(tile) + (threadIdx.x & 31) * 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" :: "r"(at), "r"(in[0]) : "memory");
    double d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(wide[0]), "d"(wide[1]), "d"(wide[2]));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %4, %5, %6, %7}, {%4, %5, %6, %7}, {%0, %1, %2, %3};" : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(wide[0]), "d"(wide[1]), "d"(wide[2]), "d"(wide[3]));
    for (int i = 0; i < 4; ++i) out64[i] = d[i] + tile[threadIdx.x];
}
#endif

#if __CUDA_ARCH_FEAT_SM120_ALL
#define NARROW(head, tail, ...) asm volatile("mma.sync.aligned." head " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}" tail ";" \
    : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), ##__VA_ARGS__)
extern "C" __global__ void blackwell_consumer(const uint32_t* in, float* out) {
    uint32_t a[4] = {in[0], in[1], in[2], in[3]}, b[2] = {in[4], in[5]}, sa = in[6], sb = in[7];
    float f[4] = {};
    NARROW("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "");
    NARROW("m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m3.f32", "");
    NARROW("m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0", ", {%10}, {0, 1}, {%11}, {2, 3}", "r"(sa), "r"(sb));
    NARROW("m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", ", {%10}, {0, 0}, {%11}, {2, 1}", "r"(sa), "r"(sb));
    NARROW("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", ", {%10}, {0, 0}, {%11}, {0, 0}", "r"(sa), "r"(sb));
    uint32_t r[4];
    __shared__ __align__(128) uint8_t tile[512];
    asm volatile("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(tile)));
    asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(tile)));
    asm volatile("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%0], {%1};" :: "r"(shared_address(tile)), "r"(r[0]) : "memory");
    for (int i = 0; i < 4; ++i) out[i] = f[i] + r[i];
}
#endif
