// Operations that were issued and have not run: where there are several streams or GPUs, what is unordered runs at the same
// time, when the host waits for something.
//
// Until then, memory that the host may touch is closed to it. A read of it runs what is queued first. A write does so as
// well, unless a kernel may be waiting for it.
#include "runtime.h"
#include <dirent.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST_QUEUED 2000

static int count;
static bool is_running;  // kernels that wait for the host, while it does not wait for them
static _Atomic bool is_open;
static bool talks, is_mixed, has_launch;
static cudaStream_t from;  // of all launches, unless it is mixed
static char title[160];

bool is_queued(void) { return count || is_running; }
bool may_wait_for_host(void) { return talks; }
bool is_open_to_host(void) { return is_open; }
bool defers(void) { return device_number("queues") && (is_pe() || gpu_count() > 1 || has_streams() || count); }

static void close_one(Allocation *one, void *with) {
  (void)with;
  if (host_may_touch(one) && one->kind != REGISTERED) mprotect((void *)one->base, one->size, PROT_NONE);
}
static void open_one(Allocation *one, void *with) {
  (void)with;
  if (host_may_touch(one) && one->kind != REGISTERED) mprotect((void *)one->base, one->size, PROT_READ | PROT_WRITE);
}

void queued(cudaStream_t stream, const char *kernel, bool talks_to_host) {
  if (kernel) {
    is_mixed |= has_launch && stream_of(from) != stream_of(stream);
    snprintf(title, sizeof title, "%s", kernel);
    from = stream, has_launch = true;
  }
  talks |= talks_to_host;
  if (!count++) each_allocation(close_one, 0);
  if (count == MOST_QUEUED) has_run(0, ALL);
}

// Whether the operations are complete that a clock comes after. If it waits for them, they are.
static bool let_run(bool waits, const uint32_t *clock, int size) {
  // Which of several streams has written something is not known: what they write is not held against the host.
  void *snapshot = has_launch && !is_mixed && !is_running ? snapshot_of_shared(64ull << 20) : 0;
  Bytes bytes = {0}, answer;
  put_number(&bytes, waits);
  put_number(&bytes, size == ALL);
  put_number(&bytes, size == ALL ? 0 : size);
  for (int i = 0; i < size; i++) put_number(&bytes, clock[i]);
  count = 0;
  int status = ask(REQUEST_RUN, &bytes, &answer);
  uint64_t left = take_number(&answer);
  is_running = left && !status;
  char *text = take_text(&answer);
  keep_output(text, strlen(text));
  each_allocation(open_one, 0);
  if (snapshot) pending_changes(from, snapshot, talks ? 0 : title);
  pending_reads(&answer);
  if (!is_running) talks = false;
  is_mixed = has_launch = false;
  free(answer.data);
  if (status) fail_later(status);
  return left < 2;
}

bool has_run(const uint32_t *clock, int size) {
  LOCKED;
  return !is_queued() || let_run(false, clock, size);
}

void wait_for(const uint32_t *clock, int size) {
  // First without waiting: memory is open then to other threads of the program, for which kernels may wait.
  LOCKED;
  if (has_run(clock, size)) return;
  is_open = true;
  let_run(true, clock, size);
  is_open = false;
}

void run_queued(void) { wait_for(0, ALL); }

// --- Other threads of the host.
//
// What they issue before a wait has ended is not ordered after what it waits for, though they may be late: it is to run at
// the same time. So a wait lets them go on first, until each is asleep, as in a wait of its own, or has had some time.

#define MOST_PATIENCE 10000000ull  // nanoseconds of processor time; less where it was in vain
#define LEAST_PATIENCE 100000ull
#define MOST_THREADS 64

static bool read_of_thread(long thread, const char *file, char *into, size_t size) {
  char path[80];
  snprintf(path, sizeof path, "/proc/self/task/%ld/%s", thread, file);
  FILE *opened = fopen(path, "r");
  size_t got = opened ? fread(into, 1, size - 1, opened) : 0;
  if (opened) fclose(opened);
  into[got] = 0;
  return got;
}

// The processor time of a thread that is at work; 0 if it sleeps, or has ended.
static uint64_t time_at_work(long thread) {
  char text[512];
  const char *state = read_of_thread(thread, "stat", text, sizeof text) ? strrchr(text, ')') : 0;
  if (!state || strncmp(state, ") R", 3) || !read_of_thread(thread, "schedstat", text, sizeof text)) return 0;
  return strtoull(text, 0, 10) + 1;
}

void let_others_issue(void) {
  static _Atomic uint64_t patience = MOST_PATIENCE;
  if (holds_library() || !is_queued()) return;
  struct { long thread; uint64_t start; } others[MOST_THREADS];
  int known = 0;
  uint64_t most = patience;
  bool was_in_vain = false;
  for (bool is_any = true; is_any && is_queued();) {
    is_any = was_in_vain = false;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *one; threads && (one = readdir(threads));) {
      long thread = atol(one->d_name);
      uint64_t time = thread && thread != gettid() ? time_at_work(thread) : 0;
      int at = 0;
      while (at < known && others[at].thread != thread) at++;
      if (!time || at == MOST_THREADS) continue;
      if (at == known) others[known++].thread = thread, others[at].start = time;
      if (time - others[at].start < most) is_any = true; else was_in_vain = true;
    }
    if (threads) closedir(threads);
    if (is_any) nanosleep(&(struct timespec){0, 50000}, 0);
  }
  patience = was_in_vain ? most / 2 > LEAST_PATIENCE ? most / 2 : LEAST_PATIENCE : most * 2 < MOST_PATIENCE ? most * 2 : MOST_PATIENCE;
}
