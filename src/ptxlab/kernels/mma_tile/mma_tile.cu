// C = A B on tensor cores, as mma_tile.ptx, with CUDA C++ for addresses and guards and PTX for what has no name in C++.

using half_bits = unsigned short;

__device__ unsigned shared_address(const void* pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 8 halves, of which `left` are there and the others are 0: one copy of 16 bytes if the source is aligned to that.
__device__ void copy_chunk(half_bits* to, const half_bits* from, int left, bool is_wide)
{
    if (is_wide) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(2 * left) : "memory");
        return;
    }
    for (int i = 0; i < 8; ++i)
        to[i] = i < left ? from[i] : 0;
}

extern "C" __global__ __launch_bounds__(32) void mma_tile(
    const half_bits* a, const half_bits* b, float* c, unsigned m, unsigned n, unsigned k)
{
    __shared__ __align__(16) half_bits a_tile[16][2][8];
    __shared__ __align__(16) half_bits b_tile[16][8];
    unsigned lane = threadIdx.x;
    unsigned first_row = 16 * blockIdx.y, first_column = 8 * blockIdx.x;
    bool a_wide = (reinterpret_cast<unsigned long long>(a) | 2ull * k) % 16 == 0;
    bool b_wide = (reinterpret_cast<unsigned long long>(b) | 2ull * n) % 16 == 0;
    float sums[4] = {};

    for (unsigned start = 0; start < k; start += 16) {
        unsigned row = lane / 2, chunk = lane % 2;
        int left = first_row + row < m ? max(0, min(8, static_cast<int>(k - start - 8 * chunk))) : 0;
        const half_bits* from = a + static_cast<unsigned long long>(first_row + row) * k + start + 8 * chunk;
        copy_chunk(a_tile[row][chunk ^ (row / 4 & 1)], from, left, a_wide);
        if (lane < 16) {
            left = start + lane < k ? min(8, n - first_column) : 0;
            from = b + static_cast<unsigned long long>(start + lane) * n + first_column;
            copy_chunk(b_tile[lane], from, left, b_wide);
        }
        asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
        __syncwarp();

        unsigned x[4], y[2];
        row = lane % 16;
        unsigned a_row = shared_address(a_tile[row][lane / 16 ^ (row / 4 & 1)]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(a_row) : "memory");
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1]) : "r"(shared_address(b_tile[row])) : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        __syncwarp();
    }

    for (int i = 0; i < 4; ++i) {
        unsigned row = first_row + lane / 4 + i / 2 * 8, column = first_column + lane % 4 * 2 + i % 2;
        if (row < m && column < n)
            c[static_cast<unsigned long long>(row) * n + column] = sums[i];
    }
}
