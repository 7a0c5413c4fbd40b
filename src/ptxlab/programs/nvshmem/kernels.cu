// The kernels by which NVSHMEM's host functions do what they are asked for, on a stream.
#include "kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "nvshmem.h"
#define PTXLAB_PROGRAM  // where the host knows the size of a team
#include "teams.cu"

namespace on_stream {
constexpr int threads = 128;

#ifdef __CUDA_ARCH__  // the host compiler does not have what NVSHMEM has for devices
#define ON_DEVICE(call) call
#else
#define ON_DEVICE(call)
#endif

__global__ void run_barrier(int team) { nvshmemx_barrier_block(team); }
__global__ void run_sync(int team) { nvshmemx_team_sync_block(team); }
__global__ void run_quiet() { nvshmem_quiet(); }

__global__ void run_put(Put what) {
    if (what.signal && what.is_nbi)
        nvshmemx_putmem_signal_nbi_block(what.to, what.from, what.bytes, what.signal, what.value, what.change, what.pe);
    else if (what.signal && what.bytes)
        nvshmemx_putmem_signal_block(what.to, what.from, what.bytes, what.signal, what.value, what.change, what.pe);
    else if (what.signal)
        { if (threadIdx.x == 0) nvshmemx_signal_op(what.signal, what.value, what.change, what.pe); }
    else if (what.is_nbi)
        nvshmemx_putmem_nbi_block(what.to, what.from, what.bytes, what.pe);
    else
        nvshmemx_putmem_block(what.to, what.from, what.bytes, what.pe);
}

__global__ void run_get(void* to, const void* from, size_t bytes, int pe) { nvshmemx_getmem_block(to, from, bytes, pe); }

#ifdef __CUDA_ARCH__
template <typename T>
__device__ void copy_by(const Steps& what) {
    T* to = (T*)what.to;
    const T* from = (const T*)what.from;
    for (size_t at = threadIdx.x; at < what.count; at += blockDim.x) {
        if (what.is_get) to[at * what.to_step] = nvshmemi_g<T>(from + at * what.from_step, what.pe);
        else nvshmemi_p<T>(to + at * what.to_step, from[at * what.from_step], what.pe);
    }
}
__device__ void copy_all(Steps what) {
    if (what.size == 16) {
        what.size = 8;
        for (int half = 0; half < 2; half++) {
            Steps one = what;
            one.to = (char*)what.to + 8 * half, one.from = (const char*)what.from + 8 * half;
            one.to_step *= 2, one.from_step *= 2;
            copy_by<uint64_t>(one);
        }
    } else if (what.size == 8) copy_by<uint64_t>(what);
    else if (what.size == 4) copy_by<uint32_t>(what);
    else if (what.size == 2) copy_by<uint16_t>(what);
    else copy_by<uint8_t>(what);
}
#endif
__global__ void run_steps(Steps what) { ON_DEVICE(copy_all(what)); }

__global__ void run_p(void* to, uint64_t bits, size_t size, int pe) {
    if (size == 8) nvshmem_uint64_p((uint64_t*)to, bits, pe);
    else if (size == 4) nvshmem_uint32_p((uint32_t*)to, (uint32_t)bits, pe);
    else if (size == 2) nvshmem_uint16_p((uint16_t*)to, (uint16_t)bits, pe);
    else nvshmem_uint8_p((uint8_t*)to, (uint8_t)bits, pe);
}

template <typename T>
__device__ bool holds(T value, T wanted, int compare) {
    switch (compare) {
        case NVSHMEM_CMP_EQ: return value == wanted;
        case NVSHMEM_CMP_NE: return value != wanted;
        case NVSHMEM_CMP_GT: return value > wanted;
        case NVSHMEM_CMP_LE: return value <= wanted;
        case NVSHMEM_CMP_LT: return value < wanted;
        default: return value >= wanted;
    }
}
template <typename T>
__device__ void wait_for(const Wait& what) {
    const volatile T* words = (const volatile T*)what.at;
    for (size_t at = 0; at < what.count; at++) {
        if (what.status && what.status[at]) continue;
        T wanted = what.values ? ((const T*)what.values)[at] : (T)what.value;
        while (!holds<T>(words[at], wanted, what.compare)) {}
    }
    __threadfence_system();
}
__global__ void run_wait(Wait what) {
    if (what.size == 8 && what.is_signed) wait_for<int64_t>(what);
    else if (what.size == 8) wait_for<uint64_t>(what);
    else if (what.size == 4 && what.is_signed) wait_for<int32_t>(what);
    else if (what.size == 4) wait_for<uint32_t>(what);
    else if (what.is_signed) wait_for<int16_t>(what);
    else wait_for<uint16_t>(what);
}

__global__ void run_alltoall(Collective what) {
    nvshmemx_alltoallmem_block(what.team, what.to, what.from, what.bytes);
}
__global__ void run_fcollect(Collective what) {
    nvshmemx_fcollectmem_block(what.team, what.to, what.from, what.bytes);
}
__global__ void run_broadcast(Collective what) {
    nvshmemx_char_broadcast_block(what.team, (char*)what.to, (const char*)what.from, what.bytes, what.root);
}

template <typename T>
__device__ T reduced(T one, T other, Reduction reduction) {
    switch (reduction) {
        case MIN: return other < one ? other : one;
        case MAX: return other > one ? other : one;
        case SUM: return one + other;
        default: return one * other;
    }
}
template <typename Word, typename T>
__device__ Word as_numbers(Word one, Word other, Reduction reduction) {
    T a, b;
    memcpy(&a, &one, sizeof a);
    memcpy(&b, &other, sizeof b);
    T made = reduced<T>(a, b, reduction);
    Word word;
    memcpy(&word, &made, sizeof word);
    return word;
}
template <typename Word>
struct Combine {
    Number number;
    Reduction reduction;
    __device__ Word operator()(Word one, Word other) const {
        if (reduction == AND) return one & other;
        if (reduction == OR) return one | other;
        if (reduction == XOR) return one ^ other;
        if (number == UNSIGNED) return reduced<Word>(one, other, reduction);
        if constexpr (sizeof(Word) == 8) {
            if (number == FLOATING) return as_numbers<Word, double>(one, other, reduction);
            return as_numbers<Word, int64_t>(one, other, reduction);
        } else if constexpr (sizeof(Word) == 4) {
            if (number == FLOATING) return as_numbers<Word, float>(one, other, reduction);
            return as_numbers<Word, int32_t>(one, other, reduction);
        } else if constexpr (sizeof(Word) == 2) {
            if (number == FLOATING) return as_numbers<Word, __half>(one, other, reduction);
            if (number == BFLOAT) return as_numbers<Word, __nv_bfloat16>(one, other, reduction);
            return as_numbers<Word, int16_t>(one, other, reduction);
        } else {
            return as_numbers<Word, int8_t>(one, other, reduction);
        }
    }
};
#ifdef __CUDA_ARCH__
template <typename Word>
__device__ void reduce_by(const Reduce& what) {
    size_t start = what.scatters ? nvshmem_team_my_pe(what.team) * what.count : 0;
    ptxlab_collectives::combine_by<Word, NVSHMEMI_THREADGROUP_BLOCK>(
        what.team, (Word*)what.to, (const Word*)what.from + start, what.count,
        Combine<Word>{what.number, what.reduction});
}
__device__ void reduce_all(const Reduce& what) {
    if (what.size == 8) reduce_by<uint64_t>(what);
    else if (what.size == 4) reduce_by<uint32_t>(what);
    else if (what.size == 2) reduce_by<uint16_t>(what);
    else reduce_by<uint8_t>(what);
}
#endif
__global__ void run_reduce(Reduce what) { ON_DEVICE(reduce_all(what)); }

void barrier(int team, cudaStream_t stream) { run_barrier<<<1, 32, 0, stream>>>(team); }
void sync(int team, cudaStream_t stream) { run_sync<<<1, 32, 0, stream>>>(team); }
void quiet(cudaStream_t stream) { run_quiet<<<1, 1, 0, stream>>>(); }
void put(const Put& what, cudaStream_t stream) { run_put<<<1, threads, 0, stream>>>(what); }
void get(void* to, const void* from, size_t bytes, int pe, cudaStream_t stream) {
    run_get<<<1, threads, 0, stream>>>(to, from, bytes, pe);
}
void copy_steps(const Steps& what, cudaStream_t stream) { run_steps<<<1, threads, 0, stream>>>(what); }
void put_value(void* to, uint64_t bits, size_t size, int pe, cudaStream_t stream) {
    run_p<<<1, 1, 0, stream>>>(to, bits, size, pe);
}
void wait(const Wait& what, cudaStream_t stream) { run_wait<<<1, 1, 0, stream>>>(what); }
void alltoall(const Collective& what, cudaStream_t stream) { run_alltoall<<<1, threads, 0, stream>>>(what); }
void fcollect(const Collective& what, cudaStream_t stream) { run_fcollect<<<1, threads, 0, stream>>>(what); }
void broadcast(const Collective& what, cudaStream_t stream) { run_broadcast<<<1, threads, 0, stream>>>(what); }
void reduce(const Reduce& what, cudaStream_t stream) { run_reduce<<<1, threads, 0, stream>>>(what); }
void team(const Team& what, cudaStream_t stream) {
    ::team<<<1, 1, 0, stream>>>((nvshmemi_team_t**)what.pool, (nvshmemi_team_t*)what.made, what.places, what.index,
                                what.first, what.stride, what.count, what.own, what.pes, what.is_near);
}
size_t team_size() { return sizeof(nvshmemi_team_t); }
}  // namespace on_stream
