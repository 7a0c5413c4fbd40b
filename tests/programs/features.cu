// A program that uses much of the CUDA runtime, each part with an answer that is known: `features NAME` runs one.
#include <cstdio>
#include <cstring>
#include <cuda.h>

constexpr int n = 128;

#define CHECK(call) \
    do { \
        cudaError_t error = (call); \
        if (error) printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
    } while (0)

__constant__ float factor = 2.0f;
__device__ float* pointer;
__managed__ int total = 5;

__global__ void scale(float* x, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] *= factor;
}
__global__ void through_variable() { pointer[threadIdx.x] += 1.0f; }
__global__ void add_total() { atomicAdd(&total, 1); }
__global__ void speak() { printf("thread %d says %s\n", threadIdx.x, "hello"); }
__global__ void cluster_rank(unsigned* x) { x[blockIdx.x] = __clusterRelativeBlockRank(); }
__global__ void sample(cudaTextureObject_t texture, float* x) { x[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, 1.5f); }
__global__ void paint(cudaSurfaceObject_t surface) { surf2Dwrite(float(threadIdx.x), surface, threadIdx.x * 4, 1); }

void memory() {
    float host[n], back[n], *d;
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMalloc(&d, sizeof host));
    CHECK(cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice));
    scale<<<1, n>>>(d, n);
    float other = 10.0f;
    CHECK(cudaMemcpyToSymbol(factor, &other, sizeof other));
    scale<<<1, n>>>(d, n);
    CHECK(cudaMemcpyToSymbol(pointer, &d, sizeof d));
    through_variable<<<1, n>>>();
    CHECK(cudaMemcpy(back, d, sizeof back, cudaMemcpyDeviceToHost));
    size_t size;
    CHECK(cudaGetSymbolSize(&size, pointer));
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, d));
    printf("%g %g %zu %d\n", back[1], back[n - 1], size, attributes.type == cudaMemoryTypeDevice);
    CHECK(cudaFree(d));
}
void managed() {
    add_total<<<2, 32>>>();
    CHECK(cudaDeviceSynchronize());
    total += 1;
    add_total<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    printf("%d\n", total);
}
void output() {
    speak<<<1, 2>>>();
    printf("before\n");
    CHECK(cudaDeviceSynchronize());
    printf("after\n");
}
void clusters() {
    unsigned *x, host[4];
    CHECK(cudaMalloc(&x, 16));
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = 4, config.blockDim = 1, config.attrs = &attribute, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, cluster_rank, x));
    CHECK(cudaMemcpy(host, x, 16, cudaMemcpyDeviceToHost));
    printf("%u %u %u %u\n", host[0], host[1], host[2], host[3]);
    CHECK(cudaFree(x));
}
void graphs() {
    float *d, *pinned;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaMalloc(&d, 4 * n));
    CHECK(cudaMallocHost(&pinned, 4 * n));
    CHECK(cudaStreamCreate(&stream));
    for (int i = 0; i < n; i++) pinned[i] = 1;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(d, pinned, 4 * n, cudaMemcpyHostToDevice, stream));
    scale<<<1, n, 0, stream>>>(d, n);
    CHECK(cudaMemcpyAsync(pinned, d, 4 * n, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    size_t nodes;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    printf("%g %zu\n", pinned[5], nodes);
    CHECK(cudaFree(d));
    CHECK(cudaFreeHost(pinned));
}
void textures() {
    float texels[4 * 8], found[8], *d;
    for (int i = 0; i < 32; i++) texels[i] = i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &format, 8, 4, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, 32, 32, 4, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    CHECK(cudaMalloc(&d, 32));
    sample<<<1, 8>>>(texture, d);
    CHECK(cudaMemcpy(found, d, 32, cudaMemcpyDeviceToHost));
    printf("%g %g ", found[0], found[7]);
    paint<<<1, 8>>>(surface);
    sample<<<1, 8>>>(texture, d);
    CHECK(cudaMemcpy(found, d, 32, cudaMemcpyDeviceToHost));
    printf("%g %g\n", found[0], found[7]);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(d));
}
void properties() {
    cudaDeviceProp all;
    int count, sms, blocks, grid, block;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaGetDeviceProperties(&all, 0));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 1024, 0));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale, 0, 0));
    printf("%d %d.%d %d %d %d %s\n", count, all.major, all.minor, sms, blocks, block, cudaGetErrorName(cudaSetDevice(1)));
}
void registered() {
    float* own = (float*)malloc(4 * n);
    for (int i = 0; i < n; i++) own[i] = 3;
    CHECK(cudaHostRegister(own, 4 * n, cudaHostRegisterDefault));
    scale<<<1, n>>>(own, n);
    CHECK(cudaDeviceSynchronize());
    printf("%g\n", own[n - 1]);
}
template <class... T>
CUresult by_driver(const char* name, T... arguments) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult how;
    CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how));
    return ((CUresult(*)(T...))found)(arguments...);
}
void driver() {
    int count = 0, *d, host = 0;
    by_driver("cuDeviceGetCount", &count);
    CHECK(cudaMalloc(&d, 4));
    char* image = strdup(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry store(.param .u64 x)\n"
                         "{ .reg .b64 %a; ld.param.u64 %a, [x]; st.global.u32 [%a], 42; ret; }\n");
    CUmodule module;
    CUfunction function;
    CUresult loaded = by_driver("cuModuleLoadData", &module, (const void*)image);
    memset(image, 0xFF, strlen(image)), free(image);  // it is the driver's no longer
    by_driver("cuModuleGetFunction", &function, module, "store");
    void* arguments[] = {&d};
    by_driver("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, (CUstream)0, &arguments[0], (void**)0);
    CHECK(cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    printf("%d %d %d\n", count, loaded, host);
}
void driver_linking() {
    const char* parts[] = {".version 8.0\n.target sm_90\n.address_size 64\n.visible .func (.reg .u32 r) answer() { mov.u32 r, 42; ret; }\n",
                           ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.reg .u32 r) answer();\n"
                           ".visible .entry store(.param .u64 x)\n"
                           "{ .reg .b64 %a; .reg .u32 %v; ld.param.u64 %a, [x]; call (%v), answer, (); st.global.u32 [%a], %v; ret; }\n"};
    CUlinkState state;
    cuLinkCreate(0, nullptr, nullptr, &state);
    for (auto part : parts) cuLinkAddData(state, CU_JIT_INPUT_PTX, (void*)part, strlen(part) + 1, "part", 0, nullptr, nullptr);
    void* image;
    size_t size;
    CUmodule module;
    CUfunction function;
    cuLinkComplete(state, &image, &size), cuModuleLoadData(&module, image), cuLinkDestroy(state);
    cuModuleGetFunction(&function, module, "store");
    CUdeviceptr x;
    cuMemAlloc(&x, 4);
    void* arguments[] = {&x};
    int host = 0;
    CUresult launched = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0);
    cuMemcpyDtoH(&host, x, 4), cuMemFree(x);
    printf("%d %d\n", launched, host);
}
__global__ void sample_bytes(cudaTextureObject_t texture, float* out) {
    out[threadIdx.y * 8 + threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}
void driver_arrays() {  // an array of 8-bit integers, which a texture reads as fractions of 255
    unsigned char texels[4][8], part[2][4];
    for (int i = 0; i < 32; i++) texels[i / 8][i % 8] = i * 8;
    CUDA_ARRAY_DESCRIPTOR shape = {8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    CUarray array;
    cuArrayCreate(&array, &shape), cuArrayGetDescriptor(&shape, array);
    CUDA_MEMCPY2D there = {}, back = {};
    there.srcMemoryType = CU_MEMORYTYPE_HOST, there.srcHost = texels, there.srcPitch = 8;
    there.dstMemoryType = CU_MEMORYTYPE_ARRAY, there.dstArray = array, there.WidthInBytes = 8, there.Height = 4;
    back.srcMemoryType = CU_MEMORYTYPE_ARRAY, back.srcArray = array, back.srcXInBytes = 2, back.srcY = 1;
    back.dstMemoryType = CU_MEMORYTYPE_HOST, back.dstHost = part, back.dstPitch = 4, back.WidthInBytes = 4, back.Height = 2;
    cuMemcpy2D(&there), cuMemcpy2DUnaligned(&back);
    CUDA_RESOURCE_DESC from = {};
    from.resType = CU_RESOURCE_TYPE_ARRAY, from.res.array.hArray = array;
    CUDA_TEXTURE_DESC how = {};
    CUtexObject texture;
    CUresult made = cuTexObjectCreate(&texture, &from, &how, nullptr);
    CUdeviceptr out;
    cuMemAlloc(&out, 128);
    sample_bytes<<<1, dim3(8, 4)>>>(texture, (float*)out);
    float got[32];
    cuMemcpyDtoH(got, out, 128), cuMemFree(out);
    cuTexObjectDestroy(texture), cuArrayDestroy(array);
    printf("%d %g %g %d %d %zu %d\n", made, got[1] * 255, got[31] * 255, part[0][0], part[1][3], shape.Height, shape.Format);
}
void driver_streams() {
    int least, greatest, priority, calls = 0, value = 0;
    unsigned type = 0;
    const char* name;
    CUdeviceptr x, base;
    size_t size;
    CUstream stream;
    CUgraph graph;
    CUgraphExec ready;
    cuMemAlloc(&x, 64), cuMemGetAddressRange(&base, &size, x + 12);
    cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x);
    cuCtxGetStreamPriorityRange(&least, &greatest), cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest);
    cuStreamGetPriority(stream, &priority);
    cuLaunchHostFunc(stream, [](void* data) { *(int*)data += 10; }, &calls), cuStreamSynchronize(stream);
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), cuMemsetD16Async(x, 3, 32, stream);
    cuStreamEndCapture(stream, &graph), cuGraphInstantiate(&ready, graph, 0), cuGraphLaunch(ready, stream);
    cuStreamSynchronize(stream), cuMemcpyDtoH(&value, x + 8, 4);
    cuGraphExecDestroy(ready), cuGraphDestroy(graph), cuStreamDestroy(stream), cuMemFree(x);
    cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name);
    printf("%d %zu %u %d %d %x %s\n", base == x, size, type, priority == greatest, calls, value, name);
}
void unsupported() {
    cudaMipmappedArray_t levels;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(8, 8, 0), 2));
    printf("not reached\n");
}

#define CASE(name) {#name, name}
int main(int argc, char** argv) {
    static const struct { const char* name; void (*run)(); } cases[] = {
        CASE(memory), CASE(managed), CASE(output), CASE(clusters), CASE(graphs), CASE(textures),
        CASE(properties), CASE(registered), CASE(driver), CASE(driver_arrays),
        CASE(driver_streams), CASE(driver_linking), CASE(unsupported),
    };
    for (auto& one : cases)
        if (argc > 1 && !strcmp(one.name, argv[1])) one.run();
    return argc > 2 ? 7 : 0;
}
