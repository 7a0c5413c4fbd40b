// What one GPU can decide of system scope, streams, events and graphs: the same numbers on a GPU and in the emulator.
#include <cstdio>
#include <cuda/atomic>
#include <cuda_runtime.h>

#define CHECK(call)                                                                       \
    do {                                                                                  \
        cudaError_t status = (call);                                                      \
        if (status != cudaSuccess) printf("%s: %s\n", #call, cudaGetErrorString(status)); \
    } while (0)

using System = cuda::atomic_ref<int, cuda::thread_scope_system>;

// Two kernels on two streams pass messages through memory of the host.
__global__ void ask(int* data, int* flags, int rounds) {
    for (int round = 1; round <= rounds; round++) {
        data[0] = data[0] * 3 + round;
        System(flags[0]).store(round, cuda::memory_order_release);
        while (System(flags[1]).load(cuda::memory_order_acquire) < round) {}
    }
}

__global__ void answer(int* data, int* flags, int rounds) {
    for (int round = 1; round <= rounds; round++) {
        while (System(flags[0]).load(cuda::memory_order_acquire) < round) {}
        data[0] = data[0] + 1;
        System(flags[1]).store(round, cuda::memory_order_release);
    }
}

__global__ void count(int* counters) {
    System(counters[0]).fetch_add(1, cuda::memory_order_relaxed);
    System(counters[1]).fetch_max((int)(blockIdx.x * blockDim.x + threadIdx.x), cuda::memory_order_relaxed);
    if (System(counters[2]).fetch_add(2, cuda::memory_order_acq_rel) == 2 * ((int)(gridDim.x * blockDim.x) - 1))
        counters[3] = 7;
}

__global__ void scale(int* x, int factor, int more) { x[threadIdx.x] = x[threadIdx.x] * factor + more; }

static int* host_memory(int count) {
    int* found;
    CHECK(cudaHostAlloc(&found, count * sizeof(int), cudaHostAllocMapped));
    for (int at = 0; at < count; at++) found[at] = 0;
    return found;
}

static void messages(cudaStream_t* streams) {
    int* memory = host_memory(3);
    ask<<<1, 1, 0, streams[0]>>>(memory, memory + 1, 5);
    answer<<<1, 1, 0, streams[1]>>>(memory, memory + 1, 5);
    CHECK(cudaDeviceSynchronize());
    printf("messages %d %d %d\n", memory[0], memory[1], memory[2]);
    CHECK(cudaFreeHost(memory));
}

static void atomics(cudaStream_t* streams) {
    int* counters = host_memory(4);
    count<<<4, 64, 0, streams[0]>>>(counters);
    CHECK(cudaStreamSynchronize(streams[0]));
    counters[0] += 1000;  // the host has its turn
    count<<<2, 32, 0, streams[1]>>>(counters);
    CHECK(cudaDeviceSynchronize());
    printf("atomics %d %d %d %d\n", counters[0], counters[1], counters[2], counters[3]);
    CHECK(cudaFreeHost(counters));
}

// An event that is recorded again: each wait is for its last record before that.
static void events(cudaStream_t* streams) {
    int *x, seen[2][4];
    cudaEvent_t event;
    CHECK(cudaMalloc(&x, sizeof seen[0]));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMemsetAsync(x, 0, sizeof seen[0], streams[0]));
    scale<<<1, 4, 0, streams[0]>>>(x, 1, 5);
    CHECK(cudaEventRecord(event, streams[0]));
    CHECK(cudaStreamWaitEvent(streams[1], event, 0));
    CHECK(cudaMemcpyAsync(seen[0], x, sizeof seen[0], cudaMemcpyDeviceToHost, streams[1]));
    CHECK(cudaEventRecord(event, streams[1]));
    CHECK(cudaStreamWaitEvent(streams[0], event, 0));
    scale<<<1, 4, 0, streams[0]>>>(x, 10, 1);
    CHECK(cudaEventRecord(event, streams[0]));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaMemcpy(seen[1], x, sizeof seen[1], cudaMemcpyDeviceToHost));
    printf("events %d %d\n", seen[0][3], seen[1][3]);
    CHECK(cudaEventDestroy(event));
    CHECK(cudaFree(x));
}

static void host_function(void* place) { *(int*)place += 100; }

// A graph with two branches, a copy, and a function of the host, that runs three times.
static void graphs(cudaStream_t* streams) {
    int *x, *y, *place = host_memory(4), called = 0;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t made;
    CHECK(cudaMalloc(&x, 4 * sizeof(int)));
    CHECK(cudaMalloc(&y, 4 * sizeof(int)));
    CHECK(cudaMemsetAsync(x, 0, 4 * sizeof(int), streams[0]));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(fork, streams[0]));
    CHECK(cudaStreamWaitEvent(streams[1], fork, 0));
    scale<<<1, 4, 0, streams[0]>>>(x, 2, 1);
    CHECK(cudaMemsetAsync(y, 1, 4 * sizeof(int), streams[1]));
    CHECK(cudaEventRecord(join, streams[1]));
    CHECK(cudaStreamWaitEvent(streams[0], join, 0));
    CHECK(cudaMemcpyAsync(place, x, 2 * sizeof(int), cudaMemcpyDeviceToHost, streams[0]));
    CHECK(cudaMemcpyAsync(place + 2, y, 2 * sizeof(int), cudaMemcpyDeviceToHost, streams[0]));
    CHECK(cudaLaunchHostFunc(streams[0], host_function, &called));
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&made, graph, 0));
    for (int time = 0; time < 3; time++) CHECK(cudaGraphLaunch(made, streams[time % 2]));
    CHECK(cudaDeviceSynchronize());
    printf("graphs %d %d %d\n", place[0], place[3], called);
    CHECK(cudaGraphExecDestroy(made));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaFreeHost(place));
}

// A kernel that is loaded when it is launched first may wait until those that run have ended: `ask` would wait forever.
static void load_all() {
    cudaFuncAttributes facts;
    CHECK(cudaFuncGetAttributes(&facts, ask));
    CHECK(cudaFuncGetAttributes(&facts, answer));
    CHECK(cudaFuncGetAttributes(&facts, count));
    CHECK(cudaFuncGetAttributes(&facts, scale));
}

int main() {
    load_all();
    cudaStream_t streams[2];
    for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    messages(streams);
    atomics(streams);
    events(streams);
    graphs(streams);
}
