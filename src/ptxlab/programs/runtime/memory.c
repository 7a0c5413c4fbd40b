// Device memory: allocations, copies and fills, and what is wrong with them.
#include "runtime.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ull
#define GAP 65536ull  // between allocations, so that a step too far is found
#define MOST_FILLED 65536ull  // of what is allocated and freed on a stream, or read by the host

static Allocation **table;  // by address: no address is given twice, so that use after a free is always found
static size_t used, capacity;
static uint64_t next_address, in_use;

bool is_device_address(uint64_t address) { return address >= VIEW && address < VIEW + VIEW_SIZE; }
bool host_may_touch(const Allocation *one) { return one->kind != DEVICE && one->kind != VARIABLE && one->kind != ARRAY && one->kind != POOLED && one->kind != CREATED && one->kind < MAPPED; }
uint64_t memory_free(void) {
  uint64_t all = memory_limit();
  return in_use < all ? all - in_use : 0;
}

// The GPU has room for an allocation, but not this machine: the program alone could not tell.
static void say_limit(uint64_t size) {
  uint64_t gpu = (uint64_t)device_number("memory") << 20;
  if (size <= memory_free() || size > gpu || in_use > gpu - size) return;
  char message[300];
  snprintf(message, sizeof message, "an allocation of %llu bytes fails: ptxlab gives GPUs %llu bytes on this machine, and %llu are in use",
           (unsigned long long)size, (unsigned long long)memory_limit(), (unsigned long long)in_use);
  finding("out-of-memory", message, 0, "run the program with smaller sizes, or where more memory is free: half of it is for GPUs");
}

static void count_shared(Allocation *one, void *with) { *(int *)with += host_may_touch(one); }
bool is_memory_shared(void) {
  int count = 0;
  each_allocation(count_shared, &count);
  return count;
}

static void note_allocation(const Allocation *one) {
  Bytes bytes = {0};
  put_number(&bytes, one->base);
  put_number(&bytes, one->size);
  put_number(&bytes, one->kind);
  put_number(&bytes, is_pe() ? pe_number() : one->device);
  put_frames(&bytes, one->frames, one->count);
  notify(REQUEST_ALLOCATE, &bytes);
}

// A place in the table for an allocation at an address.
static Allocation *insert(uint64_t base) {
  if (used == capacity) table = realloc(table, (capacity = 2 * capacity + 64) * sizeof *table);
  size_t at = used++;
  for (; at && table[at - 1]->base > base; at--) table[at] = table[at - 1];
  return table[at] = calloc(1, sizeof **table);
}

Allocation *allocate_at(uint64_t base, uint64_t size, Kind kind) {
  uint64_t whole = (size + PAGE - 1) / PAGE * PAGE;
  say_limit(size);
  if (size > memory_free()) return 0;
  Allocation *one = insert(base);
  *one = (Allocation){.base = base, .size = size, .kind = kind, .device = current_gpu};
  one->count = frames_here(one->frames);
  in_use += whole;
  if (host_may_touch(one)) mprotect((void *)one->base, whole, PROT_READ | PROT_WRITE);
  note_allocation(one);
  return one;
}

Allocation *allocate(uint64_t size, Kind kind) {
  LOCKED;
  start();
  if (!next_address) next_address = part_of_pe(pe_number()) + GAP;
  uint64_t whole = (size + PAGE - 1) / PAGE * PAGE;
  if (next_address + whole + GAP > own_end()) return 0;
  Allocation *made = allocate_at(next_address, size, kind);
  if (made) next_address += whole + GAP;
  return made;
}

void note_peer(uint64_t base, uint64_t size) {
  Allocation *one = insert(base);
  *one = (Allocation){.base = base, .size = size, .kind = PEER, .flags = 1};
}

Allocation *allocation_at(uint64_t address) {
  size_t low = 0, high = used;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (table[middle]->base <= address) low = middle + 1; else high = middle;
  }
  // An address right after an allocation, and in the gap after it, is reported as one of that allocation.
  return low && address < table[low - 1]->base + table[low - 1]->size + GAP / 2 ? table[low - 1] : 0;
}

// --- Addresses that memory is mapped to in steps; see virtual.c.

static bool has_mapped;

uint64_t home_of(uint64_t address) {
  if (!has_mapped) return address;
  const Allocation *one = allocation_at(address);
  return one && one->kind == MAPPED && !one->freed && address < one->base + one->size ? one->home + (address - one->base) : address;
}

uint64_t reserve_addresses(uint64_t size) {
  LOCKED;
  const uint64_t granule = 2ull << 20;
  if (!next_address) next_address = part_of_pe(pe_number()) + GAP;
  uint64_t base = (next_address + granule - 1) / granule * granule;
  if (base + size + GAP > own_end()) return 0;
  next_address = base + size + GAP;
  return base;
}

Allocation *map_addresses(uint64_t base, uint64_t size, uint64_t home, int device) {
  LOCKED;
  has_mapped = true;
  if (used == capacity) table = realloc(table, (capacity = 2 * capacity + 64) * sizeof *table);
  size_t at = used++;
  for (; at && table[at - 1]->base > base; at--) table[at] = table[at - 1];
  if (at && table[at - 1]->base == base && table[at - 1]->freed) {  // it was mapped before
    memmove(table + at, table + at + 1, (used - at - 1) * sizeof *table);
    used--, at--;
  } else table[at] = calloc(1, sizeof **table);
  *table[at] = (Allocation){.base = base, .size = size, .kind = MAPPED, .device = device, .home = home};
  table[at]->count = frames_here(table[at]->frames);
  return table[at];
}

void note_mapping(const Allocation *one) {
  Bytes bytes = {0};
  const uint64_t numbers[] = {one->base, one->size, one->home, one->device};
  for (int i = 0; i < 4; i++) put_number(&bytes, numbers[i]);
  put_frames(&bytes, one->frames, one->count);
  notify(REQUEST_MAP, &bytes);
}

void unmap_addresses(uint64_t base) {
  Allocation *one = allocation_at(base);
  one->freed = true;
  Bytes bytes = {0};
  put_number(&bytes, base);
  void *frames[FRAMES];
  put_frames(&bytes, frames, frames_here(frames));
  notify(REQUEST_UNMAP, &bytes);
}

void each_allocation(void (*use)(Allocation *, void *), void *with) {
  for (size_t i = 0; i < used; i++)
    if (!table[i]->freed) use(table[i], with);
}

cudaError_t release(void *pointer, const char *call, unsigned kinds) {
  LOCKED;
  has_run(0, ALL);
  uint64_t address = (uint64_t)pointer;
  Allocation *one = allocation_at(address);
  char message[300];
  if (!one || one->base != address) {
    bool inside = one && address < one->base + one->size && address > one->base;
    snprintf(message, sizeof message, inside ? "`%s` of an address inside an allocation" : "`%s` of memory that CUDA did not allocate", call);
    finding("bad-free", message, inside ? address : 0, 0);
    return fail(cudaErrorInvalidValue);
  }
  if (one->freed) {
    snprintf(message, sizeof message, "`%s` of memory that was freed before", call);
    finding("double-free", message, address, 0);
    return fail(cudaErrorInvalidValue);
  }
  if (!(kinds & 1u << one->kind)) {
    snprintf(message, sizeof message, "`%s` of memory that another function must free", call);
    finding("bad-free", message, address, one->kind == PINNED ? "use `cudaFreeHost`" : "use `cudaFree`");
    return fail(cudaErrorInvalidValue);
  }
  uint64_t whole = (one->size + PAGE - 1) / PAGE * PAGE;
  one->freed = true;
  in_use -= whole;
  mprotect((void *)one->base, whole, PROT_NONE);
  if (whole) madvise(mine(one->base), whole, MADV_REMOVE);
  Bytes bytes = {0};
  put_number(&bytes, address);
  void *frames[FRAMES];
  put_frames(&bytes, frames, frames_here(frames));
  notify(REQUEST_FREE, &bytes);
  return cudaSuccess;
}

cudaError_t allocate_again(void *pointer) {
  LOCKED;
  Allocation *one = allocation_at((uint64_t)pointer);
  one->was_run = true;
  if (!one->freed) return cudaSuccess;
  run_queued();
  one->freed = false;
  in_use += (one->size + PAGE - 1) / PAGE * PAGE;
  note_allocation(one);
  return cudaSuccess;
}

typedef struct { Allocation *one; uint64_t bytes, count; } Leaks;

static void add_leak(Allocation *one, void *with) {
  Leaks *leaks = with;
  if (one->kind == VARIABLE || one->kind == REGISTERED || one->kind == MAPPED || one->flags) return;
  if (one->of_graph && !one->was_run) return;
  if (!leaks->count++) leaks->one = one;
  leaks->bytes += one->size;
}

void note_leaks(void) {
  Leaks leaks = {0};
  each_allocation(add_leak, &leaks);
  if (!leaks.count || sticky) return;
  char message[200];
  snprintf(message, sizeof message, "%llu allocation%s, %llu bytes in all, not freed when the program ended",
           (unsigned long long)leaks.count, leaks.count == 1 ? "" : "s", (unsigned long long)leaks.bytes);
  finding_at("leak", message, 0, 0, leaks.one->frames, leaks.one->count);
}

// Where the library finds bytes that a call names; null after a finding.
static char *reach(const void *pointer, uint64_t size, const char *call, const char *does, bool is_device) {
  uint64_t address = (uint64_t)pointer;
  char message[400];
  if (!is_device_address(address)) {
    const char *variable = variable_at(pointer);
    if (variable && size) {
      snprintf(message, sizeof message, "`%s` %s the variable `%s` of the device by its name, which is not its address", call, does, variable);
      finding("wrong-direction", message, 0, "copy by `cudaMemcpyToSymbol` or `cudaMemcpyFromSymbol`, or ask `cudaGetSymbolAddress`");
      return 0;
    }
    if (is_device && size) {
      snprintf(message, sizeof message, "`%s` %s memory of the device, and got an address of the host", call, does);
      finding("wrong-direction", message, 0, "check the order of the pointers and the `cudaMemcpyKind`");
      return 0;
    }
    return (char *)pointer;
  }
  Allocation *one = allocation_at(address);
  if (!one) {
    snprintf(message, sizeof message, "`%s` %s memory at an address that CUDA never allocated", call, does);
    finding("bad-copy", message, address, 0);
    return 0;
  }
  if (one->freed) {
    snprintf(message, sizeof message, "`%s` %s memory that was freed", call, does);
    finding("use-after-free", message, address, 0);
    return 0;
  }
  if (address + size > one->base + one->size) {
    snprintf(message, sizeof message, "`%s` %s %llu bytes from offset %llu of an allocation of %llu bytes", call, does,
             (unsigned long long)size, (unsigned long long)(address - one->base), (unsigned long long)one->size);
    finding("bad-copy", message, address, 0);
    return 0;
  }
  return mine(address);
}

// Whether the kind of a copy says that an address of the device is one of the host.
static bool wrong_kind(const void *pointer, bool said_host, const char *call, const char *does) {
  Allocation *one = is_device_address((uint64_t)pointer) ? allocation_at((uint64_t)pointer) : 0;
  if (!said_host || !one || one->freed || host_may_touch(one)) return false;
  char message[300];
  snprintf(message, sizeof message, "`%s` %s memory of the host, and got an address of the device", call, does);
  finding("wrong-direction", message, (uint64_t)pointer, "check the order of the pointers and the `cudaMemcpyKind`");
  return true;
}

// Queues a copy or a fill. What it reads of memory that is the host's alone is read now.
static cudaError_t queue_box(const Operation *o, bool is_staged, cudaStream_t stream) {
  Bytes bytes = {0};
  put_order(&bytes, stream);
  void *frames[FRAMES];
  put_frames(&bytes, frames, frames_here(frames));
  put_text(&bytes, o->name ? o->name : "");
  put_number(&bytes, (uint64_t)o->to);
  put_number(&bytes, o->kind == FILL || is_staged ? 0 : (uint64_t)o->from);
  const uint64_t sizes[] = {o->width, o->height, o->depth, o->to_pitch, o->to_slice};
  for (int i = 0; i < 5; i++) put_number(&bytes, sizes[i]);
  put_number(&bytes, is_staged ? o->width : o->from_pitch);
  put_number(&bytes, is_staged ? o->width * o->height : o->from_slice);
  put_number(&bytes, o->kind == FILL ? o->element : 0);
  put_number(&bytes, o->value);
  put_number(&bytes, is_staged ? o->width * o->height * o->depth : 0);
  for (size_t z = 0; is_staged && z < o->depth; z++)
    for (size_t y = 0; y < o->height; y++) put(&bytes, (const char *)o->from + z * o->from_slice + y * o->from_pitch, o->width);
  notify(REQUEST_COPY, &bytes);
  queued(stream, 0, false);
  return cudaSuccess;
}

// Before memory of the device is copied to the host's own, which runs all that is queued: what reads it is among that.
static void read_too(const Operation *o, cudaStream_t stream) {
  Allocation *from = is_device_address((uint64_t)o->from) ? allocation_at((uint64_t)o->from) : 0;
  if (!(is_pe() || is_queued()) || o->kind != COPY || is_device_address((uint64_t)o->to)) return;
  if (!from || from->freed || host_may_touch(from) || (uint64_t)o->from + o->width > from->base + from->size) return;
  Operation read = *o;
  read.to = 0, read.height = read.depth = 1;
  if (read.width > MOST_FILLED) read.width = MOST_FILLED;
  if (read.width) queue_box(&read, false, stream);
}

static cudaError_t copy_box(const Operation *o, bool later, cudaStream_t stream) {
  bool to_device = o->direction == cudaMemcpyHostToDevice || o->direction == cudaMemcpyDeviceToDevice;
  bool from_device = o->direction == cudaMemcpyDeviceToHost || o->direction == cudaMemcpyDeviceToDevice;
  bool to_host = o->direction == cudaMemcpyDeviceToHost || o->direction == cudaMemcpyHostToHost;
  bool from_host = o->direction == cudaMemcpyHostToDevice || o->direction == cudaMemcpyHostToHost;
  CHECKED((unsigned)o->direction <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
  if (!o->width || !o->height || !o->depth) return cudaSuccess;
  if (o->height > 1) CHECKED(o->to_pitch >= o->width && o->from_pitch >= o->width, cudaErrorInvalidPitchValue);
  uint64_t reach_to = (o->depth - 1) * o->to_slice + (o->height - 1) * o->to_pitch + o->width;
  uint64_t reach_from = (o->depth - 1) * o->from_slice + (o->height - 1) * o->from_pitch + o->width;
  if (wrong_kind(o->to, to_host, o->name, "writes") || wrong_kind(o->from, from_host, o->name, "reads")) return fail(cudaErrorInvalidValue);
  char *to = reach(o->to, reach_to, o->name, "writes", to_device);
  char *from = to ? reach(o->from, reach_from, o->name, "reads", from_device) : 0;
  CHECKED(to && from, cudaErrorInvalidValue);
  if (later && !is_device_address((uint64_t)o->to)) {  // the host waits
    read_too(o, stream);
    synchronized(stream);
    cudaError_t error = settled();
    if (error) return error;
  }
  else if (later) return queue_box(o, !is_device_address((uint64_t)o->from), stream);
  for (size_t z = 0; z < o->depth; z++)
    for (size_t y = 0; y < o->height; y++)
      memmove(to + z * o->to_slice + y * o->to_pitch, from + z * o->from_slice + y * o->from_pitch, o->width);
  return cudaSuccess;
}

static cudaError_t fill_box(const Operation *o, bool later, cudaStream_t stream) {
  if (!o->width || !o->height || !o->depth) return cudaSuccess;
  uint64_t all = (o->depth - 1) * o->to_slice + (o->height - 1) * o->to_pitch + o->width;
  char *to = reach(o->to, all, o->name, "writes", true);
  CHECKED(to, cudaErrorInvalidValue);
  if (later) return queue_box(o, false, stream);
  for (size_t z = 0; z < o->depth; z++)
    for (size_t y = 0; y < o->height; y++) {
      char *row = to + z * o->to_slice + y * o->to_pitch;
      if (o->element == 1) memset(row, (int)o->value, o->width);
      else for (size_t x = 0; x < o->width; x += o->element) memcpy(row + x, &o->value, o->element);
    }
  return cudaSuccess;
}

cudaError_t perform_memory(const Operation *o, bool later, cudaStream_t stream) {
  return o->kind == COPY ? copy_box(o, later, stream) : fill_box(o, later, stream);
}

// --- The calls.

static cudaError_t give(void **into, size_t size, Kind kind) {
  ALIVE;
  CHECKED(into, cudaErrorInvalidValue);
  if (!size) { *into = 0; return cudaSuccess; }
  Allocation *made = allocate(size, kind);
  CHECKED(made, cudaErrorMemoryAllocation);
  *into = (void *)made->base;
  return cudaSuccess;
}

#define DEVICE_KINDS (1u << DEVICE | 1u << MANAGED | 1u << POOLED)

API cudaError_t cudaMalloc(void **into, size_t size) { return give(into, size, DEVICE); }
API cudaError_t cudaMallocManaged(void **into, size_t size, unsigned flags) {
  CHECKED(size && (flags == cudaMemAttachGlobal || flags == cudaMemAttachHost), cudaErrorInvalidValue);
  return give(into, size, MANAGED);
}
API cudaError_t cudaMallocHost(void **into, size_t size) { return give(into, size, PINNED); }
API cudaError_t cudaHostAlloc(void **into, size_t size, unsigned flags) { (void)flags; return give(into, size, PINNED); }
API cudaError_t cudaFree(void *pointer) {
  start();
  synchronized_all();
  cudaError_t error = settled();
  return error ? error : pointer ? release(pointer, "cudaFree", DEVICE_KINDS) : cudaSuccess;
}
API cudaError_t cudaFreeHost(void *pointer) {
  ALIVE;
  synchronized_all();
  return pointer ? release(pointer, "cudaFreeHost", 1u << PINNED) : cudaSuccess;
}

static size_t pitch_of(size_t width) { return (width + 511) / 512 * 512; }

API cudaError_t cudaMallocPitch(void **into, size_t *pitch, size_t width, size_t height) {
  CHECKED(pitch, cudaErrorInvalidValue);
  *pitch = pitch_of(width);
  return give(into, *pitch * height, DEVICE);
}
API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *into, struct cudaExtent extent) {
  CHECKED(into, cudaErrorInvalidValue);
  *into = (struct cudaPitchedPtr){0, pitch_of(extent.width), extent.width, extent.height};
  return give(&into->ptr, into->pitch * extent.height * extent.depth, DEVICE);
}

// Memory of the host's own that kernels are to reach: its pages become pages of device memory.
API cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags) {
  ALIVE;
  CHECKED(pointer && size, cudaErrorInvalidValue);
  LOCKED;
  uint64_t from = (uint64_t)pointer & ~(PAGE - 1), offset = (uint64_t)pointer - from;
  uint64_t whole = (offset + size + PAGE - 1) / PAGE * PAGE;
  Allocation *one = allocate(whole, REGISTERED);
  CHECKED(one, cudaErrorMemoryAllocation);
  memcpy((void *)one->base, (void *)from, whole);
  one->flags = flags | 0x80000000u;
  // The program's own address stays, and shows the same memory as the device's.
  if (mremap((void *)one->base, 0, whole, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) == MAP_FAILED) return fail(cudaErrorNotSupported);
  Bytes bytes = {0};
  put_number(&bytes, from);
  put_number(&bytes, one->base);
  put_number(&bytes, whole);
  notify(REQUEST_ALIAS, &bytes);
  return cudaSuccess;
}
API cudaError_t cudaHostUnregister(void *pointer) { ALIVE; (void)pointer; return cudaSuccess; }
API cudaError_t cudaHostGetDevicePointer(void **into, void *host, unsigned flags) {
  ALIVE;
  (void)flags;
  *into = host;
  return cudaSuccess;
}
API cudaError_t cudaHostGetFlags(unsigned *flags, void *host) { ALIVE; (void)host; *flags = cudaHostAllocMapped; return cudaSuccess; }

static Operation rows(const char *name, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                      enum cudaMemcpyKind kind) {
  return (Operation){.kind = COPY, .name = name, .to = to, .to_pitch = to_pitch, .from = from, .from_pitch = from_pitch,
                     .width = width, .height = height, .depth = 1, .direction = kind};
}

// A copy that the host waits for. It is on the legacy stream, which waits for all others that do not say otherwise.
static cudaError_t now(Operation operation) {
  ALIVE;
  if (is_pe() && is_device_address((uint64_t)operation.to)) {  // other PEs may access what it writes, unordered
    cudaError_t error = issue(&operation, 0);
    synchronized_all();
    return error ? error : settled();
  }
  started_on(0);
  if (is_pe() || gpu_count() == 1) read_too(&operation, 0);  // of several, it is not said whose default stream it is on
  if (may_wait_for_host()) synchronized(0); else synchronized_all();
  cudaError_t error = settled();
  if (error) return error;
  return perform_memory(&operation, false, 0);
}
static cudaError_t later(Operation operation, cudaStream_t stream) { ALIVE; return issue(&operation, stream); }

API cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
  return now(rows("cudaMemcpy", to, size, from, size, size, 1, kind));
}
API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return later(rows("cudaMemcpyAsync", to, size, from, size, size, 1, kind), stream);
}
API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size) {
  CHECKED(is_here(to_device) && is_here(from_device), cudaErrorInvalidDevice);
  return now(rows("cudaMemcpyPeer", to, size, from, size, size, 1, cudaMemcpyDeviceToDevice));
}
API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size, cudaStream_t stream) {
  CHECKED(is_here(to_device) && is_here(from_device), cudaErrorInvalidDevice);
  return later(rows("cudaMemcpyPeerAsync", to, size, from, size, size, 1, cudaMemcpyDeviceToDevice), stream);
}
API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                             enum cudaMemcpyKind kind) {
  CHECKED(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
  return now(rows("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind));
}
API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                                  enum cudaMemcpyKind kind, cudaStream_t stream) {
  CHECKED(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
  return later(rows("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind), stream);
}

static Operation fill(const char *name, void *to, size_t pitch, int value, size_t width, size_t height, size_t depth, size_t slice) {
  return (Operation){.kind = FILL, .name = name, .to = to, .to_pitch = pitch, .to_slice = slice, .value = (unsigned)value & 255,
                     .element = 1, .width = width, .height = height, .depth = depth};
}
// A fill that is not asynchronous: the host waits for it if it may touch the memory, and else does not.
cudaError_t fill_now(Operation operation) {
  Allocation *one = is_device_address((uint64_t)operation.to) ? allocation_at((uint64_t)operation.to) : 0;
  cudaError_t error = later(operation, 0);
  if (error || !one || !host_may_touch(one) || is_capturing(0)) return error;
  synchronized(0);
  return settled();
}
API cudaError_t cudaMemset(void *to, int value, size_t size) { return fill_now(fill("cudaMemset", to, size, value, size, 1, 1, 0)); }
API cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
  return later(fill("cudaMemsetAsync", to, size, value, size, 1, 1, 0), stream);
}
API cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  return fill_now(fill("cudaMemset2D", to, pitch, value, width, height, 1, 0));
}
API cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return later(fill("cudaMemset2DAsync", to, pitch, value, width, height, 1, 0), stream);
}
API cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent) {
  return fill_now(fill("cudaMemset3D", to.ptr, to.pitch, value, extent.width, extent.height, extent.depth, to.pitch * to.ysize));
}

// Memory is there from one operation of a stream to another: what other streams do with it outside of these is a race, as
// with a fill.
static cudaError_t reach_of(const char *call, void *pointer, cudaStream_t stream) {
  Allocation *one = defers() && is_device_address((uint64_t)pointer) ? allocation_at((uint64_t)pointer) : 0;
  if (!one || one->freed || one->base != (uint64_t)pointer || one->kind != POOLED) return cudaSuccess;
  size_t size = one->size < MOST_FILLED ? one->size : MOST_FILLED;
  return size ? later(fill(call, pointer, size, 0, size, 1, 1, 0), stream) : cudaSuccess;
}

API cudaError_t cudaMallocAsync(void **into, size_t size, cudaStream_t stream) {
  cudaError_t error = give(into, size, POOLED);
  if (error || !*into) return error;
  if (!is_capturing(stream)) return reach_of("cudaMallocAsync", *into, stream);
  allocation_at((uint64_t)*into)->of_graph = true;
  return issue(&(Operation){.kind = ALLOCATE, .to = *into}, stream);
}
API cudaError_t cudaMallocFromPoolAsync(void **into, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  (void)pool;
  return cudaMallocAsync(into, size, stream);
}
API cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
  ALIVE;
  if (is_capturing(stream)) return issue(&(Operation){.kind = FREE, .to = pointer}, stream);
  cudaError_t error = reach_of("cudaFreeAsync", pointer, stream);
  return error ? error : release(pointer, "cudaFreeAsync", DEVICE_KINDS);
}

static cudaError_t with_symbol(const char *name, const void *symbol_, void *host, size_t size, size_t offset,
                               enum cudaMemcpyKind kind, bool is_to, bool is_async, cudaStream_t stream) {
  ALIVE;
  uint64_t address, bytes;
  cudaError_t error = symbol(symbol_, &address, &bytes);
  if (error) return fail(error);
  void *there = (char *)address + offset;
  if (offset + size > bytes) {
    char message[300];
    snprintf(message, sizeof message, "`%s` %s %zu bytes from offset %zu of a variable of %llu bytes", name, is_to ? "writes" : "reads",
             size, offset, (unsigned long long)bytes);
    finding("bad-copy", message, address, 0);
    return fail(cudaErrorInvalidValue);
  }
  Operation o = is_to ? rows(name, there, size, host, size, size, 1, kind) : rows(name, host, size, there, size, size, 1, kind);
  return is_async ? later(o, stream) : now(o);
}
API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, enum cudaMemcpyKind kind) {
  return with_symbol("cudaMemcpyToSymbol", symbol, (void *)from, size, offset, kind, true, false, 0);
}
API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset, enum cudaMemcpyKind kind,
                                        cudaStream_t stream) {
  return with_symbol("cudaMemcpyToSymbolAsync", symbol, (void *)from, size, offset, kind, true, true, stream);
}
API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind) {
  return with_symbol("cudaMemcpyFromSymbol", symbol, to, size, offset, kind, false, false, 0);
}
API cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind,
                                          cudaStream_t stream) {
  return with_symbol("cudaMemcpyFromSymbolAsync", symbol, to, size, offset, kind, false, true, stream);
}
API cudaError_t cudaGetSymbolAddress(void **into, const void *symbol_) {
  ALIVE;
  uint64_t size;
  return fail(symbol(symbol_, (uint64_t *)into, &size));
}
API cudaError_t cudaGetSymbolSize(size_t *into, const void *symbol_) {
  ALIVE;
  uint64_t address;
  return fail(symbol(symbol_, &address, (uint64_t *)into));
}

API cudaError_t cudaMemGetInfo(size_t *free_, size_t *total) {
  ALIVE;
  *free_ = memory_free();
  *total = (size_t)device_number("memory") << 20;
  return cudaSuccess;
}
API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *into, const void *pointer) {
  ALIVE;
  Allocation *one = is_device_address((uint64_t)pointer) ? allocation_at((uint64_t)pointer) : 0;
  *into = (struct cudaPointerAttributes){.type = cudaMemoryTypeUnregistered, .device = -2, .hostPointer = (void *)pointer};
  if (!one || one->freed) return cudaSuccess;
  into->type = one->kind == MANAGED ? cudaMemoryTypeManaged : host_may_touch(one) ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  into->device = one->device;
  into->devicePointer = (void *)pointer;
  into->hostPointer = host_may_touch(one) ? (void *)pointer : 0;
  return cudaSuccess;
}
API cudaError_t cudaMemPrefetchAsync(const void *p, size_t n, struct cudaMemLocation l, unsigned f, cudaStream_t s) {
  (void)p, (void)n, (void)l, (void)f, (void)s;
  ALIVE;
  return cudaSuccess;
}
API cudaError_t cudaMemAdvise(const void *p, size_t n, enum cudaMemoryAdvise a, struct cudaMemLocation l) {
  (void)p, (void)n, (void)a, (void)l;
  ALIVE;
  return cudaSuccess;
}
API cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, void *p, size_t n, unsigned f) {
  (void)s, (void)p, (void)n, (void)f;
  ALIVE;
  return cudaSuccess;
}
