// nvcuda::wmma with every fragment type and shape.
// make: sm_75 sm_80 sm_90a sm_120a
// make: sm_80 nvcc-13.4
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda::wmma;

// What memory holds for a fragment of T.
template <typename T> struct Memory { using Type = T; };
#if __CUDA_ARCH__ >= 800
template <> struct Memory<precision::tf32> { using Type = float; };
#endif

template <int M, int N, int K, typename T, typename A, typename LayoutA, typename LayoutB>
__device__ void product(const void* a, const void* b, const A* c, A* d, int lda, int ldb, int ldc) {
    fragment<matrix_a, M, N, K, T, LayoutA> fa;
    fragment<matrix_b, M, N, K, T, LayoutB> fb;
    fragment<accumulator, M, N, K, A> fc;
    using Storage = typename Memory<T>::Type;
    load_matrix_sync(fa, static_cast<const Storage*>(a), lda);
    load_matrix_sync(fb, static_cast<const Storage*>(b), ldb);
    load_matrix_sync(fc, c, ldc, mem_row_major);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(d, fc, ldc, mem_col_major);
}

#define KERNEL(name, M, N, K, T, A, LA, LB) \
    extern "C" __global__ void name(const void* a, const void* b, const A* c, A* d, int lda, int ldb, int ldc) { \
        product<M, N, K, T, A, LA, LB>(a, b, c, d, lda, ldb, ldc); \
    }
KERNEL(f16_f32_16x16x16, 16, 16, 16, __half, float, row_major, col_major)
KERNEL(f16_f32_32x8x16, 32, 8, 16, __half, float, col_major, col_major)
KERNEL(f16_f16_8x32x16, 8, 32, 16, __half, __half, row_major, row_major)
KERNEL(f16_f16_16x16x16, 16, 16, 16, __half, __half, col_major, row_major)
KERNEL(s8_16x16x16, 16, 16, 16, signed char, int, row_major, col_major)
KERNEL(u8_32x8x16, 32, 8, 16, unsigned char, int, row_major, row_major)
KERNEL(u8_8x32x16, 8, 32, 16, unsigned char, int, col_major, row_major)
#if __CUDA_ARCH__ >= 800
KERNEL(bf16_16x16x16, 16, 16, 16, __nv_bfloat16, float, row_major, col_major)
KERNEL(bf16_8x32x16, 8, 32, 16, __nv_bfloat16, float, col_major, row_major)
KERNEL(tf32_16x16x8, 16, 16, 8, precision::tf32, float, row_major, col_major)
KERNEL(f64_8x8x4, 8, 8, 4, double, double, row_major, col_major)
#endif

extern "C" __global__ void s4_8x8x32(const void* a, const void* b, int* d) {
    fragment<matrix_a, 8, 8, 32, experimental::precision::s4, row_major> fa;
    fragment<matrix_b, 8, 8, 32, experimental::precision::s4, col_major> fb;
    fragment<accumulator, 8, 8, 32, int> fc;
    fill_fragment(fc, 0);
    load_matrix_sync(fa, a, 32);
    load_matrix_sync(fb, b, 32);
    mma_sync(fc, fa, fb, fc, true);
    store_matrix_sync(d, fc, 8, mem_row_major);
}

extern "C" __global__ void b1_8x8x128(const void* a, const void* b, int* d) {
    fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> fa;
    fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> fb;
    fragment<accumulator, 8, 8, 128, int> fc;
    fill_fragment(fc, 0);
    load_matrix_sync(fa, a, 128);
    load_matrix_sync(fb, b, 128);
    bmma_sync(fc, fa, fb, fc);
    store_matrix_sync(d, fc, 8, mem_row_major);
}

// A 64x64 tile of C by four warps, epilogue on the fragment's elements.
extern "C" __global__ void __launch_bounds__(128) gemm(const __half* a, const __half* b, float* c, int m, int n, int k, float alpha) {
    __shared__ __half as[64][24], bs[16][72];
    fragment<accumulator, 16, 16, 16, float> acc[4];
    for (auto& f : acc) fill_fragment(f, 0.0f);
    int warp = threadIdx.x / 32, row = blockIdx.y * 64, column = blockIdx.x * 64;
    for (int k0 = 0; k0 < k; k0 += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 128) as[i / 16][i % 16] = a[(row + i / 16) * k + k0 + i % 16];
        for (int i = threadIdx.x; i < 16 * 64; i += 128) bs[i / 64][i % 64] = b[(k0 + i / 64) * n + column + i % 64];
        __syncthreads();
        fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
        load_matrix_sync(fa, &as[warp * 16][0], 24);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            fragment<matrix_b, 16, 16, 16, __half, row_major> fb;
            load_matrix_sync(fb, &bs[0][j * 16], 72);
            mma_sync(acc[j], fa, fb, acc[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        for (int e = 0; e < acc[j].num_elements; ++e) acc[j].x[e] *= alpha;
        store_matrix_sync(c + (row + warp * 16) * n + column + j * 16, acc[j], n, mem_row_major);
    }
}
