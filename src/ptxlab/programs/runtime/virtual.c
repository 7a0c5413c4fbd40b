// Memory that is created, mapped to reserved addresses and made accessible in steps, multicast objects among it, and
// memory of other processes by its handle. A step that is too early is a finding, with the step that is missing.
#include "runtime.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULARITY (2ull << 20)
#define WANTED(condition, error) do { if (!(condition)) return error; } while (0)

// What cuMemCreate and cuMulticastCreate make.
typedef struct Memory Memory;
struct Memory {
  uint64_t size, home;  // where it is, whether mapped or not; a multicast object has none
  int device, references;
  int wanted, added;  // devices of a multicast object; of memory, 0
  bool has[MOST_GPUS];
  struct { const Memory *memory; uint64_t at, offset, size; } bound[MOST_GPUS];
};
typedef struct Range Range;
struct Range { uint64_t base, size; Range *next; };  // reserved
typedef struct Mapping Mapping;
struct Mapping { uint64_t base, size, offset; Memory *memory; Mapping *next; bool is_accessible; };

static Range *ranges;
static Mapping *mappings;

static CUresult wrong(const char *message, const char *help) {
  finding("bad-mapping", message, 0, help);
  return CUDA_ERROR_INVALID_VALUE;
}

static Mapping *mapping_in(uint64_t base, uint64_t size) {
  for (Mapping *one = mappings; one; one = one->next)
    if (one->base < base + size && base < one->base + one->size) return one;
  return 0;
}

// Tells the session what a multicast address refers to; nothing as long as a device has no memory bound.
static void place_multicast(const Mapping *one) {
  const Memory *object = one->memory;
  Bytes bytes = {0};
  put_number(&bytes, one->base);
  put_number(&bytes, one->size);
  int count = 0;
  for (int i = 0; i < MOST_GPUS; i++)
    count += object->has[i] && object->bound[i].memory && object->bound[i].at <= one->offset &&
             one->offset + one->size <= object->bound[i].at + object->bound[i].size;
  bool is_whole = one->is_accessible && count == object->wanted;
  put_number(&bytes, is_whole ? count : 0);
  for (int i = 0; is_whole && i < MOST_GPUS; i++)
    if (object->has[i]) put_number(&bytes, object->bound[i].memory->home + object->bound[i].offset + one->offset - object->bound[i].at);
  notify(REQUEST_MULTICAST, &bytes);
}

static void place_bound(const Memory *object) {
  for (Mapping *one = mappings; one; one = one->next)
    if (one->memory == object) place_multicast(one);
}

API CUresult cuMemGetAllocationGranularity(size_t *into, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option) {
  (void)prop, (void)option;
  start();
  *into = GRANULARITY;
  return CUDA_SUCCESS;
}
API CUresult cuMulticastGetGranularity(size_t *into, const CUmulticastObjectProp *prop, CUmulticastGranularity_flags option) {
  (void)prop, (void)option;
  start();
  *into = GRANULARITY;
  return CUDA_SUCCESS;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *into, size_t size, const CUmemAllocationProp *prop, unsigned long long flags) {
  start();
  run_queued();
  WANTED(into && prop && size && !flags, CUDA_ERROR_INVALID_VALUE);
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) unsupported("cuMemCreate of memory of the host");
  WANTED(prop->location.id >= 0 && prop->location.id < gpu_count(), CUDA_ERROR_INVALID_DEVICE);
  if (size % GRANULARITY) return wrong("`cuMemCreate` of a size that is not a multiple of 2 MB", "round it up to what `cuMemGetAllocationGranularity` says");
  int before = current_gpu;
  current_gpu = prop->location.id;
  Allocation *home = allocate(size, CREATED);
  current_gpu = before;
  WANTED(home, CUDA_ERROR_OUT_OF_MEMORY);
  Memory *made = calloc(1, sizeof *made);
  *made = (Memory){.size = size, .home = home->base, .device = prop->location.id, .references = 1};
  *into = (CUmemGenericAllocationHandle)made;
  return CUDA_SUCCESS;
}

static void drop(Memory *memory) {
  if (--memory->references || memory->wanted) return;
  release((void *)memory->home, "cuMemRelease", 1u << CREATED);
  memory->home = 0;
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  WANTED(handle, CUDA_ERROR_INVALID_VALUE);
  drop((Memory *)handle);
  return CUDA_SUCCESS;
}

API CUresult cuMemAddressReserve(CUdeviceptr *into, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags) {
  (void)wanted, (void)alignment;
  start();
  WANTED(into && size && !flags, CUDA_ERROR_INVALID_VALUE);
  if (size % GRANULARITY) return wrong("`cuMemAddressReserve` of a size that is not a multiple of 2 MB", "round it up to what `cuMemGetAllocationGranularity` says");
  Range *made = calloc(1, sizeof *made);
  *made = (Range){reserve_addresses(size), size, ranges};
  WANTED(made->base, CUDA_ERROR_OUT_OF_MEMORY);
  ranges = made;
  *into = made->base;
  return CUDA_SUCCESS;
}
API CUresult cuMemAddressFree(CUdeviceptr base, size_t size) {
  for (Range **one = &ranges; *one; one = &(*one)->next)
    if ((*one)->base == base && (*one)->size == size) {
      if (mapping_in(base, size)) return wrong("`cuMemAddressFree` of addresses at which memory is still mapped", "call `cuMemUnmap` first");
      *one = (*one)->next;
      return CUDA_SUCCESS;
    }
  return wrong("`cuMemAddressFree` of addresses that `cuMemAddressReserve` did not give", 0);
}

API CUresult cuMemMap(CUdeviceptr base, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
  Memory *memory = (Memory *)handle;
  WANTED(memory && size && !flags, CUDA_ERROR_INVALID_VALUE);
  run_queued();
  bool is_reserved = false;
  for (Range *one = ranges; one; one = one->next) is_reserved |= one->base <= base && base + size <= one->base + one->size;
  if (!is_reserved) return wrong("`cuMemMap` to addresses that are not reserved", "call `cuMemAddressReserve` first");
  if (mapping_in(base, size)) return wrong("`cuMemMap` to addresses at which memory is mapped already", "call `cuMemUnmap` first");
  if (base % GRANULARITY || size % GRANULARITY || offset % GRANULARITY || offset + size > memory->size)
    return wrong("`cuMemMap` of a part that is not of whole granules of 2 MB inside the memory", 0);
  Mapping *made = calloc(1, sizeof *made);
  *made = (Mapping){base, size, offset, memory, mappings, false};
  memory->references++;
  mappings = made;
  if (!memory->wanted) note_mapping(map_addresses(base, size, memory->home + offset, memory->device));
  return CUDA_SUCCESS;
}
API CUresult cuMemUnmap(CUdeviceptr base, size_t size) {
  run_queued();
  bool found = false;
  for (Mapping **one = &mappings; *one;) {
    Mapping *here = *one;
    if (here->base < base || here->base + here->size > base + size) { one = &here->next; continue; }
    found = true;
    *one = here->next;
    here->is_accessible = false;
    if (here->memory->wanted) place_multicast(here);
    else unmap_addresses(here->base);
    drop(here->memory);
    free(here);
  }
  return found ? CUDA_SUCCESS : wrong("`cuMemUnmap` of addresses at which nothing is mapped", 0);
}

API CUresult cuMemSetAccess(CUdeviceptr base, size_t size, const CUmemAccessDesc *descriptions, size_t count) {
  WANTED(descriptions && count, CUDA_ERROR_INVALID_VALUE);
  run_queued();
  uint64_t covered = 0;
  for (Mapping *one = mappings; one; one = one->next)
    if (base <= one->base && one->base + one->size <= base + size) covered += one->size;
  if (covered != size) return wrong("`cuMemSetAccess` of addresses at which no memory is mapped", "call `cuMemMap` first");
  for (Mapping *one = mappings; one; one = one->next) {
    if (one->base < base || one->base + one->size > base + size) continue;
    one->is_accessible = true;
    if (one->memory->wanted) place_multicast(one);
    for (size_t i = 0; !one->memory->wanted && i < count; i++) {
      WANTED(descriptions[i].location.id >= 0 && descriptions[i].location.id < gpu_count(), CUDA_ERROR_INVALID_DEVICE);
      Bytes bytes = {0};
      put_number(&bytes, one->base);
      put_number(&bytes, descriptions[i].location.id);
      put_number(&bytes, descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
      notify(REQUEST_ACCESS, &bytes);
    }
  }
  return CUDA_SUCCESS;
}

// A handle for others is the handle itself: those of this process import it.
API CUresult cuMemExportToShareableHandle(void *into, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags) {
  (void)flags;
  if (type != CU_MEM_HANDLE_TYPE_FABRIC) unsupported("cuMemExportToShareableHandle of a file descriptor");
  memset(into, 0, sizeof(CUmemFabricHandle));
  memcpy(into, &handle, sizeof handle);
  return CUDA_SUCCESS;
}
API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *into, void *from, CUmemAllocationHandleType type) {
  if (type != CU_MEM_HANDLE_TYPE_FABRIC) unsupported("cuMemImportFromShareableHandle of a file descriptor");
  memcpy(into, from, sizeof *into);
  ((Memory *)*into)->references++;
  return CUDA_SUCCESS;
}

// --- Multicast objects.

API CUresult cuMulticastCreate(CUmemGenericAllocationHandle *into, const CUmulticastObjectProp *prop) {
  start();
  WANTED(into && prop && !prop->flags, CUDA_ERROR_INVALID_VALUE);
  WANTED(prop->numDevices > 0 && (int)prop->numDevices <= gpu_count(), CUDA_ERROR_INVALID_VALUE);
  if (!prop->size || prop->size % GRANULARITY) return wrong("`cuMulticastCreate` of a size that is not a multiple of 2 MB", "round it up to what `cuMulticastGetGranularity` says");
  Memory *made = calloc(1, sizeof *made);
  *made = (Memory){.size = prop->size, .device = -1, .references = 1, .wanted = (int)prop->numDevices};
  *into = (CUmemGenericAllocationHandle)made;
  return CUDA_SUCCESS;
}
API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  Memory *object = (Memory *)handle;
  WANTED(object && object->wanted, CUDA_ERROR_INVALID_VALUE);
  WANTED(device >= 0 && device < gpu_count(), CUDA_ERROR_INVALID_DEVICE);
  if (object->has[device]) return wrong("`cuMulticastAddDevice` of a device that was added before", 0);
  if (object->added == object->wanted) return wrong("`cuMulticastAddDevice` of more devices than `cuMulticastCreate` was for", 0);
  object->has[device] = true;
  object->added++;
  return CUDA_SUCCESS;
}

static CUresult bind(Memory *object, uint64_t at, const Memory *memory, uint64_t offset, uint64_t size, const char *call) {
  char message[200];
  WANTED(object && object->wanted && memory && !memory->wanted && size, CUDA_ERROR_INVALID_VALUE);
  run_queued();
  if (object->added < object->wanted) {
    snprintf(message, sizeof message, "`%s` before all devices are added: %d of %d are", call, object->added, object->wanted);
    return wrong(message, "call `cuMulticastAddDevice` for each device first, on all ranks");
  }
  if (!object->has[memory->device]) {
    snprintf(message, sizeof message, "`%s` of memory of GPU %d, which was not added", call, memory->device);
    return wrong(message, "call `cuMulticastAddDevice` for it before others are added in its place");
  }
  if (at % GRANULARITY || offset % GRANULARITY || size % GRANULARITY || at + size > object->size || offset + size > memory->size) {
    snprintf(message, sizeof message, "`%s` of a part that is not of whole granules of 2 MB inside both", call);
    return wrong(message, 0);
  }
  if (object->bound[memory->device].memory) unsupported("a second part of a multicast object that memory of one GPU is bound to");
  object->bound[memory->device].memory = memory;
  object->bound[memory->device].at = at, object->bound[memory->device].offset = offset, object->bound[memory->device].size = size;
  place_bound(object);
  return CUDA_SUCCESS;
}
API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t at, CUmemGenericAllocationHandle memory, size_t offset, size_t size, unsigned long long flags) {
  WANTED(!flags, CUDA_ERROR_INVALID_VALUE);
  return bind((Memory *)object, at, (const Memory *)memory, offset, size, "cuMulticastBindMem");
}
API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t at, CUdeviceptr address, size_t size, unsigned long long flags) {
  WANTED(!flags, CUDA_ERROR_INVALID_VALUE);
  const Mapping *one = mapping_in(address, size);
  if (!one || one->memory->wanted || address < one->base) return wrong("`cuMulticastBindAddr` of an address at which no memory is mapped", "call `cuMemMap` first");
  return bind((Memory *)object, at, one->memory, one->offset + address - one->base, size, "cuMulticastBindAddr");
}
API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t at, size_t size) {
  (void)at, (void)size;
  Memory *object = (Memory *)handle;
  WANTED(object && object->wanted && device >= 0 && device < MOST_GPUS, CUDA_ERROR_INVALID_VALUE);
  if (!object->bound[device].memory) return wrong("`cuMulticastUnbind` of a device that has no memory bound", 0);
  run_queued();
  object->bound[device].memory = 0;
  place_bound(object);
  return CUDA_SUCCESS;
}

// --- Memory of other processes of the program.

typedef struct { uint64_t process, base, size, device; } Shared;
_Static_assert(sizeof(Shared) <= sizeof(cudaIpcMemHandle_t), "a handle has space for it");

API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *into, void *pointer) {
  ALIVE;
  const Allocation *one = is_device_address((uint64_t)pointer) ? allocation_at((uint64_t)pointer) : 0;
  if (!into || !one || one->freed || one->kind != DEVICE) {
    finding("bad-mapping", "`cudaIpcGetMemHandle` of an address that `cudaMalloc` did not give", one ? one->base : 0, 0);
    return fail(cudaErrorInvalidValue);
  }
  run_queued();
  memset(into, 0, sizeof *into);
  memcpy(into, &(Shared){getpid(), one->base, one->size, one->device}, sizeof(Shared));
  return fail(ask(REQUEST_SHARE, &(Bytes){0}, 0));  // what was allocated is known once it is answered
}

API cudaError_t cudaIpcOpenMemHandle(void **into, cudaIpcMemHandle_t handle, unsigned flags) {
  ALIVE;
  Shared shared;
  memcpy(&shared, &handle, sizeof shared);
  CHECKED(into && flags == cudaIpcMemLazyEnablePeerAccess, cudaErrorInvalidValue);
  if (shared.process == (uint64_t)getpid()) {
    finding("bad-mapping", "`cudaIpcOpenMemHandle` in the process that made the handle", shared.base, "use the address itself: handles are for other processes");
    return fail(cudaErrorDeviceUninitialized);
  }
  const uint64_t whole = (shared.size + 4095) / 4096 * 4096;
  uint64_t base = reserve_addresses(whole);
  CHECKED(base, cudaErrorMemoryAllocation);
  Bytes bytes = {0}, answer;
  const uint64_t numbers[] = {shared.process, shared.base, base, shared.size};
  for (int i = 0; i < 4; i++) put_number(&bytes, numbers[i]);
  void *frames[FRAMES];
  put_frames(&bytes, frames, frames_here(frames));
  if (ask(REQUEST_OPEN, &bytes, &answer)) {
    free(answer.data);
    finding("bad-mapping", "`cudaIpcOpenMemHandle` of memory that its process has freed, or of a process that has ended", 0, "keep the memory until all processes have closed it");
    return fail(cudaErrorInvalidValue);
  }
  char *own = mine(base);
  int file = open(take_text(&answer), O_RDWR | O_CLOEXEC);
  free(answer.data);
  bool is_there = file >= 0 && mmap(own, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)(shared.base - VIEW)) == own;
  if (file >= 0) close(file);
  CHECKED(is_there, cudaErrorNotSupported);
  map_addresses(base, shared.size, base, (int)shared.device);
  *into = (void *)base;
  return cudaSuccess;
}

API cudaError_t cudaIpcCloseMemHandle(void *pointer) {
  ALIVE;
  run_queued();
  Allocation *one = allocation_at((uint64_t)pointer);
  if (!one || one->kind != MAPPED || one->freed || one->base != (uint64_t)pointer) {
    finding("bad-mapping", "`cudaIpcCloseMemHandle` of an address that `cudaIpcOpenMemHandle` did not give", 0, 0);
    return fail(cudaErrorInvalidValue);
  }
  unmap_addresses(one->base);
  return cudaSuccess;
}
