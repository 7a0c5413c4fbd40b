// The first part of a program whose device code is linked: what it uses of the second.
#include <cstdio>

extern __device__ int table[];
extern __constant__ float coefficients[4];
extern __device__ int (*operation)(int);
extern __shared__ int values[];
static __device__ int own = 3;
__device__ int* second = &table[1];

struct Base {
  __device__ virtual int number() { return 1; }
};
struct Derived : Base {
  __device__ int number() override;
};
template <class T>
__device__ T twice(T x) { return x + x; }

__global__ void sum(int* out) {
  int i = threadIdx.x;
  values[i] = i;
  __syncthreads();
  Derived derived;
  Base* base = &derived;
  out[i] = table[i % 4] + (int)coefficients[i % 4] + operation(i) + base->number() + *second + twice(values[31 - i]) + own;
  if (i == 3) printf("part %d\n", 1);
}

#ifdef LAUNCHES
__global__ void child(int* x, int base, double more) { x[base + threadIdx.x] = base + threadIdx.x + (int)more; }
__global__ void parent(int* x, int depth) {
  if (threadIdx.x < 2) child<<<1, 32>>>(x, 32 * threadIdx.x, 0.5);
  if (threadIdx.x == 0 && depth) {
    printf("depth %d\n", depth);
    parent<<<1, 4>>>(x + 64, depth - 1);
  }
}
#endif

void prepare();
void fill(int* out);

#ifdef LAUNCHES
int main() {
  int *out, host[256];
  cudaMalloc(&out, sizeof host);
  cudaMemset(out, 255, sizeof host);
  parent<<<1, 4>>>(out, 2);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("%d %d %d %d\n", host[1], host[63], host[97], host[192]);
  cudaFree(out);
  return 0;
}
#else
int main() {
  int *out, host[32];
  cudaMalloc(&out, sizeof host);
  prepare();
  sum<<<1, 32, sizeof host>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("%d\n", host[3]);
  fill(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("%d\n", host[7]);
  cudaFree(out);
  return 0;
}
#endif
