"""The programs that `strangers.py` runs: where they are, how they are built, and what they print if all is well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Stranger:
    """A program: `build` is a command of its own, else nvcc builds the first word of `command`."""

    name: str
    folder: str
    command: str
    expected: str
    build: str = ""
    nvcc: str = ""
    options: str = ""
    """Options of ptxlab, such as `--max-repeats 2`."""
    lacks: str = ""
    """What is not there that it needs, or why it would take too long: it is not run."""

    def environment(self, root: Path) -> dict[str, str]:
        """Where headers of other libraries of CUDA are, if ROOT has them."""
        libraries = root / "libs"
        given = f"-I{libraries}/include -L{libraries}/lib" if libraries.is_dir() else ""
        return {"NVCC_APPEND_FLAGS": given} if given else {}


_OLD = "-DcudaThreadSynchronize=cudaDeviceSynchronize"  # which CUDA 13 has removed


def _sample(folder: str, file: str, expected: str, arguments: str = "", nvcc: str = "") -> Stranger:
    path = f"cuda-samples/Samples/{folder}"
    common = f"-I../../../Common {nvcc}".strip()
    return Stranger(
        f"cuda-samples/{folder.split('/')[1]}",
        path,
        f"{file} {arguments}".strip(),
        expected,
        nvcc=common,
    )


def _of_several(folder: str, file: str, expected: str, arguments: str = "", nvcc: str = "", gpus: int = 1) -> Stranger:
    one = _sample(folder, file, expected, arguments, nvcc)
    return replace(one, options=f"--gpus {gpus}") if gpus > 1 else one


def _jacobi(name: str, gpus: int = 2) -> Stranger:
    """NVIDIA's `multi-gpu-programming-models`: each compares with what one GPU computes, and prints only if equal."""
    return Stranger(
        f"multi-gpu-programming-models/{name}",
        f"multi-gpu-programming-models/{name}",
        "jacobi.cu -nx 128 -ny 128 -niter 20",
        rf"Num GPUs: {gpus}\.",
        nvcc="-Xcompiler -fopenmp -std=c++17 -DHAVE_CUB",
        options=f"--gpus {gpus}",
    )


def _chapter(folder: str, file: str, nvcc: str = "", options: str = "") -> Stranger:
    """Chapter 4 of `PacktPublishing/Learn-CUDA-Programming`: each shows one element, as computed by both."""
    return Stranger(
        f"Learn-CUDA-Programming/{folder}/{file.split()[0]}",
        f"Learn-CUDA-Programming/Chapter04/04_kernel_execution/{folder}",
        file,
        r"host: ([\d.]+), device: \1",
        nvcc=f"-I../../../../cuda-samples/Common {nvcc}".strip(),
        options=options,
    )


def _hecbench(name: str, arguments: str, expected: str = "PASS", build: str = "make ARCH=sm_90") -> Stranger:
    return Stranger(f"hecbench/{name}", f"hecbench/src/{name}-cuda", f"./main {arguments}".strip(), expected, build)


def _polybench(name: str, file: str) -> Stranger:
    match = r"(?i)Non-Matching CPU-GPU Outputs Beyond Error Threshold of [\d.]+ Percent: 0\n"
    return Stranger(f"polybench/{name}", f"polybench/CUDA/{name}", file, match, nvcc=f"-O3 {_OLD}")


PROGRAMS = [
    Stranger("texts/mma", "texts", "mma.cu", r"(16 ){8}\n(16 ){8}"),
    _sample("0_Introduction/vectorAdd", "vectorAdd.cu", "Test PASSED"),
    _sample("0_Introduction/matrixMul", "matrixMul.cu", "Result = PASS", "-wA=64 -hA=64 -wB=64 -hB=64"),
    _sample("0_Introduction/asyncAPI", "asyncAPI.cu", "time spent executing by the GPU"),
    _sample(
        "0_Introduction/simpleAtomicIntrinsics",
        "simpleAtomicIntrinsics.cu",
        "completed, returned OK",
        nvcc="simpleAtomicIntrinsics_cpu.cpp",
    ),
    _sample("0_Introduction/simpleCallback", "simpleCallback.cu", "[Ss]uccess", nvcc="multithreading.cpp"),
    _sample(
        "0_Introduction/simpleCooperativeGroups",
        "simpleCooperativeGroups.cu",
        "Sum of all ranks 0..15 in this tiledPartition16 group is 120",
    ),
    _sample(
        "0_Introduction/simpleCubemapTexture", "simpleCubemapTexture.cu", "Comparing kernel output to expected data\n"
    ),
    _sample(
        "0_Introduction/simpleLayeredTexture", "simpleLayeredTexture.cu", "Comparing kernel output to expected data\n"
    ),
    _sample("0_Introduction/simpleMultiCopy", "simpleMultiCopy.cu", "Fully serialized execution"),
    _sample("0_Introduction/simpleOccupancy", "simpleOccupancy.cu", "Test PASSED"),
    _sample("0_Introduction/simpleSurfaceWrite", "simpleSurfaceWrite.cu", "completed, returned OK"),
    _sample("0_Introduction/simpleTemplates", "simpleTemplates.cu", "Test Results: 0 Failures"),
    _sample("0_Introduction/simpleVoteIntrinsics", "simpleVoteIntrinsics.cu", "OK"),
    _sample("0_Introduction/simpleZeroCopy", "simpleZeroCopy.cu", "Checking the results from vectorAddGPU"),
    _sample("0_Introduction/systemWideAtomics", "systemWideAtomics.cu", "systemWideAtomics completed, returned OK"),
    _sample(
        "0_Introduction/UnifiedMemoryStreams",
        "UnifiedMemoryStreams.cu",
        "All Done",
        nvcc="-Xcompiler -fopenmp -lcublas",
    ),
    _sample(
        "0_Introduction/fp16ScalarProduct",
        "fp16ScalarProduct.cu",
        r"Result native operators\s*:\s*([\d.]+)\s+Result intrinsics\s*:\s*\1",
    ),
    Stranger(
        "cuda-samples/reduction",
        "cuda-samples/Samples/2_Concepts_and_Techniques/reduction",
        "./reduction --n=65536",
        "Test passed",
        build="nvcc -I../../../Common -O2 -arch=sm_90 reduction.cpp reduction_kernel.cu -o reduction",
    ),
    _sample("2_Concepts_and_Techniques/shfl_scan", "shfl_scan.cu", "Computing Simple Sum test"),
    _sample(
        "2_Concepts_and_Techniques/threadFenceReduction",
        "threadFenceReduction.cu",
        r"GPU result = ([\d.]+)\s+CPU result = \1",
        "--n=65536",
    ),
    _sample("2_Concepts_and_Techniques/scalarProd", "scalarProd.cu", "Test passed", nvcc="scalarProd_cpu.cpp"),
    _sample("2_Concepts_and_Techniques/inlinePTX", "inlinePTX.cu", "Test Successful"),
    _sample("3_CUDA_Features/binaryPartitionCG", "binaryPartitionCG.cu", "Num of Odds"),
    _sample("3_CUDA_Features/simpleCudaGraphs", "simpleCudaGraphs.cu", r"(final reduced sum = 0.996214[\s\S]*){4}"),
    _sample("3_CUDA_Features/warpAggregatedAtomicsCG", "warpAggregatedAtomicsCG.cu", "Warp Aggregated Atomics PASSED"),
    _sample("3_CUDA_Features/newdelete", "newdelete.cu", "Test Summary: 3/3"),
    _sample("6_Performance/LargeKernelParameter", "LargeKernelParameter.cu", "Test passed"),
    _hecbench("scan", "65536 2"),
    _hecbench("floydwarshall", "64 1 16"),
    _hecbench("nqueen", "8 3 1", "Number of solutions found: 92 "),
    _hecbench("split", "4096 1"),
    _hecbench("jenkins-hash", "64 1024 1"),
    _hecbench("present", "256 1"),
    _hecbench("softmax", "64 128 0 1"),
    _hecbench("gelu", "2 64 64 1"),
    _hecbench("dct8x8", "64 64 1"),
    _hecbench("burger", "64 64 5"),
    _hecbench("iso2dfd", "64 64 4"),
    _hecbench("lif", "100 4 100"),
    _hecbench("unfold", "1000 1"),
    _hecbench("zeropoint", "1000 1"),
    _hecbench("stencil1d", "4096 1"),
    _hecbench("multinomial", "64 128 1"),
    _hecbench("bitonic-sort", "10 2"),
    _hecbench("chacha20", "1"),
    _hecbench("wyllie", "1024 1 1"),
    _hecbench("entropy", "128 128 1"),
    _hecbench("minmax", "1000 1"),
    _hecbench("reverse", "1"),
    _hecbench("threadfence", "1 100000"),
    _hecbench("scatterThrust", "10000 1"),
    _hecbench("popcount", "65536 1", "Success"),
    _hecbench("bscan", "1"),
    _hecbench("blas-dot", "4096 1"),
    _hecbench("blas-gemm", "79 91 83 1"),
    _polybench("ATAX", "atax.cu"),
    _polybench("BICG", "bicg.cu"),
    _polybench("MVT", "mvt.cu"),
    _polybench("GESUMMV", "gesummv.cu"),
    _polybench("GEMVER", "gemver.cu"),
    _polybench("GEMM", "gemm.cu"),
    Stranger("llm.c/device_file_io", "llm.c", "dev/test/device_file_io.cu", "", nvcc="-lcublas"),
    Stranger(
        "rodinia/lud",
        "rodinia/cuda/lud",
        "./lud_cuda -s 64 -v",
        ">>>Verify<<<<\\s*\\n(?!dismatch)",
        build=f"nvcc -O3 -arch=sm_90 {_OLD} -Icommon cuda/lud.cu cuda/lud_kernel.cu common/common.c -o lud_cuda",
    ),
]

# Programs with several streams or GPUs, `--several`.
SEVERAL = [
    _of_several("0_Introduction/simpleStreams", "simpleStreams.cu", r"4 streams:\s+[\d.]+\s+-+\s+(?!\d+: )"),
    _of_several("0_Introduction/simpleHyperQ", "simpleHyperQ.cu", "Measured time for sample"),
    _of_several("0_Introduction/simpleMultiGPU", "simpleMultiGPU.cu", r"Relative difference: [\d.]+E-0[5-9]", gpus=2),
    _of_several("0_Introduction/simpleP2P", "simpleP2P.cu", "Test passed", gpus=2),
    _of_several("0_Introduction/cudaOpenMP", "cudaOpenMP.cu", "uses CUDA device 1", nvcc="-Xcompiler -fopenmp", gpus=2),
    _of_several("0_Introduction/simpleMultiCopy", "simpleMultiCopy.cu", "Fully serialized execution"),
    _of_several(
        "2_Concepts_and_Techniques/streamOrderedAllocation",
        "streamOrderedAllocation.cu",
        r"basicStreamOrderedAllocation PASSED[\s\S]*streamOrderedAllocationPostSync PASSED",
    ),
    _of_several(
        "2_Concepts_and_Techniques/streamOrderedAllocationP2P", "streamOrderedAllocationP2P.cu", "PASSED", gpus=2
    ),
    _of_several(
        "2_Concepts_and_Techniques/reductionMultiBlockCG",
        "reductionMultiBlockCG.cu",
        r"GPU result = ([\d.]+)\s+CPU result = \1",
        "--n=65536",
    ),
    _of_several("3_CUDA_Features/StreamPriorities", "StreamPriorities.cu", "elapsed time of kernels launched to HI"),
    _of_several("3_CUDA_Features/graphMemoryNodes", "graphMemoryNodes.cu", "Validation PASSED!"),
    _of_several("3_CUDA_Features/jacobiCudaGraphs", "main.cpp", "jacobiCudaGraphs PASSED", nvcc="jacobi.cu"),
    _of_several(
        "4_CUDA_Libraries/conjugateGradientMultiBlockCG", "conjugateGradientMultiBlockCG.cu", "MultiBlockCG PASSED"
    ),
    _of_several(
        "5_Domain_Specific/MonteCarloMultiGPU",
        "MonteCarloMultiGPU.cpp",
        "Test passed",
        nvcc="MonteCarlo_kernel.cu MonteCarlo_gold.cpp multithreading.cpp -lcurand",
        gpus=2,
    ),
    _of_several(
        "5_Domain_Specific/p2pBandwidthLatencyTest",
        "p2pBandwidthLatencyTest.cu",
        r"P2P=Enabled Latency \(P2P Writes\) Matrix[\s\S]*CPU +0 +1 *\n( +\d( +[\d.]+){2} *\n){2}",
        "--numElems=1000000",
        gpus=2,
    ),
    _jacobi("single_threaded_copy"),
    _jacobi("multi_threaded_copy"),
    _jacobi("multi_threaded_copy_overlap"),
    _jacobi("multi_threaded_p2p"),
    _jacobi("multi_threaded_p2p_opt"),
    _jacobi("multi_threaded_um"),
    _chapter("02_pipelining", "cuda_pipelining.cu"),
    _chapter("03_cuda_callback", "cuda_callback.cu"),
    _chapter("04_stream_priority", "prioritized_cuda_stream.cu"),
    _chapter("05_cuda_event", "cuda_event_with_streams.cu"),
    _chapter("08_openmp_cuda", "openmp.cu", "-Xcompiler -fopenmp"),
    _chapter("08_openmp_cuda", "openmp_gpus.cu 2", "-Xcompiler -fopenmp", "--gpus 2"),
]

# Findings that are right, by a part of their text, and why.
JUDGED: dict[str, dict[str, str]] = {
    "cuda-samples/p2pBandwidthLatencyTest": {
        "data-race p2pBandwidthLatencyTest.cu:146": "right: of one GPU in both directions, two streams copy between "
        "the same two buffers at the same time",
    },
    "cuda-samples/threadFenceReduction": {
        "data-race threadFenceReduction_kernel.cuh:192": "right: there is no fence after the counter, so the "
        "PTX memory model does not order the reads of what other blocks wrote",
    },
    "cuda-samples/newdelete": {
        "data-race container.hpp:94": "right: `m_top` is read without an atomic while other threads change it",
    },
    "NVIDIA-developer-blog+code-samples/posts/gups/gups.cu": {
        "data-race gups.cu:239": "right: a plain load of what other threads change by `atomicCAS`",
    },
    "hecbench/bm3d": {
        "program-crash CImg.h:38394": "right: its image reader throws, since ImageMagick is not there",
    },
    "hecbench/split": {
        "data-race main.cu:71": "right: a lane reads `ptr[idx]` while another clears it in `scanwarp`",
        "lockstep-dependence main.cu:34": "right: a warp scan without `__syncwarp()`",
    },
    "hecbench/wyllie": {
        "data-race main.cu:16": "right: pointers are followed while other threads change them, with no order",
    },
    "hecbench/threadfence": {
        "one-sided-synchronization main.cu:67": "right: there is no fence after the counter, so the PTX memory model "
        "lets the last block read an older sum",
    },
    "multi-gpu-programming-models/multi_threaded_copy": {
        "wrong-direction jacobi.cu:": "right: no `#pragma omp barrier` between `cudaMalloc` of one thread's array and "
        "the other's copy to it, whose address is not there yet",
    },
    "multi-gpu-programming-models/multi_threaded_copy_overlap": {
        "wrong-direction jacobi.cu:": "right: no `#pragma omp barrier` between `cudaMalloc` of one thread's array and "
        "the other's copy to it, whose address is not there yet",
    },
    "multi-gpu-programming-models/multi_threaded_p2p_opt": {
        "missing-synchronize jacobi.cu:391": "right: the copy of the iteration before reads `l2_norm_bufs[curr].h` on "
        "a stream of its own, and only its device buffer's next user waits for it",
    },
    "polybench/ATAX": {
        "data-race atax.cu:": "right: blocks have 32x8 threads and the kernel uses `x` alone, so eight threads add to "
        "each sum",
    },
    "hecbench/dct8x8": {
        "kernels.cu:": "right: columns are written and rows are read with no barrier between; the check fails for it",
    },
    "hecbench/pns": {
        "data-race petri_kernel.cu:6": "right: threads draw transitions at random, so two may increase the same place, "
        "without an atomic",
    },
    "hecbench/mergeVS": {
        "incomplete-check kernels.h:24": "right: it accesses more memory than is tracked",
    },
    "hecbench/linearprobing": {
        "incomplete-check linearprobing.cu:68": "right: it accesses more memory than is tracked",
    },
    "NVIDIA+cuda-samples/Samples/3_CUDA_Features/cdpAdvancedQuicksort/cdpAdvancedQuicksort.cu": {
        "cdpAdvancedQuicksort.cu:": "right: the warp that counts last reads what other warps have written, without a "
        "fence between these writes and the counter, or after it",
    },
    "yuhc+gpu-rodinia/cuda/srad/srad_v2/srad.cu": {
        "out-of-bounds srad_kernel.cu:": "right: rows before the first and after the last are read, before what was "
        "read is replaced",
    },
    "NVIDIA+cuda-samples/Samples/4_CUDA_Libraries/simpleCUFFT/simpleCUFFT.cu": {
        "unsupported-call": "right: cuFFT is not here, and the call is named",
    },
    "hecbench/chacha20": {
        "data-race chacha20.h:22": "right: thread 0 reads the key that all threads write, with no barrier; the check "
        "fails for it",
    },
}

# Programs that do not count, and why.
LEFT_OUT = {
    "rodinia/hybridsort": "texture references, which CUDA 12 has removed",
    "cuda-samples/simplePitchLinearTexture": "400 launches of 1,048,576 threads, fixed: too long here",
    "cuda-samples/simpleAWBarrier": "16,777,216 elements, fixed: too long here",
    "hecbench/shuffle": "sizes are fixed: too long here",
    "hecbench/topk": "sizes are fixed: too long here",
    "hecbench/graphExecution": "sizes are fixed: too long here",
    "hecbench/radixsort": "sizes are fixed: too long here",
    "hecbench/warpsort": "its makefile needs Boost, which is not here",
    "hecbench/ccl": "it includes `nccl.h`, which is not here",
    "hecbench/atomicReduction": "sizes are fixed: too long here",
}
