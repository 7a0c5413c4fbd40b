// What NVSHMEM's host functions launch: `kernels.cu` has the kernels, `host.cpp` the functions.
#pragma once
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

namespace on_stream {
enum Number : int { SIGNED, UNSIGNED, FLOATING, BFLOAT };  // what the bits of an element are
enum Reduction : int { AND, OR, XOR, MIN, MAX, SUM, PROD };

struct Put {
    void* to;
    const void* from;
    size_t bytes;
    uint64_t* signal;  // null: there is none
    uint64_t value;
    int change, pe;
    bool is_nbi;
};
struct Steps {  // of elements that are not one after the other
    void* to;
    const void* from;
    ptrdiff_t to_step, from_step;
    size_t size, count;
    int pe;
    bool is_get;
};
struct Wait {
    const void* at;
    size_t count, size;
    const int* status;   // null: all count
    const void* values;  // null: all are compared with one
    uint64_t value;
    int compare;
    bool is_signed;
};
struct Collective {
    int team, root;
    void* to;
    const void* from;
    size_t bytes;  // of one PE
};
struct Reduce {
    int team;
    void* to;
    const void* from;
    size_t count, size;
    Number number;
    Reduction reduction;
    bool scatters;
};
struct Team {  // of `count` PEs; `own` is the number in it of this one, or -1
    void *pool, *made;
    int* places;
    int index, first, stride, count, own, pes;
    bool is_near;
};

void barrier(int team, cudaStream_t stream);
void sync(int team, cudaStream_t stream);
void quiet(cudaStream_t stream);
void put(const Put& what, cudaStream_t stream);
void get(void* to, const void* from, size_t bytes, int pe, cudaStream_t stream);
void copy_steps(const Steps& what, cudaStream_t stream);
void put_value(void* to, uint64_t bits, size_t size, int pe, cudaStream_t stream);
void wait(const Wait& what, cudaStream_t stream);
void alltoall(const Collective& what, cudaStream_t stream);
void fcollect(const Collective& what, cudaStream_t stream);
void broadcast(const Collective& what, cudaStream_t stream);
void reduce(const Reduce& what, cudaStream_t stream);
void team(const Team& what, cudaStream_t stream);
size_t team_size();
}  // namespace on_stream
