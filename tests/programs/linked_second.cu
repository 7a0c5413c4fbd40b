// The second part: it defines what the first declares, and has names of its own that the first has, too.
#include <cstdio>

__device__ int table[4] = {10, 20, 30, 40};
__constant__ float coefficients[4];
__device__ int increment(int x) { return x + 1; }
__device__ int (*operation)(int) = increment;
static __device__ int own = 4;
extern __shared__ float values[];

struct Base {
  __device__ virtual int number() { return 1; }
};
struct Derived : Base {
  __device__ int number() override;
};
__device__ int Derived::number() { return 1000; }
template <class T>
__device__ T twice(T x) { return x + x; }

__global__ void fill_kernel(int* out) {
  values[threadIdx.x] = 5;
  out[threadIdx.x] = twice((int)threadIdx.x) + (int)values[threadIdx.x] + own;
  if (threadIdx.x == 0) printf("part %d, the second\n", 2);
}

void fill(int* out) { fill_kernel<<<1, 32, 32 * sizeof(float)>>>(out); }

void prepare() {
  float given[4] = {1, 2, 3, 4};
  cudaMemcpyToSymbol(coefficients, given, sizeof given);
}
