// CUB's block and warp primitives for several types and algorithms: what a template library makes of short sources.
// make: sm_75 sm_80 sm_90a sm_120a
#include <cub/cub.cuh>

template <typename T, cub::BlockReduceAlgorithm Algorithm>
__global__ void reduce(const T* in, T* out) {
    using Reduce = cub::BlockReduce<T, 128, Algorithm>;
    __shared__ typename Reduce::TempStorage storage;
    T sum = Reduce(storage).Sum(in[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
template __global__ void reduce<float, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(const float*, float*);
template __global__ void reduce<double, cub::BLOCK_REDUCE_RAKING>(const double*, double*);
template __global__ void reduce<long long, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(const long long*, long long*);
template __global__ void reduce<unsigned char, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(const unsigned char*, unsigned char*);

template <typename T, cub::BlockScanAlgorithm Algorithm>
__global__ void scan(const T* in, T* out) {
    using Load = cub::BlockLoad<T, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<T, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
    using Scan = cub::BlockScan<T, 128, Algorithm>;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; typename Scan::TempStorage scan; } storage;
    T items[4];
    Load(storage.load).Load(in + blockIdx.x * 512, items);
    __syncthreads();
    Scan(storage.scan).InclusiveSum(items, items);
    __syncthreads();
    Store(storage.store).Store(out + blockIdx.x * 512, items);
}
template __global__ void scan<int, cub::BLOCK_SCAN_WARP_SCANS>(const int*, int*);
template __global__ void scan<float, cub::BLOCK_SCAN_RAKING>(const float*, float*);
template __global__ void scan<double, cub::BLOCK_SCAN_RAKING_MEMOIZE>(const double*, double*);

template <typename Key, typename Value, int Items>
__global__ void sort(Key* keys, Value* values) {
    using Sort = cub::BlockRadixSort<Key, 128, Items, Value>;
    __shared__ typename Sort::TempStorage storage;
    Key k[Items];
    Value v[Items];
    cub::LoadDirectBlocked(threadIdx.x, keys + blockIdx.x * 128 * Items, k);
    cub::LoadDirectBlocked(threadIdx.x, values + blockIdx.x * 128 * Items, v);
    Sort(storage).SortBlockedToStriped(k, v);
    cub::StoreDirectStriped<128>(threadIdx.x, keys + blockIdx.x * 128 * Items, k);
    cub::StoreDirectStriped<128>(threadIdx.x, values + blockIdx.x * 128 * Items, v);
}
template __global__ void sort<unsigned, int, 4>(unsigned*, int*);
template __global__ void sort<float, double, 3>(float*, double*);
template __global__ void sort<long long, short, 2>(long long*, short*);

struct Less { template <typename T> __device__ bool operator()(T a, T b) const { return a < b; } };
__global__ void merge_sort(double* keys) {
    using Sort = cub::BlockMergeSort<double, 64, 5>;
    __shared__ Sort::TempStorage storage;
    double k[5];
    cub::LoadDirectBlocked(threadIdx.x, keys, k);
    Sort(storage).Sort(k, Less());
    cub::StoreDirectBlocked(threadIdx.x, keys, k);
}

struct NotEqual { template <typename T> __device__ bool operator()(T a, T b) const { return a != b; } };
__global__ void discontinuity(const int* in, int* heads, unsigned* counts) {
    using Discontinuity = cub::BlockDiscontinuity<int, 128>;
    using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 64>;
    __shared__ union { Discontinuity::TempStorage heads; Histogram::TempStorage histogram; } storage;
    __shared__ unsigned bins[64];
    int item[1] = {in[threadIdx.x]}, flag[1];
    Discontinuity(storage.heads).FlagHeads(flag, item, NotEqual());
    heads[threadIdx.x] = flag[0];
    __syncthreads();
    unsigned char bytes[4] = {(unsigned char)(item[0] & 63), (unsigned char)(item[0] >> 6 & 63), 3, 4};
    Histogram(storage.histogram).Histogram(bytes, bins);
    __syncthreads();
    if (threadIdx.x < 64) counts[threadIdx.x] = bins[threadIdx.x];
}
