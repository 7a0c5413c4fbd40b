// Tables, strings and graphs: hashing with compare-and-swap, bisection, search in text, union-find, levels of a graph.
// make: sm_80
// make: sm_80 -Xcicc -O0

constexpr unsigned int empty = 0xffffffff;

__device__ unsigned int slot_of(unsigned int key, unsigned int capacity) { return (key * 2654435761u >> 7) % capacity; }

extern "C" __global__ void hash_count(const unsigned int* keys, unsigned int* slots, unsigned int* counts, int capacity, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int at = slot_of(keys[i], capacity);
    for (;;) {
        unsigned int found = atomicCAS(&slots[at], empty, keys[i]);
        if (found == empty || found == keys[i]) break;
        at = (at + 1) % capacity;
    }
    atomicAdd(&counts[at], 1u);
}

extern "C" __global__ void hash_look_up(const unsigned int* keys, const unsigned int* slots, const unsigned int* counts, unsigned int* out, int capacity, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int at = slot_of(keys[i], capacity);
    while (slots[at] != keys[i] && slots[at] != empty) at = (at + 1) % capacity;
    out[i] = slots[at] == empty ? 0 : counts[at];
}

extern "C" __global__ void bisect(const long long* sorted, int n, const long long* wanted, int* places, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (sorted[middle] < wanted[i]) low = middle + 1;
        else high = middle;
    }
    places[i] = low;
}

__constant__ char pattern[] = "abba";

extern "C" __global__ void find_pattern(const char* text, int n, int* places, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 4 > n) return;
    for (int k = 0; k < 4; ++k)
        if (text[i + k] != pattern[k]) return;
    places[atomicAdd(count, 1)] = i;
}

// Every vertex ends at the smallest vertex that it can reach.
extern "C" __global__ void unite(const int* from, const int* to, int* parents, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    volatile int* seen = parents;
    int a = from[e], b = to[e];
    for (;;) {
        while (seen[a] != a) a = seen[a];
        while (seen[b] != b) b = seen[b];
        if (a == b) return;
        if (a < b) {
            int swap = a;
            a = b;
            b = swap;
        }
        if (atomicCAS(&parents[a], a, b) == a) return;
    }
}

extern "C" __global__ void flatten(int* parents, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    volatile int* seen = parents;
    int root = i;
    while (seen[root] != root) root = seen[root];
    seen[i] = root;
}

// Breadth first by one block: a frontier a level, each vertex claimed once.
extern "C" __global__ void levels(const int* starts, const int* neighbours, int* level, int* frontiers, int source, int n) {
    __shared__ int size, next_size;
    int* now = frontiers;
    int* next = frontiers + n;
    if (threadIdx.x == 0) {
        size = 1;
        now[0] = source;
        level[source] = 0;
    }
    __syncthreads();
    for (int depth = 1; size > 0; ++depth) {
        if (threadIdx.x == 0) next_size = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < size; i += blockDim.x)
            for (int k = starts[now[i]]; k < starts[now[i] + 1]; ++k)
                if (atomicCAS(&level[neighbours[k]], -1, depth) == -1) next[atomicAdd(&next_size, 1)] = neighbours[k];
        __syncthreads();
        if (threadIdx.x == 0) size = next_size;
        int* swap = now;
        now = next;
        next = swap;
        __syncthreads();
    }
}
