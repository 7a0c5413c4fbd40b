// Modules, kernels, variables and launches.
#include "runtime.h"
#include <time.h>

struct Module { const void *const *images; int count, number; bool is_loaded; cudaError_t error; };
// A variable has an address on each GPU.
typedef struct { const void *host; Module *module; char *name; uint64_t addresses[MOST_GPUS], size; void **managed; } Variable;

static Module **modules;
static size_t module_count;
static Function **functions;
static size_t function_count;
static Variable *variables;
static size_t variable_count;

// --- Registration, by code that nvcc adds to a program.

typedef struct { uint32_t magic, version; const void *data; const void *const *parts; } Wrapper;  // parts end with null
typedef struct { uint32_t magic; uint16_t version, header; uint64_t size; } Fatbinary;
#define FATBINARY 0xba55ed50u
#define WRAPPER 0x466243b1u
#define LINKED 2  // the version of a wrapper that names the parts that were linked

static uint64_t size_of_image(const void *image) {
  const Fatbinary *fat = image;
  if (fat->magic == FATBINARY) return fat->header + fat->size;
  if (!memcmp(image, "\177ELF", 4)) return 64;  // which the session refuses
  return strlen(image);
}

Module *module_of_image(const void *image) {
  LOCKED;
  const Wrapper *wrapper = image;
  Module *made = calloc(1, sizeof *made);
  modules = realloc(modules, (module_count + 1) * sizeof *modules);
  modules[module_count++] = made;
  if (wrapper->magic == WRAPPER && wrapper->version == LINKED && wrapper->parts && wrapper->parts[0]) {
    for (made->images = wrapper->parts; made->images[made->count]; made->count++) continue;
    return made;
  }
  const void **own = malloc(sizeof *own);
  *own = wrapper->magic == WRAPPER ? wrapper->data : image;
  made->images = own, made->count = 1;
  return made;
}

API void **__cudaRegisterFatBinary(void *wrapper) { return (void **)module_of_image(wrapper); }
API void __cudaRegisterFatBinaryEnd(void **module) { (void)module; }
API void __cudaUnregisterFatBinary(void **module) { (void)module; }
API char __cudaInitModule(void **module) { (void)module; return 1; }

static Function *add_function(Module *module, const void *host, const char *name) {
  LOCKED;
  Function *made = calloc(1, sizeof *made);
  *made = (Function){.host = host, .module = module, .name = strdup(name), .dynamic_limit = -1, .carveout = -1};
  functions = realloc(functions, (function_count + 1) * sizeof *functions);
  return functions[function_count++] = made;
}

API void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name, int limit, uint3 *thread,
                                uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp) {
  (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
  add_function((Module *)module, host, name);
}
static void add_variable(void **module, const void *host, const char *name, uint64_t size, void **managed) {
  LOCKED;
  variables = realloc(variables, (variable_count + 1) * sizeof *variables);
  variables[variable_count++] = (Variable){.host = host, .module = (Module *)module, .name = strdup(name), .size = size, .managed = managed};
}
// The name of the variable that the host has a copy of at an address: nothing ever is in that copy.
const char *variable_at(const void *address) {
  LOCKED;
  for (size_t i = 0; i < variable_count; i++) {
    const Variable *one = &variables[i];
    if (!one->managed && (const char *)address >= (const char *)one->host && (const char *)address < (const char *)one->host + one->size) return one->name;
  }
  return 0;
}
API void __cudaRegisterVar(void **module, char *host, char *device, const char *name, int external, size_t size, int constant, int global) {
  (void)device, (void)external, (void)constant, (void)global;
  add_variable(module, host, name, size, 0);
}
static cudaError_t bind(Variable *variable);
API void __cudaRegisterManagedVar(void **module, void **host, char *device, const char *name, int external, size_t size, int constant,
                                  int global) {
  (void)device, (void)external, (void)constant, (void)global;
  add_variable(module, host, name, size, host);
  bind(&variables[variable_count - 1]);
}

// --- What the session knows of modules.

cudaError_t load(Module *module) {
  if (module->is_loaded) return module->error;
  Bytes bytes = {0}, answer;
  put_number(&bytes, module->count);
  for (int i = 0; i < module->count; i++) {
    uint64_t size = size_of_image(module->images[i]);
    put_number(&bytes, size);
    put(&bytes, module->images[i], size);
  }
  module->error = ask(REQUEST_MODULE, &bytes, &answer);
  module->number = (int)take_number(&answer);
  module->is_loaded = true;
  free(answer.data);
  return module->error;
}

static cudaError_t bind(Variable *variable) {
  int device = variable->managed ? 0 : current_gpu;
  if (variable->addresses[device]) return cudaSuccess;
  cudaError_t error = load(variable->module);
  if (error) return error;
  Bytes bytes = {0}, answer;
  put_number(&bytes, variable->module->number);
  put_text(&bytes, variable->name);
  error = ask(REQUEST_VARIABLE, &bytes, &answer);
  uint64_t size = take_number(&answer);
  free(answer.data);
  if (error) return error;
  Allocation *made = allocate(size, variable->managed ? MANAGED : VARIABLE);
  if (!made) return cudaErrorMemoryAllocation;
  made->flags = 1;
  variable->addresses[device] = made->base, variable->size = size;
  if (variable->managed) *variable->managed = (void *)made->base;
  bytes = (Bytes){0};
  put_number(&bytes, variable->module->number);
  put_text(&bytes, variable->name);
  put_number(&bytes, made->base);
  put_number(&bytes, is_pe() ? pe_number() : device);
  put_number(&bytes, variable->managed != 0);
  return ask(REQUEST_BIND, &bytes, 0);
}

static uint64_t address_here(const Variable *one) { return one->addresses[one->managed ? 0 : current_gpu]; }

cudaError_t symbol(const void *host, uint64_t *address, uint64_t *size) {
  LOCKED;
  for (size_t i = 0; i < variable_count; i++)
    if (variables[i].host == host || (variables[i].managed && *variables[i].managed == host)) {
      cudaError_t error = bind(&variables[i]);
      *address = address_here(&variables[i]), *size = variables[i].size;
      return error;
    }
  return cudaErrorInvalidSymbol;
}

bool variable_named(Module *module, const char *name, uint64_t *address, uint64_t *size) {
  LOCKED;
  for (size_t i = 0; i < variable_count; i++)
    if (variables[i].module == module && !strcmp(variables[i].name, name)) {
      cudaError_t error = bind(&variables[i]);
      *address = address_here(&variables[i]), *size = variables[i].size;
      return !error;
    }
  add_variable((void **)module, 0, name, 0, 0);
  if (!bind(&variables[variable_count - 1])) {
    *address = address_here(&variables[variable_count - 1]), *size = variables[variable_count - 1].size;
    return true;
  }
  variable_count--;
  return false;
}

const void *image_of_parts(const void *const *parts) {
  Wrapper *made = calloc(1, sizeof *made);
  *made = (Wrapper){WRAPPER, LINKED, parts[0], parts};
  return made;
}
bool is_module(const void *handle) {
  LOCKED;
  for (size_t i = 0; i < module_count; i++)
    if (modules[i] == handle) return true;
  return false;
}
Function *function_of(const void *host) {
  LOCKED;
  for (size_t i = 0; i < function_count; i++)
    if (functions[i]->host == host || functions[i] == host) return functions[i];
  return 0;
}

Function *function_named(Module *module, const char *name) {
  LOCKED;
  for (size_t i = 0; i < function_count; i++)
    if (functions[i]->module == module && !strcmp(functions[i]->name, name)) return functions[i];
  Function *made = add_function(module, 0, name);
  if (!know(made)) return made;
  function_count--;
  return 0;
}

cudaError_t know(Function *function) {
  LOCKED;
  if (function->is_known) return cudaSuccess;
  cudaError_t error = load(function->module);
  if (error) return error;
  Bytes bytes = {0}, answer;
  put_number(&bytes, function->module->number);
  put_text(&bytes, function->name);
  error = ask(REQUEST_FUNCTION, &bytes, &answer);
  if (!error) {
    function->static_shared = (int)take_number(&answer);
    function->largest_block = (int)take_number(&answer);
    for (int i = 0; i < 3; i++) function->cluster[i] = (unsigned)take_number(&answer);
    function->triggers = take_number(&answer);
    function->talks = take_number(&answer);
    function->ptx_version = (int)take_number(&answer);
    function->parameters = (uint32_t)take_number(&answer);
    function->count = (int)take_number(&answer);
    function->sizes = malloc(8 * (function->count + 1));
    function->offsets = function->sizes + function->count;
    for (int i = 0; i < function->count; i++)
      function->sizes[i] = (uint32_t)take_number(&answer), function->offsets[i] = (uint32_t)take_number(&answer);
    function->is_known = true;
  }
  free(answer.data);
  return error;
}

// --- Launches.

void *pack(Function *function, void **arguments, void **extra) {
  char *made = calloc(1, function->parameters + 1);
  if (arguments)
    for (int i = 0; i < function->count; i++) memcpy(made + function->offsets[i], arguments[i], function->sizes[i]);
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) memcpy(made, extra[1], function->parameters);
  return made;
}

// Whether a launch is written `<<<...>>>`, which returns nothing that the program could check.
static __thread bool by_chevrons;

static cudaError_t shape_error(Function *function, const Shape *s) {
  static const unsigned grids[3] = {0x7fffffff, 65535, 65535}, blocks[3] = {1024, 1024, 64};
  uint64_t threads = 1, blocks_in_grid = 1;
  for (int i = 0; i < 3; i++) {
    if (!s->grid[i] || s->grid[i] > grids[i] || !s->block[i] || s->block[i] > blocks[i]) return cudaErrorInvalidConfiguration;
    threads *= s->block[i], blocks_in_grid *= s->grid[i];
    if (s->cluster[0] && s->grid[i] % s->cluster[i]) return cudaErrorInvalidConfiguration;
  }
  if (threads > 1024) return cudaErrorInvalidConfiguration;
  uint64_t clustered = (uint64_t)s->cluster[0] * s->cluster[1] * s->cluster[2];
  if (clustered > (function->no_cluster_limit ? 16 : 8)) return cudaErrorInvalidClusterSize;
  int limit = function->dynamic_limit >= 0 ? function->dynamic_limit : 48 * 1024 - function->static_shared;
  if (s->shared > (uint64_t)(limit > 0 ? limit : 0)) return cudaErrorInvalidValue;
  if (function->largest_block && threads > (uint64_t)function->largest_block) return cudaErrorInvalidConfiguration;
  if (s->cooperative &&
      blocks_in_grid > (uint64_t)device_number("sms") * occupancy(function, (int)threads, s->shared)) return cudaErrorCooperativeLaunchTooLarge;
  return cudaSuccess;
}

cudaError_t launch(Function *function, const Shape *shape, void **arguments, cudaStream_t stream) {
  LOCKED;
  start();
  if (sticky) return fail(sticky);
  cudaError_t error = function ? know(function) : cudaErrorInvalidDeviceFunction;
  if (!error) error = shape_error(function, shape);
  char why[100] = "";
  if (!error && device_of_stream(stream) != current_gpu) {
    error = cudaErrorInvalidResourceHandle;
    snprintf(why, sizeof why, ": its stream is of GPU %d, and the current one is GPU %d", device_of_stream(stream), current_gpu);
  }
  void *parameters = error ? 0 : pack(function, arguments, 0);
  if (!error) error = issue(&(Operation){.kind = LAUNCH, .function = function, .shape = *shape, .parameters = parameters}, stream);
  if (error) (by_chevrons ? launch_failed : launch_refused)(error, function ? function->name : "?", why);
  by_chevrons = false;
  free(parameters);
  return error ? fail(error) : cudaSuccess;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

// Of memory that the host may touch, before a launch: after some launches only as much as takes a small share of their time.
static uint64_t bytes_to_keep(Function *function) {
  uint64_t quick = function->nanoseconds / 20, most = 64ull << 20;  // a byte takes about a nanosecond
  return function->launches++ < 4 || quick > most ? most : quick + 65536;
}

cudaError_t run(Function *function, const Shape *shape, const void *parameters, cudaStream_t stream) {
  bool may_overlap = function->triggers || (function->talks && is_memory_shared());
  bool later = defers() || (may_overlap && device_number("queues"));
  void *snapshot = later ? 0 : snapshot_of_shared(bytes_to_keep(function));
  Bytes bytes = {0}, answer;
  put_number(&bytes, function->module->number);
  put_text(&bytes, function->name);
  for (int i = 0; i < 3; i++) put_number(&bytes, shape->grid[i]);
  for (int i = 0; i < 3; i++) put_number(&bytes, shape->block[i]);
  for (int i = 0; i < 3; i++) put_number(&bytes, shape->cluster[i]);
  put_number(&bytes, shape->shared);
  put_number(&bytes, shape->cooperative);
  put_number(&bytes, shape->overlap);
  put_number(&bytes, later);
  put_order(&bytes, stream);
  put_number(&bytes, function->parameters);
  put(&bytes, parameters, function->parameters);
  void *frames[FRAMES];
  put_frames(&bytes, frames, frames_here(frames));
  uint64_t started = now();
  int status = ask(REQUEST_LAUNCH, &bytes, &answer);
  function->nanoseconds = now() - started;
  bool talks_to_host = take_number(&answer);
  uint64_t own = take_number(&answer);  // of processor time: other programs may run beside
  if (own < function->nanoseconds) function->nanoseconds = own;
  char *title = take_text(&answer), *text = take_text(&answer);
  keep_output(text, strlen(text));
  if (later) queued(stream, title, talks_to_host);
  else pending_changes(stream, snapshot, talks_to_host ? 0 : title);
  pending_reads(&answer);
  free(answer.data);
  if (status) fail_later(status);
  return cudaSuccess;
}

static Shape shape_of(dim3 grid, dim3 block, size_t shared) {
  return (Shape){{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, {0}, shared, false, false};
}

typedef struct { dim3 grid, block; size_t shared; cudaStream_t stream; } Configuration;
static __thread Configuration stack[16];
static __thread int depth;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
  if (depth < 16) stack[depth++] = (Configuration){grid, block, shared, stream};
  return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (!depth) return cudaErrorMissingConfiguration;
  Configuration *top = &stack[--depth];
  by_chevrons = true;
  *grid = top->grid, *block = top->block, *shared = top->shared, *(cudaStream_t *)stream = top->stream;
  return cudaSuccess;
}
API cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
  Shape shape = shape_of(grid, block, shared);
  return launch(function_of(host), &shape, arguments, stream);
}
API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
API cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
  Shape shape = shape_of(grid, block, shared);
  shape.cooperative = true;
  return launch(function_of(host), &shape, arguments, stream);
}
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host, void **arguments) {
  Shape shape = shape_of(config->gridDim, config->blockDim, config->dynamicSmemBytes);
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttributeValue *value = &config->attrs[i].val;
    switch (config->attrs[i].id) {
      case cudaLaunchAttributeClusterDimension:
        shape.cluster[0] = value->clusterDim.x, shape.cluster[1] = value->clusterDim.y, shape.cluster[2] = value->clusterDim.z;
        break;
      case cudaLaunchAttributeCooperative: shape.cooperative = value->cooperative; break;
      case cudaLaunchAttributeProgrammaticStreamSerialization: shape.overlap = value->programmaticStreamSerializationAllowed; break;
      default: break;  // hints, and what does not change results
    }
  }
  return launch(function_of(host), &shape, arguments, config->stream);
}
API cudaError_t __cudaGetKernel(cudaKernel_t *into, const void *host) {
  *into = (cudaKernel_t)function_of(host);
  return *into ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}
API cudaError_t cudaGetKernel(cudaKernel_t *into, const void *host) { return __cudaGetKernel(into, host); }
API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *into, const void *host) { return __cudaGetKernel((cudaKernel_t *)into, host); }

// --- Functions: attributes and occupancy.

static void know_resources(Function *function) {
  if (function->registers) return;
  Bytes bytes = {0}, answer;
  put_number(&bytes, function->module->number);
  put_text(&bytes, function->name);
  ask(REQUEST_RESOURCES, &bytes, &answer);
  function->registers = (int)take_number(&answer);
  function->local = (int)take_number(&answer);
  function->constant = (int)take_number(&answer);
  free(answer.data);
}

int occupancy(Function *function, int block, size_t shared) {
  know_resources(function);
  Bytes bytes = {0}, answer;
  put_number(&bytes, block);
  put_number(&bytes, function->registers);
  put_number(&bytes, shared + function->static_shared);
  ask(REQUEST_OCCUPANCY, &bytes, &answer);
  int found = (int)take_number(&answer);
  free(answer.data);
  return found;
}

#define FUNCTION(name, host) \
  ALIVE; \
  Function *name = function_of(host); \
  CHECKED(name, cudaErrorInvalidDeviceFunction); \
  { cudaError_t unknown = know(name); CHECKED(!unknown, unknown); }

API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *into, const void *host) {
  FUNCTION(function, host);
  know_resources(function);
  memset(into, 0, sizeof *into);
  into->sharedSizeBytes = function->static_shared;
  into->constSizeBytes = function->constant;
  into->localSizeBytes = function->local;
  into->numRegs = function->registers;
  int most = function->largest_block ? function->largest_block : 1024, by_registers = 65536 / (function->registers ? function->registers : 1) / 128 * 128;
  into->maxThreadsPerBlock = most < by_registers ? most : by_registers;
  into->ptxVersion = function->ptx_version;
  into->binaryVersion = 10 * device_number("major") + device_number("minor");
  into->maxDynamicSharedSizeBytes = function->dynamic_limit >= 0 ? function->dynamic_limit : 48 * 1024 - function->static_shared;
  into->preferredShmemCarveout = function->carveout;
  return cudaSuccess;
}
API cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value) {
  FUNCTION(function, host);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    CHECKED(value >= 0 && value + function->static_shared <= device_number("shared_block"), cudaErrorInvalidValue);
    function->dynamic_limit = value;
  }
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) function->no_cluster_limit = value;
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) function->carveout = value;
  return cudaSuccess;
}
API cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config) { FUNCTION(function, host); (void)config; return cudaSuccess; }
API cudaError_t cudaFuncSetSharedMemConfig(const void *host, enum cudaSharedMemConfig config) { FUNCTION(function, host); (void)config; return cudaSuccess; }
API cudaError_t cudaFuncGetName(const char **into, const void *host) { FUNCTION(function, host); *into = function->name; return cudaSuccess; }
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *into, const void *host, int block, size_t shared, unsigned flags) {
  FUNCTION(function, host);
  (void)flags;
  CHECKED(into && block > 0, cudaErrorInvalidValue);
  *into = block > 1024 ? 0 : occupancy(function, block, shared);
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *into, const void *host, int block, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(into, host, block, shared, 0);
}
API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *into, const void *host, int blocks, int block) {
  FUNCTION(function, host);
  int low = 0, high = device_number("shared_block") - function->static_shared;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (occupancy(function, block, middle) >= blocks) low = middle; else high = middle - 1;
  }
  *into = low;
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *into, const void *host, const cudaLaunchConfig_t *config) {
  FUNCTION(function, host);
  (void)config;
  *into = function->no_cluster_limit ? 16 : 8;
  return cudaSuccess;
}
API cudaError_t cudaOccupancyMaxActiveClusters(int *into, const void *host, const cudaLaunchConfig_t *config) {
  FUNCTION(function, host);
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
      size = config->attrs[i].val.clusterDim.x * config->attrs[i].val.clusterDim.y * config->attrs[i].val.clusterDim.z;
  dim3 b = config->blockDim;
  *into = (int)(device_number("sms") * occupancy(function, (int)(b.x * b.y * b.z), config->dynamicSmemBytes) / (size ? size : 1));
  return cudaSuccess;
}
