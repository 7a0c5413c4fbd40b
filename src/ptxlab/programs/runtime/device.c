// The GPUs that the program sees: all with the numbers of the GPU that is emulated.
#include "runtime.h"

static Bytes facts;
static char *model;

static void know_device(void) {
  LOCKED;
  if (model) return;
  ask(REQUEST_DEVICE, &(Bytes){0}, &facts);
  model = take_text(&facts);
}

const char *device_name(void) { know_device(); return model; }

static int64_t fact(const char *name, bool *found) {
  know_device();
  Bytes all = facts;
  all.at = 8 + strlen(model) + 1;
  for (uint64_t left = take_number(&all); left; left--) {
    const char *one = take_text(&all);
    int64_t value = (int64_t)take_number(&all);
    if (!strcmp(one, name)) { if (found) *found = true; return value; }
  }
  if (found) *found = false;
  return 0;
}

int device_number(const char *name) { return (int)fact(name, 0); }
uint64_t memory_limit(void) { return (uint64_t)fact("memory_available", 0); }

__thread int current_gpu;
static __thread int chosen;  // by a PE, whose GPU is one, whichever number it has
int gpu_count(void) { return device_number("gpus"); }

bool is_here(int device) {
  char message[120];
  int count = gpu_count();
  if (device >= 0 && device < count) return true;
  const char *one = "the program asks for GPU %d, and there is one: GPU 0", *several = "the program asks for GPU %d, and there are %d";
  snprintf(message, sizeof message, count == 1 ? one : several, device, count);
  finding("missing-device", message, 0, "`--gpus N` runs a program with N GPUs");
  return false;
}
#define KNOWN_GPU(device) do { ALIVE; CHECKED(is_here(device), cudaErrorInvalidDevice); } while (0)

API cudaError_t cudaGetDeviceCount(int *into) { ALIVE; CHECKED(into, cudaErrorInvalidValue); *into = gpu_count(); return cudaSuccess; }
API cudaError_t cudaSetDevice(int device) {
  KNOWN_GPU(device);
  chosen = device;
  if (!is_pe()) current_gpu = device;
  return cudaSuccess;
}
API cudaError_t cudaInitDevice(int device, unsigned a, unsigned b) { KNOWN_GPU(device); (void)a, (void)b; return cudaSuccess; }
API cudaError_t cudaSetValidDevices(int *devices, int count) { ALIVE; (void)devices, (void)count; return cudaSuccess; }
API cudaError_t cudaGetDevice(int *into) { ALIVE; CHECKED(into, cudaErrorInvalidValue); *into = is_pe() ? chosen : current_gpu; return cudaSuccess; }
API cudaError_t cudaChooseDevice(int *into, const struct cudaDeviceProp *wanted) { ALIVE; (void)wanted; *into = 0; return cudaSuccess; }
API cudaError_t cudaSetDeviceFlags(unsigned flags) { ALIVE; (void)flags; return cudaSuccess; }
API cudaError_t cudaGetDeviceFlags(unsigned *flags) { ALIVE; *flags = cudaDeviceMapHost; return cudaSuccess; }
static void forget(Allocation *one, void *with) { (void)with; if (one->device == current_gpu) one->flags |= 2; }  // which a reset frees
API cudaError_t cudaDeviceReset(void) {
  start();
  synchronized_all();
  each_allocation(forget, 0);
  cudaError_t error = settled();
  sticky = cudaSuccess;
  return error;
}
API cudaError_t cudaRuntimeGetVersion(int *into) { *into = CUDART_VERSION; return cudaSuccess; }
API cudaError_t cudaDriverGetVersion(int *into) { *into = CUDART_VERSION; return cudaSuccess; }
API cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
API cudaError_t cudaProfilerStop(void) { return cudaSuccess; }
API cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) { ALIVE; (void)config; return cudaSuccess; }
API cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config) { ALIVE; *config = cudaFuncCachePreferNone; return cudaSuccess; }
API cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) { ALIVE; (void)config; return cudaSuccess; }
API cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config) { ALIVE; *config = cudaSharedMemBankSizeFourByte; return cudaSuccess; }
API cudaError_t cudaCtxResetPersistingL2Cache(void) { ALIVE; return cudaSuccess; }
API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { ALIVE; *least = 0, *greatest = -5; return cudaSuccess; }
static bool is_peer[MOST_GPUS][MOST_GPUS];
API cudaError_t cudaDeviceCanAccessPeer(int *into, int device, int peer) {
  KNOWN_GPU(device);
  KNOWN_GPU(peer);
  CHECKED(into, cudaErrorInvalidValue);
  *into = device != peer;
  return cudaSuccess;
}
static void set_peer(int peer, bool enabled) {
  run_queued();
  is_peer[current_gpu][peer] = enabled;
  Bytes bytes = {0};
  put_number(&bytes, current_gpu);
  put_number(&bytes, peer);
  put_number(&bytes, enabled);
  notify(REQUEST_PEER, &bytes);
}
API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  KNOWN_GPU(peer);
  CHECKED(peer != current_gpu, cudaErrorInvalidDevice);
  CHECKED(!flags, cudaErrorInvalidValue);
  CHECKED(!is_peer[current_gpu][peer], cudaErrorPeerAccessAlreadyEnabled);
  set_peer(peer, true);
  return cudaSuccess;
}
API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  KNOWN_GPU(peer);
  CHECKED(is_peer[current_gpu][peer], cudaErrorPeerAccessNotEnabled);
  set_peer(peer, false);
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetP2PAttribute(int *into, enum cudaDeviceP2PAttr attribute, int device, int peer) {
  KNOWN_GPU(device);
  KNOWN_GPU(peer);
  CHECKED(device != peer, cudaErrorInvalidDevice);
  *into = attribute == cudaDevP2PAttrPerformanceRank ? 0 : 1;
  return cudaSuccess;
}
API cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID id, const cudaStreamAttrValue *value) {
  ALIVE;
  (void)stream, (void)id, (void)value;
  return cudaSuccess;
}
API cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID id, cudaStreamAttrValue *value) {
  ALIVE;
  (void)stream, (void)id;
  memset(value, 0, sizeof *value);
  return cudaSuccess;
}

static size_t limits[8] = {1024, 7 << 20, 8 << 20, 2, 2048, 128, 0, 0};
API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  ALIVE;
  CHECKED((unsigned)limit < 8, cudaErrorUnsupportedLimit);
  limits[limit] = value;
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetLimit(size_t *into, enum cudaLimit limit) {
  ALIVE;
  CHECKED((unsigned)limit < 8, cudaErrorUnsupportedLimit);
  *into = limits[limit];
  return cudaSuccess;
}

// Attributes: a number that is the same for all GPUs since sm_75, or the name of a fact.
static const struct { int id; const char *fact; int value; } attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 0, 1024}, {cudaDevAttrMaxBlockDimX, 0, 1024}, {cudaDevAttrMaxBlockDimY, 0, 1024},
    {cudaDevAttrMaxBlockDimZ, 0, 64}, {cudaDevAttrMaxGridDimX, 0, 0x7fffffff}, {cudaDevAttrMaxGridDimY, 0, 65535},
    {cudaDevAttrMaxGridDimZ, 0, 65535}, {cudaDevAttrMaxSharedMemoryPerBlock, 0, 49152}, {cudaDevAttrTotalConstantMemory, 0, 65536},
    {cudaDevAttrWarpSize, 0, 32}, {cudaDevAttrMaxPitch, 0, 0x7fffffff}, {cudaDevAttrMaxRegistersPerBlock, 0, 65536},
    {cudaDevAttrClockRate, "clock", 0}, {cudaDevAttrTextureAlignment, 0, 512}, {cudaDevAttrGpuOverlap, 0, 1},
    {cudaDevAttrMultiProcessorCount, "sms", 0}, {cudaDevAttrIntegrated, 0, 0}, {cudaDevAttrCanMapHostMemory, 0, 1},
    {cudaDevAttrComputeMode, 0, 0}, {cudaDevAttrConcurrentKernels, 0, 1}, {cudaDevAttrEccEnabled, 0, 1},
    {cudaDevAttrMemoryClockRate, "memory_clock", 0}, {cudaDevAttrGlobalMemoryBusWidth, "bus", 0}, {cudaDevAttrL2CacheSize, "l2", 0},
    {cudaDevAttrMaxThreadsPerMultiProcessor, "threads_sm", 0}, {cudaDevAttrAsyncEngineCount, 0, 3}, {cudaDevAttrUnifiedAddressing, 0, 1},
    {cudaDevAttrComputeCapabilityMajor, "major", 0}, {cudaDevAttrComputeCapabilityMinor, "minor", 0},
    {cudaDevAttrStreamPrioritiesSupported, 0, 1}, {cudaDevAttrGlobalL1CacheSupported, 0, 1}, {cudaDevAttrLocalL1CacheSupported, 0, 1},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, "shared_sm", 0}, {cudaDevAttrMaxRegistersPerMultiprocessor, 0, 65536},
    {cudaDevAttrManagedMemory, 0, 1}, {cudaDevAttrIsMultiGpuBoard, 0, 0}, {cudaDevAttrHostNativeAtomicSupported, 0, 0},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 0, 2}, {cudaDevAttrPageableMemoryAccess, 0, 0},
    {cudaDevAttrConcurrentManagedAccess, 0, 1}, {cudaDevAttrComputePreemptionSupported, 0, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 0, 1}, {cudaDevAttrCooperativeLaunch, 0, 1},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, "shared_block", 0}, {cudaDevAttrHostRegisterSupported, 0, 1},
    {cudaDevAttrDirectManagedMemAccessFromHost, 0, 0}, {cudaDevAttrMaxBlocksPerMultiprocessor, "blocks_sm", 0},
    {cudaDevAttrReservedSharedMemoryPerBlock, 0, 1024}, {cudaDevAttrMemoryPoolsSupported, 0, 1}, {cudaDevAttrClusterLaunch, "clusters", 0},
    {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0, 0}, {cudaDevAttrKernelExecTimeout, 0, 0}, {cudaDevAttrPciBusId, 0, 1},
    {cudaDevAttrPciDeviceId, 0, 0}, {cudaDevAttrPciDomainId, 0, 0}, {cudaDevAttrTccDriver, 0, 0}, {cudaDevAttrTexturePitchAlignment, 0, 32},
    {cudaDevAttrSurfaceAlignment, 0, 512}, {cudaDevAttrMaxPersistingL2CacheSize, "l2", 0}, {cudaDevAttrMaxAccessPolicyWindowSize, "l2", 0},
    {cudaDevAttrMaxTexture1DWidth, 0, 131072}, {cudaDevAttrMaxTexture2DWidth, 0, 131072}, {cudaDevAttrMaxTexture2DHeight, 0, 65536},
    {cudaDevAttrMaxTexture3DWidth, 0, 16384}, {cudaDevAttrMaxTexture3DHeight, 0, 16384}, {cudaDevAttrMaxTexture3DDepth, 0, 16384},
    {cudaDevAttrMaxTexture2DLayeredWidth, 0, 32768}, {cudaDevAttrMaxTexture2DLayeredLayers, 0, 2048},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0, 1}, {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0, 1},
    {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, "clusters", 0},
    {cudaDevAttrMaxTexture1DLinearWidth, 0, 1 << 28}, {cudaDevAttrIpcEventSupport, 0, 1},
};

API cudaError_t cudaDeviceGetAttribute(int *into, enum cudaDeviceAttr attribute, int device) {
  KNOWN_GPU(device);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i].id == (int)attribute) {
      *into = attribute == cudaDevAttrPciBusId ? device + 1 : attributes[i].fact ? device_number(attributes[i].fact) : attributes[i].value;
      return cudaSuccess;
    }
  *into = 0;
  return cudaSuccess;
}

API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  KNOWN_GPU(device);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%s", device_name());
  memcpy(p->uuid.bytes, "ptxlab emulator", 16);
  p->uuid.bytes[15] = (char)device;
  p->totalGlobalMem = (size_t)device_number("memory") << 20;
  p->sharedMemPerBlock = 49152, p->regsPerBlock = p->regsPerMultiprocessor = 65536, p->warpSize = 32;
  p->memPitch = 0x7fffffff, p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024, p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 0x7fffffff, p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->totalConstMem = 65536, p->major = device_number("major"), p->minor = device_number("minor");
  p->textureAlignment = p->surfaceAlignment = 512, p->texturePitchAlignment = 32;
  p->multiProcessorCount = device_number("sms"), p->canMapHostMemory = 1, p->concurrentKernels = 1, p->ECCEnabled = 1;
  p->asyncEngineCount = 3, p->unifiedAddressing = 1, p->memoryBusWidth = device_number("bus"), p->l2CacheSize = device_number("l2");
  p->maxThreadsPerMultiProcessor = device_number("threads_sm"), p->streamPrioritiesSupported = 1;
  p->globalL1CacheSupported = p->localL1CacheSupported = 1, p->sharedMemPerMultiprocessor = device_number("shared_sm");
  p->managedMemory = p->concurrentManagedAccess = p->computePreemptionSupported = 1;
  p->canUseHostPointerForRegisteredMem = p->cooperativeLaunch = p->hostRegisterSupported = p->memoryPoolsSupported = 1;
  p->sharedMemPerBlockOptin = device_number("shared_block"), p->maxBlocksPerMultiProcessor = device_number("blocks_sm");
  p->reservedSharedMemPerBlock = 1024, p->clusterLaunch = device_number("clusters"), p->pciBusID = device + 1;
  p->persistingL2CacheMaxSize = p->accessPolicyMaxWindowSize = p->l2CacheSize;
  p->maxTexture1D = p->maxTexture2D[0] = 131072, p->maxTexture2D[1] = 65536;
  p->maxTexture3D[0] = p->maxTexture3D[1] = p->maxTexture3D[2] = 16384;
#if CUDART_VERSION < 13000
  p->clockRate = device_number("clock"), p->memoryClockRate = device_number("memory_clock"), p->deviceOverlap = 1;
#endif
  return cudaSuccess;
}
API cudaError_t cudaDeviceGetPCIBusId(char *into, int size, int device) { KNOWN_GPU(device); snprintf(into, size, "0000:%02x:00.0", device + 1); return cudaSuccess; }
API cudaError_t cudaDeviceGetByPCIBusId(int *into, const char *id) { ALIVE; unsigned bus = 0;
  CHECKED(into && id && sscanf(id, "%*x:%x:", &bus) == 1 && bus && (int)bus <= gpu_count(), cudaErrorInvalidValue);
  *into = (int)bus - 1;
  return cudaSuccess;
}

// Pools: what they keep back does not matter here.
static char pools[MOST_GPUS];  // one of each GPU
#define POOL(device) ((cudaMemPool_t)&pools[device])
API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *into, int device) { KNOWN_GPU(device); *into = POOL(device); return cudaSuccess; }
API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *into, int device) { KNOWN_GPU(device); *into = POOL(device); return cudaSuccess; }
API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t one) { KNOWN_GPU(device); (void)one; return cudaSuccess; }
API cudaError_t cudaMemPoolCreate(cudaMemPool_t *into, const struct cudaMemPoolProps *props) {
  ALIVE;
  int device = props && props->location.type == cudaMemLocationTypeDevice ? props->location.id : current_gpu;
  CHECKED(is_here(device), cudaErrorInvalidDevice);
  *into = POOL(device);
  return cudaSuccess;
}
API cudaError_t cudaMemPoolDestroy(cudaMemPool_t one) { ALIVE; (void)one; return cudaSuccess; }
API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t one, size_t size) { ALIVE; (void)one, (void)size; return cudaSuccess; }
API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t one, enum cudaMemPoolAttr attribute, void *value) { ALIVE; (void)one, (void)attribute, (void)value; return cudaSuccess; }
API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t one, enum cudaMemPoolAttr attribute, void *value) {
  ALIVE;
  (void)one;
  if (attribute <= cudaMemPoolReuseAllowInternalDependencies) *(int *)value = 1; else *(uint64_t *)value = 0;
  return cudaSuccess;
}
API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t one, const struct cudaMemAccessDesc *list, size_t count) {
  ALIVE;
  run_queued();
  for (size_t i = 0; i < count; i++) {
    CHECKED(is_here(list[i].location.id), cudaErrorInvalidDevice);
    Bytes bytes = {0};
    put_number(&bytes, list[i].location.id);
    put_number(&bytes, (char *)one - pools);
    put_number(&bytes, list[i].flags != cudaMemAccessFlagsProtNone);
    notify(REQUEST_POOL, &bytes);
  }
  return cudaSuccess;
}
