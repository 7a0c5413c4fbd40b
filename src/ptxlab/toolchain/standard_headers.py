"""Headers for NVRTC, which has none: those of the standard library as CCCL has them, and those of the host, or nothing.

What a kernel uses of the standard library is in `cuda::std`; what only the host uses need not be there.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_OF_C = """assert ctype errno fenv float inttypes limits locale math setjmp signal stdarg stddef stdint stdio stdlib
string time"""
_OF_CPP = """algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts
condition_variable coroutine deque exception execution expected filesystem format forward_list fstream functional future
initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map mdspan memory memory_resource
mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream system_error thread
tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version"""
_INTEGERS = """\
#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef unsigned long uintptr_t; typedef long intptr_t;
namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t;
using ::uint32_t; using ::uint64_t; using ::uintptr_t; using ::intptr_t; }
"""
# Of the driver's header, which declares functions of the host, device code needs a type.
_DRIVER = "#pragma once\ntypedef struct CUtensorMap_st { alignas(64) unsigned long long opaque[16]; } CUtensorMap;\n"
_NOTHING = "#pragma once\n"
# Headers of the CUDA runtime whose declarations NVRTC knows by itself; they need not be installed.
_BUILT_IN = "cuda_runtime.h cuda_runtime_api.h device_launch_parameters.h vector_types.h vector_functions.h".split()
# Headers that are for the host only: other libraries of CUDA, and of the system. What they declare is left out.
FOR_HOST = """cublas.h cublas_v2.h cublasLt.h cublasXt.h cudaProfiler.h cuda_profiler_api.h cudnn.h cudnn_frontend.h
cufft.h cufftXt.h cufile.h curand.h cusolverDn.h cusolverSp.h cusparse.h cusparseLt.h cutensor.h helper_gl.h mpi.h
nccl.h npp.h nvToolsExt.h nvjpeg.h nvml.h nvrtc.h nvtx3/nvToolsExt.h nvtx3/nvtx3.hpp nvToolsExtCuda.h Python.h
pybind11/pybind11.h pybind11/numpy.h pybind11/stl.h torch/extension.h torch/torch.h torch/all.h torch/library.h
torch/python.h torch/types.h ATen/ATen.h ATen/cuda/CUDAContext.h c10/cuda/CUDAGuard.h c10/cuda/CUDAStream.h
c10/cuda/CUDAException.h c10/util/Optional.h
arpa/inet.h dirent.h dlfcn.h fcntl.h getopt.h immintrin.h libgen.h netdb.h netinet/in.h omp.h poll.h pthread.h sched.h
semaphore.h strings.h sys/mman.h sys/resource.h sys/socket.h sys/stat.h sys/time.h sys/types.h sys/wait.h unistd.h
windows.h x86intrin.h""".split()
# Of Thrust, what kernels can use; its containers and algorithms are for the host.
_THRUST_FOR_DEVICES = "complex functional limits mr optional pair random swap tuple type_traits version".split()
# A container of the host, of which its type matters: it says what templates of kernels are made of.
_VECTOR = """\
#pragma once
#ifndef PTXLAB_VECTOR
#define PTXLAB_VECTOR
namespace ptxlab {
template <class T> struct pointer {
  T* at; __device__ T* get() const { return at; } __device__ operator T*() const { return at; }
};
template <class T, class Pointer = T*> struct vector {
  typedef T value_type; typedef T* iterator;
  template <class... Arguments> __device__ vector(const Arguments&...) : at(nullptr), count(0) {}
  template <class Argument> __device__ vector& operator=(const Argument&) { return *this; }
  __device__ T& operator[](unsigned long n) const { return at[n]; }
  __device__ Pointer data() const { return {at}; }
  __device__ T* begin() const { return at; }
  __device__ T* end() const { return at + count; }
  __device__ unsigned long size() const { return count; }
  __device__ bool empty() const { return !count; }
  template <class... Arguments> __device__ void resize(const Arguments&...) {}
  template <class... Arguments> __device__ void push_back(const Arguments&...) {}
  T* at; unsigned long count;
};
}
namespace thrust {
template <class T> __device__ T* raw_pointer_cast(T* at) { return at; }
template <class T> __device__ T* raw_pointer_cast(ptxlab::pointer<T> at) { return at.at; }
}
#endif
"""
_VECTORS = {
    "vector": "namespace std { template <class T, class... Rest> using vector = ptxlab::vector<T>; }\n",
    **{
        f"thrust/{name}_vector.h": f"""\
#include <cmath>
#include <cstdint>
namespace thrust {{ template <class T, class... Rest> using {name}_vector = ptxlab::vector<T{pointer}>; }}
"""
        for name, pointer in (("host", ""), ("device", ", ptxlab::pointer<T>"), ("universal", ", ptxlab::pointer<T>"))
    },
}


@cache
def standard_headers(folders: tuple[Path, ...]) -> dict[str, str]:
    """The text of each header by its name, where `folders` are searched for those of CUDA and CCCL."""
    found = {"cuda.h": _DRIVER}
    names = [(f"c{name}", (f"{name}.h", f"c{name}")) for name in _OF_C.split()]
    for own, called in [*names, *((name, (name,)) for name in _OF_CPP.split())]:
        has_own = any((folder / "cuda" / "std" / own).is_file() for folder in folders)
        text = _forwarding(own) if has_own else _INTEGERS if own == "cstdint" else _NOTHING
        found |= dict.fromkeys(called, text)
    for name in (*_BUILT_IN, *FOR_HOST):
        if name not in _BUILT_IN or not any((folder / name).is_file() for folder in folders):
            found[name] = _NOTHING
    # What kernels beside torch rely on: its headers include these.
    brought = "#pragma once\n#include <cfloat>\n#include <cmath>\n#include <cstdint>\n#include <limits>\n"
    found |= dict.fromkeys([name for name in FOR_HOST if name.startswith(("torch/", "ATen/"))], brought)
    for folder in folders:
        found |= _of_cccl(folder)
    return found | {name: _VECTOR + text for name, text in _VECTORS.items()}


def _of_cccl(folder: Path) -> dict[str, str]:
    """Headers of Thrust and CUB that are for the host, and the one that has all of CUB, with what kernels can use."""
    thrust = [path.name for path in (folder / "thrust").glob("*.h") if path.stem not in _THRUST_FOR_DEVICES]
    found = {f"thrust/{name}": _NOTHING for name in thrust}
    found |= {f"cub/device/{path.name}": _NOTHING for path in (folder / "cub" / "device").glob("*.cuh")}
    parts = [path for part in ("block", "warp", "thread") for path in sorted((folder / "cub" / part).glob("*.cuh"))]
    if parts:
        included = "".join(f"#include <cub/{path.parent.name}/{path.name}>\n" for path in parts)
        found["cub/cub.cuh"] = f"#pragma once\n{included}"
    return found


def _forwarding(name: str) -> str:
    names = "namespace cuda { namespace std {} }\nnamespace std { using namespace cuda::std; }\n"
    return f"#pragma once\n{names}#include <cuda/std/{name}>\n"
