// wgmma: descriptors, every type, register and shared A, sparse, and a warp-specialised product with a TMA ring.
// make: sm_90a
// make: sm_90a -lineinfo
// make: sm_90a nvcc-13.4
#include <cstdint>
#include <cuda.h>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// 128-byte swizzle, rows of 128 bytes, 1024 bytes between groups of eight rows.
__device__ uint64_t describe(const void* p) {
    return (uint64_t)((shared_address(p) & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void wait_group() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }

#define D4 "{%0, %1, %2, %3}"
#define F4(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define R4(d) "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#define SHARED_F32(types, tail) asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8" types " " D4 ", %4, %5, p, 1, 1" tail "; }" : F4(f) : "l"(a), "l"(b), "r"(scale))
#define SHARED_S32(types) asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8" types " " D4 ", %4, %5, p; }" : R4(s) : "l"(a), "l"(b), "r"(scale))

extern "C" __global__ void __launch_bounds__(128) types(float* out, int* out32, const uint32_t* in, int scale) {
    extern __shared__ __align__(1024) char tile[];
    uint64_t a = describe(tile), b = describe(tile + 8192);
    float f[4] = {};
    int s[4] = {};
    uint32_t h[2] = {};
    fence();
    SHARED_F32("k16.f32.f16.f16", ", 0, 0"); SHARED_F32("k16.f32.f16.f16", ", 1, 1"); SHARED_F32("k16.f32.bf16.bf16", ", 0, 1");
    SHARED_F32("k8.f32.tf32.tf32", ""); SHARED_F32("k32.f32.e4m3.e4m3", ""); SHARED_F32("k32.f32.e5m2.e4m3", "");
    SHARED_S32("k32.s32.s8.s8"); SHARED_S32("k32.satfinite.s32.u8.s8"); SHARED_S32("k256.s32.b1.b1.and.popc");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, p, -1, 1, 0, 0; }" : "+r"(h[0]), "+r"(h[1]) : "l"(a), "l"(b), "r"(scale));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %9, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", {%4, %5, %6, %7}, %8, p, 1, -1, 1; }" : F4(f) : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "l"(b), "r"(scale));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %7, 0; wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 " D4 ", %4, %5, %6, 0, p, 1, 1, 0, 0; }" : F4(f) : "l"(a), "l"(b), "r"(in[4]), "r"(scale));
    commit();
    wait_group<0>();
    for (int i = 0; i < 4; ++i) { out[i] = f[i]; out32[i] = s[i] + h[i / 2]; }
}

#define ROW(n) "+f"(d[n]), "+f"(d[n + 1]), "+f"(d[n + 2]), "+f"(d[n + 3]), "+f"(d[n + 4]), "+f"(d[n + 5]), "+f"(d[n + 6]), "+f"(d[n + 7])
__device__ void m64n128k16(float (&d)[64], uint64_t a, uint64_t b, int accumulate) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %66, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16\n\t"
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,\n\t"
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,\n\t"
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,\n\t"
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},\n\t"
        "%64, %65, p, 1, 1, 0, 0;\n\t}"
        : ROW(0), ROW(8), ROW(16), ROW(24), ROW(32), ROW(40), ROW(48), ROW(56) : "l"(a), "l"(b), "r"(accumulate));
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
    asm volatile("{\n\t.reg .pred done;\nagain_%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again_%=;\n}" :: "r"(barrier), "r"(parity) : "memory");
}

// C tile 128x128: one producer warp group, two consumers of 64 rows; K in steps of 64 bf16 (128 bytes, swizzled).
constexpr int Stages = 4;
struct Ring { __align__(1024) char a[Stages][128 * 128], b[Stages][128 * 128]; uint64_t full[Stages], empty[Stages]; };
extern "C" __global__ void __launch_bounds__(384, 1) gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* c, int n, int k) {
    extern __shared__ __align__(1024) char memory[];
    Ring& ring = *reinterpret_cast<Ring*>(memory);
    if (threadIdx.x == 0) {
        for (int s = 0; s < Stages; ++s) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&ring.full[s])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" :: "r"(shared_address(&ring.empty[s])) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    int group = threadIdx.x / 128, steps = k / 64;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int i = 0; i < steps; ++i) {
                int s = i % Stages;
                uint32_t full = shared_address(&ring.full[s]);
                wait(shared_address(&ring.empty[s]), (i / Stages & 1) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 32768;" :: "r"(full) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(shared_address(ring.a[s])), "l"(&map_a), "r"(i * 64), "r"(blockIdx.y * 128), "r"(full) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(shared_address(ring.b[s])), "l"(&map_b), "r"(i * 64), "r"(blockIdx.x * 128), "r"(full) : "memory");
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[64];
    for (int i = 0; i < steps; ++i) {
        int s = i % Stages;
        wait(shared_address(&ring.full[s]), i / Stages & 1);
        fence();
#pragma unroll
        for (int kk = 0; kk < 4; ++kk)
            m64n128k16(d, describe(ring.a[s] + (group - 1) * 64 * 128 + kk * 32), describe(ring.b[s] + kk * 32), i + kk > 0);
        commit();
        wait_group<0>();
        if (threadIdx.x % 128 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(&ring.empty[s])) : "memory");
    }
    int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, row = blockIdx.y * 128 + (group - 1) * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        int column = blockIdx.x * 128 + j * 8 + lane % 4 * 2;
        *(float2*)(c + (size_t)row * n + column) = make_float2(d[j * 4], d[j * 4 + 1]);
        *(float2*)(c + (size_t)(row + 8) * n + column) = make_float2(d[j * 4 + 2], d[j * 4 + 3]);
    }
}
