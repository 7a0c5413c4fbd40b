// Hashes and ciphers, unrolled: SHA-256, ChaCha20, Keccak-f, MD5-like mixing; long straight lines of integer code.
// make: sm_75 sm_80 sm_90a sm_120a
// make: sm_90a nvcc-13.4
#include <cstdint>

__constant__ uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
    0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
    0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ uint32_t rotate(uint32_t x, int n) { return __funnelshift_r(x, x, n); }

extern "C" __global__ void sha256(const uint32_t* blocks, uint32_t* digests, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    uint32_t w[64], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, s[8];
#pragma unroll
    for (int i = 0; i < 16; ++i) w[i] = __byte_perm(blocks[t * 16 + i], 0, 0x0123);
#pragma unroll
    for (int i = 16; i < 64; ++i)
        w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
#pragma unroll
    for (int i = 0; i < 8; ++i) s[i] = h[i];
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        uint32_t a = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[i] + w[i];
        uint32_t b = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        s[7] = s[6]; s[6] = s[5]; s[5] = s[4]; s[4] = s[3] + a; s[3] = s[2]; s[2] = s[1]; s[1] = s[0]; s[0] = a + b;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) digests[t * 8 + i] = __byte_perm(h[i] + s[i], 0, 0x0123);
}

extern "C" __global__ void chacha20(const uint32_t* key, uint4* out, uint64_t counter) {
    uint32_t x[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7]}, s[16];
    counter += blockIdx.x * blockDim.x + threadIdx.x;
    x[12] = (uint32_t)counter; x[13] = counter >> 32; x[14] = key[8]; x[15] = key[9];
#pragma unroll
    for (int i = 0; i < 16; ++i) s[i] = x[i];
    auto quarter = [&](int a, int b, int c, int d) {
        s[a] += s[b]; s[d] = rotate(s[d] ^ s[a], 16); s[c] += s[d]; s[b] = rotate(s[b] ^ s[c], 20);
        s[a] += s[b]; s[d] = rotate(s[d] ^ s[a], 24); s[c] += s[d]; s[b] = rotate(s[b] ^ s[c], 25);
    };
#pragma unroll
    for (int r = 0; r < 10; ++r) {
        quarter(0, 4, 8, 12); quarter(1, 5, 9, 13); quarter(2, 6, 10, 14); quarter(3, 7, 11, 15);
        quarter(0, 5, 10, 15); quarter(1, 6, 11, 12); quarter(2, 7, 8, 13); quarter(3, 4, 9, 14);
    }
    for (int i = 0; i < 4; ++i) out[(blockIdx.x * blockDim.x + threadIdx.x) * 4 + i] = make_uint4(s[4 * i] + x[4 * i], s[4 * i + 1] + x[4 * i + 1], s[4 * i + 2] + x[4 * i + 2], s[4 * i + 3] + x[4 * i + 3]);
}

extern "C" __global__ void keccak(uint64_t* states) {
    uint64_t a[25], c[5], lfsr = 1;
    for (int i = 0; i < 25; ++i) a[i] = states[i * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll
    for (int round = 0; round < 24; ++round) {
#pragma unroll
        for (int x = 0; x < 5; ++x) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
#pragma unroll
        for (int x = 0; x < 5; ++x) {
            uint64_t d = c[(x + 4) % 5] ^ (c[(x + 1) % 5] << 1 | c[(x + 1) % 5] >> 63);
#pragma unroll
            for (int y = 0; y < 25; y += 5) a[x + y] ^= d;
        }
        uint64_t last = a[1];
        int at = 1;
#pragma unroll
        for (int i = 0, x = 1, y = 0; i < 24; ++i) {
            int shift = (i + 1) * (i + 2) / 2 % 64, nx = y, ny = (2 * x + 3 * y) % 5;
            x = nx; y = ny; at = x + 5 * y;
            uint64_t keep = a[at];
            a[at] = shift ? last << shift | last >> (64 - shift) : last;
            last = keep;
        }
#pragma unroll
        for (int y = 0; y < 25; y += 5) {
            uint64_t r[5] = {a[y], a[y + 1], a[y + 2], a[y + 3], a[y + 4]};
#pragma unroll
            for (int x = 0; x < 5; ++x) a[y + x] = r[x] ^ (~r[(x + 1) % 5] & r[(x + 2) % 5]);
        }
        for (int j = 0; j < 7; ++j) {
            if (lfsr & 1) a[0] ^= 1ull << ((1 << j) - 1);
            lfsr = lfsr << 1 ^ (lfsr >> 7) * 0x171;
        }
    }
    for (int i = 0; i < 25; ++i) states[i * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x] = a[i];
}
