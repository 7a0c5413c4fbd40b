// NVSHMEM's functions for peers that are reached by a network, as operations of the emulator: included before
// `nvshmem.h`, in place of its `transfer_device.cuh`.
#define TRANSFER_DEVICE_CUH
#include <cuda_runtime.h>

#include "device/nvshmem_device_macros.h"
#include "device_host/nvshmem_common.cuh"
#include "non_abi/device/common/nvshmemi_region_state.cuh"
#include "non_abi/device/pt-to-pt/nvshmemi_transfer_api.cuh"
#include "non_abi/device/pt-to-pt/proxy_device.cuh"
#include "non_abi/device/pt-to-pt/tma_device.cuh"
#include "non_abi/device/threadgroup/nvshmemi_common_device_defines.cuh"

#ifdef __CUDA_ARCH__
extern "C" {
__device__ void ptxlab_network_put(void* remote, const void* source, uint64_t size, void* signal, uint64_t value,
                                   uint32_t how);
__device__ void ptxlab_network_get(void* target, const void* remote, uint64_t size, uint32_t how);
__device__ void ptxlab_network_atomic(void* remote, uint64_t value, uint32_t how);
__device__ uint64_t ptxlab_network_fetch(void* remote, uint64_t value, uint64_t compare, uint32_t how);
__device__ void ptxlab_network_fence();
__device__ void ptxlab_network_quiet();
}

namespace ptxlab_network {
enum Change : uint32_t { keep, set, add, bit_and, bit_or, bit_xor, compare };
constexpr uint32_t blocking = 1 << 16, is_value = 1 << 17;

// Where memory of this PE is on another one; `peer_heap_base_p2p` is null for those on other machines.
static __device__ __forceinline__ void* on(const void* address, int pe) {
    const auto& state = nvshmemi_device_state_d;
    uint64_t step = state.heap_size;
    return (char*)address + step * (uint64_t)((int64_t)pe - state.mype);
}

static __device__ __forceinline__ uint32_t atomic(int operation, uint32_t width, int pe) {
    Change change = keep;
    switch (operation) {
        case NVSHMEMI_AMO_SET: case NVSHMEMI_AMO_SIGNAL: case NVSHMEMI_AMO_SIGNAL_SET: case NVSHMEMI_AMO_SWAP:
            change = set; break;
        case NVSHMEMI_AMO_INC: case NVSHMEMI_AMO_ADD: case NVSHMEMI_AMO_SIGNAL_ADD: case NVSHMEMI_AMO_FETCH_INC:
        case NVSHMEMI_AMO_FETCH_ADD: change = add; break;
        case NVSHMEMI_AMO_AND: case NVSHMEMI_AMO_FETCH_AND: change = bit_and; break;
        case NVSHMEMI_AMO_OR: case NVSHMEMI_AMO_FETCH_OR: change = bit_or; break;
        case NVSHMEMI_AMO_XOR: case NVSHMEMI_AMO_FETCH_XOR: change = bit_xor; break;
        case NVSHMEMI_AMO_COMPARE_SWAP: change = compare; break;
        default: break;
    }
    return (uint32_t)pe | change << 8 | width << 12;
}

template <typename T>
static __device__ __forceinline__ uint64_t bits(T value) {
    uint64_t found = 0;
    memcpy(&found, &value, sizeof(T) < 8 ? sizeof(T) : 8);
    return found;
}

template <typename T>
static __device__ __forceinline__ uint64_t operand(T value, int operation) {
    return operation == NVSHMEMI_AMO_INC || operation == NVSHMEMI_AMO_FETCH_INC ? 1 : bits(value);
}

static __device__ __forceinline__ void copy(void* to, const void* from, size_t size, int thread, int threads) {
    if (((uint64_t)to | (uint64_t)from | size) % 4 == 0) {
        for (size_t at = thread; at < size / 4; at += threads) ((uint32_t*)to)[at] = ((const uint32_t*)from)[at];
    } else {
        for (size_t at = thread; at < size; at += threads) ((char*)to)[at] = ((const char*)from)[at];
    }
}
}  // namespace ptxlab_network

template <threadgroup_t SCOPE>
static inline __device__ bool nvshmemi_transfer_submit_active_region_slow() { return false; }

template <threadgroup_t SCOPE>
static inline __device__ void nvshmemi_transfer_region_end(const nvshmemi_region_info_t*) {}

template <typename T>
static inline __device__ void nvshmemi_transfer_rma_p(void* remote, const T value, int pe, nvshmemx_qp_handle_t) {
    if (sizeof(T) > 8) __trap();
    ptxlab_network_put(ptxlab_network::on(remote, pe), (const void*)ptxlab_network::bits(value), sizeof(T), nullptr, 0,
                       (uint32_t)pe | ptxlab_network::is_value);
}

template <typename T>
static inline __device__ T nvshmemi_transfer_rma_g(void* remote, int pe, nvshmemx_qp_handle_t) {
    return *(const T*)ptxlab_network::on(remote, pe);
}

template <threadgroup_t SCOPE, nvshmemi_op_t OPERATION>
static inline __device__ void nvshmemi_transfer_rma(void* remote, void* local, size_t size, int pe,
                                                    nvshmemx_qp_handle_t) {
    void* there = ptxlab_network::on(remote, pe);
    if (OPERATION == NVSHMEMI_OP_GET) {
        ptxlab_network::copy(local, there, size, nvshmemi_thread_id_in_threadgroup<SCOPE>(),
                             nvshmemi_threadgroup_size<SCOPE>());
    } else if (nvshmemi_thread_id_in_threadgroup<SCOPE>() == 0) {
        ptxlab_network_put(there, local, size, nullptr, 0, (uint32_t)pe | ptxlab_network::blocking);
    }
}

template <threadgroup_t SCOPE>
static inline __device__ void nvshmemi_transfer_put_signal_dispatch(void* remote, void* local, size_t size,
                                                                    void* signal, uint64_t value,
                                                                    nvshmemi_amo_t operation, int pe, bool is_nbi,
                                                                    nvshmemx_qp_handle_t) {
    if (nvshmemi_thread_id_in_threadgroup<SCOPE>() != 0) return;
    uint32_t how = ptxlab_network::atomic(operation, 8, pe) | (is_nbi ? 0 : ptxlab_network::blocking);
    ptxlab_network_put(ptxlab_network::on(remote, pe), local, size, ptxlab_network::on(signal, pe), value, how);
}

template <threadgroup_t SCOPE, nvshmemi_op_t OPERATION, nvshmemi_region_operation_t REGION>
static inline __device__ void nvshmemi_transfer_rma_nbi(void* remote, void* local, size_t size, int pe,
                                                        nvshmemx_qp_handle_t) {
    if (nvshmemi_thread_id_in_threadgroup<SCOPE>() != 0) return;
    void* there = ptxlab_network::on(remote, pe);
    if (OPERATION == NVSHMEMI_OP_GET) {
        ptxlab_network_get(local, there, size, (uint32_t)pe);
    } else {
        ptxlab_network_put(there, local, size, nullptr, 0, (uint32_t)pe);
    }
}

template <typename T>
static inline __device__ T nvshmemi_transfer_amo_fetch(void* remote, T value, T compare, int pe,
                                                       nvshmemi_amo_t operation, nvshmemx_qp_handle_t) {
    if (sizeof(T) != 4 && sizeof(T) != 8) __trap();
    uint64_t found = ptxlab_network_fetch(ptxlab_network::on(remote, pe), ptxlab_network::operand(value, operation),
                                          ptxlab_network::bits(compare),
                                          ptxlab_network::atomic(operation, sizeof(T), pe));
    T result;
    memcpy(&result, &found, sizeof(T) < 8 ? sizeof(T) : 8);
    return result;
}

template <typename T>
static inline __device__ void nvshmemi_transfer_amo_nonfetch(void* remote, T value, int pe, nvshmemi_amo_t operation,
                                                             nvshmemx_qp_handle_t) {
    if (sizeof(T) != 4 && sizeof(T) != 8) __trap();
    ptxlab_network_atomic(ptxlab_network::on(remote, pe), ptxlab_network::operand(value, operation),
                          ptxlab_network::atomic(operation, sizeof(T), pe));
}

template <threadgroup_t SCOPE>
static inline __device__ void nvshmemi_transfer_quiet(bool use_membar, int, nvshmemx_qp_handle_t*, int) {
    if (nvshmemi_thread_id_in_threadgroup<SCOPE>() == 0) {
        ptxlab_network_quiet();
        if (use_membar) __threadfence_system();
    }
    nvshmemi_threadgroup_sync<SCOPE>();
}

template <threadgroup_t SCOPE>
static inline __device__ void nvshmemi_transfer_fence(int, nvshmemx_qp_handle_t*, int) {
    if (nvshmemi_thread_id_in_threadgroup<SCOPE>() == 0) ptxlab_network_fence();
    nvshmemi_threadgroup_sync<SCOPE>();
}

static inline __device__ void nvshmemi_transfer_enforce_consistency_at_target(bool) {}

static inline __device__ void nvshmemi_transfer_syncapi_update_mem() { __threadfence(); }
#endif
