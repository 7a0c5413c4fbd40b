// Kinds of memory: constant tables, global variables, dynamic shared memory, the read-only path, allocation by threads.
// make: sm_80
// make: sm_80 -Xcicc -O0

__constant__ unsigned int crc_bits[8] = {0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320};

// CRC-32 of one line of text a thread; bit k of a byte contributes crc_bits[k].
extern "C" __global__ void crc32(const unsigned char* lines, int length, unsigned int* out, int count) {
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= count) return;
    unsigned int crc = 0xffffffff;
    for (int i = 0; i < length; ++i) {
        unsigned int low = (crc ^ lines[line * length + i]) & 255, mix = 0;
        for (int bit = 0; bit < 8; ++bit)
            if (low >> bit & 1) mix ^= crc_bits[bit];
        crc = crc >> 8 ^ mix;
    }
    out[line] = ~crc;
}

__device__ int calls_so_far = 5;
__device__ double coefficients[4] = {0.5, -1.25, 2.0, 0.125};
__device__ int* pointer_to_calls = &calls_so_far;

extern "C" __global__ void count_a_call(int* seen) {
    if (threadIdx.x == 0) seen[0] = atomicAdd(pointer_to_calls, 1);
}

extern "C" __global__ void polynomial(const double* x, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 0;
    for (int k = 3; k >= 0; --k) sum = fma(sum, x[i], coefficients[k]);
    out[i] = sum;
}

// One region of dynamic shared memory holds three arrays of different types.
extern "C" __global__ void three_in_one(const double* x, float* out, int n) {
    extern __shared__ double region[];
    double* doubles = region;
    int* places = (int*)(doubles + n);
    unsigned char* marks = (unsigned char*)(places + n);
    int t = threadIdx.x;
    if (t < n) {
        doubles[t] = x[t] * 2;
        places[t] = n - 1 - t;
        marks[t] = t % 5 == 0;
    }
    __syncthreads();
    if (t < n) out[t] = marks[places[t]] ? -1.0f : (float)doubles[places[t]];
}

extern "C" __global__ void gather(const float4* __restrict__ table, const int* __restrict__ places, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = __ldg(&table[__ldg(&places[i])]);
    out[i] = (v.x + v.y) - (v.z + v.w);
}

struct Particle {
    float position[3];
    unsigned char alive;
    short age;
};

extern "C" __global__ void age_particles(Particle* all, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = all[i];
    if (p.alive) {
        p.position[p.age % 3] += 1;
        p.age += 1;
        p.alive = p.age < 7;
    }
    all[i] = p;
}

// A list of its own for each thread, built on the heap, read backwards, given back.
struct Node {
    int value;
    Node* next;
};

extern "C" __global__ void linked_lists(int* sums) {
    Node* head = nullptr;
    for (int i = 0; i <= threadIdx.x % 9; ++i) {
        Node* node = (Node*)malloc(sizeof(Node));
        if (!node) return;
        node->value = i * threadIdx.x;
        node->next = head;
        head = node;
    }
    int sum = 0, weight = 1;
    while (head) {
        sum += weight++ * head->value;
        Node* next = head->next;
        free(head);
        head = next;
    }
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
