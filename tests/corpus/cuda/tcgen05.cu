// Fifth-generation tensor cores: tensor memory, copies, products of every kind, commits, and a small product kernel.
// make: sm_100a sm_103a
// make: sm_100a -lineinfo
// make: sm_100a sm_103a nvcc-13.4
#include <cstdint>
#include <cuda.h>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void wait(uint32_t barrier, uint32_t parity) {
    asm volatile("{\n\t.reg .pred done;\nagain_%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again_%=;\n}" :: "r"(barrier), "r"(parity) : "memory");
}

#define MMA(kind) asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::" kind " [%0], %1, %2, %3, p; }" :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(accumulate))
extern "C" __global__ void products(uint64_t a, uint64_t b, uint32_t d, uint32_t idesc, int accumulate, uint32_t ta, uint32_t scale_a, uint32_t scale_b, uint32_t meta) {
    MMA("f16"); MMA("tf32"); MMA("f8f6f4");
#if __CUDA_ARCH_FEAT_SM100_ALL
    MMA("i8");
#endif
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16.collector::a::fill [%0], [%1], %2, %3, {%5, %5, %5, %5}, p; }" :: "r"(d), "r"(ta), "l"(b), "r"(idesc), "r"(accumulate), "r"(0));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%5], [%6], p; }" :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(accumulate), "r"(scale_a), "r"(scale_b));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%0], %1, %2, %3, [%5], [%6], p; }" :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(accumulate), "r"(scale_a), "r"(scale_b));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%5], [%6], p; }" :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(accumulate), "r"(scale_a), "r"(scale_b));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%5], %3, p; }" :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(accumulate), "r"(meta));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::use [%0], %1, %2, %3, p; }" :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(accumulate));
}

// One kernel may not mix single blocks and pairs.
extern "C" __global__ void pair_products(uint64_t a, uint64_t b, uint32_t d, uint32_t idesc, int accumulate, uint32_t t, uint64_t s) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, {%5, %5, %5, %5, %5, %5, %5, %5}, p, 3; }" :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(accumulate), "r"(0));
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4.b8x16.b4x16_p64 [%0], %1;" :: "r"(t), "l"(s));
}

extern "C" __global__ void copies(uint32_t t, uint64_t s) {
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" :: "r"(t), "l"(s));
    asm volatile("tcgen05.cp.cta_group::1.4x256b [%0], %1;" :: "r"(t), "l"(s));
    asm volatile("tcgen05.cp.cta_group::1.128x128b.b8x16.b6x16_p32 [%0], %1;" :: "r"(t), "l"(s));
    asm volatile("tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [%0], %1;" :: "r"(t), "l"(s));
    asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"(t));
}

extern "C" __global__ void loads(uint32_t t, uint32_t* out) {
    uint32_t r[8];
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(r[0]) : "r"(t));
    asm volatile("tcgen05.ld.sync.aligned.16x64b.x2.b32 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(t));
    asm volatile("tcgen05.ld.sync.aligned.16x128b.x2.pack::16b.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t));
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];" : "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(t));
    asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%0, %1}, [%2], 64;" : "=r"(r[0]), "=r"(r[1]) : "r"(t));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %2, %3, %4};" :: "r"(t), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("tcgen05.st.sync.aligned.16x64b.x2.unpack::16b.b32 [%0], {%1, %2};" :: "r"(t), "r"(r[4]), "r"(r[5]) : "memory");
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = r[i];
}

#define GET8(n) "=r"(r[n]), "=r"(r[n + 1]), "=r"(r[n + 2]), "=r"(r[n + 3]), "=r"(r[n + 4]), "=r"(r[n + 5]), "=r"(r[n + 6]), "=r"(r[n + 7])
extern "C" __global__ void __launch_bounds__(128) gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, uint32_t* c, int n, int k, uint64_t base_descriptor, uint32_t idesc) {
    extern __shared__ __align__(1024) char tile[];
    __shared__ __align__(8) uint64_t loaded, computed;
    __shared__ uint32_t tensor_memory;
    uint32_t full = shared_address(&loaded), done = shared_address(&computed), a = shared_address(tile), b = a + 16384;
    if (threadIdx.x < 32) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" :: "r"(shared_address(&tensor_memory)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 [%1], 1; fence.mbarrier_init.release.cluster;" :: "r"(full), "r"(done) : "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    uint32_t d = tensor_memory;
    for (int i = 0; i < k / 64; ++i) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 32768;" :: "r"(full) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(a), "l"(&map_a), "r"(i * 64), "r"(blockIdx.y * 128), "r"(full) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(b), "l"(&map_b), "r"(i * 64), "r"(blockIdx.x * 128), "r"(full) : "memory");
            wait(full, i & 1);
            for (int kk = 0; kk < 4; ++kk)
                asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" :: "r"(d), "l"(base_descriptor + ((a + kk * 32) >> 4)), "l"(base_descriptor + ((b + kk * 32) >> 4)), "r"(idesc), "r"(i + kk));
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(done) : "memory");
        }
        wait(done, i & 1);
    }
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    int row = blockIdx.y * 128 + threadIdx.x;
    for (int j = 0; j < 128; j += 16) {
        uint32_t r[16];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];" : GET8(0), GET8(8) : "r"(d + (threadIdx.x / 32 * 32 << 16) + j));
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        for (int e = 0; e < 16; e += 4) *(uint4*)(c + (size_t)row * n + blockIdx.x * 128 + j + e) = make_uint4(r[e], r[e + 1], r[e + 2], r[e + 3]);
    }
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" :: "r"(d));
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(uint64_t* barrier, const __grid_constant__ CUtensorMap map, int x) {
    __shared__ uint32_t slot;
    __shared__ __align__(1024) char tile[8192];
    __shared__ __align__(8) uint64_t bar;
    uint16_t mask = 3;
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(shared_address(&slot)), "r"(256) : "memory");
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" :: "r"(shared_address(&bar)), "h"(mask) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, {%2, %2}], [%3];" :: "r"(shared_address(tile)), "l"(&map), "r"(x), "r"(shared_address(&bar)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2, %2, %2, %2}], [%3];" :: "r"(shared_address(tile)), "l"(&map), "r"(x), "r"(shared_address(&bar)) : "memory");
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned; tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 256;" :: "r"(slot));
}

extern "C" __global__ void steal_work(int* out) {
    __shared__ __align__(16) uint4 response;
    __shared__ __align__(8) uint64_t bar;
    uint32_t x, y, z, w, canceled;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&bar)) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" :: "r"(shared_address(&bar)) : "memory");
        asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" :: "r"(shared_address(&response)), "r"(shared_address(&bar)) : "memory");
    }
    wait(shared_address(&bar), 0);
    asm volatile("{ .reg .pred p; .reg .b128 r; ld.shared.b128 r, [%5]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r; selp.u32 %4, 1, 0, p;"
        " @p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, %3}, r; }" : "=r"(x), "=r"(y), "=r"(z), "=r"(w), "=r"(canceled) : "r"(shared_address(&response)) : "memory");
    out[blockIdx.x] = canceled ? x : -1;
}

extern "C" __global__ void packed_floats(const float2* a, const float2* b, float2* out, const longlong4* wide, longlong4* wide_out) {
    uint64_t x = *(const uint64_t*)(a + threadIdx.x), y = *(const uint64_t*)(b + threadIdx.x), r;
    asm("add.rn.f32x2 %0, %1, %2; mul.rz.ftz.f32x2 %0, %0, %1; fma.rn.f32x2 %0, %1, %2, %0; sub.rn.f32x2 %0, %0, %2;" : "=l"(r) : "l"(x), "l"(y));
    *(uint64_t*)(out + threadIdx.x) = r;
    float f = a->x, g;
    asm("max.f32 %0, %1, %2, %1; min.NaN.f32 %0, %0, %2, %1;" : "=f"(g) : "f"(f), "f"(f + 1));
    asm("redux.sync.max.NaN.f32 %0, %1, 0xffffffff; redux.sync.min.abs.f32 %0, %0, -1;" : "=f"(g) : "f"(g));
    longlong4 v;
    asm volatile("ld.global.L2::evict_last.v4.b64 {%0, %1, %2, %3}, [%4];" : "=l"(v.x), "=l"(v.y), "=l"(v.z), "=l"(v.w) : "l"(wide));
    v.x += (long long)g;
    asm volatile("st.global.v4.b64 [%0], {%1, %2, %3, %4};" :: "l"(wide_out), "l"(v.x), "l"(v.y), "l"(v.z), "l"(v.w) : "memory");
}
