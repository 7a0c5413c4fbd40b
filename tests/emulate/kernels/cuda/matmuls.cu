// Matrix products on ordinary cores: a warp a row, naive, tiles, tiles in registers, vectors of four, doubles.
// make: sm_80

extern "C" __global__ void matrix_vector(const float* a, const float* x, float* y, int rows, int columns) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0;
    for (int k = threadIdx.x; k < columns; k += 32) sum += a[row * columns + k] * x[k];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) y[row] = sum;
}

extern "C" __global__ void naive_matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void tiled_matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float as[16][16], bs[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, column = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty;
    float sum = 0;
    for (int start = 0; start < k; start += 16) {
        as[ty][tx] = row < m && start + tx < k ? a[row * k + start + tx] : 0;
        bs[ty][tx] = column < n && start + ty < k ? b[(start + ty) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

// 32 by 32 a block of 64 threads, 4 by 4 a thread; sizes are multiples of the tile.
extern "C" __global__ void register_matmul(const float* a, const float* b, float* c, int n, int k) {
    __shared__ float as[8][32], bs[8][32];
    int t = threadIdx.x, tx = t % 8 * 4, ty = t / 8 * 4;
    int row = blockIdx.y * 32, column = blockIdx.x * 32;
    float sums[4][4] = {};
    for (int start = 0; start < k; start += 8) {
        for (int i = t; i < 256; i += 64) {
            as[i % 8][i / 8] = a[(row + i / 8) * k + start + i % 8];
            bs[i / 32][i % 32] = b[(start + i / 32) * n + column + i % 32];
        }
        __syncthreads();
        for (int i = 0; i < 8; ++i) {
            float4 u = *(float4*)&as[i][ty], v = *(float4*)&bs[i][tx];
            float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
            for (int y = 0; y < 4; ++y)
                for (int x = 0; x < 4; ++x) sums[y][x] += us[y] * vs[x];
        }
        __syncthreads();
    }
    for (int y = 0; y < 4; ++y)
        *(float4*)&c[(row + ty + y) * n + column + tx] = make_float4(sums[y][0], sums[y][1], sums[y][2], sums[y][3]);
}

extern "C" __global__ void double_matmul(const double* a, const double* b, double* c, int n) {
    __shared__ double as[8][8], bs[8][8];
    int tx = threadIdx.x, ty = threadIdx.y, column = blockIdx.x * 8 + tx, row = blockIdx.y * 8 + ty;
    double sum = 0;
    for (int start = 0; start < n; start += 8) {
        as[ty][tx] = a[row * n + start + tx];
        bs[ty][tx] = b[(start + ty) * n + column];
        __syncthreads();
        for (int i = 0; i < 8; ++i) sum = fma(as[ty][i], bs[i][tx], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}
