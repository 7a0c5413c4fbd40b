// A kernel whose time is set by `rounds`, launched by a program on memory of the device or managed memory.
#include <cstdlib>
#include <cstring>

__global__ void grow(float* x, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = x[i];
    for (int round = 0; round < rounds; round++) value = value * 1.0001f + 0.5f;
    x[i] = value;
}

int main(int argc, char** argv) {  // launches, threads, rounds, bytes, and `managed` or `device`
    int launches = atoi(argv[1]), n = atoi(argv[2]), rounds = atoi(argv[3]);
    size_t bytes = atol(argv[4]);
    float* x;
    if (!strcmp(argv[5], "managed")) cudaMallocManaged(&x, bytes);
    else cudaMalloc(&x, bytes);
    for (int i = 0; i < launches; i++) {
        grow<<<(n + 255) / 256, 256>>>(x, n, rounds);
        cudaDeviceSynchronize();
    }
    cudaFree(x);
}
