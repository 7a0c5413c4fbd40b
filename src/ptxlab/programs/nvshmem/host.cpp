// NVSHMEM's host functions for programs that ptxlab runs, each of whose processes is a PE.
//
// What moves data or synchronizes is a kernel on a stream: that of the caller, or one of our own that the host waits for.
// Symmetric memory, and who this PE is, are asked of the runtime that is preloaded.
#include <nvshmem_host.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdlib.h>

#include <type_traits>
#include <vector>

#include "kernels.h"

#define API extern "C" __attribute__((visibility("default")))

extern "C" {
typedef struct { uint64_t peers, counter, teams, memory, counters; } PtxlabState;
void ptxlab_pe(int* pe, int* count, int* machines);
void* ptxlab_symmetric(size_t size, size_t alignment);
int ptxlab_symmetric_free(void* pointer);
void ptxlab_symmetric_end(void);
void* ptxlab_symmetric_peer(const void* pointer, int pe);
void ptxlab_initialized(const PtxlabState* state);
// What the next launch is called, and for a collective the team: `size` PEs of the program.
int ptxlab_team(int first, int stride, int size);  // its number, the same on all PEs; -1: there are too many
void ptxlab_call(const char* name, int team, int first, int stride, int size);
}

long nvshmem_error;

namespace {
constexpr int most_teams = 32, team_bytes = 8 * 64 + 4096;  // as `state.py` has them
struct Known { int first, stride, size; };                  // a team; of no PEs: there is none
int pe, count, machines, each;
Known teams[most_teams];
bool is_initialized;
cudaStream_t own;
void **pool;
PtxlabState state;

void check(cudaError_t error) {
    if (!error) return;
    fprintf(stderr, "NVSHMEM on ptxlab: %s\n", cudaGetErrorString(error));
    exit(1);
}
template <typename T>
T* allocate(size_t size) {
    void* made = nullptr;
    check(cudaMalloc(&made, size * sizeof(T)));  // of zeros
    return (T*)made;
}
std::vector<void*> held;  // until the end
template <typename T>
T* kept(T* pointer) {
    held.push_back(pointer);
    return pointer;
}
void need() {
    if (is_initialized) return;
    fprintf(stderr, "NVSHMEM on ptxlab: the program calls it before nvshmem_init()\n");
    exit(1);
}

int index_in(const Known& team, int of) {
    int at = of - team.first;
    if (!team.size || at < 0 || at % team.stride || at / team.stride >= team.size) return -1;
    return at / team.stride;
}
const Known* known(nvshmem_team_t team) {
    return team >= 0 && team < most_teams && teams[team].size ? &teams[team] : nullptr;
}
void make_team(int index, Known team) {
    int is_in = index_in(team, pe);
    bool is_near = team.first / each == (team.first + (team.size - 1) * team.stride) / each;
    if (is_in >= 0) teams[index] = team;
    on_stream::Team made = {pool, kept(allocate<char>(on_stream::team_size())), kept(allocate<int>(2 * count)), index,
                            team.first, team.stride, team.size, is_in, count, is_near};
    ptxlab_call("a team of NVSHMEM", index, 0, 0, 0);
    on_stream::team(made, own);
    check(cudaStreamSynchronize(own));
}

void start() {
    if (is_initialized) return;
    ptxlab_pe(&pe, &count, &machines);
    each = count / machines;
    check(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    uint64_t* near = (uint64_t*)calloc(count, sizeof *near);
    pool = kept(allocate<void*>(most_teams));
    char* memory = (char*)ptxlab_symmetric(most_teams * team_bytes, 256);
    for (int one = 0; one < count; one++)
        if (one / each == pe / each) near[one] = (uint64_t)ptxlab_symmetric_peer(nullptr, one);
    uint64_t* peers = kept(allocate<uint64_t>(count));
    check(cudaMemcpy(peers, near, count * sizeof *near, cudaMemcpyHostToDevice));
    long counts[2 * most_teams];
    for (int at = 0; at < 2 * most_teams; at++) counts[at] = at < most_teams;
    long* counters = kept(allocate<long>(2 * most_teams));
    check(cudaMemcpy(counters, counts, sizeof counts, cudaMemcpyHostToDevice));
    state = PtxlabState{(uint64_t)peers, (uint64_t)kept(allocate<uint32_t>(1)), (uint64_t)pool, (uint64_t)memory, (uint64_t)counters};
    ptxlab_initialized(&state);
    is_initialized = true;
    make_team(NVSHMEM_TEAM_WORLD, {0, 1, count});
    make_team(NVSHMEM_TEAM_SHARED, {pe / each * each, 1, each});
    make_team(NVSHMEMX_TEAM_NODE, {pe / each * each, 1, each});
    make_team(NVSHMEMX_TEAM_SAME_MYPE_NODE, {pe % each, each, machines});
    free(near);
}

// A call on a stream, of a team or of this PE alone. Where no stream was given, the host waits for it.
struct On {
    cudaStream_t stream;
    bool waits;
    On(const char* name, nvshmem_team_t team = NVSHMEM_TEAM_INVALID) : stream(own), waits(true) { begin(name, team); }
    On(const char* name, cudaStream_t on, nvshmem_team_t team = NVSHMEM_TEAM_INVALID) : stream(on), waits(false) { begin(name, team); }
    ~On() { if (waits) check(cudaStreamSynchronize(stream)); }
    static void begin(const char* name, nvshmem_team_t team) {
        need();
        const Known* one = known(team);
        if (team != NVSHMEM_TEAM_INVALID && !one) {
            fprintf(stderr, "NVSHMEM on ptxlab: %s of team %d, which this PE is not in\n", name, (int)team);
            exit(1);
        }
        ptxlab_call(name, team, one ? one->first : 0, one ? one->stride : 1, one ? one->size : 0);
    }
};

template <typename T>
uint64_t bits(T value) {
    uint64_t found = 0;
    memcpy(&found, &value, sizeof value);
    return found;
}
template <typename T>
constexpr on_stream::Number number_of() {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) return on_stream::BFLOAT;
    else if constexpr (std::is_same_v<T, half> || std::is_floating_point_v<T>) return on_stream::FLOATING;
    else return std::is_signed_v<T> ? on_stream::SIGNED : on_stream::UNSIGNED;
}
// Memory of the host's own, which a kernel does not reach, goes through memory of the GPU.
bool is_of_host(const void* pointer) {
    cudaPointerAttributes found;
    return !cudaPointerGetAttributes(&found, pointer) && found.type == cudaMemoryTypeUnregistered;
}
void put(const On& on, void* to, const void* from, size_t bytes, int peer, bool is_nbi = false) {
    if (!bytes) return;
    on_stream::put({to, from, bytes, nullptr, 0, 0, peer, is_nbi}, on.stream);
}
void put_signal(const On& on, void* to, const void* from, size_t bytes, uint64_t* signal, uint64_t value, int change,
                int peer, bool is_nbi) {
    on_stream::put({to, from, bytes, signal, value, change, peer, is_nbi}, on.stream);
}
void get(const On& on, void* to, const void* from, size_t bytes, int peer) {
    if (bytes) on_stream::get(to, from, bytes, peer, on.stream);
}
// As host functions do, whose local memory may be the host's.
void host_put(const char* name, void* to, const void* from, size_t bytes, int peer, bool is_nbi) {
    void* staged = nullptr;
    if (bytes && is_of_host(from)) {
        staged = allocate<char>(bytes);
        check(cudaMemcpy(staged, from, bytes, cudaMemcpyHostToDevice));
    }
    put(On(name), to, staged ? staged : from, bytes, peer, is_nbi && !staged);
    if (staged) check(cudaFree(staged));
}
void host_get(const char* name, void* to, const void* from, size_t bytes, int peer) {
    if (!bytes) return;
    void* staged = is_of_host(to) ? allocate<char>(bytes) : nullptr;
    get(On(name), staged ? staged : to, from, bytes, peer);
    if (!staged) return;
    check(cudaMemcpy(to, staged, bytes, cudaMemcpyDeviceToHost));
    check(cudaFree(staged));
}
template <typename T>
T value_of(const char* name, const T* from, int peer) {
    T found;
    host_get(name, &found, from, sizeof found, peer);
    return found;
}
void steps(const On& on, void* to, const void* from, ptrdiff_t to_step, ptrdiff_t from_step, size_t size, size_t elements,
           int peer, bool is_get) {
    if (elements) on_stream::copy_steps({to, from, to_step, from_step, size, elements, peer, is_get}, on.stream);
}
template <typename T>
int reduce(const On& on, nvshmem_team_t team, T* to, const T* from, size_t elements, on_stream::Reduction how, bool scatters) {
    on_stream::reduce({team, to, from, elements, sizeof(T), number_of<T>(), how, scatters}, on.stream);
    return 0;
}
template <typename T>
void wait(const On& on, const T* at, size_t elements, const int* status, int compare, T value, const T* values) {
    on_stream::wait({at, elements, sizeof(T), status, values, bits(value), compare, std::is_signed_v<T>}, on.stream);
}
}  // namespace

// --- Initialization.

__attribute__((visibility("default"))) int nvshmemi_init_thread(int requested, int* provided, unsigned flags,
                                                                nvshmemx_init_attr_t* attributes, nvshmemi_version_t) {
    (void)flags, (void)attributes;
    start();
    if (provided) *provided = requested;
    return 0;
}
API int nvshmemx_hostlib_init_attr(unsigned flags, nvshmemx_init_attr_t* attributes) { (void)flags, (void)attributes; start(); return 0; }
API void nvshmem_query_thread(int* provided) { *provided = NVSHMEM_THREAD_SERIALIZED; }
API int nvshmemx_init_status() { return is_initialized ? NVSHMEM_STATUS_IS_INITIALIZED : NVSHMEM_STATUS_NOT_INITIALIZED; }
API void nvshmem_barrier_all();
API void nvshmemi_finalize() {
    if (!is_initialized) return;
    nvshmem_barrier_all();
    ptxlab_symmetric_end();
    for (void* one : held) check(cudaFree(one));
    held.clear();
    check(cudaStreamDestroy(own));
    is_initialized = false;
}
API void nvshmemx_hostlib_finalize() { nvshmemi_finalize(); }
API void nvshmem_global_exit(int status) { exit(status); }
API int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* id) { (void)id; return 0; }
API int nvshmemx_set_attr_uniqueid_args(int rank, int ranks, const nvshmemx_uniqueid_t* id, nvshmemx_init_attr_t* attributes) {
    (void)rank, (void)ranks, (void)id, (void)attributes;
    return 0;
}
API int nvshmemx_set_attr_mpi_comm_args(void* comm, nvshmemx_init_attr_t* attributes) { (void)comm, (void)attributes; return 0; }
API int nvshmemx_cumodule_init(CUmodule module) { (void)module; return 0; }
API int nvshmemx_cumodule_finalize(CUmodule module) { (void)module; return 0; }
API int nvshmemx_culibrary_init(CUlibrary library) { (void)library; return 0; }
API int nvshmemx_culibrary_finalize(CUlibrary library) { (void)library; return 0; }

API int nvshmem_my_pe() { need(); return pe; }
API int nvshmem_n_pes() { need(); return count; }
API void nvshmem_info_get_version(int* major, int* minor) { *major = 1, *minor = 3; }
API void nvshmem_info_get_name(char* name) { strcpy(name, "NVSHMEM v" NVSHMEM_VENDOR_BASE_VERSION_STRING); }
API void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
    *major = NVSHMEM_VENDOR_MAJOR_VERSION, *minor = NVSHMEM_VENDOR_MINOR_VERSION, *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

// --- Symmetric memory.

API void* nvshmem_align(size_t alignment, size_t size) {
    need();
    if (!size) return nullptr;
    void* made = ptxlab_symmetric(size, alignment);
    nvshmem_barrier_all();
    return made;
}
API void* nvshmem_malloc(size_t size) { return nvshmem_align(512, size); }
API void* nvshmem_calloc(size_t elements, size_t size) {
    need();
    void* made = elements * size ? ptxlab_symmetric(elements * size, 512) : nullptr;
    if (!made) return nullptr;
    check(cudaMemsetAsync(made, 0, elements * size, own));
    nvshmem_barrier_all();
    return made;
}
API void nvshmem_free(void* pointer) {
    if (!pointer) return;
    nvshmem_barrier_all();
    ptxlab_symmetric_free(pointer);
}
API void* nvshmem_ptr(const void* pointer, int peer) {
    need();
    return peer < 0 || peer >= count || peer / each != pe / each ? nullptr : ptxlab_symmetric_peer(pointer, peer);
}
API void* nvshmemx_mc_ptr(nvshmem_team_t team, const void* pointer) { (void)team, (void)pointer; return nullptr; }
API int nvshmemx_buffer_register(void* pointer, size_t size) { (void)pointer, (void)size; return 0; }
API int nvshmemx_buffer_unregister(void* pointer) { (void)pointer; return 0; }
API void nvshmemx_buffer_unregister_all() {}

// --- Teams.

API int nvshmem_team_my_pe(nvshmem_team_t team) {
    need();
    return known(team) ? index_in(*known(team), pe) : -1;
}
API int nvshmem_team_n_pes(nvshmem_team_t team) { need(); return known(team) ? known(team)->size : -1; }
API int nvshmem_team_translate_pe(nvshmem_team_t from, int of, nvshmem_team_t to) {
    const Known *one = known(from), *other = known(to);
    return one && other && of >= 0 && of < one->size ? index_in(*other, one->first + of * one->stride) : -1;
}
API void nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config) { (void)team; config->num_contexts = 1; }
API int nvshmem_barrier(nvshmem_team_t team);
API int nvshmem_team_split_strided(nvshmem_team_t parent, int first, int stride, int size, const nvshmem_team_config_t*, long,
                                   nvshmem_team_t* into) {
    need();
    *into = NVSHMEM_TEAM_INVALID;
    const Known* of = known(parent);
    if (!of || size < 1 || stride < 1 || first < 0 || first + (size - 1) * stride >= of->size) return 1;
    Known team = {of->first + first * of->stride, of->stride * stride, size};
    int made = ptxlab_team(team.first, team.stride, team.size);
    if (made < 0) return 1;
    make_team(made, team);
    if (index_in(team, pe) >= 0) *into = (nvshmem_team_t)made;
    nvshmem_barrier(parent);
    return 0;
}
API int nvshmem_team_split_2d(nvshmem_team_t parent, int width, const nvshmem_team_config_t*, long, nvshmem_team_t* row,
                              const nvshmem_team_config_t*, long, nvshmem_team_t* column) {
    need();
    *row = *column = NVSHMEM_TEAM_INVALID;
    const Known* of = known(parent);
    if (!of || width < 1) return 1;
    int status = 0, size = of->size;
    if (width > size) width = size;
    auto split = [&](int first, int stride, int members, nvshmem_team_t* own_team) {
        nvshmem_team_t made;
        status |= nvshmem_team_split_strided(parent, first, stride, members, nullptr, 0, &made);
        if (made != NVSHMEM_TEAM_INVALID) *own_team = made;
    };
    for (int first = 0; first < size; first += width) split(first, 1, first + width > size ? size - first : width, row);
    for (int first = 0; first < width; first++) split(first, width, (size - first + width - 1) / width, column);
    return status;
}
API void nvshmem_team_destroy(nvshmem_team_t team) { if (team >= 7 && team < most_teams) teams[team].size = 0; }

// --- Synchronization.

API int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream) {
    On on("nvshmemx_barrier_on_stream", stream, team);
    on_stream::barrier(team, stream);
    return 0;
}
API void nvshmemx_barrier_all_on_stream(cudaStream_t stream) {
    On on("nvshmemx_barrier_all_on_stream", stream, NVSHMEM_TEAM_WORLD);
    on_stream::barrier(NVSHMEM_TEAM_WORLD, stream);
}
API int nvshmem_barrier(nvshmem_team_t team) {
    On on("nvshmem_barrier", team);
    on_stream::barrier(team, on.stream);
    return 0;
}
API void nvshmem_barrier_all() {
    On on("nvshmem_barrier_all", NVSHMEM_TEAM_WORLD);
    on_stream::barrier(NVSHMEM_TEAM_WORLD, on.stream);
}
API int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream) {
    On on("nvshmemx_team_sync_on_stream", stream, team);
    on_stream::sync(team, stream);
    return 0;
}
API void nvshmemx_sync_all_on_stream(cudaStream_t stream) {
    On on("nvshmemx_sync_all_on_stream", stream, NVSHMEM_TEAM_WORLD);
    on_stream::sync(NVSHMEM_TEAM_WORLD, stream);
}
API int nvshmem_team_sync(nvshmem_team_t team) {
    On on("nvshmem_team_sync", team);
    on_stream::sync(team, on.stream);
    return 0;
}
API void nvshmem_sync_all() {
    On on("nvshmem_sync_all", NVSHMEM_TEAM_WORLD);
    on_stream::sync(NVSHMEM_TEAM_WORLD, on.stream);
}
API void nvshmemx_quiet_on_stream(cudaStream_t stream) { On on("nvshmemx_quiet_on_stream", stream); on_stream::quiet(stream); }
API void nvshmemx_flush_on_stream(cudaStream_t stream) { On on("nvshmemx_flush_on_stream", stream); on_stream::quiet(stream); }
API void nvshmem_quiet() { On on("nvshmem_quiet"); on_stream::quiet(on.stream); }
API void nvshmem_fence() { On on("nvshmem_fence"); on_stream::quiet(on.stream); }
API void nvshmemx_flush() { nvshmem_quiet(); }

API uint64_t nvshmem_signal_fetch(uint64_t* at) { return value_of("nvshmem_signal_fetch", at, pe); }
API void nvshmemx_signal_op_on_stream(uint64_t* signal, uint64_t value, int change, int peer, cudaStream_t stream) {
    put_signal(On("nvshmemx_signal_op_on_stream", stream), nullptr, nullptr, 0, signal, value, change, peer, false);
}
API void nvshmemx_signal_wait_until_on_stream(uint64_t* at, int compare, uint64_t value, cudaStream_t stream) {
    wait<uint64_t>(On("nvshmemx_signal_wait_until_on_stream", stream), at, 1, nullptr, compare, value, nullptr);
}
#define WAIT(NAME, T) \
    API void nvshmemx_##NAME##_wait_until_on_stream(T* at, int compare, T value, cudaStream_t stream) { \
        wait<T>(On("nvshmemx_" #NAME "_wait_until_on_stream", stream), at, 1, nullptr, compare, value, nullptr); \
    } \
    API void nvshmemx_##NAME##_wait_until_all_on_stream(T* at, size_t elements, const int* status, int compare, T value, cudaStream_t stream) { \
        wait<T>(On("nvshmemx_" #NAME "_wait_until_all_on_stream", stream), at, elements, status, compare, value, nullptr); \
    } \
    API void nvshmemx_##NAME##_wait_until_all_vector_on_stream(T* at, size_t elements, const int* status, int compare, T* values, cudaStream_t stream) { \
        wait<T>(On("nvshmemx_" #NAME "_wait_until_all_vector_on_stream", stream), at, elements, status, compare, 0, values); \
    }
NVSHMEMI_REPT_FOR_WAIT_TYPES(WAIT)

// --- Puts and gets, by types, by the bits of an element, and by bytes.

#define MOVES(PUT, GET, TYPE, SIZE) \
    API void nvshmem_##PUT(TYPE* to, const TYPE* from, size_t n, int peer) { host_put("nvshmem_" #PUT, to, from, n * (SIZE), peer, false); } \
    API void nvshmem_##PUT##_nbi(TYPE* to, const TYPE* from, size_t n, int peer) { host_put("nvshmem_" #PUT "_nbi", to, from, n * (SIZE), peer, true); } \
    API void nvshmem_##GET(TYPE* to, const TYPE* from, size_t n, int peer) { host_get("nvshmem_" #GET, to, from, n * (SIZE), peer); } \
    API void nvshmem_##GET##_nbi(TYPE* to, const TYPE* from, size_t n, int peer) { host_get("nvshmem_" #GET "_nbi", to, from, n * (SIZE), peer); } \
    API void nvshmemx_##PUT##_on_stream(TYPE* to, const TYPE* from, size_t n, int peer, cudaStream_t s) { put(On("nvshmemx_" #PUT "_on_stream", s), to, from, n * (SIZE), peer); } \
    API void nvshmemx_##PUT##_nbi_on_stream(TYPE* to, const TYPE* from, size_t n, int peer, cudaStream_t s) { put(On("nvshmemx_" #PUT "_nbi_on_stream", s), to, from, n * (SIZE), peer, true); } \
    API void nvshmemx_##GET##_on_stream(TYPE* to, const TYPE* from, size_t n, int peer, cudaStream_t s) { get(On("nvshmemx_" #GET "_on_stream", s), to, from, n * (SIZE), peer); } \
    API void nvshmemx_##GET##_nbi_on_stream(TYPE* to, const TYPE* from, size_t n, int peer, cudaStream_t s) { get(On("nvshmemx_" #GET "_nbi_on_stream", s), to, from, n * (SIZE), peer); } \
    API void nvshmemx_##PUT##_signal_on_stream(TYPE* to, const TYPE* from, size_t n, uint64_t* signal, uint64_t value, int change, int peer, cudaStream_t s) { \
        put_signal(On("nvshmemx_" #PUT "_signal_on_stream", s), to, from, n * (SIZE), signal, value, change, peer, false); \
    } \
    API void nvshmemx_##PUT##_signal_nbi_on_stream(TYPE* to, const TYPE* from, size_t n, uint64_t* signal, uint64_t value, int change, int peer, cudaStream_t s) { \
        put_signal(On("nvshmemx_" #PUT "_signal_nbi_on_stream", s), to, from, n * (SIZE), signal, value, change, peer, true); \
    }
#define IN_STEPS(PUT, GET, TYPE, SIZE) \
    API void nvshmem_##PUT(TYPE* to, const TYPE* from, ptrdiff_t a, ptrdiff_t b, size_t n, int peer) { steps(On("nvshmem_" #PUT), to, from, a, b, SIZE, n, peer, false); } \
    API void nvshmem_##GET(TYPE* to, const TYPE* from, ptrdiff_t a, ptrdiff_t b, size_t n, int peer) { steps(On("nvshmem_" #GET), to, from, a, b, SIZE, n, peer, true); } \
    API void nvshmemx_##PUT##_on_stream(TYPE* to, const TYPE* from, ptrdiff_t a, ptrdiff_t b, size_t n, int peer, cudaStream_t s) { steps(On("nvshmemx_" #PUT "_on_stream", s), to, from, a, b, SIZE, n, peer, false); } \
    API void nvshmemx_##GET##_on_stream(TYPE* to, const TYPE* from, ptrdiff_t a, ptrdiff_t b, size_t n, int peer, cudaStream_t s) { steps(On("nvshmemx_" #GET "_on_stream", s), to, from, a, b, SIZE, n, peer, true); }
#define COLLECTIVES(ALL, COLLECT, BROADCAST, TYPE, SIZE) \
    API int nvshmem_##ALL(nvshmem_team_t team, TYPE* to, const TYPE* from, size_t n) { On on("nvshmem_" #ALL, team); on_stream::alltoall({team, 0, to, from, n * (SIZE)}, on.stream); return 0; } \
    API int nvshmemx_##ALL##_on_stream(nvshmem_team_t team, TYPE* to, const TYPE* from, size_t n, cudaStream_t s) { On on("nvshmemx_" #ALL "_on_stream", s, team); on_stream::alltoall({team, 0, to, from, n * (SIZE)}, s); return 0; } \
    API int nvshmem_##COLLECT(nvshmem_team_t team, TYPE* to, const TYPE* from, size_t n) { On on("nvshmem_" #COLLECT, team); on_stream::fcollect({team, 0, to, from, n * (SIZE)}, on.stream); return 0; } \
    API int nvshmemx_##COLLECT##_on_stream(nvshmem_team_t team, TYPE* to, const TYPE* from, size_t n, cudaStream_t s) { On on("nvshmemx_" #COLLECT "_on_stream", s, team); on_stream::fcollect({team, 0, to, from, n * (SIZE)}, s); return 0; } \
    API int nvshmem_##BROADCAST(nvshmem_team_t team, TYPE* to, const TYPE* from, size_t n, int root) { On on("nvshmem_" #BROADCAST, team); on_stream::broadcast({team, root, to, from, n * (SIZE)}, on.stream); return 0; } \
    API int nvshmemx_##BROADCAST##_on_stream(nvshmem_team_t team, TYPE* to, const TYPE* from, size_t n, int root, cudaStream_t s) { On on("nvshmemx_" #BROADCAST "_on_stream", s, team); on_stream::broadcast({team, root, to, from, n * (SIZE)}, s); return 0; }

#define OF_TYPE(NAME, T) \
    MOVES(NAME##_put, NAME##_get, T, sizeof(T)) \
    IN_STEPS(NAME##_iput, NAME##_iget, T, sizeof(T)) \
    COLLECTIVES(NAME##_alltoall, NAME##_fcollect, NAME##_broadcast, T, sizeof(T)) \
    API void nvshmem_##NAME##_p(T* to, const T value, int peer) { On on("nvshmem_" #NAME "_p"); on_stream::put_value(to, bits(value), sizeof(T), peer, on.stream); } \
    API void nvshmemx_##NAME##_p_on_stream(T* to, const T value, int peer, cudaStream_t s) { On on("nvshmemx_" #NAME "_p_on_stream", s); on_stream::put_value(to, bits(value), sizeof(T), peer, s); } \
    API T nvshmem_##NAME##_g(const T* from, int peer) { return value_of("nvshmem_" #NAME "_g", from, peer); } \
    API T nvshmemx_##NAME##_g_on_stream(const T* from, int peer, cudaStream_t s) { check(cudaStreamSynchronize(s)); return value_of("nvshmemx_" #NAME "_g_on_stream", from, peer); }
NVSHMEMI_REPT_FOR_STANDARD_RMA_TYPES(OF_TYPE)

#define OF_SIZE(BITS) MOVES(put##BITS, get##BITS, void, (BITS) / 8) IN_STEPS(iput##BITS, iget##BITS, void, (BITS) / 8)
NVSHMEMI_REPT_FOR_SIZES(OF_SIZE)
MOVES(putmem, getmem, void, 1)
COLLECTIVES(alltoallmem, fcollectmem, broadcastmem, void, 1)

// --- Reductions.

#define AS_and on_stream::AND
#define AS_or on_stream::OR
#define AS_xor on_stream::XOR
#define AS_min on_stream::MIN
#define AS_max on_stream::MAX
#define AS_sum on_stream::SUM
#define AS_prod on_stream::PROD
#define REDUCE(NAME, T, OP) \
    API int nvshmem_##NAME##_##OP##_reduce(nvshmem_team_t team, T* to, const T* from, size_t n) { return reduce<T>(On("nvshmem_" #NAME "_" #OP "_reduce", team), team, to, from, n, AS_##OP, false); } \
    API int nvshmemx_##NAME##_##OP##_reduce_on_stream(nvshmem_team_t team, T* to, const T* from, size_t n, cudaStream_t s) { return reduce<T>(On("nvshmemx_" #NAME "_" #OP "_reduce_on_stream", s, team), team, to, from, n, AS_##OP, false); } \
    API int nvshmem_##NAME##_##OP##_reducescatter(nvshmem_team_t team, T* to, const T* from, size_t n) { return reduce<T>(On("nvshmem_" #NAME "_" #OP "_reducescatter", team), team, to, from, n, AS_##OP, true); } \
    API int nvshmemx_##NAME##_##OP##_reducescatter_on_stream(nvshmem_team_t team, T* to, const T* from, size_t n, cudaStream_t s) { return reduce<T>(On("nvshmemx_" #NAME "_" #OP "_reducescatter_on_stream", s, team), team, to, from, n, AS_##OP, true); }
NVSHMEMI_REPT_FOR_BITWISE_REDUCE_TYPES(REDUCE, and)
NVSHMEMI_REPT_FOR_BITWISE_REDUCE_TYPES(REDUCE, or)
NVSHMEMI_REPT_FOR_BITWISE_REDUCE_TYPES(REDUCE, xor)
NVSHMEMI_REPT_FOR_STANDARD_REDUCE_TYPES(REDUCE, min)
NVSHMEMI_REPT_FOR_STANDARD_REDUCE_TYPES(REDUCE, max)
NVSHMEMI_REPT_FOR_ARITH_REDUCE_TYPES(REDUCE, sum)
NVSHMEMI_REPT_FOR_ARITH_REDUCE_TYPES(REDUCE, prod)

// --- Launches on all PEs.

API int nvshmemx_collective_launch(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
    On on("nvshmemx_collective_launch", stream, NVSHMEM_TEAM_WORLD);
    int most = 0, device = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, kernel, block.x * block.y * block.z, shared));
    int sms = 0;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    if (!grid.x) grid = dim3(most * sms);  // as many as fit
    return cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared, stream) ? NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED : 0;
}
API int nvshmemx_collective_launch_query_gridsize(const void* kernel, dim3 block, void**, size_t shared, int* into) {
    int most = 0, device = 0, sms = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&most, kernel, block.x * block.y * block.z, shared));
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    *into = most * sms;
    return 0;
}
