// The driver API, over what the runtime has: each GPU has one context, modules and functions the same as those of the runtime.
#include "runtime.h"

void *ours(const char *name);
cudaError_t run_on(const Operation *operation, cudaStream_t stream);

static CUresult result(cudaError_t error) {  // the numbers agree from 100 on
  switch (error) {
    case cudaSuccess: return CUDA_SUCCESS;
    case cudaErrorMemoryAllocation: return CUDA_ERROR_OUT_OF_MEMORY;
    case cudaErrorInvalidSymbol: case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidConfiguration: return CUDA_ERROR_INVALID_VALUE;
    default: return (int)error < 100 ? CUDA_ERROR_INVALID_VALUE : (CUresult)error;
  }
}
#define FROM(call) return result(call)
#define WANTED(condition, error) do { if (!(condition)) return error; } while (0)

API CUresult cuInit(unsigned flags) { start(); return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
API CUresult cuDriverGetVersion(int *into) { *into = CUDA_VERSION; return CUDA_SUCCESS; }
API CUresult cuDeviceGetCount(int *into) { start(); *into = gpu_count(); return CUDA_SUCCESS; }
API CUresult cuDeviceGet(CUdevice *into, int number) {
  start();
  WANTED(number >= 0 && number < gpu_count(), CUDA_ERROR_INVALID_DEVICE);
  *into = number;
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGetName(char *into, int size, CUdevice device) { (void)device; snprintf(into, size, "%s", device_name()); return CUDA_SUCCESS; }
API CUresult cuDeviceTotalMem(size_t *into, CUdevice device) { (void)device; *into = (size_t)device_number("memory") << 20; return CUDA_SUCCESS; }
API CUresult cuDeviceGetAttribute(int *into, CUdevice_attribute attribute, CUdevice device) {
  FROM(cudaDeviceGetAttribute(into, (enum cudaDeviceAttr)attribute, device));  // the numbers are the same
}
API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  (void)device;
  *major = device_number("major"), *minor = device_number("minor");
  return CUDA_SUCCESS;
}
API CUresult cuDeviceGetUuid(CUuuid *into, CUdevice device) { (void)device; memcpy(into->bytes, "ptxlab emulator", 16); return CUDA_SUCCESS; }

// A context of each GPU, which is its primary one as well; a thread has a stack of them, whose last one is current.
static char contexts[MOST_GPUS];
#define CONTEXT(device) ((CUcontext)&contexts[device])
static __thread CUcontext stack[64];
static __thread int depth = -1;  // of the current one; without any, GPU 0 is taken for it

static int device_of(CUcontext context) { return (int)((char *)context - contexts); }
static bool is_context(CUcontext context) { return (char *)context >= contexts && (char *)context < contexts + gpu_count(); }
static void chosen(void) { if (depth >= 0 && stack[depth]) current_gpu = device_of(stack[depth]); }
#undef cuCtxCreate
API CUresult cuCtxPushCurrent(CUcontext context) {
  WANTED(is_context(context), CUDA_ERROR_INVALID_CONTEXT);
  WANTED(depth < 63, CUDA_ERROR_OUT_OF_MEMORY);
  stack[++depth] = context;
  chosen();
  return CUDA_SUCCESS;
}
API CUresult cuCtxPopCurrent(CUcontext *into) {
  WANTED(depth >= 0, CUDA_ERROR_INVALID_CONTEXT);
  if (into) *into = stack[depth];
  depth--;
  chosen();
  return CUDA_SUCCESS;
}
API CUresult cuCtxCreate_v2(CUcontext *into, unsigned flags, CUdevice device) {
  (void)flags;
  start();
  WANTED(device >= 0 && device < gpu_count(), CUDA_ERROR_INVALID_DEVICE);
  *into = CONTEXT(device);
  return cuCtxPushCurrent(*into);
}
API CUresult cuCtxCreate_v4(CUcontext *into, CUctxCreateParams *params, unsigned flags, CUdevice device) { (void)params; return cuCtxCreate_v2(into, flags, device); }
API CUresult cuCtxDestroy(CUcontext context) { return depth >= 0 && stack[depth] == context ? cuCtxPopCurrent(0) : CUDA_SUCCESS; }
API CUresult cuCtxSetCurrent(CUcontext context) {
  WANTED(!context || is_context(context), CUDA_ERROR_INVALID_CONTEXT);
  if (depth < 0) depth = 0;
  stack[depth] = context;
  chosen();
  return CUDA_SUCCESS;
}
API CUresult cuCtxGetCurrent(CUcontext *into) { *into = depth >= 0 ? stack[depth] : CONTEXT(current_gpu); return CUDA_SUCCESS; }
API CUresult cuCtxGetDevice(CUdevice *into) { *into = current_gpu; return CUDA_SUCCESS; }
API CUresult cuCtxSynchronize(void) { FROM(cudaDeviceSynchronize()); }
API CUresult cuDevicePrimaryCtxRetain(CUcontext *into, CUdevice device) {
  start();
  WANTED(device >= 0 && device < gpu_count(), CUDA_ERROR_INVALID_DEVICE);
  *into = CONTEXT(device);
  return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRelease(CUdevice device) { (void)device; return CUDA_SUCCESS; }
API CUresult cuDevicePrimaryCtxReset(CUdevice device) { (void)device; return CUDA_SUCCESS; }
API CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { (void)device, (void)flags; return CUDA_SUCCESS; }
API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active) { (void)device; *flags = 0, *is_active = 1; return CUDA_SUCCESS; }
API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *into) { (void)context; *into = CUDA_VERSION; return CUDA_SUCCESS; }
API CUresult cuCtxGetFlags(unsigned *into) { *into = 0; return CUDA_SUCCESS; }
API CUresult cuCtxGetLimit(size_t *into, CUlimit limit) { FROM(cudaDeviceGetLimit(into, (enum cudaLimit)limit)); }
API CUresult cuCtxSetLimit(CUlimit limit, size_t value) { FROM(cudaDeviceSetLimit((enum cudaLimit)limit, value)); }
API CUresult cuCtxSetCacheConfig(CUfunc_cache config) { FROM(cudaDeviceSetCacheConfig((enum cudaFuncCache)config)); }
API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) { FROM(cudaDeviceGetStreamPriorityRange(least, greatest)); }
API CUresult cuDeviceGetPCIBusId(char *into, int size, CUdevice device) { FROM(cudaDeviceGetPCIBusId(into, size, device)); }
API CUresult cuProfilerStart(void) { FROM(cudaProfilerStart()); }
API CUresult cuProfilerStop(void) { FROM(cudaProfilerStop()); }

API CUresult cuDeviceCanAccessPeer(int *into, CUdevice device, CUdevice peer) { FROM(cudaDeviceCanAccessPeer(into, device, peer)); }
API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  WANTED(is_context(peer), CUDA_ERROR_INVALID_CONTEXT);
  FROM(cudaDeviceEnablePeerAccess(device_of(peer), flags));
}
API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  WANTED(is_context(peer), CUDA_ERROR_INVALID_CONTEXT);
  FROM(cudaDeviceDisablePeerAccess(device_of(peer)));
}
API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size) {
  WANTED(is_context(to_context) && is_context(from_context), CUDA_ERROR_INVALID_CONTEXT);
  FROM(cudaMemcpyPeer((void *)to, device_of(to_context), (void *)from, device_of(from_context), size));
}
API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size, CUstream stream) {
  WANTED(is_context(to_context) && is_context(from_context), CUDA_ERROR_INVALID_CONTEXT);
  FROM(cudaMemcpyPeerAsync((void *)to, device_of(to_context), (void *)from, device_of(from_context), size, stream));
}

#define NAMED(error) case error: *into = #error; return CUDA_SUCCESS
API CUresult cuGetErrorName(CUresult error, const char **into) {
  switch (error) {
    NAMED(CUDA_SUCCESS); NAMED(CUDA_ERROR_INVALID_VALUE); NAMED(CUDA_ERROR_OUT_OF_MEMORY); NAMED(CUDA_ERROR_NOT_INITIALIZED);
    NAMED(CUDA_ERROR_NO_DEVICE); NAMED(CUDA_ERROR_INVALID_DEVICE); NAMED(CUDA_ERROR_INVALID_IMAGE); NAMED(CUDA_ERROR_INVALID_CONTEXT);
    NAMED(CUDA_ERROR_NO_BINARY_FOR_GPU); NAMED(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED); NAMED(CUDA_ERROR_INVALID_PTX);
    NAMED(CUDA_ERROR_FILE_NOT_FOUND); NAMED(CUDA_ERROR_INVALID_HANDLE); NAMED(CUDA_ERROR_NOT_FOUND); NAMED(CUDA_ERROR_NOT_READY);
    NAMED(CUDA_ERROR_ILLEGAL_ADDRESS); NAMED(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES); NAMED(CUDA_ERROR_LAUNCH_TIMEOUT);
    NAMED(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED); NAMED(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED); NAMED(CUDA_ERROR_ASSERT);
    NAMED(CUDA_ERROR_ILLEGAL_INSTRUCTION); NAMED(CUDA_ERROR_MISALIGNED_ADDRESS); NAMED(CUDA_ERROR_LAUNCH_FAILED);
    NAMED(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE); NAMED(CUDA_ERROR_NOT_SUPPORTED); NAMED(CUDA_ERROR_UNKNOWN);
    default: *into = 0; return CUDA_ERROR_INVALID_VALUE;
  }
}
API CUresult cuGetErrorString(CUresult error, const char **into) { *into = cudaGetErrorString((cudaError_t)error); return CUDA_SUCCESS; }

// --- Modules.

static void clear_logs(unsigned count, CUjit_option *options, void **values) {
  for (unsigned i = 0; i < count; i++)
    if ((options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER) && values[i]) *(char *)values[i] = 0;
}
static bool read_file(Bytes *into, const char *name) {
  FILE *file = fopen(name, "rb");
  if (!file) return false;
  char part[65536];
  for (size_t got; (got = fread(part, 1, sizeof part, file));) put(into, part, got);
  fclose(file);
  put(into, "", 1);
  return true;
}
API CUresult cuModuleLoadData(CUmodule *into, const void *image) {
  start();
  *into = (CUmodule)module_of_image(image);
  return result(load((Module *)*into));  // the image may be freed after the call
}
API CUresult cuModuleLoadDataEx(CUmodule *into, const void *image, unsigned count, CUjit_option *options, void **values) {
  clear_logs(count, options, values);
  return cuModuleLoadData(into, image);
}
API CUresult cuModuleLoadFatBinary(CUmodule *into, const void *image) { return cuModuleLoadData(into, image); }
API CUresult cuModuleLoad(CUmodule *into, const char *name) {
  Bytes bytes = {0};
  WANTED(read_file(&bytes, name), CUDA_ERROR_FILE_NOT_FOUND);
  return cuModuleLoadData(into, bytes.data);
}

// Parts that the host links: they are kept as they are, and linked when the module is loaded.
typedef struct { const void **parts; size_t count; } Linking;
API CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *into) {
  clear_logs(count, options, values);
  Linking *made = calloc(1, sizeof *made);
  made->parts = calloc(1, sizeof *made->parts);
  *into = (CUlinkState)made;
  return CUDA_SUCCESS;
}
static CUresult linked(Linking *state, CUjitInputType type, const void *image) {
  if (type == CU_JIT_INPUT_LIBRARY) return CUDA_SUCCESS;  // of the toolkit: what it has, the emulator has
  state->parts = realloc(state->parts, (state->count + 2) * sizeof *state->parts);
  state->parts[state->count++] = image, state->parts[state->count] = 0;
  return CUDA_SUCCESS;
}
API CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned count,
                           CUjit_option *options, void **values) {
  (void)name, (void)count, (void)options, (void)values;
  Bytes bytes = {0};
  put(&bytes, data, size), put(&bytes, "", 1);
  return linked((Linking *)state, type, bytes.data);
}
API CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *name, unsigned count, CUjit_option *options, void **values) {
  (void)count, (void)options, (void)values;
  Bytes bytes = {0};
  WANTED(type == CU_JIT_INPUT_LIBRARY || read_file(&bytes, name), CUDA_ERROR_FILE_NOT_FOUND);
  return linked((Linking *)state, type, bytes.data);
}
API CUresult cuLinkComplete(CUlinkState state, void **into, size_t *size) {
  Linking *one = (Linking *)state;
  WANTED(one->count, CUDA_ERROR_INVALID_VALUE);
  *into = (void *)image_of_parts(one->parts);
  if (size) *size = 24;
  return CUDA_SUCCESS;
}
API CUresult cuLinkDestroy(CUlinkState state) { (void)state; return CUDA_SUCCESS; }
API CUresult cuModuleUnload(CUmodule module) { (void)module; return CUDA_SUCCESS; }
// A handle that no call has made: of a call before that failed, if the program did not ask.
static CUresult no_handle(const char *call, const char *what, const char *maker) {
  char message[200], help[200];
  snprintf(message, sizeof message, "`%s` got a handle that is not a %s, and fails", call, what);
  snprintf(help, sizeof help, "check what `%s` has returned before", maker);
  finding("unchecked-error", message, 0, help);
  return CUDA_ERROR_INVALID_HANDLE;
}
API CUresult cuModuleGetFunction(CUfunction *into, CUmodule module, const char *name) {
  if (!is_module(module)) return no_handle("cuModuleGetFunction", "module", "cuModuleLoad");
  *into = (CUfunction)function_named((Module *)module, name);
  return *into ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
API CUresult cuModuleGetGlobal(CUdeviceptr *into, size_t *size, CUmodule module, const char *name) {
  uint64_t address, bytes;
  if (!is_module(module)) return no_handle("cuModuleGetGlobal", "module", "cuModuleLoad");
  WANTED(variable_named((Module *)module, name, &address, &bytes), CUDA_ERROR_NOT_FOUND);
  if (into) *into = address;
  if (size) *size = bytes;
  return CUDA_SUCCESS;
}
API CUresult cuLibraryLoadData(CUlibrary *into, const void *code, CUjit_option *a, void **b, unsigned c, CUlibraryOption *d, void **e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  return cuModuleLoadData((CUmodule *)into, code);
}
API CUresult cuLibraryGetKernel(CUkernel *into, CUlibrary library, const char *name) { return cuModuleGetFunction((CUfunction *)into, (CUmodule)library, name); }
API CUresult cuLibraryGetGlobal(CUdeviceptr *into, size_t *size, CUlibrary library, const char *name) { return cuModuleGetGlobal(into, size, (CUmodule)library, name); }
API CUresult cuLibraryUnload(CUlibrary library) { (void)library; return CUDA_SUCCESS; }
API CUresult cuKernelGetFunction(CUfunction *into, CUkernel kernel) { *into = (CUfunction)kernel; return CUDA_SUCCESS; }

API CUresult cuFuncGetAttribute(int *into, CUfunction_attribute attribute, CUfunction function) {
  struct cudaFuncAttributes all;
  cudaError_t error = cudaFuncGetAttributes(&all, function);
  if (error) return result(error);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *into = all.maxThreadsPerBlock; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *into = (int)all.sharedSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *into = (int)all.constSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *into = (int)all.localSizeBytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *into = all.numRegs; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *into = all.ptxVersion; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *into = all.binaryVersion; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *into = all.maxDynamicSharedSizeBytes; break;
    default: *into = 0;
  }
  return CUDA_SUCCESS;
}
API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  FROM(cudaFuncSetAttribute(function, (enum cudaFuncAttribute)attribute, value));  // the numbers are the same
}
API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) { (void)function, (void)config; return CUDA_SUCCESS; }
API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *into, CUfunction function, int block, size_t shared) {
  FROM(cudaOccupancyMaxActiveBlocksPerMultiprocessor(into, function, block, shared));
}
API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *into, CUfunction function, int block, size_t shared, unsigned flags) {
  FROM(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(into, function, block, shared, flags));
}
API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *into, CUfunction function, int blocks, int size) {
  FROM(cudaOccupancyAvailableDynamicSMemPerBlock(into, function, blocks, size));
}
API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize call, size_t shared, int limit) {
  Function *one = function_of(function);
  WANTED(one && !know(one), CUDA_ERROR_INVALID_HANDLE);
  int most = limit > 0 && limit < 1024 ? limit : 1024, best = 0;
  if (one->largest_block && one->largest_block < most) most = one->largest_block;
  for (int size = most / 32 * 32; size; size -= 32) {
    int found = occupancy(one, size, call ? call(size) : shared);
    if (found * size > best) best = found * size, *block = size, *grid = found * device_number("sms");
  }
  return CUDA_SUCCESS;
}

// --- Memory.

static CUresult allocated(CUdeviceptr *into, size_t size) { WANTED(size, CUDA_ERROR_INVALID_VALUE); FROM(cudaMalloc((void **)into, size)); }
API CUresult cuMemAlloc(CUdeviceptr *into, size_t size) { return allocated(into, size); }
API CUresult cuMemAllocAsync(CUdeviceptr *into, size_t size, CUstream stream) { (void)stream; return allocated(into, size); }
API CUresult cuMemAllocManaged(CUdeviceptr *into, size_t size, unsigned flags) { FROM(cudaMallocManaged((void **)into, size, flags)); }
API CUresult cuMemAllocPitch(CUdeviceptr *into, size_t *pitch, size_t width, size_t height, unsigned element) {
  (void)element;
  FROM(cudaMallocPitch((void **)into, pitch, width, height));
}
API CUresult cuMemFree(CUdeviceptr pointer) { FROM(cudaFree((void *)pointer)); }
API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) { FROM(cudaFreeAsync((void *)pointer, stream)); }
API CUresult cuMemAllocHost(void **into, size_t size) { FROM(cudaMallocHost(into, size)); }
API CUresult cuMemHostAlloc(void **into, size_t size, unsigned flags) { FROM(cudaHostAlloc(into, size, flags)); }
API CUresult cuMemFreeHost(void *pointer) { FROM(cudaFreeHost(pointer)); }
API CUresult cuMemHostGetDevicePointer(CUdeviceptr *into, void *host, unsigned flags) { FROM(cudaHostGetDevicePointer((void **)into, host, flags)); }
API CUresult cuMemGetInfo(size_t *free_, size_t *total) { FROM(cudaMemGetInfo(free_, total)); }
API CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) { FROM(cudaMemcpy((void *)to, from, size, cudaMemcpyHostToDevice)); }
API CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) { FROM(cudaMemcpy(to, (void *)from, size, cudaMemcpyDeviceToHost)); }
API CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) { FROM(cudaMemcpy((void *)to, (void *)from, size, cudaMemcpyDeviceToDevice)); }
API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) { FROM(cudaMemcpy((void *)to, (void *)from, size, cudaMemcpyDefault)); }
API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) { FROM(cudaMemcpyAsync((void *)to, from, size, cudaMemcpyHostToDevice, stream)); }
API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) { FROM(cudaMemcpyAsync(to, (void *)from, size, cudaMemcpyDeviceToHost, stream)); }
API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) { FROM(cudaMemcpyAsync((void *)to, (void *)from, size, cudaMemcpyDeviceToDevice, stream)); }
API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) { FROM(cudaMemcpyAsync((void *)to, (void *)from, size, cudaMemcpyDefault, stream)); }
API CUresult cuMemHostRegister(void *pointer, size_t size, unsigned flags) { FROM(cudaHostRegister(pointer, size, flags)); }
API CUresult cuMemHostUnregister(void *pointer) { FROM(cudaHostUnregister(pointer)); }
API CUresult cuMemPrefetchAsync(CUdeviceptr from, size_t size, CUmemLocation to, unsigned flags, CUstream stream) {
  FROM(cudaMemPrefetchAsync((void *)from, size, (struct cudaMemLocation){.type = (enum cudaMemLocationType)to.type, .id = to.id}, flags, stream));
}
API CUresult cuMemAdvise(CUdeviceptr from, size_t size, CUmem_advise advice, CUmemLocation to) {
  FROM(cudaMemAdvise((void *)from, size, (enum cudaMemoryAdvise)advice, (struct cudaMemLocation){.type = (enum cudaMemLocationType)to.type, .id = to.id}));
}
API CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
  Allocation *one = is_device_address(pointer) ? allocation_at(pointer) : 0;
  WANTED(one && !one->freed, CUDA_ERROR_NOT_FOUND);
  if (base) *base = one->base;
  if (size) *size = one->size;
  return CUDA_SUCCESS;
}
API CUresult cuPointerGetAttribute(void *into, CUpointer_attribute attribute, CUdeviceptr pointer) {
  Allocation *one = is_device_address(pointer) ? allocation_at(pointer) : 0;
  WANTED(one && !one->freed, CUDA_ERROR_INVALID_VALUE);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)into = CONTEXT(one->device); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)into = one->kind != MANAGED && host_may_touch(one) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)into = pointer; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: WANTED(host_may_touch(one), CUDA_ERROR_INVALID_VALUE); *(void **)into = (void *)pointer; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)into = one->kind == MANAGED; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)into = one->device; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)into = one->base; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)into = one->size; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)into = 1; break;
    default: unsupported("cuPointerGetAttribute of such an attribute");
  }
  return CUDA_SUCCESS;
}
static Operation filling(const char *name, CUdeviceptr to, unsigned value, int element, size_t count) {
  return (Operation){.kind = FILL, .name = name, .to = (void *)to, .value = value, .element = element, .width = count * element,
                     .height = 1, .depth = 1, .to_pitch = count * element};
}
static CUresult filled(Operation fill, CUstream stream) { FROM(issue(&fill, stream)); }
API CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) { FROM(fill_now(filling("cuMemsetD8", to, value, 1, count))); }
API CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) { FROM(fill_now(filling("cuMemsetD16", to, value, 2, count))); }
API CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) { FROM(fill_now(filling("cuMemsetD32", to, value, 4, count))); }
API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) { return filled(filling("cuMemsetD8Async", to, value, 1, count), stream); }
API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) { return filled(filling("cuMemsetD16Async", to, value, 2, count), stream); }
API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) { return filled(filling("cuMemsetD32Async", to, value, 4, count), stream); }

// --- Streams, events, launches.

API CUresult cuStreamCreate(CUstream *into, unsigned flags) { FROM(cudaStreamCreateWithFlags(into, flags)); }
API CUresult cuStreamCreateWithPriority(CUstream *into, unsigned flags, int priority) { FROM(cudaStreamCreateWithPriority(into, flags, priority)); }
API CUresult cuStreamGetPriority(CUstream stream, int *into) { FROM(cudaStreamGetPriority(stream, into)); }
API CUresult cuStreamGetFlags(CUstream stream, unsigned *into) { FROM(cudaStreamGetFlags(stream, into)); }
API CUresult cuStreamGetCtx(CUstream stream, CUcontext *into) { *into = CONTEXT(device_of_stream(stream)); return CUDA_SUCCESS; }
API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback call, void *data, unsigned flags) {
  FROM(cudaStreamAddCallback(stream, (cudaStreamCallback_t)call, data, flags));  // the errors have the same numbers where one can happen
}
API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *data) { FROM(cudaLaunchHostFunc(stream, (cudaHostFn_t)call, data)); }
API CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) { FROM(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode)); }
API CUresult cuStreamEndCapture(CUstream stream, CUgraph *into) { FROM(cudaStreamEndCapture(stream, into)); }
API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *into) { FROM(cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)into)); }
API CUresult cuGraphInstantiateWithFlags(CUgraphExec *into, CUgraph graph, unsigned long long flags) { FROM(cudaGraphInstantiateWithFlags(into, graph, flags)); }
API CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) { FROM(cudaGraphLaunch(graph, stream)); }
API CUresult cuGraphExecDestroy(CUgraphExec graph) { FROM(cudaGraphExecDestroy(graph)); }
API CUresult cuGraphDestroy(CUgraph graph) { FROM(cudaGraphDestroy(graph)); }
API CUresult cuStreamDestroy(CUstream stream) { FROM(cudaStreamDestroy(stream)); }
API CUresult cuStreamSynchronize(CUstream stream) { FROM(cudaStreamSynchronize(stream)); }
API CUresult cuStreamQuery(CUstream stream) { FROM(cudaStreamQuery(stream)); }
API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) { FROM(cudaStreamWaitEvent(stream, event, flags)); }
API CUresult cuIpcGetEventHandle(CUipcEventHandle *into, CUevent event) { FROM(cudaIpcGetEventHandle((cudaIpcEventHandle_t *)into, event)); }
API CUresult cuIpcOpenEventHandle(CUevent *into, CUipcEventHandle handle) {
  cudaIpcEventHandle_t given;
  memcpy(&given, &handle, sizeof given);
  FROM(cudaIpcOpenEventHandle(into, given));
}
API CUresult cuEventCreate(CUevent *into, unsigned flags) { FROM(cudaEventCreateWithFlags(into, flags)); }
API CUresult cuEventDestroy(CUevent event) { FROM(cudaEventDestroy(event)); }
API CUresult cuEventRecord(CUevent event, CUstream stream) { FROM(cudaEventRecord(event, stream)); }
API CUresult cuEventSynchronize(CUevent event) { FROM(cudaEventSynchronize(event)); }
API CUresult cuEventQuery(CUevent event) { FROM(cudaEventQuery(event)); }
API CUresult cuEventElapsedTime(float *into, CUevent from, CUevent to) { FROM(cudaEventElapsedTime(into, from, to)); }

static CUresult started(CUfunction function, const Shape *shape, void **parameters, void **extra, CUstream stream) {
  Function *one = function_of(function);
  if (!one) return no_handle("cuLaunchKernel", "function", "cuModuleGetFunction");
  if (!extra) FROM(launch(one, shape, parameters, stream));
  cudaError_t error = know(one);
  if (error) return result(error);
  void *packed = pack(one, 0, extra);
  void *each[one->count + 1];
  for (int i = 0; i < one->count; i++) each[i] = (char *)packed + one->offsets[i];
  error = launch(one, shape, each, stream);
  free(packed);
  return result(error);
}
API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                            CUstream stream, void **parameters, void **extra) {
  Shape shape = {{gx, gy, gz}, {bx, by, bz}, {0}, shared, false, false};
  return started(function, &shape, parameters, extra, stream);
}
API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                       unsigned shared, CUstream stream, void **parameters) {
  Shape shape = {{gx, gy, gz}, {bx, by, bz}, {0}, shared, true, false};
  return started(function, &shape, parameters, 0, stream);
}
API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  Shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ}, {config->blockDimX, config->blockDimY, config->blockDimZ}, {0},
                 config->sharedMemBytes, false, false};
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const CUlaunchAttributeValue *value = &config->attrs[i].value;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      shape.cluster[0] = value->clusterDim.x, shape.cluster[1] = value->clusterDim.y, shape.cluster[2] = value->clusterDim.z;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) shape.cooperative = value->cooperative;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) shape.overlap = value->programmaticStreamSerializationAllowed;
  }
  return started(function, &shape, parameters, extra, config->hStream);
}

// --- Tensor maps, and functions by their names.

API CUresult cuTensorMapEncodeTiled(CUtensorMap *into, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
                                    const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  start();
  WANTED(into && rank && rank <= 5 && sizes && box && steps && (strides || rank == 1), CUDA_ERROR_INVALID_VALUE);
  Bytes bytes = {0}, answer;
  put_number(&bytes, type), put_number(&bytes, rank), put_number(&bytes, (uint64_t)address);
  for (unsigned i = 0; i < rank; i++) put_number(&bytes, sizes[i]);
  for (unsigned i = 0; i + 1 < rank; i++) put_number(&bytes, strides[i]);
  for (unsigned i = 0; i < rank; i++) put_number(&bytes, box[i]);
  for (unsigned i = 0; i < rank; i++) put_number(&bytes, steps[i]);
  put_number(&bytes, interleave), put_number(&bytes, swizzle), put_number(&bytes, promotion), put_number(&bytes, fill);
  void *frames[FRAMES];
  put_frames(&bytes, frames, frames_here(frames));
  int status = ask(REQUEST_TENSOR_MAP, &bytes, &answer);
  if (!status) memcpy(into, answer.data, sizeof *into);
  free(answer.data);
  return status ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void *by_name(const char *name) {
  char versioned[200];
  for (int version = 4; version >= 2; version--) {
    snprintf(versioned, sizeof versioned, "%s_v%d", name, version);
    void *found = ours(versioned);
    if (found) return found;
  }
  return ours(name);
}
API CUresult cuGetProcAddress_v2(const char *name, void **into, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *how) {
  (void)version, (void)flags;
  *into = by_name(name);
  if (how) *how = *into ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *into ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
static cudaError_t entry_point(const char *name, void **into, enum cudaDriverEntryPointQueryResult *how) {
  start();
  *into = by_name(name);
  if (!*into) unsupported(name);
  if (how) *how = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
API cudaError_t cudaGetDriverEntryPoint(const char *name, void **into, unsigned long long flags, enum cudaDriverEntryPointQueryResult *how) {
  (void)flags;
  return entry_point(name, into, how);
}
API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **into, unsigned version, unsigned long long flags,
                                                 enum cudaDriverEntryPointQueryResult *how) {
  (void)version, (void)flags;
  return entry_point(name, into, how);
}

// --- NVRTC.

typedef struct { char *source, *name, *ptx, *log; char *names[64], *lowered[64]; int count; } Compiled;
typedef int nvrtcResult;
enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_COMPILATION = 6, NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10 };

API nvrtcResult nvrtcVersion(int *major, int *minor) { *major = CUDA_VERSION / 1000, *minor = CUDA_VERSION % 1000 / 10; return 0; }
API const char *nvrtcGetErrorString(nvrtcResult error) {
  return error == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : error == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INVALID_INPUT";
}
API nvrtcResult nvrtcCreateProgram(Compiled **into, const char *source, const char *name, int count, const char *const *headers,
                                   const char *const *names) {
  (void)headers, (void)names;
  if (count) unsupported("nvrtcCreateProgram with headers");
  *into = calloc(1, sizeof **into);
  (*into)->source = strdup(source), (*into)->name = strdup(name ? name : "default_program");
  return NVRTC_SUCCESS;
}
API nvrtcResult nvrtcDestroyProgram(Compiled **program) { free((*program)->source); free(*program); *program = 0; return NVRTC_SUCCESS; }
API nvrtcResult nvrtcAddNameExpression(Compiled *program, const char *name) {
  if (program->count == 64) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  program->names[program->count++] = strdup(name);
  return NVRTC_SUCCESS;
}
API nvrtcResult nvrtcCompileProgram(Compiled *program, int count, const char *const *options) {
  Bytes bytes = {0}, answer;
  put_text(&bytes, program->source), put_text(&bytes, program->name);
  put_number(&bytes, count);
  for (int i = 0; i < count; i++) put_text(&bytes, options[i]);
  put_number(&bytes, program->count);
  for (int i = 0; i < program->count; i++) put_text(&bytes, program->names[i]);
  int status = ask(REQUEST_COMPILE, &bytes, &answer);
  program->ptx = take_text(&answer), program->log = take_text(&answer);
  for (int i = 0; i < program->count; i++) program->lowered[i] = take_text(&answer);
  return status ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}
API nvrtcResult nvrtcGetPTXSize(Compiled *program, size_t *into) { *into = strlen(program->ptx) + 1; return NVRTC_SUCCESS; }
API nvrtcResult nvrtcGetPTX(Compiled *program, char *into) { strcpy(into, program->ptx); return NVRTC_SUCCESS; }
// The PTX is the machine code here: what takes one takes the other.
API nvrtcResult nvrtcGetCUBINSize(Compiled *program, size_t *into) { return nvrtcGetPTXSize(program, into); }
API nvrtcResult nvrtcGetCUBIN(Compiled *program, char *into) { return nvrtcGetPTX(program, into); }
API nvrtcResult nvrtcGetProgramLogSize(Compiled *program, size_t *into) { *into = strlen(program->log) + 1; return NVRTC_SUCCESS; }
API nvrtcResult nvrtcGetProgramLog(Compiled *program, char *into) { strcpy(into, program->log); return NVRTC_SUCCESS; }
API nvrtcResult nvrtcGetLoweredName(Compiled *program, const char *name, const char **into) {
  for (int i = 0; i < program->count; i++)
    if (!strcmp(program->names[i], name)) { *into = program->lowered[i]; return NVRTC_SUCCESS; }
  return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}
