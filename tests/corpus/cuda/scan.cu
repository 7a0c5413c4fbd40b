// Prefix sums: within a warp, a block (work-efficient), and across blocks with decoupled look-back.
// make: sm_75 sm_80 sm_90a sm_120a
// make: sm_80 -G
// make: sm_100a nvcc-13.4

extern "C" __global__ void warp_inclusive(const int* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], lane = threadIdx.x & 31;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int other = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += other;
    }
    out[i] = v;
}

extern "C" __global__ void block_exclusive(const float* in, float* out, int n) {
    extern __shared__ float tree[];
    int t = threadIdx.x, offset = 1;
    tree[2 * t] = 2 * t < n ? in[2 * t] : 0;
    tree[2 * t + 1] = 2 * t + 1 < n ? in[2 * t + 1] : 0;
    for (int d = blockDim.x; d > 0; d >>= 1, offset *= 2) {
        __syncthreads();
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
    }
    if (t == 0) tree[2 * blockDim.x - 1] = 0;
    for (int d = 1; d < 2 * blockDim.x; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            float x = tree[a];
            tree[a] = tree[b];
            tree[b] += x;
        }
    }
    __syncthreads();
    if (2 * t < n) out[2 * t] = tree[2 * t];
    if (2 * t + 1 < n) out[2 * t + 1] = tree[2 * t + 1];
}

struct Status { int flag, value; };
extern "C" __global__ void __launch_bounds__(256) look_back(const int* in, int* out, volatile unsigned long long* state, unsigned* ticket, int n) {
    __shared__ int sums[8], before;
    __shared__ unsigned tile;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
    __syncthreads();
    int i = tile * 256 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int v = i < n ? in[i] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        int other = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += other;
    }
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int s = lane < 8 ? sums[lane] : 0;
        for (int d = 1; d < 8; d <<= 1) {
            int other = __shfl_up_sync(~0u, s, d);
            if (lane >= d) s += other;
        }
        if (lane < 8) sums[lane] = s;
        int total = __shfl_sync(~0u, s, 7), prefix = 0;
        if (lane == 0) {
            state[tile] = (tile == 0 ? 2ull : 1ull) << 32 | (unsigned)total;
            __threadfence();
            for (int k = (int)tile - 1; k >= 0;) {
                unsigned long long s = state[k];
                if (s >> 32 == 0) continue;
                prefix += (int)s;
                if (s >> 32 == 2) break;
                --k;
            }
            if (tile) state[tile] = 2ull << 32 | (unsigned)(prefix + total);
            before = prefix;
        }
    }
    __syncthreads();
    if (i < n) out[i] = v + before + (warp ? sums[warp - 1] : 0);
}
