// Whole algorithms: histogram, transpose, stencils, bitonic and radix sort, sparse product, FFT, n-body, hash table, BFS, Mandelbrot.
// make: sm_75 sm_80 sm_90a sm_100a sm_120a
// make: sm_80 -G
// make: sm_90a -lineinfo
// make: sm_80 --use_fast_math
// make: sm_75 -G
// make: sm_80 sm_100a nvcc-13.4
// make: sm_80 nvcc-13.4 -G

extern "C" __global__ void histogram(const unsigned char* in, unsigned* out, int n) {
    __shared__ unsigned bins[4][256];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) (&bins[0][0])[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        uchar4 v = ((const uchar4*)in)[i];
        unsigned* b = bins[threadIdx.x & 3];
        atomicAdd(b + v.x, 1); atomicAdd(b + v.y, 1); atomicAdd(b + v.z, 1); atomicAdd(b + v.w, 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(out + i, bins[0][i] + bins[1][i] + bins[2][i] + bins[3][i]);
}

template <typename T> __device__ void transpose(const T* in, T* out, int width, int height) {
    __shared__ T tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int j = 0; j < 32; j += 8)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void transpose_f32(const float* in, float* out, int width, int height) { transpose(in, out, width, height); }
extern "C" __global__ void transpose_f64(const double* in, double* out, int width, int height) { transpose(in, out, width, height); }

extern "C" __global__ void heat(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz, float c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
    int plane = nx * ny, at = y * nx + x;
    float below = in[at], here = in[at + plane];
    for (int z = 1; z < nz - 1; ++z) {
        at += plane;
        float above = in[at + plane];
        out[at] = here + c * (below + above + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx] - 6 * here);
        below = here;
        here = above;
    }
}

extern "C" __global__ void __launch_bounds__(512) bitonic_sort(int* data) {
    __shared__ int s[1024];
    int t = threadIdx.x, base = blockIdx.x * 1024;
    s[t] = data[base + t];
    s[t + 512] = data[base + t + 512];
    for (int size = 2; size <= 1024; size <<= 1)
        for (int stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            int at = 2 * t - (t & (stride - 1));
            bool up = (at & size) == 0;
            int a = s[at], b = s[at + stride];
            if ((a > b) == up) { s[at] = b; s[at + stride] = a; }
        }
    __syncthreads();
    data[base + t] = s[t];
    data[base + t + 512] = s[t + 512];
}

// One pass over four bits of a block's keys: ranks by ballots.
extern "C" __global__ void __launch_bounds__(128) radix_pass(const unsigned* in, unsigned* out, int shift) {
    __shared__ unsigned counts[16][4], offsets[16][4];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned key = in[blockIdx.x * 128 + threadIdx.x], digit = key >> shift & 15, peers = ~0u;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
        unsigned vote = __ballot_sync(~0u, digit >> b & 1);
        peers &= digit >> b & 1 ? vote : ~vote;
    }
    int rank = __popc(peers & ((1u << lane) - 1));
    if (threadIdx.x < 64) (&counts[0][0])[threadIdx.x] = 0;
    __syncthreads();
    if (rank == 0) counts[digit][warp] = __popc(peers);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (int d = 0; d < 16; ++d)
            for (int w = 0; w < 4; ++w) { offsets[d][w] = sum; sum += counts[d][w]; }
    }
    __syncthreads();
    out[blockIdx.x * 128 + offsets[digit][warp] + rank] = key;
}

extern "C" __global__ void spmv(const int* __restrict__ rows, const int* __restrict__ columns, const double* __restrict__ values, const double* __restrict__ x, double* y, int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= n) return;
    double sum = 0;
    for (int i = rows[row] + lane; i < rows[row + 1]; i += 32) sum += values[i] * __ldg(x + columns[i]);
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0) y[row] = sum;
}

extern "C" __global__ void __launch_bounds__(256) fft(float2* data, int direction) {
    __shared__ float2 s[512];
    int t = threadIdx.x;
    float2* x = data + blockIdx.x * 512;
    s[__brev(t) >> 23] = x[t];
    s[__brev(t + 256) >> 23] = x[t + 256];
    for (int half = 1; half < 512; half <<= 1) {
        __syncthreads();
        int k = t & (half - 1), at = 2 * t - k;
        float wr, wi;
        sincospif(direction * (float)k / half, &wi, &wr);
        float2 a = s[at], b = s[at + half];
        float2 c = make_float2(b.x * wr - b.y * wi, b.x * wi + b.y * wr);
        s[at] = make_float2(a.x + c.x, a.y + c.y);
        s[at + half] = make_float2(a.x - c.x, a.y - c.y);
    }
    __syncthreads();
    x[t] = s[t];
    x[t + 256] = s[t + 256];
}

extern "C" __global__ void bodies(const float4* position, float4* velocity, int n, float dt, float softening) {
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 p = position[min(i, n - 1)];
    float ax = 0, ay = 0, az = 0;
    for (int j0 = 0; j0 < n; j0 += blockDim.x) {
        tile[threadIdx.x] = position[min(j0 + threadIdx.x, n - 1)];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < blockDim.x; ++j) {
            float4 q = tile[j];
            float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z, r2 = dx * dx + dy * dy + dz * dz + softening;
            float inverse = rsqrtf(r2), f = q.w * inverse * inverse * inverse;
            ax += dx * f; ay += dy * f; az += dz * f;
        }
        __syncthreads();
    }
    if (i < n) {
        velocity[i].x += ax * dt;
        velocity[i].y += ay * dt;
        velocity[i].z += az * dt;
    }
}

__device__ unsigned mix(unsigned h) {
    h ^= h >> 16; h *= 0x85ebca6b; h ^= h >> 13; h *= 0xc2b2ae35; h ^= h >> 16;
    return h;
}
extern "C" __global__ void hash_insert(const unsigned* keys, const unsigned* values, unsigned long long* table, unsigned capacity, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned slot = mix(keys[i]) & (capacity - 1);
    unsigned long long entry = (unsigned long long)keys[i] << 32 | values[i];
    while (true) {
        unsigned long long old = atomicCAS(table + slot, ~0ull, entry);
        if (old == ~0ull) return;
        if (old >> 32 == keys[i]) { atomicMax(table + slot, entry); return; }
        slot = (slot + 1) & (capacity - 1);
    }
}
extern "C" __global__ void hash_find(const unsigned* keys, unsigned* values, const unsigned long long* table, unsigned capacity, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (unsigned slot = mix(keys[i]) & (capacity - 1);; slot = (slot + 1) & (capacity - 1)) {
        unsigned long long e = __ldcg(table + slot);
        if (e == ~0ull) { values[i] = ~0u; return; }
        if (e >> 32 == keys[i]) { values[i] = (unsigned)e; return; }
    }
}

extern "C" __global__ void breadth_first(const int* offsets, const int* edges, int* distance, const int* frontier, int count, int* next, int* next_count, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int v = frontier[i];
    for (int e = offsets[v]; e < offsets[v + 1]; ++e)
        if (atomicCAS(distance + edges[e], -1, level) == -1) next[atomicAdd(next_count, 1)] = edges[e];
}

extern "C" __global__ void mandelbrot(unsigned char* image, int width, int height, double x0, double y0, double step, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double cx = x0 + px * step, cy = y0 + py * step, x = 0, y = 0;
    int i = 0;
    for (; i < limit && x * x + y * y < 4; ++i) {
        double t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
    }
    image[py * width + px] = i == limit ? 0 : 255 * i / limit;
}

extern "C" __global__ void softmax(const float* in, float* out, int columns) {
    __shared__ float shared[32];
    const float* x = in + (size_t)blockIdx.x * columns;
    auto across = [&](float v, auto op) {
        for (int d = 16; d; d >>= 1) v = op(v, __shfl_xor_sync(~0u, v, d));
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
        __syncthreads();
        v = shared[0];
        for (int w = 1; w < blockDim.x / 32; ++w) v = op(v, shared[w]);
        __syncthreads();
        return v;
    };
    float largest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, x[i]);
    largest = across(largest, [](float a, float b) { return fmaxf(a, b); });
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(x[i] - largest);
    sum = across(sum, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < columns; i += blockDim.x) out[(size_t)blockIdx.x * columns + i] = expf(x[i] - largest) / sum;
}

extern "C" __global__ void random_walk(unsigned long long seed, float* out, int steps) {
    unsigned long long s = seed + blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0;
    for (int i = 0; i < steps; ++i) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        unsigned word = ((s >> ((s >> 59) + 5)) ^ s) * 12605985483714917081ull >> 32;
        x += (word >> 8) * 0x1p-24f - 0.5f;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
