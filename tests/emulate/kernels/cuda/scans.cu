// Prefix sums: Hillis-Steele, Blelloch, within warps, over blocks by decoupled look-back; compaction.
// make: sm_80
// make: sm_80 -Xcicc -O0

extern "C" __global__ void hillis_steele(const int* x, int* out, int n) {
    extern __shared__ int buffers[];
    int t = threadIdx.x;
    int* from = buffers;
    int* to = buffers + blockDim.x;
    from[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        to[t] = from[t] + (t >= step ? from[t - step] : 0);
        __syncthreads();
        int* swap = from;
        from = to;
        to = swap;
    }
    if (t < n) out[t] = from[t];
}

// Exclusive, two elements a thread: a sweep up the tree, a sweep down.
extern "C" __global__ void blelloch(const int* x, int* out, int n) {
    __shared__ int tree[512];
    int t = threadIdx.x;
    tree[2 * t] = 2 * t < n ? x[2 * t] : 0;
    tree[2 * t + 1] = 2 * t + 1 < n ? x[2 * t + 1] : 0;
    int offset = 1;
    for (int d = 256; d > 0; d >>= 1, offset *= 2) {
        __syncthreads();
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
    }
    if (t == 0) tree[511] = 0;
    for (int d = 1; d < 512; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            int kept = tree[left];
            tree[left] = tree[right];
            tree[right] += kept;
        }
    }
    __syncthreads();
    if (2 * t < n) out[2 * t] = tree[2 * t];
    if (2 * t + 1 < n) out[2 * t + 1] = tree[2 * t + 1];
}

__device__ int warp_scan(int v) {
    int lane = threadIdx.x % 32;
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_up_sync(0xffffffff, v, step);
        if (lane >= step) v += before;
    }
    return v;
}

__device__ int block_scan(int v, int* sums) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    v = warp_scan(v);
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) sums[lane] = warp_scan(lane < blockDim.x / 32 ? sums[lane] : 0);
    __syncthreads();
    return warp == 0 ? v : v + sums[warp - 1];
}

extern "C" __global__ void shuffle_scan(const int* x, int* out, int n) {
    __shared__ int sums[32];
    int i = threadIdx.x;
    int v = block_scan(i < n ? x[i] : 0, sums);
    if (i < n) out[i] = v;
}

// State of a block in one word of 64 bits: 1 << 32 with its own sum, 2 << 32 with the sum of all up to it.
extern "C" __global__ void look_back_scan(const int* x, int* out, unsigned long long* states, unsigned int* tickets, int n) {
    __shared__ int sums[32];
    __shared__ int before;
    __shared__ unsigned int tile;
    if (threadIdx.x == 0) tile = atomicAdd(tickets, 1);
    __syncthreads();
    int i = tile * blockDim.x + threadIdx.x;
    int v = block_scan(i < n ? x[i] : 0, sums);
    if (threadIdx.x == blockDim.x - 1) {
        unsigned long long mine = (unsigned int)v;
        if (tile == 0) {
            atomicExch(&states[0], 2ull << 32 | mine);
            before = 0;
        } else {
            atomicExch(&states[tile], 1ull << 32 | mine);
            unsigned int sum = 0;
            for (int k = tile - 1; k >= 0;) {
                unsigned long long state = *(volatile unsigned long long*)&states[k];
                if (state >> 32 == 0) continue;
                sum += (unsigned int)state;
                if (state >> 32 == 2) break;
                --k;
            }
            atomicExch(&states[tile], 2ull << 32 | (unsigned int)(sum + v));
            before = sum;
        }
    }
    __syncthreads();
    if (i < n) out[i] = before + v;
}

// Keep the positive ones, in order within a warp; warps take their room by one atomic.
extern "C" __global__ void compact_by_ballot(const int* x, int* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    bool keep = i < n && x[i] > 0;
    unsigned int mask = __ballot_sync(0xffffffff, keep);
    int base = 0;
    if (lane == 0) base = atomicAdd(count, __popc(mask));
    base = __shfl_sync(0xffffffff, base, 0);
    if (keep) out[base + __popc(mask & ((1u << lane) - 1))] = x[i];
}
