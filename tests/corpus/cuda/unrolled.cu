// Very large functions: fully unrolled matrix code and many instantiations of one template.
// make: sm_80 sm_90a
// make: sm_75 -lineinfo

// Invert an N by N matrix a thread, in registers, with partial pivoting by selection.
template <typename T, int N>
__global__ void invert(const T* in, T* out, int count) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    T m[N][2 * N];
#pragma unroll
    for (int r = 0; r < N; ++r)
#pragma unroll
        for (int c = 0; c < N; ++c) {
            m[r][c] = in[(r * N + c) * count + t];
            m[r][N + c] = r == c ? T(1) : T(0);
        }
#pragma unroll
    for (int p = 0; p < N; ++p) {
#pragma unroll
        for (int r = p + 1; r < N; ++r) {
            bool larger = m[r][p] * m[r][p] > m[p][p] * m[p][p];
#pragma unroll
            for (int c = 0; c < 2 * N; ++c) {
                T a = m[p][c], b = m[r][c];
                m[p][c] = larger ? b : a;
                m[r][c] = larger ? a : b;
            }
        }
        T scale = T(1) / m[p][p];
#pragma unroll
        for (int c = 0; c < 2 * N; ++c) m[p][c] *= scale;
#pragma unroll
        for (int r = 0; r < N; ++r) {
            if (r == p) continue;
            T factor = m[r][p];
#pragma unroll
            for (int c = 0; c < 2 * N; ++c) m[r][c] -= factor * m[p][c];
        }
    }
#pragma unroll
    for (int r = 0; r < N; ++r)
#pragma unroll
        for (int c = 0; c < N; ++c) out[(r * N + c) * count + t] = m[r][N + c];
}
template __global__ void invert<float, 4>(const float*, float*, int);
template __global__ void invert<float, 8>(const float*, float*, int);
template __global__ void invert<float, 12>(const float*, float*, int);
template __global__ void invert<double, 3>(const double*, double*, int);
template __global__ void invert<double, 9>(const double*, double*, int);

// A sorting network of N elements a thread.
template <typename T, int N>
__global__ void network(T* data, int count) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    T v[N];
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = data[i * count + t];
#pragma unroll
    for (int round = 0; round < N; ++round)
#pragma unroll
        for (int i = round & 1; i + 1 < N; i += 2) {
            T a = v[i], b = v[i + 1];
            v[i] = a < b ? a : b;
            v[i + 1] = a < b ? b : a;
        }
#pragma unroll
    for (int i = 0; i < N; ++i) data[i * count + t] = v[i];
}
template __global__ void network<int, 16>(int*, int);
template __global__ void network<unsigned long long, 24>(unsigned long long*, int);
template __global__ void network<float, 32>(float*, int);
template __global__ void network<double, 32>(double*, int);
