// In place of NVSHMEM's own file, which it includes: operations of the emulator for networks and collectives, device
// functions inlined, and where the fields of the state are that device functions read. Host code sees the file alone.
#pragma once
#ifdef __CUDACC__
#define NVSHMEM_ENABLE_ALL_DEVICE_INLINING
#include <cstddef>
#include <cuda_runtime.h>
// NVSHMEM waits by a volatile load and `__threadfence()`, which orders nothing that another GPU wrote (PTX ISA 8.8).
#ifndef PTXLAB_AS_WRITTEN
#define __threadfence __threadfence_system
#endif
#if __has_include("non_abi/nvshmemi_region_types.h")
#define PTXLAB_COUNTER PTXLAB_AT(region_active_count)
#include "ptxlab_network.h"
#include "ptxlab_collectives.h"
#else
#define PTXLAB_COUNTER 0
#endif
#include_next <nvshmem.h>
#include_next <nvshmemx.h>
#undef __threadfence
#define PTXLAB_AT(field) offsetof(nvshmemi_device_host_state_t, field)
// In the order of `state.py`.
static_assert(NVSHMEMI_JOB_GPU_LDST_ATOMICS == 1, "how PEs reach each other");
static_assert(NVSHMEMI_JOB_GPU_PROXY == 8, "how PEs reach each other");
extern "C" __device__ __attribute__((weak)) unsigned long long ptxlab_nvshmem_fields[] = {
    PTXLAB_AT(version), PTXLAB_AT(mype), PTXLAB_AT(npes), PTXLAB_AT(node_mype), PTXLAB_AT(node_npes),
    PTXLAB_AT(job_connectivity), PTXLAB_AT(heap_base), PTXLAB_AT(heap_size), PTXLAB_AT(peer_heap_base_p2p),
    PTXLAB_AT(team_pool), PTXLAB_AT(psync_pool), PTXLAB_AT(sync_counter), PTXLAB_COUNTER};
#else
#include_next <nvshmem.h>
#endif
