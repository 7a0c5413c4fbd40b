// Sparse matrices times vectors: rows in CSR by thread and by warp, triples in COO with atomics.
// make: sm_80
// make: sm_80 -G

extern "C" __global__ void csr_by_thread(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; ++k) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

extern "C" __global__ void csr_by_warp(const int* starts, const int* columns, const float* values, const float* x, float* y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int k = starts[row] + lane; k < starts[row + 1]; k += 32) sum += values[k] * __ldg(&x[columns[k]]);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) y[row] = sum;
}

extern "C" __global__ void coo_with_atomics(const int* rows, const int* columns, const double* values, const double* x, double* y, int count) {
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x)
        atomicAdd(&y[rows[k]], values[k] * x[columns[k]]);
}
