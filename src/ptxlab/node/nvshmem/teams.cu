// The teams of a PE, as NVSHMEM's host library has them in memory of the GPU.
#include <cuda_runtime.h>

#include "device_host/nvshmem_common.cuh"
#include "device_host/nvshmem_types.h"

#ifndef PTXLAB_PROGRAM
extern "C" __device__ unsigned long long size[] = {sizeof(nvshmemi_team_t)};
#endif

// A team of `size` PEs from `start` on, of which this one has the number `own` (-1: it is not one of them).
// `places` has room for two numbers of each PE of the program.
extern "C" __global__ void team(nvshmemi_team_t** pool, nvshmemi_team_t* made, int* places, int index, int start,
                                int stride, int count, int own, int pes, int is_connected) {
    pool[index] = own < 0 ? nullptr : made;
    if (own < 0) return;
    made->version = NVSHMEMI_TEAM_V4_IDENTIFIER;
    made->my_pe = own;
    made->start = start;
    made->stride = stride;
    made->size = count;
    made->team_idx = index;
    made->are_gpus_p2p_connected = is_connected;
    made->is_team_node = index == NVSHMEM_TEAM_NODE_INDEX || index == NVSHMEM_TEAM_SHARED_INDEX;
    made->is_team_same_mype_node = index == NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX;
    made->team_node = NVSHMEM_TEAM_NODE_INDEX;
    made->team_same_mype_node = NVSHMEM_TEAM_SAME_MYPE_NODE_INDEX;
    for (int at = 0; at < NVSHMEMI_TEAM_DUP_COUNT; at++) made->team_dups[at] = at ? NVSHMEM_TEAM_INVALID : index;
    for (int pe = 0; pe < pes; pe++) places[count + pe] = -1;
    for (int at = 0; at < count; at++) {
        places[at] = start + at * stride;
        places[count + start + at * stride] = at;
    }
    made->pe_mapping = places;
}
