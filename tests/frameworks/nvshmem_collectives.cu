// Collectives and teams of NVSHMEM on the device, by blocks, warps and threads.
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void barrier(int* data, int* result, int is_complete) {
    int me = nvshmem_my_pe(), pes = nvshmem_n_pes();
    if (threadIdx.x == 0) nvshmem_int_p(data + me, me + 1, (me + 1) % pes);
    if (is_complete) nvshmemx_barrier_all_block();
    else nvshmemx_sync_all_block();
    if (threadIdx.x == 0) result[0] = data[(me + pes - 1) % pes];
}

extern "C" __global__ void collect(int* data, int* source, int* all, int* result) {
    int me = nvshmem_my_pe(), pes = nvshmem_n_pes(), count = 8;
    nvshmemx_int_fcollect_block(NVSHMEM_TEAM_WORLD, all, source, count);
    int sum = 0;
    for (int at = 0; at < pes * count; at++) sum += all[at];
    nvshmemx_barrier_all_block();
    nvshmemx_int_alltoall_block(NVSHMEM_TEAM_WORLD, all, source, count / pes);
    for (int at = 0; at < count; at++) sum += 3 * all[at];
    nvshmemx_int_broadcast_block(NVSHMEM_TEAM_WORLD, data, source, count, 1);
    sum += 7 * data[5];
    if (threadIdx.x == 0) result[0] = sum;
}

template <int SCOPE>
static __device__ void reduce(int* data, int* source, int count) {
    if (SCOPE == 0 && threadIdx.x == 0) nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, data, source, count);
    if (SCOPE == 1 && threadIdx.x < 32) nvshmemx_int_sum_reduce_warp(NVSHMEM_TEAM_WORLD, data, source, count);
    if (SCOPE == 2) nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, data, source, count);
    __syncthreads();
}

extern "C" __global__ void sums(int* data, int* source, int* result, int count) {
    int sum = 0;
    reduce<0>(data, source, count);
    sum += data[1];
    nvshmemx_barrier_all_block();
    reduce<1>(data, source, count);
    sum += data[2];
    nvshmemx_barrier_all_block();
    reduce<2>(data, source, count);
    sum += data[3];
    if (threadIdx.x == 0) result[0] = sum;
}

// The result of a reduction is read by other PEs, with a barrier before that or without.
extern "C" __global__ void after(int* data, int* source, int* result, int waits) {
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, data, source, 4);
    if (waits) nvshmemx_barrier_all_block();
    if (threadIdx.x == 0) result[0] = nvshmem_int_g(data + 1, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
}

// One PE does not come to a barrier.
extern "C" __global__ void absent(int* data) {
    if (threadIdx.x == 0 && nvshmem_my_pe() != 2) nvshmem_barrier_all();
}

extern "C" __global__ void teams(int* data, int* source, int* result, int team) {
    int mine = nvshmem_team_my_pe(team), count = nvshmem_team_n_pes(team);
    int sum = 0;
    if (mine >= 0) {
        nvshmemx_int_max_reduce_block(team, data, source, 2);
        __syncthreads();
        sum = data[0];
        sum += 1000 * nvshmem_team_translate_pe(team, count - 1, NVSHMEM_TEAM_WORLD);
        nvshmemx_team_sync_block(team);
    }
    sum += 10000 * nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE);
    if (threadIdx.x == 0) result[0] = sum;
}
