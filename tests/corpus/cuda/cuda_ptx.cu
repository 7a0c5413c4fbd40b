// libcudacxx: cuda::ptx wrappers, cuda::barrier, latch, semaphore, and std containers in device code.
// make: sm_80 sm_90a sm_100a
// make: sm_90a -lineinfo
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/ptx>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/optional>
#include <cuda/std/tuple>
#include <cuda/std/variant>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void barriers(const float* in, float* out, int n) {
    __shared__ Barrier ready[2];
    __shared__ __align__(16) float tile[2][256];
    if (threadIdx.x == 0) { init(&ready[0], blockDim.x); init(&ready[1], blockDim.x); }
    __syncthreads();
    for (int i = 0; i < n; ++i) {
        cuda::memcpy_async(&tile[i & 1][threadIdx.x], in + i * 256 + threadIdx.x, sizeof(float), ready[i & 1]);
        ready[i & 1].arrive_and_wait();
        out[i * 256 + threadIdx.x] = tile[i & 1][255 - threadIdx.x];
    }
    auto token = ready[0].arrive();
    ready[0].wait(std::move(token));
    ready[1].arrive_and_drop();
}

__device__ cuda::latch<cuda::thread_scope_device> gate(4);
__device__ cuda::counting_semaphore<cuda::thread_scope_device, 8> tickets(3);
__global__ void coordination(int* out) {
    tickets.acquire();
    out[threadIdx.x] += 1;
    tickets.release();
    if (threadIdx.x == 0) gate.arrive_and_wait();
}

__global__ void containers(const cuda::std::complex<float>* in, cuda::std::complex<double>* out, int* tags) {
    namespace std_ = cuda::std;
    std_::array<int, 8> a{};
    for (int i = 0; i < 8; ++i) a[(i * 3) & 7] = i;
    std_::optional<int> o = threadIdx.x & 1 ? std_::optional<int>(a[threadIdx.x & 7]) : std_::nullopt;
    std_::variant<int, float> v = o ? std_::variant<int, float>(*o) : std_::variant<int, float>(2.5f);
    auto t = std_::make_tuple(o.value_or(-1), 3.0, 'x');
    tags[threadIdx.x] = std_::get<0>(t) + (int)v.index() + (std_::holds_alternative<float>(v) ? (int)std_::get<float>(v) : 0);
    auto z = in[threadIdx.x];
    out[threadIdx.x] = std_::complex<double>(exp(z * z) + sqrt(z)) / std_::complex<double>(1.0, 2.0);
}

#if __CUDA_ARCH__ >= 900
namespace ptx = cuda::ptx;
__global__ void wrapped(const int* in, int* out) {
    __shared__ __align__(16) int tile[128];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof(tile), &bar);
    }
    __syncthreads();
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    tile[threadIdx.x & 127] += ptx::get_sreg_laneid() + ptx::get_sreg_smid();
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, tile, sizeof(tile));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
    }
}
#endif
