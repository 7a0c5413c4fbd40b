// Matrix products: naive, tiled, register-blocked with vector loads, double-buffered, double precision, strided batches.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
// make: sm_80 -G
// make: sm_80 -lineinfo
// make: sm_80 --use_fast_math
// make: sm_90a --maxrregcount=64
// make: sm_80 sm_100a nvcc-13.4

extern "C" __global__ void naive(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

template <typename T, int Tile>
__device__ void tiled(const T* a, const T* b, T* c, int m, int n, int k) {
    __shared__ T as[Tile][Tile + 1], bs[Tile][Tile];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * Tile + ty, column = blockIdx.x * Tile + tx;
    T sum = 0;
    for (int k0 = 0; k0 < k; k0 += Tile) {
        as[ty][tx] = row < m && k0 + tx < k ? a[row * k + k0 + tx] : T(0);
        bs[ty][tx] = k0 + ty < k && column < n ? b[(k0 + ty) * n + column] : T(0);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < Tile; ++i) sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
extern "C" __global__ void tiled_f32(const float* a, const float* b, float* c, int m, int n, int k) { tiled<float, 32>(a, b, c, m, n, k); }
extern "C" __global__ void tiled_f64(const double* a, const double* b, double* c, int m, int n, int k) { tiled<double, 16>(a, b, c, m, n, k); }
extern "C" __global__ void tiled_s32(const int* a, const int* b, int* c, int m, int n, int k) { tiled<int, 16>(a, b, c, m, n, k); }

// 128x128 of C a block, 8x8 a thread; m, n multiples of 128, k of 8.
extern "C" __global__ void __launch_bounds__(256, 2)
blocked(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k, float alpha, float beta) {
    __shared__ __align__(16) float as[2][8][128], bs[2][8][128];
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    a += blockIdx.y * 128 * k;
    b += blockIdx.x * 128;
    c += blockIdx.y * 128 * n + blockIdx.x * 128;
    float sum[8][8] = {};
    int arow = t / 2, acol = t % 2 * 4, brow = t / 32, bcol = t % 32 * 4, stage = 0;
    auto load = [&](int k0, int s) {
        float4 va = *(const float4*)(a + arow * k + k0 + acol), vb = *(const float4*)(b + (k0 + brow) * n + bcol);
        as[s][acol][arow] = va.x; as[s][acol + 1][arow] = va.y; as[s][acol + 2][arow] = va.z; as[s][acol + 3][arow] = va.w;
        *(float4*)&bs[s][brow][bcol] = vb;
    };
    load(0, 0);
    __syncthreads();
    for (int k0 = 0; k0 < k; k0 += 8, stage ^= 1) {
        if (k0 + 8 < k) load(k0 + 8, stage ^ 1);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float x[8], y[8];
#pragma unroll
            for (int j = 0; j < 8; j += 4) {
                *(float4*)&x[j] = *(const float4*)&as[stage][i][ty * 8 + j];
                *(float4*)&y[j] = *(const float4*)&bs[stage][i][tx * 8 + j];
            }
#pragma unroll
            for (int r = 0; r < 8; ++r)
#pragma unroll
                for (int s = 0; s < 8; ++s) sum[r][s] += x[r] * y[s];
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int s = 0; s < 8; s += 4) {
            float4* p = (float4*)(c + (ty * 8 + r) * n + tx * 8 + s);
            float4 old = *p;
            *p = make_float4(alpha * sum[r][s] + beta * old.x, alpha * sum[r][s + 1] + beta * old.y,
                             alpha * sum[r][s + 2] + beta * old.z, alpha * sum[r][s + 3] + beta * old.w);
        }
}
