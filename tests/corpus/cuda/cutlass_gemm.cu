// CUTLASS's matrix products, each as its library composes it: Ampere pipelined, Hopper and Blackwell warp-specialised with TMA.
// headers: cutlass
// make: sm_80 sm_90a sm_100a --expt-relaxed-constexpr
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/device/gemm.h>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using namespace cute;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::MaxThreadsPerBlock, Kernel::MinBlocksPerMultiprocessor) run(const __grid_constant__ typename Kernel::Params parameters) {
    extern __shared__ char memory[];
    Kernel()(parameters, memory);
}

template <typename Arch, typename T, typename Tile, typename Cluster, typename OperatorClass = cutlass::arch::OpClassTensorOp>
struct Composed {
    using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
        Arch, OperatorClass, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, Row, 4, float, Row, 4,
        cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
    using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
        Arch, OperatorClass, T, Row, 16, T, Column, 16, float, Tile, Cluster,
        cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
        cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
    using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
using Ampere = cutlass::gemm::device::Gemm<
    cutlass::half_t, Row, cutlass::half_t, Column, float, Row, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>>;
__global__ void ampere(typename Ampere::GemmKernel::Params parameters) {
    extern __shared__ char memory[];
    typename Ampere::GemmKernel()(parameters, *reinterpret_cast<typename Ampere::GemmKernel::SharedStorage*>(memory));
}
#endif

#define INSTANTIATE(name, ...) \
    using name = typename Composed<__VA_ARGS__>::Kernel; \
    template __global__ void run<name>(const __grid_constant__ typename name::Params);
#if __CUDA_ARCH__ == 900
INSTANTIATE(HopperHalf, cutlass::arch::Sm90, cutlass::half_t, Shape<_128, _128, _64>, Shape<_2, _1, _1>)
INSTANTIATE(HopperFp8, cutlass::arch::Sm90, cutlass::float_e4m3_t, Shape<_128, _128, _128>, Shape<_1, _2, _1>)
#elif __CUDA_ARCH__ == 1000
INSTANTIATE(BlackwellBf16, cutlass::arch::Sm100, cutlass::bfloat16_t, Shape<_128, _128, _64>, Shape<_1, _1, _1>)
INSTANTIATE(BlackwellFp8Pair, cutlass::arch::Sm100, cutlass::float_e4m3_t, Shape<_256, _128, _128>, Shape<_2, _1, _1>)
#endif
