// Atomic operations of every kind, type and scope, as built-in functions and through cuda::atomic_ref.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void integers(int* i32, unsigned* u32, unsigned long long* u64, long long* s64, unsigned short* u16) {
    unsigned t = threadIdx.x;
    int r = atomicAdd(i32, 1) + atomicSub(i32 + 1, 2) + atomicExch(i32 + 2, t) + atomicMin(i32 + 3, t) + atomicMax(i32 + 4, t);
    r += atomicInc(u32, 100) + atomicDec(u32 + 1, 100) + atomicCAS(i32 + 5, r, t) + atomicAnd(u32 + 2, t) + atomicOr(u32 + 3, t) + atomicXor(u32 + 4, t);
    r += atomicMin(u32 + 5, t) + atomicMax(u32 + 6, t) + atomicCAS(u16, (unsigned short)r, (unsigned short)t);
    unsigned long long w = atomicAdd(u64, 1ull) + atomicExch(u64 + 1, (unsigned long long)t) + atomicCAS(u64 + 2, 1ull, 2ull) + atomicMin(u64 + 3, 5ull) + atomicMax(u64 + 4, 6ull);
    w += atomicAnd(u64 + 5, w) + atomicOr(u64 + 6, w) + atomicXor(u64 + 7, w) + atomicMin(s64, -5ll) + atomicMax(s64 + 1, 7ll);
    i32[16 + t] = r;
    u64[16 + t] = w;
}

extern "C" __global__ void scopes(int* a, unsigned long long* b) {
    atomicAdd_block(a, 1); atomicAdd_system(a + 1, 1); atomicMax_block(a + 2, 3); atomicCAS_system(a + 3, 1, 2);
    atomicExch_block(b, 3ull); atomicAnd_system(b + 1, 7ull);
    __threadfence_block(); __threadfence(); __threadfence_system();
}

extern "C" __global__ void floats(float* f, double* d, __half2* h2, __half* h, __nv_bfloat162* b2, __nv_bfloat16* b, float* out) {
    out[threadIdx.x] = atomicAdd(f, 1.5f) + (float)atomicAdd(d, 2.5) + __low2float(atomicAdd(h2, __float2half2_rn(1.0f))) + __half2float(atomicAdd(h, __float2half(1.0f)));
    atomicAdd(f + 1, 1.0f);
    atomicAdd(d + 1, 1.0);
    atomicAdd(b2, __float2bfloat162_rn(2.0f));
    atomicAdd(b, __float2bfloat16(2.0f));
    atomicExch(f + 2, 3.0f);
#if __CUDA_ARCH__ >= 900
    float4 r = atomicAdd((float4*)f, make_float4(1, 2, 3, 4));
    float2 s = atomicAdd((float2*)f, make_float2(1, 2));
    out[0] = r.x + r.y + r.z + r.w + s.x + s.y;
#endif
}

extern "C" __global__ void shared_memory(const int* in, int* out, int n) {
    __shared__ int bins[256];
    __shared__ float total;
    __shared__ unsigned long long maximum;
    for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
    if (threadIdx.x == 0) { total = 0; maximum = 0; }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd(&bins[in[i] & 255], 1);
        atomicAdd(&total, (float)in[i]);
        atomicMax(&maximum, (unsigned long long)in[i]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(out + i, bins[i]);
    if (threadIdx.x == 0) out[256] = (int)total + (int)maximum;
}

template <cuda::thread_scope Scope>
__device__ int ordered(int* p) {
    cuda::atomic_ref<int, Scope> a(*p);
    int r = a.load(cuda::memory_order_relaxed) + a.load(cuda::memory_order_acquire) + a.load();
    a.store(r, cuda::memory_order_relaxed);
    a.store(r + 1, cuda::memory_order_release);
    a.store(r + 2);
    r += a.fetch_add(1, cuda::memory_order_relaxed) + a.fetch_sub(1, cuda::memory_order_acquire) + a.fetch_and(3, cuda::memory_order_release);
    r += a.fetch_or(4, cuda::memory_order_acq_rel) + a.fetch_xor(5) + a.fetch_min(2) + a.fetch_max(9) + a.exchange(7, cuda::memory_order_acq_rel);
    int expected = r;
    while (!a.compare_exchange_weak(expected, expected + 1, cuda::memory_order_acq_rel, cuda::memory_order_acquire)) {}
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, Scope);
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, Scope);
    return r;
}

extern "C" __global__ void atomic_reference(int* p, double* d, unsigned long long* w) {
    int r = ordered<cuda::thread_scope_system>(p) + ordered<cuda::thread_scope_device>(p + 1) + ordered<cuda::thread_scope_block>(p + 2) + ordered<cuda::thread_scope_thread>(p + 3);
    cuda::atomic_ref<double, cuda::thread_scope_device>(*d).fetch_add(r);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_block>(*w).fetch_max(r, cuda::memory_order_relaxed);
    cuda::atomic_ref<unsigned char, cuda::thread_scope_device> byte(*(unsigned char*)w);
    byte.fetch_add(3);
}
