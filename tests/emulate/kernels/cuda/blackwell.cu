// A product on the tensor core of Blackwell, by the wrappers of libcu++: cuda::ptx.
// make: sm_100a
#include <cuda/ptx>
#include <cuda_bf16.h>
#include <cstdint>
namespace ptx = cuda::ptx;

// D (128 x 64, f32) = A (128 x K, bf16, rows) * B (64 x K, bf16, rows) transposed, in two stages of 32 columns.
constexpr int M = 128, N = 64, STAGE = 32, STAGES = 2;

__device__ uint64_t descriptor(const void* tile, int rows) {
  // 8 x 16 bytes are a core matrix; those of eight rows follow each other, then come the next 16 bytes of all rows.
  uint64_t start = __cvta_generic_to_shared(tile) >> 4;
  return start | uint64_t(rows * 16 >> 4) << 16 | uint64_t(128 >> 4) << 32 | uint64_t(1) << 46;
}

__device__ void stage_in(__nv_bfloat16* tile, const __nv_bfloat16* from, int rows, int k, int first) {
  for (int at = threadIdx.x; at < rows * STAGE / 8; at += blockDim.x) {
    int row = at % rows, chunk = at / rows;
    uint4 bytes = *reinterpret_cast<const uint4*>(from + row * k + first + chunk * 8);
    *reinterpret_cast<uint4*>(tile + chunk * rows * 8 + row * 8) = bytes;
  }
}

extern "C" __global__ void blackwell_product(float* d, const __nv_bfloat16* a, const __nv_bfloat16* b, int k) {
  __shared__ alignas(128) __nv_bfloat16 as[STAGES][M * STAGE];
  __shared__ alignas(128) __nv_bfloat16 bs[STAGES][N * STAGE];
  __shared__ uint64_t empty[STAGES];
  __shared__ uint64_t done;
  __shared__ uint32_t slot;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) ptx::mbarrier_init(&empty[s], 1);
    ptx::mbarrier_init(&done, 1);
  }
  if (threadIdx.x / 32 == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &slot, 64);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
  }
  __syncthreads();
  uint32_t tensor = slot;
  // f32 += bf16 * bf16, 128 x 64
  uint32_t idesc = 1 << 4 | 1 << 7 | 1 << 10 | (N >> 3) << 17 | (M >> 4) << 24;
  int steps = k / STAGE;
  for (int step = 0; step < steps; step++) {
    int s = step % STAGES;
    if (step >= STAGES)
      while (!ptx::mbarrier_try_wait_parity(&empty[s], (step / STAGES - 1) & 1)) {}
    stage_in(as[s], a, M, k, step * STAGE);
    stage_in(bs[s], b, N, k, step * STAGE);
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::tcgen05_fence_after_thread_sync();
      for (int part = 0; part < STAGE / 16; part++) {
        uint64_t ad = descriptor(as[s] + part * 2 * M * 8, M), bd = descriptor(bs[s] + part * 2 * N * 8, N);
        ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_1, tensor, ad, bd, idesc, step + part != 0);
      }
      ptx::tcgen05_commit(ptx::cta_group_1, &empty[s]);
      if (step == steps - 1) ptx::tcgen05_commit(ptx::cta_group_1, &done);
    }
  }
  while (!ptx::mbarrier_try_wait_parity(&done, 0)) {}
  ptx::tcgen05_fence_after_thread_sync();
  uint32_t row[N];
  ptx::tcgen05_ld_32x32b(row, tensor + (threadIdx.x / 32 << 21));
  ptx::tcgen05_wait_ld();
  for (int j = 0; j < N; j++) d[threadIdx.x * N + j] = __uint_as_float(row[j]);
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(ptx::cta_group_1, tensor, 64);
}
