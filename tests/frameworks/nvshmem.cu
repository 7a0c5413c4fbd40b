// Kernels that call NVSHMEM's device functions, with right and wrong orders.
#include <nvshmem.h>
#include <nvshmemx.h>

static __device__ int next_pe() { return (nvshmem_my_pe() + 1) % nvshmem_n_pes(); }

extern "C" __global__ void put_with_signal(int* data, const int* source, uint64_t* signal, int* result) {
    nvshmemx_int_put_signal_block(data, source, 64, signal, 1, NVSHMEM_SIGNAL_SET, next_pe());
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    __syncthreads();
    result[threadIdx.x] = data[threadIdx.x];
}

extern "C" __global__ void put_then_signal(int* data, const int* source, uint64_t* signal, int* result, int fenced) {
    nvshmemx_int_put_nbi_block(data, source, 64, next_pe());
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fenced) nvshmem_fence();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, next_pe());
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
    }
    __syncthreads();
    result[threadIdx.x] = data[threadIdx.x];
}

// The source of a put is written again, before a quiet or after it.
extern "C" __global__ void reuse(int* data, int* source, uint64_t* signal, int* result, int quiet) {
    nvshmemx_int_put_signal_nbi_block(data, source, 64, signal, 1, NVSHMEM_SIGNAL_SET, next_pe());
    if (threadIdx.x == 0 && quiet) nvshmem_quiet();
    __syncthreads();
    source[threadIdx.x] = -1;
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    __syncthreads();
    result[threadIdx.x] = data[threadIdx.x];
}

// Each thread puts a value; one of them fences for all, and signals.
extern "C" __global__ void values(int* data, const int* source, uint64_t* signal, int* result, int fenced) {
    nvshmem_int_p(data + threadIdx.x, source[threadIdx.x], next_pe());
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fenced) nvshmem_fence();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, next_pe());
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
    }
    __syncthreads();
    result[threadIdx.x] = data[threadIdx.x];
}

// Each PE writes to PE 0 and adds to its counter; once all have, it gets what the others wrote.
extern "C" __global__ void count(int* counter, int* flags, int* slots, int* result) {
    int me = nvshmem_my_pe(), pes = nvshmem_n_pes();
    if (threadIdx.x == 0) {
        nvshmem_int_p(slots + me, me + 10, 0);
        nvshmem_quiet();
        nvshmem_int_atomic_add(counter, 1, 0);
        if (me == 0) {
            nvshmem_int_wait_until(counter, NVSHMEM_CMP_EQ, pes);
            nvshmem_fence();
            for (int pe = 0; pe < pes; pe++) nvshmem_int_atomic_set(flags, 1, pe);
        }
        nvshmem_int_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        int sum = 0;
        for (int pe = 0; pe < pes; pe++) sum += nvshmem_int_g(slots + pe, 0);
        *result = sum + (nvshmem_ptr(slots, next_pe()) != 0);
    }
}

extern "C" __global__ void never_signalled(uint64_t* signal) { nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1); }
