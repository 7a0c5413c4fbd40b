"""Parameters of kernels are called what the source calls them, where it leaves no doubt."""

import pytest

import ptxlab
from ptxlab.report import Source
from ptxlab.toolchain.parameter_names import name_parameters


def titles(source: str, kernel: str, count: int) -> list[str]:
    """What the parameters of a kernel are called that was compiled from a source."""
    given = ", ".join(f".param .u64 {kernel}_param_{number}" for number in range(count))
    module = ptxlab.parse(f".version 8.0\n.target sm_80\n.address_size 64\n.entry {kernel}({given}) {{ ret; }}\n")
    name_parameters(module, [Source("k.cu", source)])
    return [parameter.title for parameter in module.functions[0].parameters]


NAMED = [
    ("__global__ void k(const float* gpuSrc, int n) {}", "_Z1kPKfi", ["gpuSrc", "n"]),
    ("namespace a { template <int N, class T> __global__ void __launch_bounds__(N) k(T* __restrict__ A, T B) {} }",
     "_ZN1a1kILi4EfEEvPT0_S1_", ["A", "B"]),
    ('extern "C" __global__ void k(ns::Tile<T, 3> tile /* , other */, const __grid_constant__ CUtensorMap map) {}',
     "k", ["tile", "map"]),
    ("__global__ void k(float (*f)(int, int), A<B<C<int>>> x = {}, unsigned long long y = g(1, 2)) {}",
     "_Z1kPFfiiE1AI1BI1CIiEEEy", ["f", "x", "y"]),
    ("__global__ void k(float data[], unsigned int) {}", "_Z1kPfj", ["data", "param_1"]),
    ("__global__ void k(const ns::T, T x) {}", "_Z1kN2ns1TES_", ["param_0", "x"]),
    ("__global__ void k(int a) {}\n__global__ void k(int b, int c) {}", "_Z1kii", ["b", "c"]),
]  # fmt: skip
UNSURE = [
    ("__global__ void k(int a) {}\n__global__ void k(float b) {}", "_Z1ki", ["param_0"]),
    ("__global__ void other(int a) {}", "_Z1ki", ["param_0"]),
    ("#define KERNEL(name) __global__ void name(int a) {}\nKERNEL(k)", "_Z1ki", ["param_0"]),
    ("template <class... Ts> __global__ void k(Ts... all) {}", "_Z1kIJiiEEvDpT_", ["param_0", "param_1"]),
]


@pytest.mark.parametrize(("source", "kernel", "names"), [*NAMED, *UNSURE])
def test_names_of_the_source(source: str, kernel: str, names: list[str]) -> None:
    assert titles(source, kernel, len(names)) == names
