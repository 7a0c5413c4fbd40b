// sm_90 and up: mbarrier transactions, bulk and tensor copies, clusters, fences of every proxy, setmaxnreg, elect, PDL.
// make: sm_90a sm_90 sm_100a sm_120a
// make: sm_90a -lineinfo
// make: sm_90a sm_100a nvcc-13.4
#include <cstdint>
#include <cuda.h>

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void wait(uint32_t barrier, uint32_t parity) {
    asm volatile("{\n\t.reg .pred done;\nagain_%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@done bra over_%=;\n\tbra again_%=;\nover_%=:\n}" :: "r"(barrier), "r"(parity) : "memory");
}

extern "C" __global__ void bulk(const int4* in, int4* out, int bytes) {
    __shared__ __align__(128) int4 tile[64];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t bar = shared_address(&barrier), at = shared_address(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at), "l"(in), "r"(bytes), "r"(bar) : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(in + 64), "r"(bytes));
    }
    __syncthreads();
    wait(bar, 0);
    tile[threadIdx.x & 63].x += 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(out), "r"(at), "r"(bytes) : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" :: "l"(out + 64), "r"(at), "r"(bytes) : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" :: "l"(out + 64), "r"(at), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) tensor(const __grid_constant__ CUtensorMap map1, const __grid_constant__ CUtensorMap map2, const __grid_constant__ CUtensorMap map3, const __grid_constant__ CUtensorMap map5, int x, int y) {
    extern __shared__ __align__(1024) char tile[];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t bar = shared_address(&barrier), at = shared_address(tile);
    uint64_t hint = 0x1000000000000000ull;
    uint16_t mask = 3, offset = 1;
    uint32_t leader;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(leader));
    if (leader && threadIdx.x < 32) {
        asm volatile("prefetch.tensormap [%0];" :: "l"(&map2) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 2; fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16384;" :: "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" :: "r"(at), "l"(&map1), "r"(x), "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(at), "l"(&map2), "r"(x), "r"(y), "r"(bar), "l"(hint) : "memory");
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %2}], [%4], %5;" :: "r"(at), "l"(&map3), "r"(x), "r"(y), "r"(bar), "h"(mask) : "memory");
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %2, %3, %2}], [%4], {%5, %5, %5};" :: "r"(at), "l"(&map5), "r"(x), "r"(y), "r"(bar), "h"(offset) : "memory");
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" :: "l"(&map2), "r"(x), "r"(y) : "memory");
    }
    wait(bar, 0);
    if (leader) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" :: "l"(&map2), "r"(x), "r"(y), "r"(at) : "memory");
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" :: "l"(&map2), "r"(x), "r"(y), "r"(at) : "memory");
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
    }
}

#if __CUDA_ARCH_FEAT_SM90_ALL || __CUDA_ARCH_FEAT_SM100_ALL || __CUDA_ARCH_FEAT_SM120_ALL
extern "C" __global__ void tensor_maps(CUtensorMap* map, void* global) {
    __shared__ __align__(128) CUtensorMap copy;
    if (threadIdx.x < 32) {
        uint32_t at = shared_address(&copy);
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "r"(at), "l"(global) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "r"(at), "r"(128) : "memory");
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" :: "r"(at) : "memory");
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" :: "l"(map), "r"(at) : "memory");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(map) : "memory");
    }
}
#endif

extern "C" __global__ void __cluster_dims__(2, 2, 1) __launch_bounds__(128, 1) cluster(const int* in, int* out) {
    __shared__ int box[128];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t rank, size, x, remote, owner, remote_bar, bar = shared_address(&barrier), value;
    asm volatile("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank; mov.u32 %2, %%cluster_ctaid.x;" : "=r"(rank), "=r"(size), "=r"(x));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" :: "r"(bar) : "memory");
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(box)), "r"((rank + 1) % size));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote_bar) : "r"(bar), "r"((rank + 1) % size));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(remote));
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(remote + threadIdx.x * 4), "r"(in[threadIdx.x]) : "memory");
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" :: "r"(remote), "r"(owner), "r"(remote_bar) : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" :: "r"(remote), "r"(owner), "r"(remote_bar) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(remote_bar) : "memory");
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(value) : "r"(remote) : "memory");
    asm volatile("fence.acq_rel.cluster; fence.sc.cluster; fence.proxy.async; fence.proxy.async.global; fence.proxy.alias;" ::: "memory");
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");
    out[threadIdx.x] = box[threadIdx.x] + value + x;
}

#if __CUDA_ARCH_FEAT_SM90_ALL || __CUDA_ARCH_FEAT_SM100_ALL || __CUDA_ARCH_FEAT_SM120_ALL
extern "C" __global__ void __launch_bounds__(384, 1) specialised(const float* in, float* out, int n) {
    // One producer group gives registers to two consumer groups.
    __shared__ __align__(128) float ring[4][256];
    __shared__ __align__(8) uint64_t full[4], empty[4];
    if (threadIdx.x == 0)
        for (int s = 0; s < 4; ++s) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&full[s])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 256;" :: "r"(shared_address(&empty[s])) : "memory");
        }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int i = 0; i < n; ++i) {
                int s = i % 4;
                wait(shared_address(&empty[s]), (i / 4 & 1) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(shared_address(&full[s])) : "memory");
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" :: "r"(shared_address(ring[s])), "l"(in + i * 256), "r"(shared_address(&full[s])) : "memory");
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sum = 0;
        for (int i = 0; i < n; ++i) {
            int s = i % 4;
            wait(shared_address(&full[s]), i / 4 & 1);
            sum += ring[s][threadIdx.x - 128];
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(&empty[s])) : "memory");
        }
        out[threadIdx.x - 128] = sum;
    }
}
#endif

extern "C" __global__ void dependent(const float* in, float* out) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[i] = in[i] * 2;
}

extern "C" __global__ void multicast_memory(float* multi, int* flags) {
    float4 v;
    asm volatile("multimem.ld_reduce.weak.global.add.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(multi) : "memory");
    asm volatile("multimem.st.release.sys.global.f32 [%0], %1;" :: "l"(multi), "f"(v.x) : "memory");
    asm volatile("multimem.red.relaxed.gpu.global.add.u32 [%0], %1;" :: "l"(flags), "r"(1) : "memory");
    asm volatile("red.global.add.noftz.v2.bf16x2 [%0], {%1, %2};" :: "l"(multi), "r"(1), "r"(2) : "memory");
    asm volatile("red.global.v4.f32.add [%0], {%1, %2, %3, %4};" :: "l"(multi), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
