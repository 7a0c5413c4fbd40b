// Integer arithmetic: 128 bits, modular powers, division, bits, dot products of bytes, a hash of text.
// make: sm_80
// make: sm_80 -Xcicc -O0

extern "C" __global__ void multiply_wide(const unsigned long long* a, const unsigned long long* b, unsigned long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 product = (unsigned __int128)a[i] * b[i] + (((unsigned __int128)b[i] << 64) | a[i]);
    out[3 * i] = (unsigned long long)product;
    out[3 * i + 1] = (unsigned long long)(product >> 64);
    out[3 * i + 2] = __umul64hi(a[i], b[i]);
}

extern "C" __global__ void divide(const long long* a, const long long* b, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[4 * i] = a[i] / b[i];
    out[4 * i + 1] = a[i] % b[i];
    out[4 * i + 2] = (int)a[i] / (int)(b[i] | 1);
    out[4 * i + 3] = (unsigned int)a[i] % (unsigned int)(b[i] | 1);
}

__device__ unsigned long long multiply_modulo(unsigned long long a, unsigned long long b, unsigned long long m) {
    unsigned long long sum = 0;
    for (; b; b >>= 1) {
        if (b & 1) sum = sum >= m - a ? sum - (m - a) : sum + a;
        a = a >= m - a ? a - (m - a) : a + a;
    }
    return sum;
}

extern "C" __global__ void power_modulo(const unsigned long long* bases, unsigned long long exponent, unsigned long long m, unsigned long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long base = bases[i] % m, power = 1;
    for (unsigned long long e = exponent; e; e >>= 1) {
        if (e & 1) power = multiply_modulo(power, base, m);
        base = multiply_modulo(base, base, m);
    }
    out[i] = power;
}

extern "C" __global__ void greatest_common_divisors(const unsigned int* a, const unsigned int* b, unsigned int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int x = a[i], y = b[i];
    while (y) {
        unsigned int rest = x % y;
        x = y;
        y = rest;
    }
    out[i] = x;
}

extern "C" __global__ void count_bits(const unsigned int* words, const unsigned long long* longs, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int w = words[i];
    unsigned long long l = longs[i];
    int* to = out + 10 * i;
    to[0] = __popc(w);
    to[1] = __clz(w);
    to[2] = __ffs(w);
    to[3] = __brev(w);
    to[4] = __popcll(l);
    to[5] = __clzll(l);
    to[6] = __ffsll(l);
    to[7] = __byte_perm(w, (unsigned int)l, 0x3715);
    to[8] = __funnelshift_l(w, (unsigned int)l, i);
    to[9] = (w & (unsigned int)l) ^ ((unsigned int)(l >> 32) | ~w);
}

extern "C" __global__ void byte_dots(const int* a, const int* b, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[3 * i] = __dp4a(a[i], b[i], 17);
    out[3 * i + 1] = __vadd4(a[i], b[i]);
    out[3 * i + 2] = __vmaxs4(a[i], b[i]) ^ __usad(a[i], b[i], 3u);
}

// FNV-1a of a line of text, in 64 bits.
extern "C" __global__ void hash_lines(const unsigned char* lines, const int* starts, unsigned long long* out, int count) {
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= count) return;
    unsigned long long hash = 14695981039346656037ull;
    for (int i = starts[line]; i < starts[line + 1]; ++i) hash = (hash ^ lines[i]) * 1099511628211ull;
    out[line] = hash;
}

extern "C" __global__ void collatz(unsigned int* longest, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    unsigned int steps = 0;
    if (i <= n)
        for (unsigned long long x = i; x != 1; ++steps) x = x % 2 ? 3 * x + 1 : x / 2;
    atomicMax(longest, steps << 16 | (i & 0xffff));
}
