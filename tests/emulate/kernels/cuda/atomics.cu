// Atomics: every operation on every type, in global and shared memory, in all scopes, and what people build of them.
// make: sm_80 sm_90
// make: sm_80 -Xcicc -O0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void atomic_integers(const int* x, int* cells, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int u = x[i];
    atomicAdd(&cells[0], x[i]);
    atomicSub(&cells[1], x[i]);
    atomicMin(&cells[2], x[i]);
    atomicMax(&cells[3], x[i]);
    atomicMin((unsigned int*)&cells[4], u);
    atomicMax((unsigned int*)&cells[5], u);
    atomicAnd(&cells[6], x[i] | 0xff0);
    atomicOr(&cells[7], x[i] & 0xff00ff);
    atomicXor(&cells[8], x[i]);
    atomicInc((unsigned int*)&cells[9], 10);
    atomicDec((unsigned int*)&cells[10], 10);
    if (x[i] == 77) atomicExch(&cells[11], 77);
}

extern "C" __global__ void atomic_longs(const long long* x, long long* cells, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long* u = (unsigned long long*)cells;
    atomicAdd(&u[0], (unsigned long long)x[i]);
    atomicMin(&cells[1], x[i]);
    atomicMax(&cells[2], x[i]);
    atomicMin(&u[3], (unsigned long long)x[i]);
    atomicMax(&u[4], (unsigned long long)x[i]);
    atomicAnd(&u[5], (unsigned long long)x[i] | 0xfffff);
    atomicOr(&u[6], (unsigned long long)x[i]);
    atomicXor(&u[7], (unsigned long long)x[i]);
}

// Whole numbers, so that every order of additions gives the same bits.
extern "C" __global__ void atomic_floats(const float* x, float* singles, double* doubles, __half2* halves, __nv_bfloat162* bfloats, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&singles[i % 3], x[i]);
    atomicAdd(&doubles[i % 5], (double)x[i]);
    atomicAdd(&halves[i % 7], __floats2half2_rn(x[i], 1.0f));
    atomicAdd(&bfloats[i % 16], __floats2bfloat162_rn(1.0f, x[i]));
}

extern "C" __global__ void atomics_in_shared(const int* x, int* out, int n) {
    __shared__ int sum, most;
    __shared__ unsigned int turns;
    __shared__ unsigned long long wide;
    __shared__ float single;
    if (threadIdx.x == 0) {
        sum = 0;
        most = -1000;
        turns = 0;
        wide = 0;
        single = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        atomicAdd_block(&sum, x[i]);
        atomicMax_block(&most, x[i]);
        atomicInc(&turns, 6);
        atomicAdd(&wide, (unsigned long long)x[i] * 1000003);
        atomicAdd(&single, (float)(x[i] & 15));
    }
    __syncthreads();
    if (threadIdx.x) return;
    out[0] = sum;
    out[1] = most;
    out[2] = turns;
    out[3] = (int)wide;
    out[4] = (int)(wide >> 32);
    out[5] = (int)single;
}

// The largest float by compare-and-swap, and the largest product in shorts.
extern "C" __global__ void largest_by_swap(const float* x, float* largest, unsigned short* shorts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* bits = (int*)largest;
    int old = *(volatile int*)bits;
    while (__int_as_float(old) < x[i]) {
        int seen = atomicCAS_system(bits, old, __float_as_int(x[i]));
        if (seen == old) break;
        old = seen;
    }
    unsigned short expected = *(volatile unsigned short*)&shorts[i % 2], found;
    while ((found = atomicCAS(&shorts[i % 2], expected, (unsigned short)(expected + 3))) != expected) expected = found;
}

// A lock around a counter that is not atomic itself.
__device__ int locked = 0;

extern "C" __global__ void under_lock(int* counter, int rounds) {
    if (threadIdx.x % 32) return;
    for (int r = 0; r < rounds; ++r) {
        while (atomicCAS(&locked, 0, 1)) {
        }
        __threadfence();
        *counter += 1;
        __threadfence();
        atomicExch(&locked, 0);
    }
}
