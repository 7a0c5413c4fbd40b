// Programs with several streams or GPUs, each with a mistake, and their right twins: `several NAME` runs one. A comment
// `expect NAME: CODE` is on a line that a finding names.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <cuda.h>

constexpr int n = 512;
constexpr size_t bytes = n * sizeof(int);

__device__ int own;

__global__ void set(int* x, int value) {
    x[threadIdx.x] = value + own;  // expect two_kernels: data-race  // expect copy_too_early: data-race  // expect graph: data-race  // expect captured: data-race  // expect no_peer_access: missing-peer-access  // expect other_gpu: data-race
}

__global__ void fill_with(int* x, int value) {
    x[threadIdx.x] = value;  // expect used_too_early: data-race  // expect freed_too_early: data-race  // expect read_at_once: data-race  // expect read_by_a_stream: data-race  // expect two_threads: data-race  // expect taken_too_early: data-race  // expect filled_too_late: data-race
}

__global__ void add(int* to, const int* from) {
    to[threadIdx.x] += from[threadIdx.x];  // expect graph: data-race  // expect captured: data-race  // expect context: missing-peer-access
}

__global__ void copy_early(int* to, const int* from) {
    to[threadIdx.x] = from[threadIdx.x];  // expect dependent: data-race
    cudaGridDependencySynchronize();
}

__global__ void copy_late(int* to, const int* from) {
    cudaGridDependencySynchronize();
    to[threadIdx.x] = from[threadIdx.x];
}

__global__ void set_and_trigger(int* x, int value) {
    cudaTriggerProgrammaticLaunchCompletion();
    x[threadIdx.x] = value;  // expect dependent: data-race
}

__global__ void exchange(int* mine, const int* theirs, unsigned* flags, int rank, int ranks) {
    mine[threadIdx.x] = rank + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __nv_atomic_fetch_add(flags, 1u, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM);
        while (__nv_atomic_load_n(flags, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_SYSTEM) < ranks) {}
    }
    __syncthreads();
    mine[threadIdx.x + n] = theirs[threadIdx.x];
}

__global__ void count(int* x) {
    x[blockIdx.x * n + threadIdx.x] += 1;  // expect large: data-race  // expect large_read: data-race
}

__global__ void move(int* to, const int* from) {
    to[blockIdx.x * n + threadIdx.x] = from[blockIdx.x * n + threadIdx.x];  // expect large_read: data-race
}

// Asks so many times, and waits for each answer.
__global__ void ask(int* words, int times) {
    for (int time = 1; time <= times; time++) {
        words[2] = words[2] * 3 + time;
        __nv_atomic_store_n(words, time, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
        while (__nv_atomic_load_n(words + 1, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_SYSTEM) < time) {}  // expect ask: hang  // expect ask_a_thread: hang
    }
}

__global__ void answer_once(int* words, int time) {
    words[2] += 1;
    __nv_atomic_store_n(words + 1, time, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
}

#define CASE(name) static void name()

// Two kernels on two streams write the same memory.
template <typename Word>
void kernels(bool is_right) {
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEvent_t done;
    cudaEventCreate(&done);
    Word* x;
    cudaMalloc(&x, bytes);
    set<<<1, n, 0, a>>>(x, 1);  // expect two_kernels: data-race
    cudaEventRecord(done, a);
    if (is_right) cudaStreamWaitEvent(b, done);
    set<<<1, n, 0, b>>>(x, 2);  // expect two_kernels: data-race
    cudaDeviceSynchronize();
    int last;
    cudaMemcpy(&last, x + n - 1, sizeof last, cudaMemcpyDefault);
    if (is_right) printf("%d\n", last);
    cudaFree(x);
}
CASE(two_kernels) { kernels<int>(false); }
CASE(two_kernels_right) { kernels<int>(true); }

// Memory of one stream, which another one uses: after it is allocated there, and before it is freed.
static void memory_of_a_stream(bool is_allocated, bool is_used) {
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEvent_t allocated, used;
    cudaEventCreate(&allocated);
    cudaEventCreate(&used);
    int* x;
    cudaMallocAsync((void**)&x, bytes, a);  // expect used_too_early: data-race
    cudaEventRecord(allocated, a);
    if (is_allocated) cudaStreamWaitEvent(b, allocated);
    fill_with<<<1, n, 0, b>>>(x, 1);  // expect used_too_early: data-race  // expect freed_too_early: data-race
    cudaEventRecord(used, b);
    if (is_used) cudaStreamWaitEvent(a, used);
    cudaFreeAsync(x, a);  // expect freed_too_early: data-race
    cudaDeviceSynchronize();
}
CASE(used_too_early) { memory_of_a_stream(false, true); }
CASE(freed_too_early) { memory_of_a_stream(true, false); }
CASE(used_in_time) { memory_of_a_stream(true, true); }

// What a kernel writes is copied to memory of the host's own, which is not pinned, by another stream.
static void read_by_the_host(bool is_at_once, bool is_right) {
    int *x, there[n];
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaMalloc(&x, bytes);
    fill_with<<<1, n, 0, a>>>(x, 7);  // expect read_at_once: data-race  // expect read_by_a_stream: data-race
    if (is_right) cudaStreamSynchronize(a);
    if (is_at_once) cudaMemcpy(there, x, bytes, cudaMemcpyDeviceToHost);  // expect read_at_once: data-race
    else cudaMemcpyAsync(there, x, bytes, cudaMemcpyDeviceToHost, b);  // expect read_by_a_stream: data-race
    cudaDeviceSynchronize();
    if (is_right) printf("%d\n", there[5]);
    cudaFree(x);
}
CASE(read_at_once) { read_by_the_host(true, false); }
CASE(read_at_once_right) { read_by_the_host(true, true); }
CASE(read_by_a_stream) { read_by_the_host(false, false); }

// Two large kernels on two streams, whose parts share one element.
static void large_parts(bool is_right) {
    const int blocks = 128;
    cudaStream_t a, b;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    int* x;
    cudaMalloc(&x, 2 * blocks * bytes);
    cudaMemset(x, 0, 2 * blocks * bytes);
    count<<<blocks, n, 0, a>>>(x);  // expect large: data-race
    count<<<blocks, n, 0, b>>>(x + blocks * n - !is_right);  // expect large: data-race
    cudaDeviceSynchronize();
    int last;
    cudaMemcpy(&last, x + 2 * blocks * n - 2, sizeof last, cudaMemcpyDefault);
    printf("%d\n", last);
    cudaFree(x);
}
CASE(large) { large_parts(false); }
CASE(large_right) { large_parts(true); }

// A large kernel only reads what another writes; in the right one both read it, after a copy on another stream.
static void large_reads(bool is_right) {
    const int blocks = 128;
    cudaStream_t a, b;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    cudaEvent_t there;
    cudaEventCreate(&there);
    static int given[blocks * n];
    given[blocks * n - 1] = 6;
    int *x, *y, *z;
    cudaMalloc(&x, blocks * bytes);
    cudaMalloc(&y, blocks * bytes);
    cudaMalloc(&z, blocks * bytes);
    cudaMemcpyAsync(x, given, blocks * bytes, cudaMemcpyDefault, a);
    cudaEventRecord(there, a);
    cudaStreamWaitEvent(b, there);
    move<<<blocks, n, 0, a>>>(y, x);  // expect large_read: data-race
    if (is_right) move<<<blocks, n, 0, b>>>(z, x);
    else count<<<blocks, n, 0, b>>>(x);  // expect large_read: data-race
    cudaDeviceSynchronize();
    int last;
    cudaMemcpy(&last, z + blocks * n - 1, sizeof last, cudaMemcpyDefault);
    if (is_right) printf("%d\n", last);
    for (int* one : {x, y, z}) cudaFree(one);
}
CASE(large_read) { large_reads(false); }
CASE(large_read_right) { large_reads(true); }

// A copy to the host on another stream than the kernel that computes what is copied.
static void copies(bool is_right) {
    cudaStream_t a, b;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    int *x, *result;
    cudaMalloc(&x, bytes);
    cudaMallocHost(&result, bytes);
    set<<<1, n, 0, a>>>(x, 5);  // expect copy_too_early: data-race
    cudaMemcpyAsync(result, x, bytes, cudaMemcpyDeviceToHost, is_right ? a : b);  // expect copy_too_early: data-race
    cudaStreamSynchronize(is_right ? a : b);
    if (is_right) printf("%d\n", result[7]);
    cudaFree(x);
    cudaFreeHost(result);
}
CASE(copy_too_early) { copies(false); }
CASE(copy_right) { copies(true); }

// Two copies to the same memory, of a stream each.
CASE(two_copies) {
    cudaStream_t a, b;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    int *x, *y;
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, a);  // expect two_copies: data-race
    cudaMemsetAsync(y + n - 1, 0, sizeof(int), b);  // expect two_copies: data-race
    cudaDeviceSynchronize();
    cudaFree(x);
    cudaFree(y);
}

// The default stream waits for all streams but those that say otherwise.
CASE(default_stream) {
    cudaStream_t a;
    cudaStreamCreate(&a);
    int* x;
    cudaMalloc(&x, bytes);
    set<<<1, n, 0, a>>>(x, 1);
    add<<<1, n>>>(x, x);
    add<<<1, n, 0, a>>>(x, x);
    int last;
    cudaMemcpy(&last, x + n - 1, sizeof last, cudaMemcpyDefault);
    printf("%d\n", last);
    cudaFree(x);
}

// Each GPU has variables and memory of its own.
CASE(two_gpus) {
    int *x[2], count, device, value, peer;
    cudaGetDeviceCount(&count);
    for (int i = 0; i < count; i++) {
        cudaSetDevice(i);
        cudaMalloc(&x[i], bytes);
        value = 10 * (i + 1);
        cudaMemcpyToSymbol(own, &value, sizeof value);
        set<<<1, n>>>(x[i], i);
    }
    for (int i = 0; i < count; i++) {
        cudaSetDevice(i);
        cudaDeviceSynchronize();
    }
    cudaDeviceCanAccessPeer(&peer, 0, 1);
    cudaDeviceEnablePeerAccess(0, 0);
    add<<<1, n>>>(x[1], x[0]);
    cudaMemcpyPeer(x[0], 0, x[1], 1, bytes);
    cudaMemcpy(&value, x[0], sizeof value, cudaMemcpyDeviceToHost);
    cudaGetDevice(&device);
    cudaPointerAttributes about;
    cudaPointerGetAttributes(&about, x[1]);
    printf("%d %d %d %d %d\n", count, device, peer, about.device, value);
    for (int i = 0; i < count; i++) cudaFree(x[i]);
}

CASE(no_peer_access) {
    int* x;
    cudaMalloc(&x, bytes);
    cudaSetDevice(1);
    set<<<1, n>>>(x, 1);
    printf("%d\n", cudaDeviceSynchronize());
}

// A stream of one GPU and a stream of another are not ordered.
static void gpus(bool is_right) {
    int *x, *y;
    cudaEvent_t done;
    cudaMalloc(&x, bytes);
    cudaEventCreate(&done);
    set<<<1, n>>>(x, 3);  // expect other_gpu: data-race
    cudaEventRecord(done);
    cudaSetDevice(1);
    cudaMalloc(&y, bytes);
    if (is_right) cudaStreamWaitEvent(0, done);
    cudaMemcpyPeerAsync(y, 1, x, 0, bytes, 0);  // expect other_gpu: data-race
    int value;
    cudaMemcpy(&value, y, sizeof value, cudaMemcpyDefault);
    if (is_right) printf("%d\n", value);
    cudaFree(x);
    cudaFree(y);
}
CASE(other_gpu) { gpus(false); }
CASE(other_gpu_right) { gpus(true); }

// Kernels of two GPUs that wait for each other, through memory of the host.
CASE(exchange_right) {
    unsigned* flags;
    int* x[2];
    cudaHostAlloc(&flags, sizeof *flags, cudaHostAllocMapped);
    *flags = 0;
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        cudaMalloc(&x[i], 2 * bytes);
        cudaDeviceEnablePeerAccess(1 - i, 0);
    }
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        exchange<<<1, n>>>(x[i], x[1 - i], flags, i, 2);
    }
    int value[2];
    for (int i = 0; i < 2; i++) cudaMemcpy(&value[i], x[i] + n, sizeof(int), cudaMemcpyDefault);
    printf("%d %d %u\n", value[0], value[1], *flags);
    cudaFreeHost(flags);
    for (int i = 0; i < 2; i++) cudaFree(x[i]);
}

// A graph whose nodes have no path between them.
static void graphs(bool is_right) {
    int *x, *y, value = 3, last;
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMemset(y, 0, bytes);
    cudaGraph_t graph;
    cudaGraphExec_t made;
    cudaGraphNode_t first, second, third;
    cudaGraphCreate(&graph, 0);
    void* to_set[] = {&x, &value};
    void* to_add[] = {&y, &x};
    cudaKernelNodeParams set_node = {(void*)set, dim3(1), dim3(n), 0, to_set, nullptr};
    cudaKernelNodeParams add_node = {(void*)add, dim3(1), dim3(n), 0, to_add, nullptr};
    cudaGraphAddKernelNode(&first, graph, nullptr, 0, &set_node);  // expect graph: data-race
    cudaGraphAddKernelNode(&second, graph, nullptr, 0, &add_node);  // expect graph: data-race
    cudaGraphAddEmptyNode(&third, graph, &second, 1);
    if (is_right) cudaGraphAddDependencies(graph, &first, &second, nullptr, 1);
    cudaGraphInstantiate(&made, graph, 0);
    for (int i = 0; i < 2; i++) cudaGraphLaunch(made, 0);
    cudaMemcpy(&last, y + n - 1, sizeof last, cudaMemcpyDefault);
    if (is_right) printf("%d\n", last);
    cudaFree(x);
    cudaFree(y);
}
CASE(graph) { graphs(false); }
CASE(graph_right) { graphs(true); }

// A graph that is captured of two streams, with and without the event that joins the second.
static void captures(bool is_right) {
    int *x, *y, last;
    cudaStream_t a, b;
    cudaEvent_t fork, done, join;
    cudaStreamCreate(&a);
    cudaStreamCreate(&b);
    for (auto event : {&fork, &done, &join}) cudaEventCreate(event);
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMemset(y, 0, bytes);
    cudaDeviceSynchronize();
    cudaGraph_t graph;
    cudaGraphExec_t made;
    cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal);
    cudaEventRecord(fork, a);
    cudaStreamWaitEvent(b, fork);
    set<<<1, n, 0, a>>>(x, 4);  // expect captured: data-race
    cudaEventRecord(done, a);
    if (is_right) cudaStreamWaitEvent(b, done);
    add<<<1, n, 0, b>>>(y, x);  // expect captured: data-race
    cudaEventRecord(join, b);
    cudaStreamWaitEvent(a, join);
    cudaStreamEndCapture(a, &graph);
    cudaGraphInstantiate(&made, graph, 0);
    cudaGraphLaunch(made, a);
    cudaStreamSynchronize(a);
    cudaMemcpy(&last, y + n - 1, sizeof last, cudaMemcpyDefault);
    if (is_right) printf("%d\n", last);
    cudaFree(x);
    cudaFree(y);
}
CASE(captured) { captures(false); }
CASE(captured_right) { captures(true); }

// A kernel that may start before the one before it is complete, and reads what that writes before it waits.
static void dependents(bool is_right) {
    int *x, *y, last;
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaLaunchConfig_t how = {dim3(1), dim3(n)};
    cudaLaunchAttribute overlap;
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    how.attrs = &overlap;
    how.numAttrs = 1;
    for (int i = 0; i < 2; i++) {
        set_and_trigger<<<1, n>>>(x, 6);  // expect dependent: data-race
        cudaLaunchKernelEx(&how, is_right ? copy_late : copy_early, y, (const int*)x);  // expect dependent: data-race
    }
    cudaMemcpy(&last, y + n - 1, sizeof last, cudaMemcpyDefault);
    if (is_right) printf("%d\n", last);
    cudaFree(x);
    cudaFree(y);
}
CASE(dependent) { dependents(false); }
CASE(dependent_right) { dependents(true); }

// Contexts of two GPUs by the driver API, without and with peer access.
template <typename... Types>
static CUresult by_driver(const char* name, Types... arguments) {
    void* found;
    cudaDriverEntryPointQueryResult how;
    cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how);
    return ((CUresult(*)(Types...))found)(arguments...);  // expect multicast: bad-mapping
}
static void contexts(bool is_right) {
    CUcontext context[2], last;
    CUdeviceptr x[2];
    int count, peer, value;
    CUdevice device;
    by_driver("cuInit", 0u);
    by_driver("cuDeviceGetCount", &count);
    CUresult missing = by_driver("cuDeviceGet", &device, count);
    for (int i = 0; i < 2; i++) {
        by_driver("cuDevicePrimaryCtxRetain", &context[i], i);
        by_driver("cuCtxPushCurrent", context[i]);
        by_driver("cuMemAlloc", &x[i], bytes);
        set<<<1, n>>>((int*)x[i], i + 1);
        by_driver("cuCtxSynchronize");
    }
    by_driver("cuDeviceCanAccessPeer", &peer, 1, 0);
    if (is_right) by_driver("cuCtxEnablePeerAccess", context[0], 0u);
    add<<<1, n>>>((int*)x[1], (int*)x[0]);  // on the GPU of the context that is current
    if (by_driver("cuCtxSynchronize")) return;
    by_driver("cuMemcpyPeer", x[0], context[0], x[1], context[1], bytes);
    by_driver("cuCtxPopCurrent", &last);
    by_driver("cuCtxGetDevice", &device);
    by_driver("cuMemcpyDtoH", (void*)&value, x[0], sizeof value);
    printf("%d %d %d %d %d %d\n", count, (int)missing, peer, device, last == context[1], value);
    for (int i = 0; i < 2; i++) by_driver("cuMemFree", x[i]);
}
CASE(context) { contexts(false); }
CASE(context_right) { contexts(true); }

// Memory that is created, mapped and made accessible in steps, and a multicast object of that of two GPUs.
__global__ void sum_over_gpus(float* all, float* out) {
#if __CUDA_ARCH__ >= 900
    float sum;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(sum) : "l"(all + threadIdx.x) : "memory");
    out[threadIdx.x] = sum;
#endif
}
__global__ void set_float(float* x, float value) { x[threadIdx.x] = value; }  // expect map: missing-peer-access
static const size_t granule = 2 << 20;
static CUmemGenericAllocationHandle created(int device) {
    CUmemAllocationProp how = {};
    how.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    how.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemGenericAllocationHandle made;
    by_driver("cuMemCreate", &made, granule, (const CUmemAllocationProp*)&how, 0ull);
    return made;
}
static float* mapped(CUmemGenericAllocationHandle memory, int device, bool is_accessible = true) {
    CUdeviceptr address;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    by_driver("cuMemAddressReserve", &address, granule, granule, CUdeviceptr(0), 0ull);
    by_driver("cuMemMap", address, granule, size_t(0), memory, 0ull);
    if (is_accessible) by_driver("cuMemSetAccess", address, granule, (const CUmemAccessDesc*)&access, size_t(1));
    return (float*)address;
}
static void unmapped(float* address, CUmemGenericAllocationHandle memory) {
    by_driver("cuMemUnmap", CUdeviceptr(address), granule);
    by_driver("cuMemAddressFree", CUdeviceptr(address), granule);
    by_driver("cuMemRelease", memory);
}
static void maps(bool is_right) {
    CUmemGenericAllocationHandle memory = created(0);
    float *x = mapped(memory, 0, is_right), value = 0;
    set_float<<<1, 32>>>(x, 3);
    if (cudaDeviceSynchronize()) return;
    cudaMemcpy(&value, x + 31, sizeof value, cudaMemcpyDefault);
    printf("%g\n", value);
    unmapped(x, memory);
}
CASE(map) { maps(false); }
CASE(map_right) { maps(true); }
static void multicasts(bool is_right) {
    CUmulticastObjectProp how = {};
    how.numDevices = 2;
    how.size = granule;
    CUmemGenericAllocationHandle object, memory[2];
    by_driver("cuMulticastCreate", &object, (const CUmulticastObjectProp*)&how);
    for (int i = 0; i < 1 + is_right; i++) by_driver("cuMulticastAddDevice", object, CUdevice(i));
    float *x[2], *out, value = 0;
    for (int i = 0; i < 2; i++) {
        cudaSetDevice(i);
        x[i] = mapped(memory[i] = created(i), i);
        set_float<<<1, 32>>>(x[i], i + 1);
        if (by_driver("cuMulticastBindMem", object, size_t(0), memory[i], size_t(0), granule, 0ull)) break;
    }
    if (!is_right) return;
    cudaMalloc(&out, bytes);
    float* all = mapped(object, 1);
    cudaSetDevice(0);
    cudaDeviceSynchronize();
    cudaSetDevice(1);
    sum_over_gpus<<<1, 32>>>(all, out);
    cudaMemcpy(&value, out, sizeof value, cudaMemcpyDefault);
    printf("%g\n", value);
    unmapped(all, object);
    for (int i = 0; i < 2; i++) unmapped(x[i], memory[i]);
    cudaFree(out);
}
CASE(multicast) { multicasts(false); }
CASE(multicast_right) { multicasts(true); }

// Memory of another process, by its handle.
static void handles(bool is_right) {
    int there[2], back[2], *x, last = 0;
    cudaIpcMemHandle_t handle;
    if (pipe(there) || pipe(back)) return;
    if (is_right && !fork()) {
        if (read(there[0], &handle, sizeof handle) < 0) _exit(1);
        cudaSetDevice(1);
        cudaIpcOpenMemHandle((void**)&x, handle, cudaIpcMemLazyEnablePeerAccess);
        set<<<1, n>>>(x, 8);
        cudaDeviceSynchronize();
        cudaIpcCloseMemHandle(x);
        _exit(write(back[1], "", 1) != 1);
    }
    cudaMalloc(&x, bytes);  // expect handle: bad-mapping
    cudaIpcGetMemHandle(&handle, x);
    if (is_right) {
        if (write(there[1], &handle, sizeof handle) < 0 || read(back[0], &last, 1) < 0) return;
        cudaMemcpy(&last, x + n - 1, sizeof last, cudaMemcpyDefault);
        printf("%d\n", last);
    } else {
        cudaIpcOpenMemHandle((void**)&x, handle, cudaIpcMemLazyEnablePeerAccess);  // expect handle: bad-mapping
    }
    cudaFree(x);
}
CASE(handle) { handles(false); }
CASE(handle_right) { handles(true); }

// An event of another process, by its handle.
static void events(bool is_right) {
    int there[2], back[2], *x, last = 0;
    struct { cudaIpcMemHandle_t memory; cudaIpcEventHandle_t event; } handles;
    cudaEvent_t done;
    if (pipe(there) || pipe(back)) return;
    if (is_right && !fork()) {
        if (read(there[0], &handles, sizeof handles) < 0) _exit(1);
        cudaStream_t a;
        cudaStreamCreate(&a);
        cudaIpcOpenMemHandle((void**)&x, handles.memory, cudaIpcMemLazyEnablePeerAccess);
        cudaIpcOpenEventHandle(&done, handles.event);
        set<<<1, n, 0, a>>>(x, 9);
        cudaEventRecord(done, a);
        _exit(write(back[1], "", 1) != 1);
    }
    cudaMalloc(&x, bytes);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming | (is_right ? cudaEventInterprocess : 0));
    cudaIpcGetMemHandle(&handles.memory, x);
    cudaIpcGetEventHandle(&handles.event, done);  // expect event: bad-mapping
    if (is_right) {
        if (write(there[1], &handles, sizeof handles) < 0 || read(back[0], &last, 1) < 0) return;
        cudaStreamWaitEvent(0, done);
        cudaMemcpy(&last, x + n - 1, sizeof last, cudaMemcpyDefault);
        printf("%d\n", last);
    }
    cudaFree(x);
    cudaEventDestroy(done);
}
CASE(event) { events(false); }
CASE(event_right) { events(true); }

// A kernel runs on a stream of the GPU that is current, and an event is recorded on one of its own GPU.
CASE(stream_of_another) {
    int* x;
    cudaMalloc(&x, bytes);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaSetDevice(1);
    set<<<1, n, 0, stream>>>(x, 1);  // expect stream_of_another: unchecked-error
    cudaSetDevice(0);
    cudaFree(x);
}
CASE(event_of_another) {
    cudaEvent_t event;
    cudaStream_t stream;
    cudaEventCreate(&event);
    cudaSetDevice(1);
    cudaStreamCreate(&stream);
    printf("%d", cudaEventRecord(event, stream));
    cudaSetDevice(0);
    printf(" %d\n", cudaStreamWaitEvent(stream, event, 0));
}

// A graph that allocates memory, at the same address each time it runs.
static void allocates(bool is_right) {
    int* kept = 0;
    int *within, last[2];
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMallocAsync(&within, bytes, stream);  // expect graph_memory: use-after-free
    cudaMallocAsync(&kept, bytes, stream);
    set<<<1, n, 0, stream>>>(within, 3);
    set<<<1, n, 0, stream>>>(kept, 1);
    add<<<1, n, 0, stream>>>(kept, within);
    cudaFreeAsync(within, stream);  // expect graph_memory: use-after-free
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 2; i++) {
        printf("%d ", cudaGraphLaunch(exec, stream));
        cudaMemcpyAsync(last + i, kept + n - 1, sizeof *last, cudaMemcpyDefault, stream);
        if (is_right || i) cudaFreeAsync(kept, stream);
    }
    cudaStreamSynchronize(stream);
    if (!is_right)
        cudaMemcpy(last, within, sizeof *last, cudaMemcpyDefault);  // expect graph_memory: use-after-free
    else printf("%d %d\n", last[0], last[1]);
}
CASE(graph_memory) { allocates(false); }
CASE(graph_memory_right) { allocates(true); }

// A kernel and the host that wait for each other, through memory of the host.
static void answer(int* words, int time) {
    while (__atomic_load_n(words, __ATOMIC_ACQUIRE) < time) {}
    words[2] += 1;
    __atomic_store_n(words + 1, time, __ATOMIC_RELEASE);
}
static int* asked(cudaStream_t stream) {
    int* words;
    cudaHostAlloc(&words, 4096, cudaHostAllocMapped);
    memset(words, 0, 4096);
    ask<<<1, 1, 0, stream>>>(words, 3);
    return words;
}
static void asks(int answers) {
    int* words = asked(0);
    for (int time = 1; time <= answers; time++) answer(words, time);
    printf("%d", cudaDeviceSynchronize());
    printf(" %d\n", words[2]);
    cudaFreeHost(words);
}
CASE(ask) { asks(2); }
CASE(ask_right) { asks(3); }
// A thread that sleeps answers when it wakes; one that wakes again and again, and answers twice, never will.
static void asks_a_thread(bool sleeps) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int* words = asked(stream);
    std::atomic<bool> is_over{false};
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(sleeps ? 1200 : 10));
        for (int time = 1; time <= 2 + sleeps; time++) answer(words, time);
        while (!sleeps && !is_over) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    });
    cudaStreamSynchronize(stream);
    is_over = true;
    other.join();
    printf("%d\n", words[2]);
    cudaFreeHost(words);
}
CASE(ask_a_thread) { asks_a_thread(false); }
CASE(ask_a_thread_right) { asks_a_thread(true); }
// The host asks whether the kernel is complete, and has other kernels answer.
CASE(ask_a_kernel_right) {
    cudaStream_t streams[2];
    for (int i = 0; i < 2; i++) cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    int* words = asked(streams[0]);
    for (int done = 0; cudaStreamQuery(streams[0]) == cudaErrorNotReady;) {
        if (__atomic_load_n(words, __ATOMIC_ACQUIRE) == done) continue;
        answer_once<<<1, 1, 0, streams[1]>>>(words, ++done);
        cudaStreamSynchronize(streams[1]);
    }
    printf("%d\n", words[2]);
    cudaFreeHost(words);
}
// A stream of one GPU copies what a kernel of another one writes to memory of the host's own.
static void takes_from_a_gpu(bool is_right) {
    int *x, there[n];
    cudaStream_t b;
    cudaEvent_t done;
    cudaSetDevice(1);
    cudaStreamCreate(&b);
    cudaSetDevice(0);
    cudaEventCreate(&done);
    cudaMalloc(&x, bytes);
    fill_with<<<1, n>>>(x, 7);  // expect taken_too_early: data-race
    cudaEventRecord(done);
    cudaSetDevice(1);
    if (is_right) cudaStreamWaitEvent(b, done);
    cudaMemcpyAsync(there, x, bytes, cudaMemcpyDeviceToHost, b);  // expect taken_too_early: data-race
    if (is_right) printf("%d\n", there[5]);
    cudaFree(x);
}
CASE(taken_too_early) { takes_from_a_gpu(false); }
CASE(taken_in_time) { takes_from_a_gpu(true); }
// A fill of managed memory is complete when the call returns, unless it is asynchronous.
static void fills_managed(bool is_right) {
    int* x;
    cudaStream_t a;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaMallocManaged(&x, bytes);
    if (is_right) cudaMemset(x, 0, bytes);
    else cudaMemsetAsync(x, 0, bytes);  // expect filled_too_late: data-race
    fill_with<<<1, n, 0, a>>>(x, 7);  // expect filled_too_late: data-race
    cudaDeviceSynchronize();
    if (is_right) printf("%d\n", x[5]);
    cudaFree(x);
}
CASE(filled_too_late) { fills_managed(false); }
CASE(filled_in_time) { fills_managed(true); }
// Two threads of the host each launch and wait; by an order of the host alone, the first kernel may still run.
static void threads(bool is_right) {
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    int *x, last;
    cudaMalloc(&x, bytes);
    std::atomic<bool> is_issued{false};
    std::thread one([&] {
        fill_with<<<1, n, 0, a>>>(x, 1);  // expect two_threads: data-race
        if (!is_right) is_issued = true;
        cudaStreamSynchronize(a);
        is_issued = true;
    });
    std::thread other([&] {
        while (!is_issued) {}
        fill_with<<<1, n, 0, b>>>(x, 2);  // expect two_threads: data-race
        cudaStreamSynchronize(b);
    });
    one.join(), other.join();
    cudaMemcpy(&last, x + n - 1, sizeof last, cudaMemcpyDefault);
    if (is_right) printf("%d\n", last);
    cudaFree(x);
}
CASE(two_threads) { threads(false); }
CASE(two_threads_right) { threads(true); }
// Rows that are contiguous on one side only, in an operation that runs alone.
CASE(rows_right) {
    int pageable[32], *pinned, *rows;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMallocHost(&pinned, sizeof pageable);
    cudaMalloc(&rows, 2 * sizeof pageable);
    for (int i = 0; i < 32; i++) pageable[i] = pinned[i] = i;
    for (int* from : {pageable, pinned}) {
        cudaMemset(rows, 0, 2 * sizeof pageable);
        cudaMemcpy2DAsync(rows, 64, from, 32, 32, 4, cudaMemcpyHostToDevice, stream);
        cudaStreamSynchronize(stream);
        cudaMemset(pinned, 0, sizeof pageable);
        cudaMemcpy2DAsync(pinned, 32, rows, 64, 32, 4, cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
        printf("%d %d\n", pinned[9], pinned[31]);
    }
    cudaFree(rows);
    cudaFreeHost(pinned);
}

int main(int, char** words) {
#define RUN(name) if (!strcmp(words[1], #name)) name();
    RUN(two_kernels) RUN(two_kernels_right) RUN(copy_too_early) RUN(copy_right) RUN(two_copies) RUN(default_stream)
    RUN(two_gpus) RUN(no_peer_access) RUN(other_gpu) RUN(other_gpu_right) RUN(exchange_right)
    RUN(graph) RUN(graph_right) RUN(captured) RUN(captured_right) RUN(dependent) RUN(dependent_right)
    RUN(context) RUN(context_right) RUN(map) RUN(map_right) RUN(multicast) RUN(multicast_right)
    RUN(handle) RUN(handle_right) RUN(large) RUN(large_right) RUN(large_read) RUN(large_read_right)
    RUN(event) RUN(event_right) RUN(stream_of_another) RUN(event_of_another) RUN(graph_memory) RUN(graph_memory_right)
    RUN(used_too_early) RUN(freed_too_early) RUN(used_in_time)
    RUN(read_at_once) RUN(read_at_once_right) RUN(read_by_a_stream)
    RUN(ask) RUN(ask_right) RUN(ask_a_thread) RUN(ask_a_thread_right) RUN(ask_a_kernel_right)
    RUN(rows_right) RUN(two_threads) RUN(two_threads_right) RUN(taken_too_early) RUN(taken_in_time)
    RUN(filled_too_late) RUN(filled_in_time)
}
