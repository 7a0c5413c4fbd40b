// NVSHMEM's collectives on the device as its manual has them, in place of its own files `coll/*.cuh`: no more order than
// is promised. All are exchanges of signals and puts between all PEs of a team; each PE counts those of each team.
#define ALLTOALL_DEVICE_CUH
#define BARRIER_DEVICE_CUH
#define BROADCAST_DEVICE_CUH
#define FCOLLECT_DEVICE_CUH
#define REDUCE_DEVICE_CUH
#define REDUCESCATTER_DEVICE_CUH
#include "non_abi/device/common/nvshmemi_common_device.cuh"
#include "non_abi/device/team/nvshmemi_team_defines.cuh"

#ifdef __CUDA_ARCH__
namespace ptxlab_collectives {
constexpr size_t teams = 32, slots = 64, scratch_bytes = 4096;  // of each team, in the symmetric memory `psync_pool`

static __device__ __forceinline__ nvshmemi_team_t* of(nvshmem_team_t team) {
    return nvshmemi_device_state_d.team_pool[team];
}

// How far each PE has come, by its number in the program.
static __device__ __forceinline__ uint64_t* signals(nvshmem_team_t team) {
    return (uint64_t*)((char*)nvshmemi_device_state_d.psync_pool + team * (8 * slots + scratch_bytes));
}

template <typename T>
static __device__ __forceinline__ T* scratch(nvshmem_team_t team) {
    return (T*)(signals(team) + slots);
}

// Start the next exchange of a team: its number, in all threads of the group.
template <threadgroup_t SCOPE>
static __device__ __noinline__ uint64_t begin(nvshmem_team_t team) {
    volatile long* counter = (volatile long*)nvshmemi_device_state_d.sync_counter + team;
    nvshmemi_threadgroup_sync<SCOPE>();
    uint64_t number = counter[0];
    nvshmemi_threadgroup_sync<SCOPE>();
    if (nvshmemi_thread_id_in_threadgroup<SCOPE>() == 0) counter[0] = number + 1;
    return number;
}

// Tell all PEs of a team that this one has come so far: after what all threads of the group have stored, and if it
// `has_sent` something after that, too. Signals add, as those of two exchanges may come in any order.
template <threadgroup_t SCOPE>
static __device__ __noinline__ void tell(nvshmem_team_t team, uint64_t number, bool has_sent) {
    nvshmemi_threadgroup_sync<SCOPE>();
    if (nvshmemi_thread_id_in_threadgroup<SCOPE>() != 0) return;
    nvshmemi_team_t* own = of(team);
    long* told = nvshmemi_device_state_d.sync_counter + teams + team;
    uint64_t more = number - *told;
    *told = number;
    if (has_sent) nvshmemi_fence<NVSHMEMI_THREADGROUP_THREAD>();
    else __threadfence_system();
    for (int at = 0; at < own->size; at++) {
        if (at == own->my_pe) continue;
        nvshmemi_signal_op(signals(team) + nvshmemi_device_state_d.mype, more, NVSHMEMI_AMO_SIGNAL_ADD,
                           own->pe_mapping[at]);
    }
}

// Wait for one PE of the team, or with -1 for all.
template <threadgroup_t SCOPE>
static __device__ __noinline__ void await(nvshmem_team_t team, uint64_t number, int only = -1) {
    if (nvshmemi_thread_id_in_threadgroup<SCOPE>() == 0) {
        nvshmemi_team_t* own = of(team);
        for (int at = 0; at < own->size; at++) {
            if (at == own->my_pe || (only >= 0 && at != only)) continue;
            volatile uint64_t* signal = signals(team) + own->pe_mapping[at];
            while (*signal < number) {}
        }
        __threadfence_system();
    }
    nvshmemi_threadgroup_sync<SCOPE>();
}

template <threadgroup_t SCOPE>
static __device__ __forceinline__ void meet(nvshmem_team_t team) {
    uint64_t number = begin<SCOPE>(team);
    tell<SCOPE>(team, number, false);
    await<SCOPE>(team, number);
}

template <typename T, rdxn_ops_t OPERATION>
static __device__ __forceinline__ T combined(T one, T other) {
    if constexpr (OPERATION == RDXN_OPS_AND) return one & other;
    else if constexpr (OPERATION == RDXN_OPS_OR) return one | other;
    else if constexpr (OPERATION == RDXN_OPS_XOR) return one ^ other;
    else if constexpr (OPERATION == RDXN_OPS_MIN) return one < other ? one : other;
    else if constexpr (OPERATION == RDXN_OPS_MAX) return one > other ? one : other;
    else if constexpr (OPERATION == RDXN_OPS_SUM) return one + other;
    else return one * other;
}

// Combine what all PEs have at `source`; as `dest` may be the same memory, it is written once all have read a piece.
template <typename T, threadgroup_t SCOPE, typename Combined>
static __device__ __forceinline__ void combine_by(nvshmem_team_t team, T* dest, const T* source, size_t count,
                                                  Combined combined) {
    nvshmemi_team_t* own = of(team);
    T* found = scratch<T>(team);
    constexpr size_t piece = scratch_bytes / sizeof(T);
    size_t thread = nvshmemi_thread_id_in_threadgroup<SCOPE>(), threads = nvshmemi_threadgroup_size<SCOPE>();
    meet<SCOPE>(team);
    for (size_t start = 0; start < count; start += piece) {
        size_t here = count - start < piece ? count - start : piece;
        for (size_t at = thread; at < here; at += threads) {
            T sum = nvshmemi_g<T>(source + start + at, own->pe_mapping[0]);
            for (int pe = 1; pe < own->size; pe++)
                sum = combined(sum, nvshmemi_g<T>(source + start + at, own->pe_mapping[pe]));
            found[at] = sum;
        }
        meet<SCOPE>(team);
        for (size_t at = thread; at < here; at += threads) dest[start + at] = found[at];
        nvshmemi_threadgroup_sync<SCOPE>();
    }
}

template <typename T, rdxn_ops_t OPERATION>
struct Combined {
    __device__ T operator()(T one, T other) const { return combined<T, OPERATION>(one, other); }
};

template <typename T, rdxn_ops_t OPERATION, threadgroup_t SCOPE>
static __device__ __noinline__ void combine(nvshmem_team_t team, T* dest, const T* source, size_t count) {
    combine_by<T, SCOPE>(team, dest, source, count, Combined<T, OPERATION>());
}
}  // namespace ptxlab_collectives

template <threadgroup_t SCOPE>
static inline __device__ void nvshmemi_sync_threadgroup(nvshmem_team_t team) {
    ptxlab_collectives::meet<SCOPE>(team);
}

template <threadgroup_t SCOPE>
static inline __device__ void nvshmemi_barrier_threadgroup(nvshmem_team_t team) {
    nvshmemi_threadgroup_sync<SCOPE>();
    nvshmemi_quiet<SCOPE>();
    ptxlab_collectives::meet<SCOPE>(team);
}

template <typename T, threadgroup_t SCOPE>
static inline __device__ void nvshmemi_alltoall_threadgroup(nvshmem_team_t team, T* dest, const T* source,
                                                            size_t count) {
    nvshmemi_team_t* own = ptxlab_collectives::of(team);
    uint64_t number = ptxlab_collectives::begin<SCOPE>(team);
    for (int at = 0; at < own->size; at++)
        nvshmemi_put<T, SCOPE>(dest + own->my_pe * count, source + at * count, count, own->pe_mapping[at]);
    ptxlab_collectives::tell<SCOPE>(team, number, true);
    ptxlab_collectives::await<SCOPE>(team, number);
}

template <typename T, threadgroup_t SCOPE>
static inline __device__ void nvshmemi_fcollect_threadgroup(nvshmem_team_t team, T* dest, const T* source,
                                                            int dest_offset, size_t count) {
    nvshmemi_team_t* own = ptxlab_collectives::of(team);
    uint64_t number = ptxlab_collectives::begin<SCOPE>(team);
    for (int at = 0; at < own->size; at++)
        nvshmemi_put<T, SCOPE>(dest + dest_offset, source, count, own->pe_mapping[at]);
    ptxlab_collectives::tell<SCOPE>(team, number, true);
    ptxlab_collectives::await<SCOPE>(team, number);
}

template <typename T, threadgroup_t SCOPE>
static inline __device__ void nvshmemi_broadcast_threadgroup(nvshmem_team_t team, T* dest, const T* source,
                                                             size_t count, int root) {
    nvshmemi_team_t* own = ptxlab_collectives::of(team);
    uint64_t number = ptxlab_collectives::begin<SCOPE>(team);
    if (own->my_pe == root) {
        for (int at = 0; at < own->size; at++)
            nvshmemi_put<T, SCOPE>(dest, source, count, own->pe_mapping[at]);
        ptxlab_collectives::tell<SCOPE>(team, number, true);
        nvshmemi_threadgroup_sync<SCOPE>();
    } else {
        ptxlab_collectives::await<SCOPE>(team, number, root);
    }
}

template <typename T, rdxn_ops_t OPERATION, threadgroup_t SCOPE>
static inline __device__ void nvshmemi_reduce_threadgroup(nvshmem_team_t team, T* dest, const T* source, size_t count) {
    ptxlab_collectives::combine<T, OPERATION, SCOPE>(team, dest, source, count);
}

template <typename T, rdxn_ops_t OPERATION, threadgroup_t SCOPE>
static inline __device__ void nvshmemi_reducescatter_threadgroup(nvshmem_team_t team, T* dest, const T* source,
                                                                 int source_offset, size_t count) {
    // Each PE reads another part of the sources, and all take as many steps.
    ptxlab_collectives::combine<T, OPERATION, SCOPE>(team, dest, source + source_offset, count);
}

static inline __device__ int nvshmemi_double2_maxloc_reduce_block(nvshmem_team_t, double2*, const double2*, size_t) {
    __trap();
    return 0;
}
#endif
