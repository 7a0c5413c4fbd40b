// Numerical work: FFT in shared memory, bodies under gravity, random points, Mandelbrot's set, Newton's roots.
// make: sm_80
// make: sm_80 -use_fast_math

// Radix 2, decimation in time, one block, two elements a thread.
extern "C" __global__ void fft(const float2* in, float2* out, int bits) {
    extern __shared__ float2 z[];
    int n = 1 << bits, t = threadIdx.x;
    for (int i = t; i < n; i += blockDim.x) z[__brev(i) >> (32 - bits)] = in[i];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();
        int k = t & (half - 1), low = 2 * t - k, high = low + half;
        float s, c;
        sincospif(-(float)k / half, &s, &c);
        float2 a = z[low], b = z[high];
        float2 turned = {b.x * c - b.y * s, b.x * s + b.y * c};
        z[low] = {a.x + turned.x, a.y + turned.y};
        z[high] = {a.x - turned.x, a.y - turned.y};
    }
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) out[i] = z[i];
}

extern "C" __global__ void bodies(const float4* positions, float3* forces, int n, float softening) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = i < n ? positions[i] : make_float4(0, 0, 0, 0);
    float3 force = {0, 0, 0};
    for (int start = 0; start < n; start += 64) {
        int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? positions[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < 64; ++k) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = tile[k].w * inverse * inverse * inverse;
            force.x += pull * dx;
            force.y += pull * dy;
            force.z += pull * dz;
        }
        __syncthreads();
    }
    if (i < n) forces[i] = force;
}

// Points in the unit square by a linear congruential generator of 64 bits; counted inside the circle, exactly.
extern "C" __global__ void points_in_circle(unsigned long long seed, int points, unsigned int* inside) {
    unsigned long long state = seed + blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int hits = 0;
    for (int k = 0; k < points; ++k) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        unsigned long long x = state >> 33;
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        unsigned long long y = state >> 33;
        hits += x * x + y * y < 1ull << 62;
    }
    for (int step = 16; step > 0; step /= 2) hits += __shfl_xor_sync(0xffffffff, hits, step);
    if (threadIdx.x % 32 == 0) atomicAdd(inside, hits);
}

// In fixed point, so that the count of steps is the same everywhere.
extern "C" __global__ void mandelbrot(unsigned short* steps, int height, int width, int limit) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    constexpr int one = 1 << 20;
    long long cx = (long long)px * 3 * one / width - 2 * one, cy = (long long)py * 2 * one / height - one;
    long long x = 0, y = 0;
    int count = 0;
    while (count < limit && x * x + y * y < 4ll * one * one) {
        long long next = ((x * x - y * y) >> 20) + cx;
        y = (2 * x * y >> 20) + cy;
        x = next;
        ++count;
    }
    steps[py * width + px] = count;
}

extern "C" __global__ void cube_roots(const double* a, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = a[i] > 1 ? a[i] : 1;
    for (int k = 0; k < 100; ++k) {
        double next = (2 * x + a[i] / (x * x)) / 3;
        if (fabs(next - x) < 1e-15 * x) break;
        x = next;
    }
    out[i] = x;
}

extern "C" __global__ void elementary(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    out[i] = expf(-v * v) * cosf(3 * v) + logf(1 + v * v) - tanhf(v) + powf(fabsf(v) + 0.5f, 1.7f) + v / (1 + sqrtf(fabsf(v)));
}
