// Neighbours: stencils in one, two and three dimensions, convolution with a constant kernel, the game of life.
// make: sm_80

extern "C" __global__ void stencil_1d(const int* x, int* out, int n) {
    constexpr int radius = 3;
    __shared__ int window[128 + 2 * radius];
    int i = blockIdx.x * 128 + threadIdx.x;
    window[threadIdx.x + radius] = i < n ? x[i] : 0;
    if (threadIdx.x < radius) {
        window[threadIdx.x] = i >= radius ? x[i - radius] : 0;
        window[threadIdx.x + 128 + radius] = i + 128 < n ? x[i + 128] : 0;
    }
    __syncthreads();
    int sum = 0;
    for (int k = -radius; k <= radius; ++k) sum += window[threadIdx.x + radius + k];
    if (i < n) out[i] = sum;
}

extern "C" __global__ void heat_2d(const float* in, float* out, int height, int width, float rate) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float centre = in[y * width + x];
    bool edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
    if (edge) {
        out[y * width + x] = centre;
        return;
    }
    float around = in[y * width + x - 1] + in[y * width + x + 1] + in[(y - 1) * width + x] + in[(y + 1) * width + x];
    out[y * width + x] = centre + rate * (around - 4 * centre);
}

// A tile in the plane, marching through the planes with three values in registers.
extern "C" __global__ void laplace_3d(const float* in, float* out, int nx, int ny, int nz) {
    __shared__ float plane[10][10];
    int x = blockIdx.x * 8 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1;
    bool inside = x < nx - 1 && y < ny - 1;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto at = [&](int i, int j, int k) { return i < nx && j < ny ? in[(k * ny + j) * nx + i] : 0.0f; };
    float below = at(x, y, 0), here = at(x, y, 1);
    for (int z = 1; z < nz - 1; ++z) {
        float above = at(x, y, z + 1);
        plane[ty][tx] = here;
        if (tx == 1) plane[ty][0] = at(x - 1, y, z);
        if (tx == 8) plane[ty][9] = at(x + 1, y, z);
        if (ty == 1) plane[0][tx] = at(x, y - 1, z);
        if (ty == 8) plane[9][tx] = at(x, y + 1, z);
        __syncthreads();
        if (inside)
            out[(z * ny + y) * nx + x] = below + above + plane[ty][tx - 1] + plane[ty][tx + 1] + plane[ty - 1][tx] + plane[ty + 1][tx] - 6 * here;
        __syncthreads();
        below = here;
        here = above;
    }
}

__constant__ float weights[5][5] = {
    {1, 4, 6, 4, 1}, {4, 16, 24, 16, 4}, {6, 24, 36, 24, 6}, {4, 16, 24, 16, 4}, {1, 4, 6, 4, 1},
};

extern "C" __global__ void convolve_2d(const unsigned char* in, float* out, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int j = -2; j <= 2; ++j)
        for (int i = -2; i <= 2; ++i) {
            int row = min(max(y + j, 0), height - 1), column = min(max(x + i, 0), width - 1);
            sum += weights[j + 2][i + 2] * in[row * width + column];
        }
    out[y * width + x] = sum / 256;
}

// Several generations of a torus in one launch of one block, two boards in dynamic shared memory.
extern "C" __global__ void game_of_life(unsigned char* board, int height, int width, int generations) {
    extern __shared__ unsigned char boards[];
    unsigned char* now = boards;
    unsigned char* next = boards + height * width;
    for (int i = threadIdx.x; i < height * width; i += blockDim.x) now[i] = board[i];
    for (int g = 0; g < generations; ++g) {
        __syncthreads();
        for (int i = threadIdx.x; i < height * width; i += blockDim.x) {
            int y = i / width, x = i % width, alive = 0;
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx)
                    if (dx || dy) alive += now[(y + dy + height) % height * width + (x + dx + width) % width];
            next[i] = alive == 3 || (alive == 2 && now[i]);
        }
        unsigned char* swap = now;
        now = next;
        next = swap;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < height * width; i += blockDim.x) board[i] = now[i];
}
