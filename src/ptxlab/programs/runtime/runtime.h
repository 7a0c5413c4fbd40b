// The CUDA runtime of a program that ptxlab runs: what its files share.
//
// Device memory is one file in memory, mapped by the program and by the session (Python, with the emulator). The program
// has two views of it: `VIEW`, at the addresses of the device, where only what the host may touch is accessible, and
// one of the library's own, through which it copies. Launches and what else needs the emulator are requests.
#pragma once
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef cudaGetDeviceProperties

#define API __attribute__((visibility("default")))
#define VIEW 0x740000000000ull
#define VIEW_SIZE (4ull << 40)
#define FRAMES 12

// Requests, in the order of `session.REQUESTS`.
enum {
  REQUEST_ALLOCATE, REQUEST_FREE, REQUEST_MODULE, REQUEST_FUNCTION, REQUEST_VARIABLE, REQUEST_BIND, REQUEST_LAUNCH,
  REQUEST_FINDING, REQUEST_DEVICE, REQUEST_OCCUPANCY, REQUEST_RESOURCES, REQUEST_TEXTURE, REQUEST_TENSOR_MAP,
  REQUEST_COMPILE, REQUEST_LIBRARY, REQUEST_NO_TEXTURE, REQUEST_ALIAS, REQUEST_COPY, REQUEST_RUN, REQUEST_PEER,
  REQUEST_POOL, REQUEST_MAP, REQUEST_UNMAP, REQUEST_ACCESS, REQUEST_MULTICAST, REQUEST_SHARE,
  REQUEST_OPEN, REQUEST_INITIALIZED, REQUEST_CALL, REQUEST_TEAM,
};

// session.c: bytes of a request or an answer
typedef struct { char *data; size_t size, capacity, at; } Bytes;
void put(Bytes *bytes, const void *data, size_t size);
void put_number(Bytes *bytes, uint64_t number);
void put_text(Bytes *bytes, const char *text);
void put_frames(Bytes *bytes, void *const *frames, int count);
uint64_t take_number(Bytes *bytes);
char *take_text(Bytes *bytes);  // valid as long as the answer
// Sends a request; the answer's status, and the rest of it in `answer` if that is not null (free its data).
int ask(int request, Bytes *bytes, Bytes *answer);
void notify(int request, Bytes *bytes);  // without an answer
typedef struct { void *frames[FRAMES]; int count; } Frames;
extern __thread const Frames *added_at;  // while a graph runs: where the node was added that runs now
int frames_here(void **frames);
extern void *hidden;  // a library whose frames are not shown, by its address
void start(void);
extern pthread_mutex_t lock;
#define LOCKED __attribute__((cleanup(unlock_library))) int locked_here = lock_library(); (void)locked_here
int lock_library(void);
int lock_library_unless(bool (*is_pointless)(void));  // gives up, and returns 1, if it is
void unlock_library(int *);
bool holds_library(void);

// Findings about the host code. `about` is an address of device memory, or 0.
void finding(const char *code, const char *message, uint64_t about, const char *help);
void finding_at(const char *code, const char *message, uint64_t about, const char *help, void *const *frames, int count);
void unsupported(const char *name) __attribute__((noreturn));

// errors.c
cudaError_t fail(cudaError_t error);  // notes the last error of this thread
void fail_later(cudaError_t error);  // of a kernel: found by the next call that synchronizes, and by all after it
cudaError_t settled(void);  // the error of kernels that have run, for a call that synchronizes
extern cudaError_t sticky;
#define CHECKED(condition, error) do { if (!(condition)) return fail(error); } while (0)
#define ALIVE do { start(); if (sticky) return fail(sticky); } while (0)
void launch_failed(cudaError_t error, const char *kernel, const char *why);
void launch_refused(cudaError_t error, const char *kernel, const char *why);
void note_unchecked(void);

// memory.c
typedef enum { DEVICE, PINNED, MANAGED, REGISTERED, VARIABLE, ARRAY, POOLED, CREATED, MAPPED, SYMMETRIC, PEER } Kind;
typedef struct {
  uint64_t base, size;
  Kind kind;
  int device;
  bool freed, is_async;
  bool of_graph, was_run;  // allocated by a node of a graph, which has run
  void *frames[FRAMES];
  int count;
  unsigned flags;
  char *spare;  // as large, to keep what it held before a launch
  uint64_t home;  // of MAPPED: where the memory is
} Allocation;
Allocation *allocate(uint64_t size, Kind kind);
Allocation *allocate_at(uint64_t base, uint64_t size, Kind kind);
void note_peer(uint64_t base, uint64_t size);  // memory of another PE, which this one may copy to and from
Allocation *allocation_at(uint64_t address);  // that contains it, freed or not; null if none
uint64_t home_of(uint64_t address);  // where memory that is mapped there is; the address itself, if it was allocated
uint64_t reserve_addresses(uint64_t size);  // on whole granules; 0 if there are none left
Allocation *map_addresses(uint64_t base, uint64_t size, uint64_t home, int device);
void note_mapping(const Allocation *mapped);
void unmap_addresses(uint64_t base);
void *mine(uint64_t address);  // where the library reads and writes device memory
bool is_device_address(uint64_t address);
bool host_may_touch(const Allocation *allocation);
bool is_memory_shared(void);  // of any allocation, with the host
cudaError_t release(void *pointer, const char *call, unsigned kinds);
cudaError_t allocate_again(void *pointer);  // memory of a graph, at the address that it has
void each_allocation(void (*use)(Allocation *, void *), void *with);
uint64_t memory_free(void);
void note_leaks(void);

// order.c: what has been started and not been waited for
typedef struct Stream Stream;
typedef struct Event Event;
Stream *stream_of(cudaStream_t stream);
bool has_streams(void);  // beside the default ones
cudaStream_t branch_of(cudaStream_t stream);  // a stream of the same GPU, which is ordered with no other
void stream_waits(cudaStream_t stream, cudaEvent_t event);
typedef struct { void **items; size_t count; } Nodes;
Nodes *captured_last(cudaStream_t stream);  // the nodes that the next one follows that is captured
int device_of_stream(cudaStream_t stream);
void put_order(Bytes *bytes, cudaStream_t stream);  // what the last operation on a stream comes after
bool is_capturing(cudaStream_t stream);
void started_on(cudaStream_t stream);  // work that is no operation of ours is issued
void synchronized(cudaStream_t stream);  // the host has waited for a stream
void synchronized_all(void);
void synchronized_device(int device);
void *snapshot_of_shared(uint64_t most);  // of so many bytes
void pending_changes(cudaStream_t stream, void *snapshot, const char *kernel);
void pending_reads(Bytes *answer);
void print_output(void);
void keep_output(const char *text, size_t size);
void watch_faults(void);

// queue.c: what was issued and has not run
bool defers(void);  // whether operations are queued, not run when they are issued
bool in_explicit_graph(void);  // whether what runs now is a node that the host added to a graph
bool is_queued(void);
bool may_wait_for_host(void);
bool is_open_to_host(void);  // whether memory is open though the library waits for kernels
void queued(cudaStream_t stream, const char *kernel, bool talks_to_host);
#define ALL (-1)  // in place of the size of a clock
bool has_run(const uint32_t *clock, int size);  // runs what the clock comes after, as far as it does not wait for the host
void wait_for(const uint32_t *clock, int size);  // until what the clock comes after is complete
void run_queued(void);  // until all is complete
void let_others_issue(void);  // before a wait

// launch.c
typedef struct Module Module;
typedef struct {
  const void *host;
  Module *module;
  char *name;
  bool is_known;
  int count;
  uint32_t *sizes, *offsets;
  uint32_t parameters;  // bytes of all
  int static_shared, local, constant, largest_block, registers, ptx_version;
  int dynamic_limit;
  unsigned cluster[3];
  bool no_cluster_limit, triggers, talks;  // whether it lets the grid after it start; whether it may wait for the host
  int carveout;
  uint64_t launches, nanoseconds;  // how many there were, and how long the last took
} Function;
typedef struct {
  unsigned grid[3], block[3], cluster[3];
  uint64_t shared;
  bool cooperative, overlap;
} Shape;
Function *function_of(const void *host);
cudaError_t know(Function *function);
Module *module_of_image(const void *image);
const void *image_of_parts(const void *const *parts);  // which are linked when it is loaded; they end with null
bool is_module(const void *handle);
cudaError_t load(Module *module);
Function *function_named(Module *module, const char *name);
const char *variable_at(const void *address);
bool variable_named(Module *module, const char *name, uint64_t *address, uint64_t *size);
cudaError_t launch(Function *function, const Shape *shape, void **arguments, cudaStream_t stream);
cudaError_t run(Function *function, const Shape *shape, const void *parameters, cudaStream_t stream);
cudaError_t symbol(const void *host, uint64_t *address, uint64_t *size);
void *pack(Function *function, void **arguments, void **extra);
int occupancy(Function *function, int block, size_t shared);

// device.c
#define MOST_GPUS 16
int gpu_count(void);
bool is_here(int device);  // whether there is such a GPU; a note if not
extern __thread int current_gpu;
int device_number(const char *name);  // a property of the GPU that the session emulates
uint64_t memory_limit(void);
const char *device_name(void);

// pes.c
bool is_pe(void);  // whether this process is one of several PEs
int pe_number(void);
int pes_here(void);  // on this machine
int memory_of_pes(void);  // the file of device memory; -1 if this process makes one
uint64_t part_of_pe(int pe);  // where its memory starts
uint64_t own_end(void);  // where the memory ends that it has for itself

// graphs.c: an operation on a stream, which runs now or becomes a node of a graph
typedef struct Operation Operation;
struct Operation {
  enum { EMPTY, LAUNCH, COPY, FILL, CALL, CALL_GRAPH, RECORD, WAIT, ALLOCATE, FREE } kind;
  Function *function;
  Shape shape;
  void *parameters;
  void *to; const void *from;
  size_t to_pitch, from_pitch, width, height, depth, to_slice, from_slice;
  enum cudaMemcpyKind direction;
  unsigned value; int element;
  cudaHostFn_t call; void *data;
  cudaGraph_t graph; cudaEvent_t event;
  const char *name;
  Frames added;  // of a node: where the host added it
};
cudaError_t issue(Operation *operation, cudaStream_t stream);
cudaError_t perform(const Operation *operation, cudaStream_t stream);
cudaError_t perform_memory(const Operation *operation, bool later, cudaStream_t stream);
cudaError_t fill_now(Operation fill);
cudaError_t event_recorded(cudaEvent_t event, cudaStream_t stream);
