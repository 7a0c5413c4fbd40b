// Separate compilation: external, weak, static and common symbols, and dynamic parallelism's absence.
// make: sm_75 sm_80 sm_90a sm_100a -rdc=true
// make: sm_80 -rdc=true -G
// make: sm_90a nvcc-13.4 -rdc=true

extern __device__ int elsewhere;
extern __constant__ float table_elsewhere[64];
extern __shared__ double dynamic_shared[];
extern __device__ float function_elsewhere(float x, const int* p);
extern __device__ void no_result(long long);
__device__ int defined_here = 5;
static __device__ int hidden = 6;
__device__ __attribute__((weak)) int overridable(int x) { return x + hidden; }
template <typename T> __device__ T once_per_program(T x) { static __device__ T memory; return memory += x; }
inline __device__ int inline_function(int x) { return x * 3; }
__device__ __noinline__ static int internal(int x) { return x ^ 0x55; }

struct Base { __device__ virtual int value() const { return 1; } };
struct Derived : Base { __device__ int value() const override { return 2; } };

__global__ void use(int* out, float* f) {
    int i = threadIdx.x;
    dynamic_shared[i] = elsewhere;
    __syncthreads();
    no_result(i);
    f[i] = function_elsewhere(table_elsewhere[i & 63], out) + once_per_program(1.0f) + once_per_program(i);
    Derived d;
    const Base* b = &d;
    out[i] = overridable(i) + inline_function(i) + internal(i) + defined_here + (int)dynamic_shared[i ^ 1] + b->value();
}
