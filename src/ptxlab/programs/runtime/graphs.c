// Operations on streams, which run at once or become nodes of a graph; graphs.
#include "runtime.h"

cudaError_t run_on(const Operation *operation, cudaStream_t stream);
cudaGraph_t capture_of(cudaStream_t stream);
void set_capture(cudaStream_t stream, cudaGraph_t graph);
void end_captures(cudaGraph_t graph);

typedef struct Node Node;
typedef struct { Node **nodes; size_t count; cudaStream_t *branches; size_t branch_count; cudaEvent_t start, end; unsigned long long flags; } Graph;
// A node follows `count` others. In a graph that runs, it is the copy of its origin, and `done` is recorded after it on the
// stream that it ran on, whose last operation it `is_last` until another one follows there.
struct Node { Operation operation; Node **after; size_t count; Node *origin, *copy; Graph *graph; bool disabled, placed, captured, is_last;
              cudaStream_t on; cudaEvent_t done; };

static Node *add_node(Graph *graph, Node *const *after, size_t count, const Operation *operation) {
  Node *made = calloc(1, sizeof *made);
  made->operation = *operation;
  made->graph = graph;
  if (!made->operation.added.count) made->operation.added.count = frames_here(made->operation.added.frames);
  made->after = malloc((count + 1) * sizeof *made->after);
  made->count = count;
  if (count) memcpy(made->after, after, count * sizeof *after);
  graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *graph->nodes);
  graph->nodes[graph->count++] = made;
  return made;
}

static void *kept_parameters(const Operation *o) {
  if (o->kind != LAUNCH || !o->parameters) return 0;
  void *made = malloc(o->function->parameters + 1);
  memcpy(made, o->parameters, o->function->parameters);
  return made;
}

static __thread const Node *running;
bool in_explicit_graph(void) { return running && !running->captured; }

static cudaError_t run_node(Node *node, cudaStream_t stream) {
  const Frames *at = added_at;
  const Node *before = running;
  added_at = &node->operation.added, running = node;
  cudaError_t error = node->disabled ? cudaSuccess : perform(&node->operation, stream);
  added_at = at, running = before;
  return error;
}

// Whether each node follows the one before it.
static bool is_chain(const Graph *graph) {
  for (size_t i = 1; i < graph->count; i++) {
    const Node *node = graph->nodes[i];
    size_t j = 0;
    while (j < node->count && node->after[j] != graph->nodes[i - 1]) j++;
    if (j == node->count) return false;
  }
  return true;
}

// The stream that a node runs on: that of one that it follows, if nothing follows there yet; the first node takes the stream
// of the graph.
static cudaStream_t stream_for(Graph *graph, Node *node, size_t *used, cudaStream_t stream) {
  for (size_t i = 0; i < node->count; i++)
    if (node->after[i]->is_last) return node->after[i]->is_last = false, node->after[i]->on;
  if (node == graph->nodes[0]) return stream;
  if (*used == graph->branch_count) {
    graph->branches = realloc(graph->branches, (graph->branch_count + 1) * sizeof *graph->branches);
    graph->branches[graph->branch_count++] = branch_of(stream);
  }
  return graph->branches[(*used)++];
}

// Nodes run on streams of their own, as far as no path of the graph orders them, and wait for those that they follow.
static cudaError_t run_chain(Graph *graph, cudaStream_t stream) {
  for (size_t i = 0; i < graph->count; i++) {
    started_on(stream);
    cudaError_t error = run_node(graph->nodes[i], stream);
    if (error) return error;
  }
  return cudaSuccess;
}
static cudaError_t run_branches(Graph *graph, cudaStream_t stream) {
  if (!graph->branch_count) {
    graph->branches = malloc(sizeof *graph->branches);
    graph->branches[graph->branch_count++] = branch_of(stream);
  }
  event_recorded(graph->start, stream);
  size_t used = 0;
  for (size_t i = 0; i < graph->count; i++) {
    Node *node = graph->nodes[i];
    node->on = stream_for(graph, node, &used, stream);
    stream_waits(node->on, graph->start);
    for (size_t j = 0; j < node->count; j++) stream_waits(node->on, node->after[j]->done);
    started_on(node->on);
    cudaError_t error = run_node(node, node->on);
    if (error) return error;
    if (!node->done) cudaEventCreate(&node->done);
    event_recorded(node->done, node->on);
    node->is_last = true;
  }
  for (size_t i = 0; i < graph->count; i++) stream_waits(stream, graph->nodes[i]->done);
  return cudaSuccess;
}

static cudaError_t run_graph(Graph *graph, cudaStream_t stream) {
  if (graph->end) stream_waits(stream, graph->end);  // a graph does not run beside itself
  else cudaEventCreate(&graph->start), cudaEventCreate(&graph->end);
  cudaError_t error = is_chain(graph) ? run_chain(graph, stream) : run_branches(graph, stream);
  return error ? error : event_recorded(graph->end, stream);
}

cudaError_t perform(const Operation *o, cudaStream_t stream) {
  switch (o->kind) {
    case LAUNCH: return run(o->function, &o->shape, o->parameters, stream);
    case COPY: case FILL: return perform_memory(o, defers(), stream);
    case CALL: synchronized(stream); o->call(o->data); return cudaSuccess;
    case CALL_GRAPH: return run_graph((Graph *)o->graph, stream);
    case RECORD: return event_recorded(o->event, stream);
    case ALLOCATE: return allocate_again(o->to);
    case FREE: return release(o->to, "cudaFreeAsync", 1u << DEVICE | 1u << POOLED);
    default: return cudaSuccess;
  }
}

cudaError_t issue(Operation *operation, cudaStream_t stream) {
  Graph *graph = (Graph *)capture_of(stream);
  if (!graph) return run_on(operation, stream);
  Nodes *last = captured_last(stream);
  Node *made = add_node(graph, (Node *const *)last->items, last->count, operation);
  made->operation.parameters = kept_parameters(operation);
  made->captured = true;
  last->items = realloc(last->items, sizeof *last->items);
  last->items[0] = made, last->count = 1;
  return cudaSuccess;
}

API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *data) {
  ALIVE;
  return issue(&(Operation){.kind = CALL, .call = call, .data = data}, stream);
}
API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void *data, unsigned flags) {
  ALIVE;
  (void)flags;
  synchronized(stream);
  call(stream, settled(), data);
  return cudaSuccess;
}

API cudaError_t cudaGraphCreate(cudaGraph_t *into, unsigned flags) {
  ALIVE;
  (void)flags;
  *into = calloc(1, sizeof(Graph));
  return cudaSuccess;
}
API cudaError_t cudaGraphDestroy(cudaGraph_t graph) { ALIVE; (void)graph; return cudaSuccess; }
API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  ALIVE;
  (void)mode;
  CHECKED(stream && stream != cudaStreamLegacy, cudaErrorStreamCaptureUnsupported);
  CHECKED(!is_capturing(stream), cudaErrorIllegalState);
  set_capture(stream, calloc(1, sizeof(Graph)));
  return cudaSuccess;
}
API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *into) {
  ALIVE;
  CHECKED(is_capturing(stream), cudaErrorIllegalState);
  *into = capture_of(stream);
  end_captures(*into);
  return cudaSuccess;
}
API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *into) {
  ALIVE;
  *into = is_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) { (void)mode; return cudaSuccess; }

static void place(Node *node, Graph *into) {  // after those that it depends on
  if (node->placed) return;
  node->placed = true;
  for (size_t i = 0; i < node->count; i++) place(node->after[i], into);
  Node *made = add_node(into, node->after, node->count, &node->operation);
  for (size_t i = 0; i < made->count; i++) made->after[i] = made->after[i]->copy;
  node->copy = made;
  made->captured = node->captured;
  made->operation.parameters = kept_parameters(&node->operation);
  made->origin = node;
  made->disabled = node->disabled;
}

static Graph *in_order(Graph *graph) {
  Graph *made = calloc(1, sizeof *made);
  for (size_t i = 0; i < graph->count; i++) graph->nodes[i]->placed = false;
  for (size_t i = 0; i < graph->count; i++) place(graph->nodes[i], made);
  return made;
}

API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *into, cudaGraph_t graph, unsigned long long flags) {
  ALIVE;
  CHECKED(graph, cudaErrorInvalidValue);
  *into = (cudaGraphExec_t)in_order((Graph *)graph);
  ((Graph *)*into)->flags = flags;
  return cudaSuccess;
}
API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *into, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(into, graph, flags);
}
API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *into, cudaGraph_t graph, cudaGraphInstantiateParams *params) {
  params->result_out = cudaGraphInstantiateSuccess;
  return cudaGraphInstantiate(into, graph, params->flags);
}
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { ALIVE; (void)exec; return cudaSuccess; }
API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) { ALIVE; (void)exec, (void)stream; return cudaSuccess; }
// Whether memory that a graph allocates was not freed since it ran last: it can't be launched then, but with a flag.
static bool holds_memory(const Graph *graph) {
  if (graph->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) return false;
  for (size_t i = 0; i < graph->count; i++) {
    const Operation *o = &graph->nodes[i]->operation;
    if (o->kind != ALLOCATE || !allocation_at((uint64_t)o->to)->was_run || allocation_at((uint64_t)o->to)->freed) continue;
    finding("failed-launch", "`cudaGraphLaunch` fails with cudaErrorInvalidValue (1): memory that the graph allocates was not freed since it ran last", (uint64_t)o->to,
            "free it, by a node or after the launch, or instantiate with `cudaGraphInstantiateFlagAutoFreeOnLaunch`");
    return true;
  }
  return false;
}

API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  ALIVE;
  CHECKED(exec && !holds_memory((Graph *)exec), cudaErrorInvalidValue);
  return run_on(&(Operation){.kind = CALL_GRAPH, .graph = (cudaGraph_t)exec}, stream);
}
API cudaError_t cudaGraphClone(cudaGraph_t *into, cudaGraph_t graph) {
  ALIVE;
  *into = (cudaGraph_t)in_order((Graph *)graph);
  return cudaSuccess;
}
API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
  ALIVE;
  Graph *to = (Graph *)exec, *from = in_order((Graph *)graph);
  bool same = to->count == from->count;
  for (size_t i = 0; same && i < to->count; i++) same = to->nodes[i]->operation.kind == from->nodes[i]->operation.kind;
  if (info) info->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  CHECKED(same, cudaErrorGraphExecUpdateFailure);
  to->nodes = from->nodes, to->count = from->count;
  return cudaSuccess;
}

// Parameters of each function that adds a node.
#define NEW_NODE cudaGraphNode_t *into, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count
static cudaError_t add(NEW_NODE, Operation operation) {
  ALIVE;
  CHECKED(into && graph, cudaErrorInvalidValue);
  *into = (cudaGraphNode_t)add_node((Graph *)graph, (Node *const *)after, count, &operation);
  return cudaSuccess;
}

static cudaError_t launch_operation(const struct cudaKernelNodeParams *p, Operation *into) {
  Function *function = function_of(p->func);
  cudaError_t error = function ? know(function) : cudaErrorInvalidDeviceFunction;
  if (error) return fail(error);
  *into = (Operation){.kind = LAUNCH, .function = function, .shape = {
      {p->gridDim.x, p->gridDim.y, p->gridDim.z}, {p->blockDim.x, p->blockDim.y, p->blockDim.z}, {0}, p->sharedMemBytes, false, false}};
  into->parameters = pack(function, p->kernelParams, p->extra);
  return cudaSuccess;
}
API cudaError_t cudaGraphAddKernelNode(NEW_NODE, const struct cudaKernelNodeParams *params) {
  Operation operation;
  cudaError_t error = launch_operation(params, &operation);
  return error ? error : add(into, graph, after, count, operation);
}
Operation copy_3d(const struct cudaMemcpy3DParms *p, const char *name);
API cudaError_t cudaGraphAddMemcpyNode(NEW_NODE, const struct cudaMemcpy3DParms *params) {
  return add(into, graph, after, count, copy_3d(params, "cudaGraphAddMemcpyNode"));
}
static Operation copy_1d(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
  return (Operation){.kind = COPY, .name = "cudaGraphAddMemcpyNode1D", .to = to, .from = from, .width = size, .height = 1, .depth = 1,
                     .to_pitch = size, .from_pitch = size, .direction = kind};
}
API cudaError_t cudaGraphAddMemcpyNode1D(NEW_NODE, void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
  return add(into, graph, after, count, copy_1d(to, from, size, kind));
}
static Operation fill_of(const struct cudaMemsetParams *p) {
  return (Operation){.kind = FILL, .name = "cudaGraphAddMemsetNode", .to = p->dst, .to_pitch = p->pitch, .value = p->value,
                     .element = (int)p->elementSize, .width = p->width * p->elementSize, .height = p->height, .depth = 1};
}
API cudaError_t cudaGraphAddMemsetNode(NEW_NODE, const struct cudaMemsetParams *params) { return add(into, graph, after, count, fill_of(params)); }
API cudaError_t cudaGraphAddHostNode(NEW_NODE, const struct cudaHostNodeParams *params) {
  return add(into, graph, after, count, (Operation){.kind = CALL, .call = params->fn, .data = params->userData});
}
API cudaError_t cudaGraphAddMemAllocNode(NEW_NODE, struct cudaMemAllocNodeParams *params) {
  ALIVE;
  CHECKED(params && params->bytesize && is_here(params->poolProps.location.id), cudaErrorInvalidValue);
  int before = current_gpu;
  current_gpu = params->poolProps.location.id;
  Allocation *made = allocate(params->bytesize, POOLED);
  current_gpu = before;
  CHECKED(made, cudaErrorMemoryAllocation);
  made->of_graph = true;
  params->dptr = (void *)made->base;
  return add(into, graph, after, count, (Operation){.kind = ALLOCATE, .to = params->dptr});
}
API cudaError_t cudaGraphAddMemFreeNode(NEW_NODE, void *pointer) {
  return add(into, graph, after, count, (Operation){.kind = FREE, .to = pointer});
}
API cudaError_t cudaDeviceGraphMemTrim(int device) { ALIVE; CHECKED(is_here(device), cudaErrorInvalidDevice); return cudaSuccess; }
API cudaError_t cudaGraphAddEmptyNode(NEW_NODE) { return add(into, graph, after, count, (Operation){.kind = EMPTY}); }
API cudaError_t cudaGraphAddChildGraphNode(NEW_NODE, cudaGraph_t child) {
  return add(into, graph, after, count, (Operation){.kind = CALL_GRAPH, .graph = (cudaGraph_t)in_order((Graph *)child)});
}
API cudaError_t cudaGraphAddEventRecordNode(NEW_NODE, cudaEvent_t event) { return add(into, graph, after, count, (Operation){.kind = RECORD, .event = event}); }
API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                         const cudaGraphEdgeData *edges, size_t count) {
  ALIVE;
  (void)graph, (void)edges;
  for (size_t i = 0; i < count; i++) {
    Node *node = (Node *)to[i];
    node->after = realloc(node->after, (node->count + 1) * sizeof *node->after);
    node->after[node->count++] = (Node *)from[i];
  }
  return cudaSuccess;
}
API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  ALIVE;
  Graph *one = (Graph *)graph;
  for (size_t i = 0; nodes && i < *count && i < one->count; i++) nodes[i] = (cudaGraphNode_t)one->nodes[i];
  *count = nodes && *count < one->count ? *count : one->count;
  return cudaSuccess;
}
API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  ALIVE;
  Graph *one = (Graph *)graph;
  size_t found = 0;
  for (size_t i = 0; i < one->count; i++)
    if (!one->nodes[i]->count && (!nodes || found < *count)) { if (nodes) nodes[found] = (cudaGraphNode_t)one->nodes[i]; found++; }
  *count = found;
  return cudaSuccess;
}
API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *into) {
  ALIVE;
  static const enum cudaGraphNodeType types[] = {
      cudaGraphNodeTypeEmpty, cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemset, cudaGraphNodeTypeHost,
      cudaGraphNodeTypeGraph, cudaGraphNodeTypeEventRecord, cudaGraphNodeTypeWaitEvent, cudaGraphNodeTypeMemAlloc, cudaGraphNodeTypeMemFree};
  *into = types[((Node *)node)->operation.kind];
  return cudaSuccess;
}

// A change of a node, in a graph or in what was instantiated from it.
static cudaError_t change(cudaGraphExec_t exec, cudaGraphNode_t node, Operation operation) {
  ALIVE;
  Node *one = (Node *)node;
  Graph *made = (Graph *)exec;
  for (size_t i = 0; made && i < made->count; i++)
    if (made->nodes[i]->origin == one) { operation.added = made->nodes[i]->operation.added; made->nodes[i]->operation = operation; return cudaSuccess; }
  CHECKED(!made, cudaErrorInvalidValue);
  operation.added = one->operation.added;
  one->operation = operation;
  return cudaSuccess;
}
API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *params) {
  Operation operation;
  cudaError_t error = launch_operation(params, &operation);
  return error ? error : change(exec, node, operation);
}
API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *params) {
  return cudaGraphExecKernelNodeSetParams(0, node, params);
}
API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from, size_t size,
                                                   enum cudaMemcpyKind kind) {
  return change(exec, node, copy_1d(to, from, size, kind));
}
API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *params) {
  return change(exec, node, fill_of(params));
}
API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *params) {
  return change(exec, node, (Operation){.kind = CALL, .call = params->fn, .data = params->userData});
}
