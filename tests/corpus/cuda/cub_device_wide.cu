// Device-wide algorithms of CUB and Thrust: large modules with many kernels.
// make: sm_80 sm_90a sm_120a --extended-lambda
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

// Host code that is never run: it makes nvcc instantiate the kernels.
void instantiate(void* scratch, size_t& bytes, float* f, int* i, unsigned* u, double* d, int n) {
    cub::DeviceReduce::Sum(scratch, bytes, f, f, n);
    cub::DeviceReduce::ArgMin(scratch, bytes, d, d, (long long*)u, (long long)n);
    cub::DeviceScan::ExclusiveSum(scratch, bytes, i, i, n);
    cub::DeviceRadixSort::SortPairs(scratch, bytes, u, u, d, d, n);
    cub::DeviceSelect::If(scratch, bytes, i, i, u, n, [] __host__ __device__(int x) { return x > 3; });
    cub::DeviceHistogram::HistogramEven(scratch, bytes, f, i, 65, 0.0f, 1.0f, n);
    cub::DeviceRunLengthEncode::Encode(scratch, bytes, i, i, u, u, n);
    thrust::device_ptr<double> p(d);
    thrust::sort(p, p + n);
}
