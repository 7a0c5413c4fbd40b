// Sorts: bitonic and odd-even in shared memory, radix by ballots, ranks by counting, merge by binary search.
// make: sm_80

extern "C" __global__ void bitonic_sort(int* keys) {
    extern __shared__ int work[];
    int t = threadIdx.x, n = 2 * blockDim.x;
    work[t] = keys[blockIdx.x * n + t];
    work[t + blockDim.x] = keys[blockIdx.x * n + t + blockDim.x];
    for (int size = 2; size <= n; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int low = 2 * t - (t & (stride - 1));
            bool up = (low & size) == 0;
            int a = work[low], b = work[low + stride];
            if ((a > b) == up) {
                work[low] = b;
                work[low + stride] = a;
            }
        }
    __syncthreads();
    keys[blockIdx.x * n + t] = work[t];
    keys[blockIdx.x * n + t + blockDim.x] = work[t + blockDim.x];
}

extern "C" __global__ void odd_even_sort(float* keys, int n) {
    extern __shared__ float row[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = keys[i];
    for (int phase = 0; phase < n; ++phase) {
        __syncthreads();
        int i = 2 * threadIdx.x + phase % 2;
        if (i + 1 < n && row[i] > row[i + 1]) {
            float kept = row[i];
            row[i] = row[i + 1];
            row[i + 1] = kept;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = row[i];
}

// One bit a pass, stable: the place of a key is counted from the ballots of its warp and the sums of those before.
extern "C" __global__ void radix_sort(unsigned int* keys, int bits) {
    __shared__ unsigned int work[256];
    __shared__ int zeros[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    unsigned int key = keys[t];
    for (int bit = 0; bit < bits; ++bit) {
        bool one = key >> bit & 1;
        unsigned int clear = __ballot_sync(0xffffffff, !one);
        if (lane == 0) zeros[warp] = __popc(clear);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < 8; ++w) {
            if (w < warp) before += zeros[w];
            all += zeros[w];
        }
        before += __popc(clear & ((1u << lane) - 1));
        work[one ? all + t - before : before] = key;
        __syncthreads();
        key = work[t];
    }
    keys[t] = key;
}

extern "C" __global__ void rank_sort(const double* keys, double* sorted, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int rank = 0;
    for (int j = 0; j < n; ++j) rank += keys[j] < keys[i] || (keys[j] == keys[i] && j < i);
    sorted[rank] = keys[i];
}

// Each thread finds its element's place in the other list by bisection.
extern "C" __global__ void merge_sorted(const int* a, int na, const int* b, int nb, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= na + nb) return;
    bool first = i < na;
    int key = first ? a[i] : b[i - na];
    const int* other = first ? b : a;
    int low = 0, high = first ? nb : na;
    while (low < high) {
        int middle = (low + high) / 2;
        if (first ? other[middle] < key : other[middle] <= key) low = middle + 1;
        else high = middle;
    }
    out[low + (first ? i : i - na)] = key;
}
