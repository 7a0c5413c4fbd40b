// A process of a program that is one of several PEs of NVSHMEM: which one it is, and its symmetric memory.
//
// All PEs have one file of device memory, and each a part of its addresses. The upper half of a part is symmetric memory,
// which lies at the same place in the part of each PE. `../nvshmem/host.cpp` has NVSHMEM's functions.
#include "runtime.h"
#include <dlfcn.h>

#define PART (VIEW_SIZE / MOST_GPUS)

static int number = -1, count = 1, machines = 1, inherited = -1;
static uint64_t next_symmetric;

int pe_number(void) {
  const char *said = number < 0 ? getenv("PTXLAB_PE") : 0;
  if (said && sscanf(said, "%d %d %d %d", &number, &count, &machines, &inherited) != 4) number = -1;
  return number;
}
bool is_pe(void) { return pe_number() >= 0; }
int pes_here(void) { return count / machines; }
int memory_of_pes(void) { return is_pe() ? inherited : -1; }
uint64_t part_of_pe(int one) { return VIEW + (one < 0 ? 0 : one) * PART; }
uint64_t own_end(void) { return is_pe() ? part_of_pe(number) + PART / 2 : VIEW + VIEW_SIZE; }

API void ptxlab_pe(int *into, int *pes, int *on) {
  start();
  if (!is_pe()) {
    fprintf(stderr, "ptxlab: a program with NVSHMEM is run by `ptxlab run PROGRAM.cu --gpus N`\n");
    exit(1);
  }
  *into = number, *pes = count, *on = machines;
}

static bool is_near(int one) { return one / pes_here() == number / pes_here(); }

API void *ptxlab_symmetric(size_t size, size_t alignment) {
  start();
  LOCKED;
  if (!next_symmetric) next_symmetric = own_end();
  if (alignment < 4096) alignment = 4096;
  uint64_t base = (next_symmetric + alignment - 1) / alignment * alignment;
  if (base + size > part_of_pe(number) + PART) return 0;
  Allocation *made = allocate_at(base, size, SYMMETRIC);
  if (!made) return 0;
  next_symmetric = base + (size + 4095) / 4096 * 4096 + 65536;
  for (int one = 0; one < count; one++)
    if (one != number && is_near(one)) note_peer(base + (one - number) * PART, size);
  return (void *)base;
}

API void *ptxlab_symmetric_peer(const void *pointer, int peer) {
  uint64_t address = (uint64_t)pointer;
  if (!address) return (void *)part_of_pe(peer);
  Allocation *one = is_device_address(address) ? allocation_at(address) : 0;
  bool is_symmetric = one && one->kind == SYMMETRIC && !one->freed && address < one->base + one->size;
  return is_symmetric ? (void *)(address + (peer - number) * PART) : 0;
}

static void forget_peer(Allocation *one, void *with) {
  uint64_t base = *(uint64_t *)with;
  if (one->kind == PEER && one->base % PART == base % PART) one->freed = true;
}

API int ptxlab_symmetric_free(void *pointer) {
  uint64_t base = (uint64_t)pointer;
  int error = release(pointer, "nvshmem_free", 1u << SYMMETRIC);
  if (!error) each_allocation(forget_peer, &base);
  return error;
}

static void end_one(Allocation *one, void *with) { (void)with; if (one->kind == SYMMETRIC) one->flags |= 2; }
API void ptxlab_symmetric_end(void) { each_allocation(end_one, 0); }

API void ptxlab_initialized(const uint64_t *state) {
  Bytes bytes = {0};
  for (int i = 0; i < 5; i++) put_number(&bytes, state[i]);
  notify(REQUEST_INITIALIZED, &bytes);
}

API int ptxlab_team(int first, int stride, int size) {
  Bytes bytes = {0}, answer;
  const uint64_t numbers[] = {first, stride, size};
  for (int i = 0; i < 3; i++) put_number(&bytes, numbers[i]);
  int status = ask(REQUEST_TEAM, &bytes, &answer), made = (int)take_number(&answer);
  free(answer.data);
  return status ? -1 : made;
}

// What the next launch is called, and for a collective the team, by its number and `size` PEs of the program.
API void ptxlab_call(const char *name, int team, int first, int stride, int size) {
  Dl_info library = {0};
  if (dladdr(__builtin_return_address(0), &library)) hidden = library.dli_fbase;
  Bytes bytes = {0};
  put_text(&bytes, name);
  const uint64_t numbers[] = {team, first, stride, size};
  for (int i = 0; i < 4; i++) put_number(&bytes, numbers[i]);
  notify(REQUEST_CALL, &bytes);
}
