// The connection with the session, and how the program's calls come here, also where it has a CUDA runtime of its own.
#include "runtime.h"
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int connection = -1;
static char *own_view;

static __thread int depth;  // how often this thread has locked it
bool holds_library(void) { return depth; }
int lock_library(void) { return depth++, pthread_mutex_lock(&lock); }
int lock_library_unless(bool (*is_pointless)(void)) {
  while (pthread_mutex_trylock(&lock)) {
    if (is_pointless()) return 1;
    sched_yield();
  }
  depth++;
  return 0;
}
void unlock_library(int *ignored) { (void)ignored; depth--, pthread_mutex_unlock(&lock); }
void *mine(uint64_t address) { return own_view + (home_of(address) - VIEW); }

static void lost(const char *what) {
  fprintf(stderr, "ptxlab: the session of this program has ended (%s)\n", what);
  _exit(1);
}

void put(Bytes *bytes, const void *data, size_t size) {
  if (bytes->size + size > bytes->capacity) {
    bytes->capacity = 2 * (bytes->size + size) + 64;
    bytes->data = realloc(bytes->data, bytes->capacity);
  }
  memcpy(bytes->data + bytes->size, data, size);
  bytes->size += size;
}

void put_number(Bytes *bytes, uint64_t number) { put(bytes, &number, 8); }

void put_text(Bytes *bytes, const char *text) {
  put_number(bytes, strlen(text));
  put(bytes, text, strlen(text));
}

// Return addresses, each as the file that it is in and an offset there.
void put_frames(Bytes *bytes, void *const *frames, int count) {
  put_number(bytes, count);
  for (int i = 0; i < count; i++) {
    Dl_info info = {0};
    struct link_map *map = 0;
    bool known = dladdr1(frames[i], &info, (void **)&map, RTLD_DL_LINKMAP) && info.dli_fname;
    put_text(bytes, known ? info.dli_fname : "");
    put_number(bytes, known && map ? (uint64_t)frames[i] - 1 - map->l_addr : 0);
  }
}

uint64_t take_number(Bytes *bytes) {
  uint64_t number = 0;
  if (bytes->at + 8 <= bytes->size) memcpy(&number, bytes->data + bytes->at, 8);
  bytes->at += 8;
  return number;
}

char *take_text(Bytes *bytes) {  // the session ends each text with a zero
  size_t size = take_number(bytes);
  char *text = bytes->data + bytes->at;
  bytes->at += size + 1;
  return text;
}

static void send_all(const void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t sent = send(connection, (const char *)data + done, size - done, MSG_NOSIGNAL);
    if (sent <= 0) lost("send");
    done += sent;
  }
}

static void receive_all(void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = recv(connection, (char *)data + done, size - done, MSG_WAITALL);
    if (got <= 0) lost("receive");
    done += got;
  }
}

void notify(int request, Bytes *bytes) {
  LOCKED;
  start();
  uint64_t head[2] = {request, bytes->size};
  Bytes whole = {0};
  put(&whole, head, sizeof head);
  put(&whole, bytes->data, bytes->size);
  send_all(whole.data, whole.size);
  free(whole.data);
  free(bytes->data);
}

int ask(int request, Bytes *bytes, Bytes *answer) {
  LOCKED;
  notify(request, bytes);
  uint64_t head[2];
  receive_all(head, sizeof head);
  Bytes got = {malloc(head[1] + 1), head[1], head[1] + 1, 0};
  receive_all(got.data, head[1]);
  if (answer) *answer = got; else free(got.data);
  return (int)head[0];
}

__thread const Frames *added_at;
void *hidden;

int frames_here(void **frames) {
  if (added_at) { memcpy(frames, added_at->frames, sizeof added_at->frames); return added_at->count; }
  void *all[FRAMES + 16];
  int count = backtrace(all, FRAMES + 16), kept = 0;
  Dl_info own = {0}, info;
  dladdr((void *)frames_here, &own);
  for (int i = 0; i < count && kept < FRAMES; i++)
    if (!dladdr(all[i], &info) || (info.dli_fbase != own.dli_fbase && info.dli_fbase != hidden)) frames[kept++] = all[i];
  return kept;
}

void finding_at(const char *code, const char *message, uint64_t about, const char *help, void *const *frames, int count) {
  Bytes bytes = {0};
  put_text(&bytes, code);
  put_text(&bytes, message);
  put_text(&bytes, help ? help : "");
  put_frames(&bytes, frames, count);
  put_number(&bytes, about);
  notify(REQUEST_FINDING, &bytes);
}

void finding(const char *code, const char *message, uint64_t about, const char *help) {
  void *frames[FRAMES];
  finding_at(code, message, about, help, frames, frames_here(frames));
}

API void ptxlab_unsupported(const char *name) { unsupported(name); }

void unsupported(const char *name) {
  char message[400];
  snprintf(message, sizeof message, "the program calls `%s`, which ptxlab does not have", name);
  print_output();
  fflush(0);
  finding("unsupported-call", message, 0, 0);
  ask(REQUEST_DEVICE, &(Bytes){0}, 0);  // so that the finding has arrived
  _exit(1);
}

static void at_exit(void) {
  if (connection < 0) return;
  run_queued();
  print_output();
  note_unchecked();
  note_leaks();
  ask(REQUEST_DEVICE, &(Bytes){0}, 0);
}

// Connects, and maps device memory; the first call of CUDA does.
void start(void) {
  if (connection >= 0) return;
  LOCKED;
  if (connection >= 0) return;
  const char *path = getenv("PTXLAB_SESSION");
  if (!path) { fprintf(stderr, "ptxlab: PTXLAB_SESSION is not set\n"); _exit(1); }
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), inherited = memory_of_pes();
  int file = inherited >= 0 ? inherited : memfd_create("ptxlab", MFD_CLOEXEC);
  if (made < 0 || file < 0 || connect(made, (struct sockaddr *)&name, sizeof name)) lost("connect");
  connection = made;
  char one = (char)(1 + pe_number()), space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec vector = {&one, 1};
  struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(control), &file, sizeof file);
  void *wanted = (void *)VIEW;
  int shared = MAP_SHARED | MAP_NORESERVE;
  if (ftruncate(file, VIEW_SIZE) ||
      mmap(wanted, VIEW_SIZE, PROT_NONE, shared | MAP_FIXED_NOREPLACE, file, 0) != wanted ||
      (own_view = mmap(0, VIEW_SIZE, PROT_READ | PROT_WRITE, shared, file, 0)) == MAP_FAILED)
    lost("device memory could not be mapped");
  if (sendmsg(connection, &message, MSG_NOSIGNAL) != 1) lost("send");
  close(file);
  watch_faults();
  atexit(at_exit);
}

// A program that was linked with `libcudart_static.a` has these functions itself: each begins with a jump to ours.

#if defined(__x86_64__)
#define CODE_ALIGNMENT 16  // of functions; a jump is shorter
#else
#define CODE_ALIGNMENT 4
#endif
#define JUMP_SIZE 16

static void write_jump(unsigned char *at, const void *to) {
#if defined(__x86_64__)
  static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *(%rip)
  memcpy(at, jump, 6);
  memcpy(at + 6, &to, 8);
#else
  static const uint32_t jump[2] = {0x58000051, 0xd61f0220};  // ldr x17, #8; br x17
  memcpy(at, jump, 8);
  memcpy(at + 8, &to, 8);
  __builtin___clear_cache((char *)at, (char *)at + 16);
#endif
}

static void *stub_of(const char *name) {  // calls `unsupported(name)`
  static unsigned char *page;
  static size_t used;
  size_t size = 65536;
  if (!page || used + 48 > size) {
    page = mmap(0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    used = 0;
    if (page == MAP_FAILED) return 0;
  }
  unsigned char *at = page + used;
  const char *kept = strdup(name);
#if defined(__x86_64__)
  memcpy(at, "\x48\xbf", 2);  // mov $name, %rdi
  memcpy(at + 2, &kept, 8);
  write_jump(at + 10, (void *)unsupported);
#else
  static const uint32_t load[2] = {0x58000040, 0x14000003};  // ldr x0, #8; b #12
  memcpy(at, load, 8);
  memcpy(at + 8, &kept, 8);
  write_jump(at + 16, (void *)unsupported);
  __builtin___clear_cache((char *)at, (char *)at + 48);
#endif
  used += 48;
  return at;
}

static bool is_of_cuda(const char *name) {
  return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

void *ours(const char *name) {
  static void *self;
  static Dl_info own;
  Dl_info from;
  char plain[200];
  size_t size = strlen(name);
  if (!self && dladdr((void *)ours, &own)) self = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!self || size >= sizeof plain) return 0;
  void *found = dlsym(self, name);
  if (!found && size > 5 && (!strcmp(name + size - 5, "_ptsz") || !strcmp(name + size - 5, "_ptds"))) {
    snprintf(plain, sizeof plain, "%.*s", (int)size - 5, name);
    found = dlsym(self, plain);
  }
  return found && dladdr(found, &from) && from.dli_fbase == own.dli_fbase ? found : 0;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *into) {
  (void)size;
  *(struct dl_phdr_info *)into = *info;
  return 1;
}

static void open_code(const struct dl_phdr_info *program) {
  for (int p = 0; p < program->dlpi_phnum; p++) {
    const ElfW(Phdr) *part = &program->dlpi_phdr[p];
    uint64_t start = program->dlpi_addr + part->p_vaddr, from = start & ~4095ull;
    if (part->p_type == PT_LOAD && part->p_flags & PF_X)
      mprotect((void *)from, start + part->p_memsz - from, PROT_READ | PROT_WRITE | PROT_EXEC);
  }
}

// Redirects the functions of a table. Those that are not ours are stubs, if they are among others that are: not the program's own.
static void redirect_table(const char *data, const Elf64_Shdr *table, const char *names) {
  const Elf64_Sym *symbols = (const Elf64_Sym *)(data + table->sh_offset);
  size_t count = table->sh_size / sizeof *symbols;
  struct dl_phdr_info program;
  dl_iterate_phdr(first_object, &program);
  uint64_t low = ~0ull, high = 0;
  for (int pass = 0; pass < 2; pass++)
    for (size_t k = 0; k < count; k++) {
      const Elf64_Sym *one = &symbols[k];
      const char *name = names + one->st_name;
      bool is_function = one->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(one->st_info) == STT_FUNC &&
                         one->st_value % CODE_ALIGNMENT == 0 && (CODE_ALIGNMENT >= JUMP_SIZE || one->st_size >= JUMP_SIZE);
      if (!is_function || !is_of_cuda(name)) continue;
      void *to = ours(name);
      if (pass == 0 && to) {
        if (!high) open_code(&program);
        if (one->st_value < low) low = one->st_value;
        if (one->st_value > high) high = one->st_value;
      } else if (pass == 1 && !to && one->st_value > low && one->st_value < high) to = stub_of(name);
      else continue;
      if (to) write_jump((unsigned char *)program.dlpi_addr + one->st_value, to);
    }
}

static void redirect(const char *file) {
  int opened = open(file, O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (opened < 0 || fstat(opened, &facts) || facts.st_size < (off_t)sizeof(Elf64_Ehdr)) return;
  const char *data = mmap(0, facts.st_size, PROT_READ, MAP_PRIVATE, opened, 0);
  close(opened);
  const Elf64_Ehdr *head = (const Elf64_Ehdr *)data;
  if (data == MAP_FAILED || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64) return;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(data + head->e_shoff);
  for (int i = 0; i < head->e_shnum; i++)
    if (sections[i].sh_type == SHT_SYMTAB) redirect_table(data, &sections[i], data + sections[sections[i].sh_link].sh_offset);
  munmap((void *)data, facts.st_size);
}

__attribute__((constructor)) static void loaded(void) {
  const char *parent = getenv("PTXLAB_PARENT");
  if (parent && atoi(parent) == getppid()) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // the program ends with its session
    watch_faults();  // also of code before the first call of CUDA
  }
  if (getenv("PTXLAB_SESSION")) redirect("/proc/self/exe");
}
