// Programs with a mistake each, and their right twins: `mistakes NAME` runs one. A comment `expect: CODE` is on the line
// that a finding names; what has no such comment must be silent.
#include <cuda.h>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

constexpr int n = 256;
constexpr size_t bytes = n * sizeof(int);

__device__ int table[16];

__global__ void fill(int* x, int value, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] = value;
}

__global__ void read_even(const char* x, int* y) { y[threadIdx.x] = x[2 * threadIdx.x]; }

__global__ void fill_unchecked(int* x, int value) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = value;  // expect out_of_bounds_kernel: out-of-bounds  // expect freed_in_kernel: use-after-free
}

__global__ void fill_twice(
    int* x,
    int* y,
    int value
) {
    x[threadIdx.x] = value;
    y[threadIdx.x] = value;  // expect host_pointer: out-of-bounds
}

__global__ void reverse(int* x) {
    __shared__ int tile[n];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[n - 1 - threadIdx.x];  // expect race: data-race
}

__global__ void reverse_right(int* x) {
    __shared__ int tile[n];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[n - 1 - threadIdx.x];
}

__global__ void wide(int* x) {
    extern __shared__ int more[];
    more[threadIdx.x] = 1;
    x[threadIdx.x] = more[threadIdx.x];
}

__global__ void signal_host(volatile int* flag) { *flag = 1; }

__global__ void count(int* x, bool is_atomic) {
    if (is_atomic) atomicAdd(x, 1);
    else *x += 1;  // expect unsynchronized_count: data-race
}

__global__ void positive(const int* x) {
    assert(x[threadIdx.x] >= 0);  // expect failed_assert: assertion-failed
}

__global__ void shift(int* x, int by) {
    __shared__ int tile[n];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[threadIdx.x + by];  // expect shared_beyond: out-of-bounds
}

__global__ void pairs(const int* x, int* y, int from) {
    *(int2*)(y + 2 * threadIdx.x) = *(const int2*)(x + from + 2 * threadIdx.x);  // expect misaligned_pair: misaligned-access
}

__global__ void sum_of_some(int* x, int count, bool is_early) {
    __shared__ int tile[n];
    if (is_early && threadIdx.x >= count) return;
    tile[threadIdx.x] = threadIdx.x < count ? x[threadIdx.x] : 0;
    __syncthreads();
    x[threadIdx.x] = tile[n - 1 - threadIdx.x];  // expect early_return: uninitialized-read
}

static int* device() {
    int* d;
    cudaMalloc(&d, bytes);
    return d;
}

static int host[2 * n];

void copy_too_large() {
    int* d = device();
    cudaMemcpy(d, host, bytes + 4, cudaMemcpyHostToDevice);  // expect copy_too_large: bad-copy
    cudaFree(d);
}
void copy_elements_for_bytes() {
    int* d = device();
    cudaMemcpy(host, d, bytes * sizeof(int), cudaMemcpyDeviceToHost);  // expect copy_elements_for_bytes: bad-copy
    cudaFree(d);
}
void copy_right() {
    int* d = device();
    cudaMemcpy(d, host, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(host, d + 16, bytes - 64, cudaMemcpyDeviceToHost);
    cudaMemcpy(host, d, bytes, cudaMemcpyDefault);
    cudaFree(d);
}
void memset_too_large() {
    int* d = device();
    cudaMemset(d + 1, 0, bytes);  // expect memset_too_large: bad-copy
    cudaFree(d);
}
void rows_too_many() {
    int* d;
    size_t pitch;
    cudaMallocPitch(&d, &pitch, 100, 4);
    cudaMemcpy2D(d, pitch, host, 100, 100, 5, cudaMemcpyHostToDevice);  // expect rows_too_many: bad-copy
    cudaFree(d);
}
void rows_right() {
    int* d;
    size_t pitch;
    cudaMallocPitch(&d, &pitch, 100, 4);
    cudaMemcpy2D(d, pitch, host, 100, 100, 4, cudaMemcpyHostToDevice);
    cudaMemset2D(d, pitch, 7, 100, 4);
    cudaFree(d);
}
void symbol_too_large() {
    cudaMemcpyToSymbol(table, host, sizeof(table) + 4);  // expect symbol_too_large: bad-copy
}
void symbol_right() {
    int found[16] = {};
    for (int i = 0; i < 16; i++) host[i] = i;
    cudaMemcpyToSymbol(table, host, sizeof(table));
    cudaMemcpyFromSymbol(found, table, 8, 8);
    printf("%d %d\n", found[0], found[1]);
}
void wrong_direction() {
    int* d = device();
    cudaMemcpy(host, d, bytes, cudaMemcpyHostToDevice);  // expect wrong_direction: wrong-direction
    cudaFree(d);
}
void host_for_device() {
    cudaMemcpy(host + n, host, bytes, cudaMemcpyHostToDevice);  // expect host_for_device: wrong-direction
}
void symbol_by_name() {
    for (int i = 0; i < 16; i++) host[i] = i;
    cudaMemcpy(table, host, sizeof(table), cudaMemcpyDefault);  // expect symbol_by_name: wrong-direction
    cudaMemcpy((char*)table + 8, host, 4, cudaMemcpyHostToDevice);  // expect symbol_by_name: wrong-direction
}
void too_many_blocks() {
    int* d = device();
    int value = 1, count = n;
    void* arguments[] = {&d, &value, &count};
    cudaLaunchCooperativeKernel((void*)fill, 1 << 20, n, arguments, 0, 0);
    cudaFree(d);
}
void copy_after_free() {
    int* d = device();
    cudaFree(d);
    cudaMemcpy(host, d, bytes, cudaMemcpyDeviceToHost);  // expect copy_after_free: use-after-free
}
void freed_in_kernel() {
    int* d = device();
    cudaFree(d);
    fill_unchecked<<<1, n>>>(d, 1);
    cudaDeviceSynchronize();
}
void double_free() {
    int* d = device();
    cudaFree(d);
    cudaFree(d);  // expect double_free: double-free
}
void free_inside() {
    int* d = device();
    cudaFree(d + 64);  // expect free_inside: bad-free
    cudaFree(d);
}
void free_of_pinned() {
    int* p;
    cudaMallocHost(&p, bytes);
    cudaFree(p);  // expect free_of_pinned: bad-free
    cudaFreeHost(p);
}
void host_access() {
    int* d = device();
    printf("%d\n", d[0]);  // expect host_access: host-access
}
void null_access() {
    volatile int* nothing = nullptr;  // before the first call of CUDA
    *nothing = 1;  // expect null_access: program-crash
}
void aborted() {
    cudaFree(0);
    abort();  // expect aborted: program-crash
}
void managed_unsynchronized() {
    int* m;
    cudaMallocManaged(&m, bytes);
    fill<<<1, n>>>(m, 3, n);
    printf("%d\n", m[5]);  // expect managed_unsynchronized: missing-synchronize
    cudaDeviceSynchronize();
    cudaFree(m);
}
void managed_right() {
    int* m;
    cudaMallocManaged(&m, 2 * bytes);
    for (int i = 0; i < 2 * n; i++) m[i] = i;
    fill<<<1, n>>>(m, 3, n);
    for (int i = n; i < 2 * n; i++) m[i] += 1;  // what the kernel does not touch
    cudaDeviceSynchronize();
    printf("%d %d\n", m[5], m[n]);
    cudaFree(m);
}
// The host writes what a kernel reads, which reads every other byte; by a call of the system, too.
static void overwrites(bool is_mapped, int at, bool waits) {
    char* m;
    int* d = device();
    if (is_mapped) cudaHostAlloc(&m, 2 * n, cudaHostAllocMapped);
    else cudaMallocManaged(&m, 2 * n);
    read_even<<<1, n>>>(m, d);
    m[at ^ 1] = 1;
    if (waits) cudaDeviceSynchronize();
    m[at] = 1;  // expect overwritten: missing-synchronize  // expect overwritten_mapped: missing-synchronize
    cudaDeviceSynchronize();
    is_mapped ? cudaFreeHost(m) : cudaFree(m);
    cudaFree(d);
}
void overwritten() { overwrites(false, 6, false); }
void overwritten_mapped() { overwrites(true, 2 * n - 2, false); }
void overwritten_right() { overwrites(false, 6, true); }
void event_unsynchronized() {
    int* m;
    cudaEvent_t event;
    cudaMallocManaged(&m, bytes);
    cudaEventCreate(&event);
    fill<<<1, n>>>(m, 3, n);
    cudaEventRecord(event);
    m[7]++;  // expect event_unsynchronized: missing-synchronize
    cudaEventSynchronize(event);
    cudaFree(m);
}
void event_right() {
    int* m;
    cudaEvent_t event;
    cudaStream_t one, other;
    cudaMallocManaged(&m, bytes);
    cudaEventCreate(&event);
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreate(&other);
    fill<<<1, n, 0, one>>>(m, 3, n);
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(other, event);
    cudaStreamSynchronize(other);
    printf("%d\n", m[7]);
    cudaFree(m);
}
void other_stream() {
    int* m;
    cudaStream_t one;
    cudaMallocManaged(&m, bytes);
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    fill<<<1, n, 0, one>>>(m, 3, n);
    cudaStreamSynchronize(0);
    printf("%d\n", m[7]);  // expect other_stream: missing-synchronize
    cudaFree(m);
}
void pinned_unsynchronized() {
    int *p, *d = device();
    cudaMallocHost(&p, bytes);
    fill<<<1, n>>>(d, 3, n);
    cudaMemcpyAsync(p, d, bytes, cudaMemcpyDeviceToHost);
    printf("%d\n", p[3]);  // expect pinned_unsynchronized: missing-synchronize
    cudaFreeHost(p);
    cudaFree(d);
}
void pinned_source() {
    int *p, *d = device();
    cudaMallocHost(&p, bytes);
    memset(p, 1, bytes);
    cudaMemcpyAsync(d, p, bytes, cudaMemcpyHostToDevice);
    if (p[4] == 0) return;  // reading is right
    p[4] = 0;  // expect pinned_source: missing-synchronize
    cudaFreeHost(p);
    cudaFree(d);
}
void pageable_source() {  // which is staged at once, with no wait for what is on the stream
    int *m, *d = device(), p[n] = {};
    cudaMallocManaged(&m, bytes);
    fill<<<1, n>>>(m, 3, n);
    cudaMemcpyAsync(d, p, bytes, cudaMemcpyHostToDevice);
    p[4] = 1;
    printf("%d\n", m[5]);  // expect pageable_source: missing-synchronize
    cudaFree(m);
    cudaFree(d);
}
void pageable_target() {  // for which the host waits
    int *m, *d = device(), p[n] = {};
    cudaMallocManaged(&m, bytes);
    fill<<<1, n>>>(m, 3, n);
    cudaMemcpyAsync(p, d, bytes, cudaMemcpyDeviceToHost);
    printf("%d\n", m[5]);
    cudaFree(m);
    cudaFree(d);
}
void file_unsynchronized() {
    int *p, *d = device();
    FILE* file = tmpfile();
    cudaMallocHost(&p, bytes);
    cudaMemcpyAsync(p, d, bytes, cudaMemcpyDeviceToHost);
    fwrite(p, 4, n, file);  // expect file_unsynchronized: missing-synchronize
    cudaFreeHost(p);
    cudaFree(d);
}
void file_right() {  // two halves of a buffer in turns, with a border within a page and a word
    char *p, *d;
    FILE* file = tmpfile();
    setbuf(file, nullptr);
    cudaMalloc(&d, 2 * 10001);
    cudaMallocHost(&p, 2 * 10001);
    cudaMemcpyAsync(p + 10001, d, 10001, cudaMemcpyDeviceToHost);
    printf("%zu ", fwrite(p, 1, 10001, file));
    cudaStreamSynchronize(0);
    rewind(file);
    cudaMemcpyAsync(d, p + 10001, 10001, cudaMemcpyHostToDevice);
    printf("%zu\n", fread(p, 1, 10001, file));
    p[10000] = 1;
    cudaStreamSynchronize(0);
    cudaFreeHost(p);
    cudaFree(d);
}
void pinned_right() {
    int *p, *d = device();
    cudaMallocHost(&p, 2 * bytes);
    fill<<<1, n>>>(d, 3, n);
    cudaMemcpyAsync(p, d, bytes, cudaMemcpyDeviceToHost);
    p[n + 5] = 1;  // beside what is copied
    cudaStreamSynchronize(0);
    printf("%d\n", p[3]);
    cudaFreeHost(p);
    cudaFree(d);
}
void polled() {
    volatile int* flag;
    cudaMallocHost((void**)&flag, 4);
    *flag = 0;
    signal_host<<<1, 1>>>(flag);
    while (!*flag) {
    }
    cudaFreeHost((void*)flag);
}
void large_block() {
    int* d = device();
    fill<<<1, 2048>>>(d, 1, n);  // expect large_block: unchecked-error
    cudaFree(d);
}
void large_shared() {
    int* d = device();
    wide<<<1, n, 100 * 1024>>>(d);  // expect large_shared: unchecked-error
    cudaFree(d);
}
void checked_errors() {
    int* d = device();
    fill<<<1, 2048>>>(d, 1, n);
    printf("%d ", cudaGetLastError());
    fill<<<0, 1>>>(d, 1, n);
    printf("%d ", cudaGetLastError());
    wide<<<1, n, 100 * 1024>>>(d);
    printf("%s ", cudaGetErrorName(cudaPeekAtLastError()));
    printf("%d ", cudaGetLastError());
    printf("%d ", cudaGetLastError());
    cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024);
    wide<<<1, n, 100 * 1024>>>(d);
    printf("%d ", cudaGetLastError());
    printf("%d\n", cudaDeviceSynchronize());
    cudaFree(d);
}
void out_of_bounds_kernel() {
    int* d = device();
    fill_unchecked<<<2, n>>>(d, 1);
    printf("%d ", cudaGetLastError());
    printf("%d ", cudaDeviceSynchronize());
    printf("%d\n", cudaGetLastError());
}
void host_pointer() {
    int* d = device();
    int local[n];
    fill_twice<<<1, n>>>(d, local, 1);
    cudaFree(d);
}
void race() {
    int* d = device();
    cudaMemset(d, 0, bytes);
    reverse<<<1, n>>>(d);
    cudaFree(d);
}
void race_right() {
    int* d = device();
    cudaMemset(d, 0, bytes);
    reverse_right<<<1, n>>>(d);
    cudaFree(d);
}
void sleeping() {
    cudaFree(0);
    printf("%d\n", getpid());
    fflush(stdout);
    sleep(60);
}
void too_large() {
    int* d;
    printf("%d ", cudaMalloc(&d, 130ull << 30));  // a GPU of 141 GB has it
    printf("%d\n", cudaMalloc(&d, 900ull << 30));  // none has it
}
void leak() {
    int* d = device();
    cudaMemset(d, 0, bytes);
}

void event_before() {
    int* m;
    cudaEvent_t event;
    cudaMallocManaged(&m, bytes);
    cudaEventCreate(&event);
    cudaEventRecord(event);
    fill<<<1, n>>>(m, 3, n);
    cudaEventSynchronize(event);
    printf("%d\n", m[7]);  // expect event_before: missing-synchronize
    cudaFree(m);
}
void copy_from_offset() {
    int* d = device();
    cudaMemcpy(host, d + 1, bytes, cudaMemcpyDeviceToHost);  // expect copy_from_offset: bad-copy
    cudaFree(d);
}
void symbol_offset() {
    cudaMemcpyFromSymbol(host, table, 8, 60);  // expect symbol_offset: bad-copy
}
void free_of_malloc() {
    int* h = (int*)malloc(bytes);
    cudaFree(h);  // expect free_of_malloc: bad-free
    free(h);
}
void memset_of_host() {
    cudaMemset(host, 0, bytes);  // expect memset_of_host: wrong-direction
}
void destroyed_stream() {
    int* d = device();
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    fill<<<1, n, 0, stream>>>(d, 1, n);
    cudaStreamDestroy(stream);
    fill<<<1, n, 0, stream>>>(d, 1, n);  // expect destroyed_stream: unchecked-error
    cudaFree(d);
}
void large_grid() {
    int* d = device();
    fill<<<dim3(1, 70000), 1>>>(d, 1, n);  // expect large_grid: unchecked-error
    cudaFree(d);
}
void unloaded_module() {
    CUmodule module = (CUmodule)0x1234;  // as what a variable on the stack holds
    CUfunction function = nullptr;
    cuModuleLoad(&module, "/is/not/there.cubin");
    cuModuleGetFunction(&function, module, "fill");  // expect unloaded_module: unchecked-error
    void* none[] = {nullptr};
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, none, 0);  // expect unloaded_module: unchecked-error
}
void managed_after_free() {
    int* m;
    cudaMallocManaged(&m, bytes);
    cudaFree(m);
    m[3] = 1;  // expect managed_after_free: use-after-free
}
void unsynchronized_count() {
    int* d = device();
    cudaMemset(d, 0, bytes);
    count<<<1, n>>>(d, false);
    cudaFree(d);
}
void failed_assert() {
    int* d = device();
    cudaMemset(d, 255, bytes);
    positive<<<1, n>>>(d);
    printf("%d\n", cudaDeviceSynchronize());
}
void shared_beyond() {
    int* d = device();
    cudaMemset(d, 0, bytes);
    shift<<<1, n>>>(d, 4);
    cudaDeviceSynchronize();
}
void misaligned_pair() {
    int *d = device(), *other = device();
    cudaMemset(d, 0, bytes);
    pairs<<<1, n / 4>>>(d, other, 1);
    printf("%d\n", cudaDeviceSynchronize());
}
void early_return() {
    int* d = device();
    cudaMemset(d, 0, bytes);
    sum_of_some<<<1, n>>>(d, 100, true);
    cudaFree(d);
}
void kernels_right() {
    int *d = device(), *other = device();
    cudaMemset(d, 0, bytes);
    count<<<2, n>>>(d, true);
    positive<<<1, n>>>(d);
    shift<<<1, n>>>(d, 0);
    pairs<<<1, n / 4>>>(d, other, 2);
    sum_of_some<<<1, n>>>(d, 100, false);
    cudaMemcpy(host, d, bytes, cudaMemcpyDeviceToHost);
    printf("%d %d\n", host[0], host[n - 1]);
    cudaFree(d);
    cudaFree(other);
}
// A buffer goes to the device, and what a kernel makes of it comes back, all on a stream that the host does not wait for.
static int *there_and_back(cudaStream_t stream) {
    int *p, *d = device();
    cudaMallocHost(&p, bytes);
    cudaMemcpyAsync(d, p, bytes, cudaMemcpyHostToDevice, stream);
    fill<<<1, n, 0, stream>>>(d, 3, n);
    cudaMemcpyAsync(p, d, bytes, cudaMemcpyDeviceToHost, stream);
    return p;
}
void there_and_back() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int* p = there_and_back(stream);
    printf("%d\n", p[3]);  // expect there_and_back: missing-synchronize
    cudaFreeHost(p);
}
void there_and_back_right() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int* p = there_and_back(stream);
    cudaStreamSynchronize(stream);
    printf("%d\n", p[3]);
    cudaFreeHost(p);
}
// The time of a kernel, with and without waiting for it; a copy to the host waits, too.
static void timed(int how) {
    int *d = device(), copied[n];
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaEventRecord(start);
    fill<<<1, n>>>(d, 3, n);
    cudaEventRecord(stop);
    if (how == 1) cudaEventSynchronize(stop);
    if (how == 2) cudaMemcpy(copied, d, bytes, cudaMemcpyDeviceToHost);
    float time = -1;
    cudaEventElapsedTime(&time, start, stop);  // expect timed_early: missing-synchronize
    printf("%d\n", time > 0);
    cudaFree(d);
}
void timed_early() { timed(0); }
void timed_right() { timed(1); }
void timed_after_copy() { timed(2); }

#define CASE(name) {#name, name}
int main(int argc, char** argv) {
    static const struct { const char* name; void (*run)(); } cases[] = {
        CASE(copy_too_large), CASE(copy_elements_for_bytes), CASE(copy_right), CASE(memset_too_large), CASE(rows_too_many),
        CASE(rows_right), CASE(symbol_too_large), CASE(symbol_right), CASE(wrong_direction), CASE(host_for_device),
        CASE(copy_after_free), CASE(freed_in_kernel), CASE(double_free), CASE(free_inside), CASE(free_of_pinned),
        CASE(host_access), CASE(null_access), CASE(aborted), CASE(managed_unsynchronized), CASE(managed_right), CASE(overwritten), CASE(overwritten_mapped), CASE(overwritten_right), CASE(event_unsynchronized),
        CASE(event_right), CASE(other_stream), CASE(pinned_unsynchronized), CASE(pinned_source), CASE(pageable_source), CASE(pageable_target), CASE(file_unsynchronized), CASE(file_right), CASE(pinned_right),
        CASE(there_and_back), CASE(there_and_back_right), CASE(timed_early), CASE(timed_right), CASE(timed_after_copy),
        CASE(polled), CASE(large_block), CASE(large_shared), CASE(checked_errors), CASE(out_of_bounds_kernel), CASE(host_pointer),
        CASE(race), CASE(symbol_by_name), CASE(too_many_blocks),
        CASE(race_right), CASE(leak), CASE(too_large), CASE(event_before), CASE(copy_from_offset), CASE(symbol_offset), CASE(free_of_malloc),
        CASE(memset_of_host), CASE(destroyed_stream), CASE(large_grid), CASE(unloaded_module), CASE(managed_after_free), CASE(unsynchronized_count),
        CASE(failed_assert), CASE(shared_beyond), CASE(misaligned_pair), CASE(early_return), CASE(kernels_right),
    };
    for (auto& one : cases)
        if (argc > 1 && !strcmp(one.name, argv[1])) one.run();
    if (argc > 1 && !strcmp(argv[1], "sleeping")) sleeping();
    return 0;
}
