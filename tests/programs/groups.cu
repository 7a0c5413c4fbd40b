// A grid whose blocks synchronize. It is not in features.cu: with the header of cooperative groups, nvcc takes 3 s longer.
#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;

#define CHECK(call) \
    do { \
        cudaError_t error = (call); \
        if (error) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
    } while (0)

__global__ void sum_grid(int* x) {
    cg::grid_group grid = cg::this_grid();
    atomicAdd(&x[0], 1);
    grid.sync();
    if (grid.thread_rank() == 0) x[1] = x[0];
}
void cooperative() {
    int* x;
    int host[2];
    CHECK(cudaMalloc(&x, 8));
    CHECK(cudaMemset(x, 0, 8));
    void* args[] = {&x};
    CHECK(cudaLaunchCooperativeKernel((void*)sum_grid, dim3(4), dim3(32), args, 0, 0));
    CHECK(cudaMemcpy(host, x, 8, cudaMemcpyDeviceToHost));
    printf("%d %s\n", host[1], cudaGetErrorName(cudaLaunchCooperativeKernel((void*)sum_grid, dim3(1 << 20), dim3(32), args, 0, 0)));
    CHECK(cudaFree(x));
}
int main() {
    cooperative();
    return 7;
}
