"""Kernels of other libraries as modules; those that are not installed are as much of them as is asked for."""

from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.cli.samples import SAXPY
from ptxlab.frameworks.adopt import _listings, numba_arguments
from tests.tools import is_there

SOURCE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2 * FACTOR; }'


class RawKernel:
    """CuPy's, by its attributes."""

    __module__ = "cupy._core.raw"
    backend = "nvrtc"

    def __init__(self, code: str, name: str, options: tuple[str, ...] = (), **more: Any) -> None:
        self.code, self.name, self.options = code, name, options
        vars(self).update(more)


@pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")
def test_a_raw_kernel_of_cupy() -> None:
    module = ptxlab.from_framework(RawKernel(SOURCE, "twice", ("-DFACTOR=3",)), target="sm_80")
    x = np.ones(4, np.float32)
    module["twice"].launch(1, 4, [x])
    np.testing.assert_array_equal(x, 6)


@pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")
def test_templates_of_a_raw_module_of_cupy() -> None:
    source = "template <int N> __global__ void times(float *x) { x[threadIdx.x] *= N; }"
    module = ptxlab.from_framework(RawKernel(source, "", name_expressions=["times<3>", "times<5>"]))
    x = np.ones(4, np.float32)
    module["times<5>"].launch(1, 4, [x])
    np.testing.assert_array_equal(x, 5)


@pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")
def test_what_cupy_itself_makes() -> None:
    cupy = pytest.importorskip("cupy")
    kernel = cupy.RawKernel(SOURCE, "twice", options=("-DFACTOR=3",))
    source = "template <typename T> __global__ void times(T *x) { x[threadIdx.x] *= 5; }"
    modules = (
        ptxlab.from_framework(kernel),
        ptxlab.from_framework(cupy.RawModule(code=source, name_expressions=["times<float>"])),
    )
    for module, name, wanted in zip(modules, ("twice", "times<float>"), (6, 5), strict=True):
        x = np.ones(4, np.float32)
        module[name].launch(1, 4, [x])
        np.testing.assert_array_equal(x, wanted)


def test_what_cupy_has_no_source_of() -> None:
    with pytest.raises(TypeError, match="there is no source"):
        ptxlab.from_framework(RawKernel("", "k", file_path="k.cubin"))
    with pytest.raises(TypeError, match="compiles this by nvcc"):
        ptxlab.from_framework(RawKernel(SOURCE, "k", backend="nvcc"))


def test_a_compiled_kernel_has_its_text() -> None:
    class Function:
        function_name = "saxpy"
        __ptx__: Any = SAXPY + "\0"

    assert ptxlab.from_framework(Function()).entries == ["saxpy"]
    Function.__ptx__ = None
    with pytest.raises(TypeError, match="--keep-ptx"):
        ptxlab.from_framework(Function())
    with pytest.raises(TypeError, match="and no PTX: it is not for a CUDA GPU"):
        ptxlab.from_framework(SimpleNamespace(asm={"amdgcn": ""}, name="k"))
    module = ptxlab.parse(SAXPY)
    assert ptxlab.from_framework(module) is module


def test_what_cannot_be_adopted_says_why() -> None:
    with pytest.raises(TypeError, match=r"builtins\.int is not a kernel that can be adopted: there are Triton's"):
        ptxlab.from_framework(3)
    torch_kernel = type("_CudaKernel", (), {})()
    with pytest.raises(TypeError, match=r"pass its source to ptxlab\.cuda"):
        ptxlab.from_framework(torch_kernel)


def test_listings_of_cuobjdump() -> None:
    text = "Fatbin ptx code:\n====\n.version 8.0\n.target sm_80\nFatbin elf code:\n.version 9.0\nmore\n"
    assert _listings(text) == [".version 8.0\n.target sm_80\n", ".version 9.0\nmore\n"]
    assert _listings("Fatbin elf code:\n====\n") == []


def test_arrays_of_numba_become_seven_parameters_and_more() -> None:
    x = np.zeros((2, 3), np.float32)
    assert numba_arguments((x, 5))[:4] == [0, 0, 6, 4]
    assert numba_arguments(x, 5)[5:] == [2, 3, 12, 4, 5]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
def test_a_kernel_of_numba() -> None:
    from numba import cuda  # type: ignore[import-not-found, unused-ignore]

    @cuda.jit
    def saxpy(x: Any, y: Any, a: Any) -> None:
        i = cuda.grid(1)
        if i < x.size:
            y[i] = a * x[i] + y[i]

    with pytest.raises(TypeError, match="`saxpy` has 0 signatures"):
        ptxlab.from_framework(saxpy)
    module = ptxlab.from_framework(saxpy, "sm_90", "void(float32[:], float32[:], float32)")
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    module[module.entries[0]].launch(4, 256, numba_arguments(x, y, 2.0))
    np.testing.assert_array_equal(y, 2 * x + 1)
