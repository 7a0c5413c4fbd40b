// Matrix products on tensor cores in inline PTX: mma.sync fed by ldmatrix, tiles in flight by cp.async.
// make: sm_80 sm_90
#include <cuda_fp16.h>

__device__ unsigned int shared_address(const void* p) { return (unsigned int)__cvta_generic_to_shared(p); }

__device__ void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int pending> __device__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory"); }

__device__ void load_a(unsigned int (&f)[4], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f[0]), "=r"(f[1]), "=r"(f[2]), "=r"(f[3]) : "r"(shared_address(p)) : "memory");
}

__device__ void load_b(unsigned int (&f)[2], const __half* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(f[0]), "=r"(f[1]) : "r"(shared_address(p)) : "memory");
}

__device__ void multiply(float (&c)[4], const unsigned int (&a)[4], const unsigned int (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// 32 by 32 of the result a block of four warps, 16 by 16 a warp, three stages of depth 16 in flight.
extern "C" __global__ void mma_pipelined(const __half* a, const __half* b, float* c, int n, int k) {
    constexpr int stages = 3, pad = 8;
    __shared__ __align__(16) __half as[stages][32][16 + pad], bs[stages][16][32 + pad];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int row = blockIdx.y * 32, column = blockIdx.x * 32, wr = warp / 2 * 16, wc = warp % 2 * 16;
    auto fetch = [&](int step) {
        int s = step % stages, from = step * 16;
        if (step * 16 < k) {
            if (t < 64) copy16(&as[s][t / 2][t % 2 * 8], &a[(row + t / 2) * k + from + t % 2 * 8]);
            else copy16(&bs[s][(t - 64) / 4][t % 4 * 8], &b[(from + (t - 64) / 4) * n + column + t % 4 * 8]);
        }
        commit();
    };
    float sums[2][4] = {};
    for (int s = 0; s < stages - 1; ++s) fetch(s);
    for (int step = 0; step * 16 < k; ++step) {
        wait<stages - 2>();
        __syncthreads();
        int s = step % stages;
        unsigned int fa[4], fb[2];
        load_a(fa, &as[s][wr + lane % 16][lane / 16 * 8]);
        for (int j = 0; j < 2; ++j) {
            load_b(fb, &bs[s][lane % 16][wc + j * 8]);
            multiply(sums[j], fa, fb);
        }
        fetch(step + stages - 1);
    }
    for (int j = 0; j < 2; ++j) {
        float* out = &c[(row + wr + lane / 4) * n + column + wc + j * 8 + lane % 4 * 2];
        *(float2*)out = make_float2(sums[j][0], sums[j][1]);
        *(float2*)(out + 8 * n) = make_float2(sums[j][2], sums[j][3]);
    }
}

// Fragments straight from memory: 16 by 8 by 32 on bytes.
extern "C" __global__ void mma_bytes(const signed char* a, const signed char* b, int* c, int k) {
    int lane = threadIdx.x, group = lane / 4, quad = lane % 4;
    int sums[4] = {};
    for (int i = 0; i < k; i += 32) {
        int fa[4], fb[2];
        for (int r = 0; r < 4; ++r) fa[r] = *(const int*)&a[(group + r % 2 * 8) * k + i + quad * 4 + r / 2 * 16];
        for (int r = 0; r < 2; ++r) fb[r] = *(const int*)&b[group * k + i + quad * 4 + r * 16];
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    }
    for (int r = 0; r < 4; ++r) c[(group + r / 2 * 8) * 8 + quad * 2 + r % 2] = sums[r];
}

// A transpose of 8 by 8 halves without memory: ldmatrix, movmatrix, plain stores.
extern "C" __global__ void transpose_by_matrix_moves(const __half* in, __half* out) {
    __shared__ __align__(16) __half tile[64];
    tile[2 * threadIdx.x] = in[2 * threadIdx.x];
    tile[2 * threadIdx.x + 1] = in[2 * threadIdx.x + 1];
    __syncwarp();
    unsigned int piece, turned;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(piece) : "r"(shared_address(&tile[threadIdx.x % 8 * 8])) : "memory");
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(piece));
    reinterpret_cast<unsigned int*>(out)[threadIdx.x] = turned;
}
