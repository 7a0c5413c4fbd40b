// Programs of NVSHMEM, each a PE in every process: `./nvshmem CASE`. A line that a finding names says so:
// `// expect CASE: CODE`.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>
#include <cstring>
#include <unistd.h>

#define RUN(name) if (!strcmp(wanted, #name)) name()

static int me, count;

__global__ void fill(int* to, int value) { to[threadIdx.x] = value + threadIdx.x; }
__global__ void send(int* to, int value, int peer) { nvshmem_int_p(to + threadIdx.x, value, peer); }  // expect no_barrier: data-race
__global__ void send_all(int* to, const int* from, int peer) {
    nvshmemx_int_put_nbi_block(to, from, 32, peer);  // expect no_quiet: data-race
}
__global__ void add(int* to, const int* from) { to[threadIdx.x] += from[threadIdx.x]; }  // expect other_stream: data-race

static int* ints(size_t n = 32) { return (int*)nvshmem_calloc(n, sizeof(int)); }
static int next() { return (me + 1) % count; }
static int before() { return (me + count - 1) % count; }
static void print(const char* name, const int* from, int n = 1) {
    int seen[64];
    cudaMemcpy(seen, from, n * sizeof(int), cudaMemcpyDeviceToHost);  // expect no_barrier: data-race, expect no_quiet: data-race
    bool is_same = true;
    for (int i = 1; i < n; i++) is_same &= seen[i] == seen[0];
    printf("%s %d: %d%s\n", name, me, seen[0], is_same ? "" : " ...");
}

// A kernel sends, and a barrier of the host is before the read.
static void barrier_right() {
    int* x = ints();
    send<<<1, 32>>>(x, me + 10, next());
    cudaDeviceSynchronize();
    nvshmem_barrier_all();
    print("barrier", x, 32);
    nvshmem_free(x);
}
static void no_barrier() {
    int* x = ints();
    send<<<1, 32>>>(x, me + 10, next());  // expect no_barrier: data-race
    cudaDeviceSynchronize();
    print("barrier", x, 32);
    nvshmem_free(x);
}

// The host waits for the barrier of a stream; another stream has what is sent.
static void stream_right() {
    int *x = ints(), *y = ints();
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    fill<<<1, 32, 0, stream>>>(y, 7);
    nvshmemx_barrier_all_on_stream(stream);
    nvshmemx_int_put_on_stream(x, y, 32, next(), stream);
    nvshmemx_barrier_all_on_stream(stream);
    add<<<1, 32, 0, stream>>>(x, y);
    cudaStreamSynchronize(stream);
    print("stream", x);
    nvshmem_free(x);
    nvshmem_free(y);
}
static void other_stream() {
    int *x = ints(), *y = ints();
    cudaStream_t stream, other;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    fill<<<1, 32, 0, stream>>>(y, 7);
    nvshmemx_barrier_all_on_stream(stream);
    cudaStreamSynchronize(stream);
    nvshmemx_int_put_on_stream(x, y, 32, next(), stream);  // expect other_stream: data-race
    nvshmemx_barrier_all_on_stream(other);
    cudaStreamSynchronize(other);
    add<<<1, 32, 0, other>>>(x, y);  // expect other_stream: data-race
    cudaDeviceSynchronize();
    nvshmem_free(x);
    nvshmem_free(y);
}

// A put with `_nbi`, complete after a barrier, but not after a synchronization. Between machines only.
static void quiet_right() {
    int *x = ints(), *y = ints();
    fill<<<1, 32>>>(y, 3);
    cudaDeviceSynchronize();
    send_all<<<1, 32>>>(x, y, before());
    nvshmemx_quiet_on_stream(0);
    cudaDeviceSynchronize();
    nvshmem_sync_all();
    print("quiet", x);
    nvshmem_free(x);
    nvshmem_free(y);
}
static void no_quiet() {
    int *x = ints(), *y = ints();
    fill<<<1, 32>>>(y, 3);
    cudaDeviceSynchronize();
    send_all<<<1, 32>>>(x, y, before());  // expect no_quiet: data-race
    cudaDeviceSynchronize();
    nvshmem_sync_all();
    print("quiet", x);
    nvshmem_free(x);
    nvshmem_free(y);
}

// Signals on streams.
static void signal_right() {
    int *x = ints(), *y = ints();
    uint64_t* signal = (uint64_t*)nvshmem_calloc(1, 8);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    fill<<<1, 32, 0, stream>>>(y, 40);
    nvshmemx_int_put_signal_on_stream(x, y, 32, signal, 1, NVSHMEM_SIGNAL_SET, next(), stream);
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 1, stream);
    add<<<1, 32, 0, stream>>>(x, x);
    cudaStreamSynchronize(stream);
    print("signal", x);
    nvshmem_barrier_all();
    nvshmem_free(x);
    nvshmem_free(y);
    nvshmem_free(signal);
}

// A kernel waits for what another PE launches only after it has waited for a kernel of its own.
__global__ void wait_for(uint64_t* signal, int* x) {
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);  // expect never: hang
    x[0] += 1;
}
__global__ void signal_to(uint64_t* signal, int peer) { nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, peer); }
static void later_right() {
    int* x = ints();
    uint64_t* signal = (uint64_t*)nvshmem_calloc(1, 8);
    if (me == 0) {
        wait_for<<<1, 1>>>(signal, x);
    } else {
        fill<<<1, 32>>>(x, 5);
        cudaDeviceSynchronize();
        if (me == 1) signal_to<<<1, 1>>>(signal, 0);
    }
    print("later", x);
    nvshmem_barrier_all();
    nvshmem_free(x);
    nvshmem_free(signal);
}
static void never() {
    uint64_t* signal = (uint64_t*)nvshmem_calloc(1, 8);
    int* x = ints();
    if (me == 0) wait_for<<<1, 1>>>(signal, x);
    fill<<<1, 32>>>(x, 5);
    cudaDeviceSynchronize();
    nvshmem_barrier_all();
}

// Host functions.
static void host_right() {
    int *x = ints(), *all = ints(64), *sum = ints(), here[2] = {me * 2, me * 3};
    nvshmem_int_p(x, me + 5, next());
    nvshmem_barrier_all();
    printf("g %d: %d\n", me, nvshmem_int_g(x, next()));
    nvshmem_barrier_all();
    nvshmem_int_put(x, here, 2, before());
    nvshmem_barrier_all();
    print("put", x + 1);
    nvshmem_int_fcollect(NVSHMEM_TEAM_WORLD, all, x, 2);
    nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, sum, x, 2);
    nvshmem_barrier_all();
    print("fcollect", all + 2);
    print("sum", sum);
    nvshmem_barrier_all();  // before PE 1 writes to all of these
    nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, sum, x, 1, 1);
    nvshmem_barrier_all();
    print("broadcast", sum);
    printf("ptr %d: %d %d\n", me, nvshmem_ptr(x, me) == x, nvshmem_ptr(x, next()) != nullptr);
    nvshmem_free(x);
    nvshmem_free(all);
    nvshmem_free(sum);
}
// A put and a get of one PE, with nothing between that completes the put.
static void put_get() {
    int *x = ints(), *y = ints();
    if (me == 0) {
        nvshmem_int_put(x, y, 32, count - 1);  // expect put_get: data-race
        nvshmem_int_get(y, x, 32, count - 1);  // expect put_get: data-race
    }
    nvshmem_free(x);
    nvshmem_free(y);
}
static void put_get_right() {
    int *x = ints(), *y = ints();
    if (me == 0) {
        nvshmem_int_put(x, y, 32, count - 1);
        nvshmem_quiet();
        nvshmem_int_get(y, x, 32, count - 1);
    }
    nvshmem_barrier_all();
    print("put", x);
    nvshmem_free(x);
    nvshmem_free(y);
}
static void team_right() {
    nvshmem_team_t odd;
    nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 2, count / 2, nullptr, 0, &odd);
    int *x = ints(), *sum = ints();
    fill<<<1, 32>>>(x, me);
    cudaDeviceSynchronize();
    if (odd != NVSHMEM_TEAM_INVALID) {
        nvshmem_int_max_reduce(odd, sum, x, 1);
        printf("team %d: %d of %d\n", me, nvshmem_team_my_pe(odd), nvshmem_team_n_pes(odd));
        nvshmem_team_destroy(odd);
    }
    nvshmem_barrier_all();
    print("team", sum);
    nvshmem_team_t row, column;
    nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 3, nullptr, 0, &row, nullptr, 0, &column);
    nvshmem_int_sum_reduce(column, sum, x, 1);
    print("column", sum);
    printf("row %d: %d of %d, %d of %d\n", me, nvshmem_team_my_pe(row), nvshmem_team_n_pes(row),
           nvshmem_team_my_pe(column), nvshmem_team_n_pes(column));
    nvshmem_free(x);
    nvshmem_free(sum);
}

// Collectives that not all PEs call.
static void missing() {
    if (me == 1) _exit(0);
    nvshmem_barrier_all();  // expect missing: hang
}
static void mixed() {
    int* x = ints();
    if (me == 0) nvshmem_sync_all();  // expect mixed: bad-library-call
    else nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, x, x, 1, 0);  // expect mixed: bad-library-call
    nvshmem_free(x);
}
static void unequal() {
    void* x = nvshmem_malloc(me == 0 ? 64 : 128);  // expect unequal: bad-library-call
    nvshmem_free(x);
}

// Not here.
static void not_there() {
    nvshmemx_buffer_register_symmetric(nullptr, 1 << 21, 0);  // expect not_there: unsupported-call
}

int main(int, char** arguments) {
    const char* wanted = arguments[1];
    nvshmem_init();
    me = nvshmem_my_pe(), count = nvshmem_n_pes();
    cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE));
    RUN(barrier_right);
    RUN(no_barrier);
    RUN(stream_right);
    RUN(other_stream);
    RUN(quiet_right);
    RUN(no_quiet);
    RUN(signal_right);
    RUN(later_right);
    RUN(never);
    RUN(host_right);
    RUN(put_get);
    RUN(put_get_right);
    RUN(team_right);
    RUN(missing);
    RUN(mixed);
    RUN(unequal);
    RUN(not_there);
    nvshmem_finalize();
    return 0;
}
