// Streams, events, and what the host may not touch yet: memory that a kernel or a copy writes, until it has waited.
//
// Operations run when they are issued, or are queued where there are several streams. What was issued on which stream is counted, as in a vector clock: the host's says
// what it has waited for. Until then, pages that were written are closed to the host; an access is a fault, and a finding
// if what it touches was written.
#include "runtime.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

typedef struct { uint32_t *counts; int size; } Clock;
struct Stream { int number, device; unsigned flags; int priority; bool destroyed; Clock clock; cudaGraph_t capture; int capture_mode; Nodes last; };
struct Event { int device; Clock clock; double time; bool recorded, destroyed; unsigned flags; cudaGraph_t capture; Nodes last; };
typedef struct Pending Pending;
struct Pending {
  Pending *next;
  Stream *stream;
  uint32_t count;
  uint64_t start, size;
  char *before;  // what was there; null where every byte is written
  bool is_read;
  unsigned char *reads;  // of a kernel that reads: a bit for each byte; null where every byte is read
  char what[160];
};

static Stream firsts[MOST_GPUS], per_threads[MOST_GPUS];  // the default streams of each GPU
static Stream **streams;
static int stream_count;
static Clock host;
static Pending *pending;
static char *output;
static size_t output_size;

static void join(Clock *into, const Clock *from) {
  if (from->size > into->size) {
    into->counts = realloc(into->counts, from->size * sizeof *into->counts);
    memset(into->counts + into->size, 0, (from->size - into->size) * sizeof *into->counts);
    into->size = from->size;
  }
  for (int i = 0; i < from->size; i++)
    if (into->counts[i] < from->counts[i]) into->counts[i] = from->counts[i];
}

static void all_streams(void) {
  if (stream_count) return;
  int gpus = gpu_count();
  streams = malloc(2 * gpus * sizeof *streams);
  for (int i = 0; i < gpus; i++) {
    firsts[i] = (Stream){.number = 2 * i, .device = i}, per_threads[i] = (Stream){.number = 2 * i + 1, .device = i};
    streams[2 * i] = &firsts[i], streams[2 * i + 1] = &per_threads[i];
  }
  stream_count = 2 * gpus;
}

bool has_streams(void) { all_streams(); return stream_count > 2 * gpu_count(); }

Stream *stream_of(cudaStream_t stream) {
  all_streams();
  return !stream || stream == cudaStreamLegacy ? &firsts[current_gpu]
         : stream == cudaStreamPerThread ? &per_threads[current_gpu] : (Stream *)stream;
}

int device_of_stream(cudaStream_t stream) { return stream_of(stream)->device; }

// What the default stream of a GPU waits for, and what waits for it.
static bool is_blocking(const Stream *stream, int device) {
  return stream->device == device && !(stream->flags & cudaStreamNonBlocking);
}
static void join_blocking(Stream *first) {
  for (int i = 0; i < stream_count; i++)
    if (streams[i] != first && is_blocking(streams[i], first->device)) join(&first->clock, &streams[i]->clock);
}

void put_order(Bytes *bytes, cudaStream_t stream) {
  const Stream *one = stream_of(stream);
  put_number(bytes, is_pe() ? pe_number() : one->device);
  put_number(bytes, one->number);
  put_number(bytes, one->clock.size);
  for (int i = 0; i < one->clock.size; i++) put_number(bytes, one->clock.counts[i]);
  put_number(bytes, in_explicit_graph());
}

// The next operation on a stream: what it comes after.
static uint32_t advance(Stream *stream) {
  all_streams();
  Stream *first = &firsts[stream->device];
  if (stream == first) join_blocking(first);
  else if (!(stream->flags & cudaStreamNonBlocking)) join(&stream->clock, &first->clock);
  join(&stream->clock, &host);
  if (stream->clock.size <= stream->number) {
    uint32_t *counts = calloc(stream->number + 1, sizeof *counts);
    Clock more = {counts, stream->number + 1};
    join(&stream->clock, &more);
    free(counts);
  }
  return ++stream->clock.counts[stream->number];
}

// Whether a kernel reads some of these bytes, which are among those that it may read.
static bool reads_any(const Pending *one, uint64_t from, uint64_t to) {
  for (uint64_t at = from - one->start, end = to - one->start; at < end; at++) {
    if (!(at & 7) && !one->reads[at / 8]) at += 7;
    else if (one->reads[at / 8] >> (at & 7) & 1) return true;
  }
  return false;
}

static void protect(const Pending *one, bool open) {
  uint64_t from = one->start & ~4095ull, to = (one->start + one->size + 4095) & ~4095ull;
  if (!one->before && !one->reads) { mprotect((void *)from, to - from, open ? PROT_READ | PROT_WRITE : one->is_read ? PROT_READ : PROT_NONE); return; }
  for (uint64_t page = from; page < to; page += 4096) {
    uint64_t low = page < one->start ? one->start : page, high = page + 4096;
    if (high > one->start + one->size) high = one->start + one->size;
    if (open || (one->reads ? reads_any(one, low, high) : memcmp(mine(low), one->before + (low - one->start), high - low) != 0))
      mprotect((void *)page, 4096, open ? PROT_READ | PROT_WRITE : one->is_read ? PROT_READ : PROT_NONE);
  }
}

// Closes what is pending, last what is closed to reads, too: a page that a copy reads may be written by another one.
static void close_all(void) {
  for (int is_read = 1; is_read >= 0; is_read--)
    for (Pending *one = pending; one; one = one->next)
      if (one->is_read == is_read) protect(one, false);
}

// What an allocation held is copied again at each launch: into memory that was used for that before, which is faster.
static void give_back(Allocation *whole, char *copy) {
  if (whole->spare || whole->freed) free(copy);
  else whole->spare = copy;
}

static void drop(Pending **at) {
  Pending *one = *at;
  *at = one->next;
  Allocation *whole = allocation_at(one->start);
  if (whole && !whole->freed) protect(one, true);
  if (whole && one->before) give_back(whole, one->before);
  free(one->reads);
  free(one);
  close_all();
}

static void waited(const Clock *clock) {
  LOCKED;
  wait_for(clock->counts, clock->size);
  join(&host, clock);
  for (Pending **at = &pending; *at;) {
    Pending *one = *at;
    if (one->stream->number < host.size && one->count <= host.counts[one->stream->number]) drop(at);
    else at = &one->next;
  }
  print_output();
}

static bool has_waited(const Clock *clock) {
  for (int i = 0; i < clock->size; i++)
    if (clock->counts[i] > (i < host.size ? host.counts[i] : 0)) return false;
  return true;
}

// What a stream comes after, and that is of others, too, if it is the default one.
static const Clock *clock_of(cudaStream_t stream) {
  Stream *one = stream_of(stream);
  if (one == &firsts[one->device]) join_blocking(one);
  return &one->clock;
}

static bool is_complete(cudaStream_t stream) {
  LOCKED;
  const Clock *clock = clock_of(stream);
  return has_run(clock->counts, clock->size);
}

void synchronized(cudaStream_t stream) {
  let_others_issue();
  LOCKED;
  waited(clock_of(stream));
}

void synchronized_device(int device) {
  let_others_issue();
  LOCKED;
  all_streams();
  for (int i = 0; i < stream_count; i++)
    if (streams[i]->device == device) waited(&streams[i]->clock);
}


void synchronized_all(void) {
  let_others_issue();
  LOCKED;
  all_streams();
  for (int i = 0; i < stream_count; i++) waited(&streams[i]->clock);
}

static Pending *new_pending(Stream *on, uint32_t count, uint64_t start, uint64_t size, bool is_read, const char *what) {
  Pending *one = calloc(1, sizeof *one);
  *one = (Pending){.next = pending, .stream = on, .count = count, .start = start, .size = size, .is_read = is_read};
  snprintf(one->what, sizeof one->what, "%s", what);
  return pending = one;
}

static void add_pending(cudaStream_t stream, uint64_t start, uint64_t size, char *before, bool is_read, const char *what) {
  Stream *on = stream_of(stream);
  Pending *one = new_pending(on, on->clock.counts[on->number], start, size, is_read, what);
  one->before = before;
  if (is_read) close_all();
  else protect(one, false);
}

// Memory that the host may touch, as it is before a launch.
typedef struct { Allocation *one; char *before; } Kept;
typedef struct { Kept *kept; size_t count; uint64_t bytes, most; } Snapshot;

static void keep(Allocation *one, void *with) {
  Snapshot *all = with;
  if (!host_may_touch(one) || one->kind == REGISTERED || all->bytes + one->size > all->most) return;
  all->kept = realloc(all->kept, (all->count + 1) * sizeof *all->kept);
  char *before = one->spare ? one->spare : malloc(one->size ? one->size : 1);
  one->spare = 0;
  memcpy(before, mine(one->base), one->size);
  all->kept[all->count++] = (Kept){one, before};
  all->bytes += one->size;
}

void *snapshot_of_shared(uint64_t most) {
  Snapshot *made = calloc(1, sizeof *made);
  made->most = most;
  each_allocation(keep, made);
  return made;
}

// What copies have written since is theirs, and no change of a kernel.
static void without_copies(const Kept *kept) {
  uint64_t start = kept->one->base, end = start + kept->one->size;
  for (const Pending *copy = pending; copy && !kept->one->freed; copy = copy->next) {
    if (copy->before || copy->is_read) continue;
    uint64_t from = copy->start < start ? start : copy->start, to = copy->start + copy->size > end ? end : copy->start + copy->size;
    if (from < to) memcpy(kept->before + (from - start), mine(from), to - from);
  }
}

void pending_changes(cudaStream_t stream, void *snapshot, const char *kernel) {
  Snapshot *all = snapshot;
  char what[160];
  snprintf(what, sizeof what, "the kernel `%.140s`", kernel ? kernel : "");
  for (size_t i = 0; i < all->count; i++) {
    Kept *one = &all->kept[i];
    without_copies(one);
    if (kernel && !one->one->freed && memcmp(one->before, mine(one->one->base), one->one->size))
      add_pending(stream, one->one->base, one->one->size, one->before, false, what);
    else give_back(one->one, one->before);
  }
  free(all->kept);
  free(all);
}

// What kernels have read of memory that the host may touch: it may not write that before it has waited.
void pending_reads(Bytes *answer) {
  for (uint64_t left = take_number(answer); left; left--) {
    char what[160];
    snprintf(what, sizeof what, "the kernel `%.140s`", take_text(answer));
    Stream *stream = streams[take_number(answer)];
    uint32_t count = (uint32_t)take_number(answer);
    uint64_t start = take_number(answer), size = take_number(answer), bytes = take_number(answer);
    Allocation *whole = allocation_at(start);
    bool is_over = stream->number < host.size && count <= host.counts[stream->number];
    if (!is_over && whole && !whole->freed) {
      Pending *one = new_pending(stream, count, start, size, true, what);
      one->reads = memcpy(malloc(bytes), answer->data + answer->at, bytes);
    }
    answer->at += bytes;
  }
  close_all();
}

// --- Faults of the host.

static Pending *stepped;

static void give_up(int number) {
  signal(number, SIG_DFL);  // the instruction runs again, and ends the program as it would without ptxlab
}

static void crashed(int number) {
  const char *name = number == SIGSEGV ? "SIGSEGV" : number == SIGABRT ? "SIGABRT" : number == SIGFPE ? "SIGFPE"
                   : number == SIGILL ? "SIGILL" : "SIGBUS";
  char message[100];
  snprintf(message, sizeof message, "the host code of the program was ended by %s", name);
  finding("program-crash", message, 0, 0);
}

static void ended(int number) {
  crashed(number);
  print_output();
  fflush(stdout);
  give_up(number);
  raise(number);
}

// Whether the access of a fault is a write; false where the system does not say.
static bool is_write(const ucontext_t *state) {
#if defined(__x86_64__)
  return state->uc_mcontext.gregs[REG_ERR] & 2;
#else
  for (const char *at = (const char *)state->uc_mcontext.__reserved;;) {  // records, each with its kind and size
    uint32_t head[2];
    memcpy(head, at, sizeof head);
    uint64_t syndrome;
    memcpy(&syndrome, at + 8, sizeof syndrome);
    if (head[0] == ESR_MAGIC) return syndrome >> 6 & 1;
    if (!head[0] || !head[1]) return false;
    at += head[1];
  }
#endif
}

// Whether a pending operation is in the way of an access; it is reported, and counts as waited for. Changes of kernels are
// compared by words, since a value may change in some of its bytes only.
static bool is_found(uint64_t address, uint64_t size, bool writes) {
  char message[400];
  for (Pending **at = &pending; *at; at = &(*at)->next) {
    Pending *wait = *at;
    uint64_t from = wait->before ? address & ~3ull : address, to = wait->before ? (address + size + 3) & ~3ull : address + size;
    if (from < wait->start) from = wait->start;
    if (to > wait->start + wait->size) to = wait->start + wait->size;
    if (from >= to || (wait->is_read && !writes)) continue;
    if (wait->reads && !reads_any(wait, from, to)) continue;
    if (wait->before && !memcmp(mine(from), wait->before + (from - wait->start), to - from)) continue;
    snprintf(message, sizeof message, "the host %s memory that %s %s, without waiting for it",
             writes ? "writes" : "reads", wait->what, wait->is_read ? "reads" : "writes");
    finding("missing-synchronize", message, address, "call `cudaDeviceSynchronize()` or `cudaStreamSynchronize()` before");
    drop(at);
    return true;
  }
  return false;
}

// A system call can't take a fault: what it is given is judged before it, and its pages are open during it.
static bool open_pages(const void *data, size_t size, bool writes) {
  uint64_t address = (uint64_t)data;
  if (!size || !is_device_address(address)) return false;
  LOCKED;
  has_run(0, ALL);
  if (!pending) return false;
  Allocation *one = allocation_at(address);
  if (!one || one->freed || !host_may_touch(one) || address + size > one->base + one->size) return false;
  while (is_found(address, size, writes)) {}
  uint64_t from = address & ~4095ull;
  mprotect((void *)from, address + size - from, PROT_READ | PROT_WRITE);
  return true;
}

static void close_pages(bool were_opened) {
  if (!were_opened) return;
  LOCKED;
  close_all();
}

#define CALL_OF_SYSTEM(type, name, parameters, arguments, data, size, writes) \
  API type name parameters { \
    static type(*real) parameters; \
    if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
    bool opened = open_pages(data, size, writes); \
    type result = real arguments; \
    close_pages(opened); \
    return result; \
  }
CALL_OF_SYSTEM(ssize_t, read, (int file, void *data, size_t size), (file, data, size), data, size, true)
CALL_OF_SYSTEM(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), data, size, false)
CALL_OF_SYSTEM(ssize_t, pread, (int file, void *data, size_t size, off_t at), (file, data, size, at), data, size, true)
CALL_OF_SYSTEM(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at), data, size, false)
CALL_OF_SYSTEM(size_t, fread, (void *data, size_t size, size_t count, FILE *file), (data, size, count, file), data, size * count, true)
CALL_OF_SYSTEM(size_t, fwrite, (const void *data, size_t size, size_t count, FILE *file), (data, size, count, file), data, size * count, false)

static void fault(int number, siginfo_t *info, void *context) {
  if (lock_library_unless(is_open_to_host)) return;  // kernels may wait for this very access: it is made again
  __attribute__((cleanup(unlock_library))) int locked_here = 0;
  ucontext_t *state = context;
  uint64_t address = (uint64_t)info->si_addr;
  Allocation *one = is_device_address(address) ? allocation_at(address) : 0;
  char message[400];
  if (!one || address >= one->base + one->size || one->freed || !host_may_touch(one)) {
    if (one) {
      const char *what = one->freed ? "memory that was freed" : host_may_touch(one) ? "memory after the end of an allocation" : "memory of the device";
      snprintf(message, sizeof message, "the host accesses %s, which ends the program", what);
      finding(one->freed ? "use-after-free" : "host-access", message, address,
              one->freed || host_may_touch(one) ? 0 : "copy it to the host by `cudaMemcpy`, or allocate it by `cudaMallocManaged`");
    }
    else crashed(number);
    print_output();
    give_up(number);
    return;
  }
  bool writes = is_write(state);
  if (is_queued() && writes && may_wait_for_host()) {
    mprotect((void *)(address & ~4095ull), 4096, PROT_READ | PROT_WRITE);
    return;
  }
  if (is_queued()) { has_run(0, ALL); return; }
  if (is_found(address, 1, writes)) return;
  for (Pending *wait = pending; wait; wait = wait->next)
    if (address < ((wait->start + wait->size + 4095) & ~4095ull) && address >= (wait->start & ~4095ull)) {
      mprotect((void *)(address & ~4095ull), 8192, PROT_READ | PROT_WRITE);
#if defined(__x86_64__)
      stepped = wait;
      state->uc_mcontext.gregs[REG_EFL] |= 0x100;  // the trap flag: one instruction, then `step`
#endif  // elsewhere, a program can't step itself: the page stays open until something else is waited for
      return;
    }
  // Where nothing covers the page, another thread has opened it meanwhile.
}

static void step(int number, siginfo_t *info, void *context) {
  ucontext_t *state = context;
  (void)info;
#if defined(__x86_64__)
  state->uc_mcontext.gregs[REG_EFL] &= ~0x100;
#endif
  if (!stepped) { give_up(number); return; }
  stepped = 0;
  close_all();
}

void watch_faults(void) {
  struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, 0);
  action.sa_sigaction = step;
  sigaction(SIGTRAP, &action, 0);
  static const int others[] = {SIGABRT, SIGFPE, SIGILL, SIGBUS};
  for (int i = 0; i < 4; i++) {
    struct sigaction before, own = {.sa_handler = ended};
    if (!sigaction(others[i], 0, &before) && before.sa_handler == SIG_DFL) sigaction(others[i], &own, 0);
  }
}

// --- What kernels print appears when the host waits, as on a GPU.

void keep_output(const char *text, size_t size) {
  output = realloc(output, output_size + size);
  memcpy(output + output_size, text, size);
  output_size += size;
}

void print_output(void) {
  if (!output_size) return;
  fwrite(output, 1, output_size, stdout);
  output_size = 0;
}

// --- The order of operations.

bool is_capturing(cudaStream_t stream) { return stream_of(stream)->capture != 0; }
cudaGraph_t capture_of(cudaStream_t stream) { return stream_of(stream)->capture; }
void set_capture(cudaStream_t stream, cudaGraph_t graph) { stream_of(stream)->capture = graph; }
Nodes *captured_last(cudaStream_t stream) { return &stream_of(stream)->last; }
static void add_nodes(Nodes *into, const Nodes *from) {
  into->items = realloc(into->items, (into->count + from->count + 1) * sizeof *into->items);
  for (size_t i = 0; i < from->count; i++) into->items[into->count++] = from->items[i];
}
void end_captures(cudaGraph_t graph) {
  for (int i = 0; i < stream_count; i++)
    if (streams[i]->capture == graph) streams[i]->capture = 0, streams[i]->last.count = 0;
}

void started_on(cudaStream_t stream) {
  LOCKED;
  advance(stream_of(stream));
}

// Runs an operation as one of a stream.
cudaError_t run_on(const Operation *operation, cudaStream_t stream) {
  LOCKED;
  Stream *on = stream_of(stream);
  CHECKED(!on->destroyed, cudaErrorInvalidResourceHandle);
  advance(on);
  cudaError_t error = perform(operation, stream);
  if (error || operation->kind != COPY || operation->height * operation->depth != 1) return error;
  Allocation *to = is_device_address((uint64_t)operation->to) ? allocation_at((uint64_t)operation->to) : 0;
  Allocation *from = is_device_address((uint64_t)operation->from) ? allocation_at((uint64_t)operation->from) : 0;
  if (to && to->kind == PINNED) add_pending(stream, (uint64_t)operation->to, operation->width, 0, false, "`cudaMemcpyAsync`");
  else if (from && from->kind == PINNED)
    add_pending(stream, (uint64_t)operation->from, operation->width, 0, true, "`cudaMemcpyAsync`");
  else if (!to) synchronized(stream);  // to pageable memory: the host waits; what is from there is staged at once
  return cudaSuccess;
}

static Stream *new_stream(int device, unsigned flags, int priority) {
  LOCKED;
  all_streams();
  Stream *made = calloc(1, sizeof *made);
  made->number = stream_count;
  made->flags = flags, made->priority = priority, made->device = device;
  streams = realloc(streams, (stream_count + 1) * sizeof *streams);
  return streams[stream_count++] = made;
}
cudaStream_t branch_of(cudaStream_t stream) {
  return (cudaStream_t)new_stream(stream_of(stream)->device, cudaStreamNonBlocking, 0);
}
void stream_waits(cudaStream_t stream, cudaEvent_t event) { join(&stream_of(stream)->clock, &((Event *)event)->clock); }

API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *into, unsigned flags, int priority) {
  ALIVE;
  *into = (cudaStream_t)new_stream(current_gpu, flags, priority);
  return cudaSuccess;
}
API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *into, unsigned flags) { return cudaStreamCreateWithPriority(into, flags, 0); }
API cudaError_t cudaStreamCreate(cudaStream_t *into) { return cudaStreamCreateWithPriority(into, 0, 0); }
API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  ALIVE;
  CHECKED(stream && !stream_of(stream)->destroyed, cudaErrorInvalidResourceHandle);
  stream_of(stream)->destroyed = true;
  return cudaSuccess;
}
API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) { ALIVE; *flags = stream_of(stream)->flags; return cudaSuccess; }
API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *into) { ALIVE; *into = stream_of(stream)->priority; return cudaSuccess; }
API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *into) { ALIVE; *into = stream_of(stream)->device; return cudaSuccess; }
API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) { ALIVE; *id = stream_of(stream)->number; return cudaSuccess; }
API cudaError_t cudaDeviceSynchronize(void) { ALIVE; synchronized_device(current_gpu); return settled(); }
API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ALIVE;
  CHECKED(!stream_of(stream)->destroyed, cudaErrorInvalidResourceHandle);
  CHECKED(!is_capturing(stream), cudaErrorStreamCaptureUnsupported);
  synchronized(stream);
  return settled();
}
API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  ALIVE;
  return is_complete(stream) ? cudaStreamSynchronize(stream) : cudaErrorNotReady;
}

API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *into, unsigned flags) {
  ALIVE;
  CHECKED(!(flags & cudaEventInterprocess) || flags & cudaEventDisableTiming, cudaErrorInvalidValue);
  Event *made = calloc(1, sizeof *made);
  made->flags = flags;
  made->device = current_gpu;
  *into = (cudaEvent_t)made;
  return cudaSuccess;
}
API cudaError_t cudaEventCreate(cudaEvent_t *into) { return cudaEventCreateWithFlags(into, 0); }
API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  ALIVE;
  CHECKED(event && !((Event *)event)->destroyed, cudaErrorInvalidResourceHandle);
  ((Event *)event)->destroyed = true;
  return cudaSuccess;
}
cudaError_t event_recorded(cudaEvent_t event, cudaStream_t stream) {
  LOCKED;
  Event *one = (Event *)event;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  advance(stream_of(stream));
  one->clock.size = 0;
  join(&one->clock, &stream_of(stream)->clock);
  one->time = now.tv_sec * 1e3 + now.tv_nsec / 1e6;
  one->recorded = true;
  return cudaSuccess;
}
API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  ALIVE;
  (void)flags;
  Event *one = (Event *)event;
  CHECKED(one && !one->destroyed, cudaErrorInvalidResourceHandle);
  if (one->device != device_of_stream(stream)) {
    char message[200];
    snprintf(message, sizeof message, "`cudaEventRecord` fails with cudaErrorInvalidResourceHandle (400): the event is of GPU %d, and the stream of GPU %d",
             one->device, device_of_stream(stream));
    finding("failed-launch", message, 0, "create the event while the GPU of the stream is current: `cudaSetDevice`");
    return fail(cudaErrorInvalidResourceHandle);
  }
  one->capture = capture_of(stream);
  one->last.count = 0;
  add_nodes(&one->last, captured_last(stream));
  cudaError_t status = one->capture ? cudaSuccess : event_recorded(event, stream);
  if (one->flags & cudaEventInterprocess) run_queued();  // what is before it is complete for the other processes
  return status;
}
API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return cudaEventRecordWithFlags(event, stream, 0); }

// An event of several processes: recording it completes what is before it, so that all that waits for it may go on.
typedef struct { uint64_t process, event; } SharedEvent;
_Static_assert(sizeof(SharedEvent) <= sizeof(cudaIpcEventHandle_t), "a handle has space for it");

API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *into, cudaEvent_t event) {
  ALIVE;
  Event *one = (Event *)event;
  CHECKED(into && one && !one->destroyed, cudaErrorInvalidResourceHandle);
  if (!(one->flags & cudaEventInterprocess)) {
    finding("bad-mapping", "`cudaIpcGetEventHandle` of an event of this process alone", 0, "create it with `cudaEventInterprocess | cudaEventDisableTiming`");
    return fail(cudaErrorInvalidResourceHandle);
  }
  memset(into, 0, sizeof *into);
  memcpy(into, &(SharedEvent){getpid(), (uint64_t)event}, sizeof(SharedEvent));
  return cudaSuccess;
}
API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *into, cudaIpcEventHandle_t handle) {
  ALIVE;
  SharedEvent shared;
  memcpy(&shared, &handle, sizeof shared);
  CHECKED(into && shared.event, cudaErrorInvalidValue);
  if (shared.process == (uint64_t)getpid()) {
    finding("bad-mapping", "`cudaIpcOpenEventHandle` in the process that made the handle", 0, "use the event itself: handles are for other processes");
    return fail(cudaErrorDeviceUninitialized);
  }
  return cudaEventCreateWithFlags(into, cudaEventInterprocess | cudaEventDisableTiming);
}
API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ALIVE;
  Event *one = (Event *)event;
  CHECKED(one && !one->destroyed, cudaErrorInvalidResourceHandle);
  let_others_issue();
  waited(&one->clock);
  return settled();
}
API cudaError_t cudaEventQuery(cudaEvent_t event) {
  ALIVE;
  Event *one = (Event *)event;
  CHECKED(one && !one->destroyed, cudaErrorInvalidResourceHandle);
  return has_run(one->clock.counts, one->clock.size) ? cudaEventSynchronize(event) : cudaErrorNotReady;
}
API cudaError_t cudaEventElapsedTime(float *into, cudaEvent_t start_, cudaEvent_t end_) {
  ALIVE;
  Event *from = (Event *)start_, *to = (Event *)end_;
  CHECKED(from && to && from->recorded && to->recorded, cudaErrorInvalidResourceHandle);
  CHECKED(!((from->flags | to->flags) & cudaEventDisableTiming) && from->device == to->device, cudaErrorInvalidResourceHandle);
  if (!has_waited(&from->clock) || !has_waited(&to->clock))
    finding("missing-synchronize",
            "`cudaEventElapsedTime` of an event that the host has not waited for: on a GPU it may fail with cudaErrorNotReady (600)",
            0, "call `cudaEventSynchronize()` before, for the later event");
  *into = (float)(to->time - from->time);
  return cudaSuccess;
}
API cudaError_t cudaEventElapsedTime_v2(float *into, cudaEvent_t from, cudaEvent_t to) { return cudaEventElapsedTime(into, from, to); }
API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  ALIVE;
  LOCKED;
  (void)flags;
  Event *one = (Event *)event;
  CHECKED(one && !one->destroyed, cudaErrorInvalidResourceHandle);
  if (one->capture) set_capture(stream, one->capture), add_nodes(captured_last(stream), &one->last);
  else stream_waits(stream, event);
  return cudaSuccess;
}
