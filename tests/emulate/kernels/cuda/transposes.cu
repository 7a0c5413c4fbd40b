// Transposes of a matrix that no tile divides: naive, by tiles, by padded tiles with several rows a thread.
// make: sm_80
// make: sm_80 -Xcicc -O0

extern "C" __global__ void naive_transpose(const float* in, float* out, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
}

extern "C" __global__ void tiled_transpose(const double* in, double* out, int rows, int columns) {
    __shared__ double tile[16][16];
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = in[row * columns + column];
    __syncthreads();
    column = blockIdx.y * 16 + threadIdx.x, row = blockIdx.x * 16 + threadIdx.y;
    if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x][threadIdx.y];
}

extern "C" __global__ void padded_transpose(const unsigned short* in, unsigned short* out, int rows, int columns) {
    __shared__ unsigned short tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += blockDim.y) {
        int row = blockIdx.y * 32 + k;
        if (row < rows && column < columns) tile[k][threadIdx.x] = in[row * columns + column];
    }
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += blockDim.y) {
        int row = blockIdx.x * 32 + k;
        if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x][k];
    }
}
