"""`from_framework`: a module of what another library compiled, or would compile.

What a library has kept decides what is possible: its PTX, the source that NVRTC compiles again, or neither.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy

from ptxlab import ir
from ptxlab.frameworks.packages import numba_cuda, package
from ptxlab.frameworks.sources import module_from
from ptxlab.toolchain import cuda
from ptxlab.toolchain.process import on_path

DEFAULT_TARGET = "sm_90a"


def from_framework(given: object, target: str = DEFAULT_TARGET, signature: object = None) -> ir.Module:
    """The module of a kernel of Triton, CuTe DSL, Numba, CuPy or torch.

    Triton's compiled kernels and CuTe's compiled functions have their PTX. A kernel of Numba is compiled for `target`:
    `signature` is what Numba takes for one, such as `"void(float32[:], float32)"`; CuPy's `RawKernel` and `RawModule`
    are compiled by NVRTC for `target`. An extension of `torch.utils.cpp_extension` is asked for the PTX inside.

    >>> module = ptxlab.from_framework(cupy.RawKernel(source, "saxpy"), target="sm_90")  # doctest: +SKIP
    """
    kind = f"{type(given).__module__}.{type(given).__qualname__}"
    if isinstance(given, ir.Module):
        return given
    if isinstance(getattr(given, "asm", None), dict):
        return _of_triton(given)
    if hasattr(type(given), "__ptx__"):
        return _of_cute(given)
    if "Dispatcher" in kind and hasattr(given, "py_func"):
        return _of_numba(given, target, signature)
    if hasattr(given, "code") and hasattr(given, "options") and kind.startswith("cupy"):
        return _of_cupy(given, target)
    file = getattr(given, "__file__", None)
    if isinstance(file, str) and file.endswith(".so"):
        return _of_extension(Path(file))
    raise TypeError(_refusal(given, kind))


def numba_arguments(*args: object) -> list[object]:
    """The parameters that arguments of a Numba kernel become: an array is its size, data, shape and strides.

    >>> numba_arguments(numpy.zeros((2, 3), numpy.float32), 7)[2:4]
    [6, 4]
    """
    values: list[Any] = []
    for one in args:
        if isinstance(one, numpy.ndarray):
            values += [0, 0, one.size, one.itemsize, one, *one.shape, *one.strides]
        elif isinstance(one, tuple):
            values += numba_arguments(*one)
        else:
            values.append(one)
    return values


def _of_triton(given: Any) -> ir.Module:
    if "ptx" not in given.asm:
        raise TypeError(f"Triton has kept {', '.join(given.asm)} of this kernel, and no PTX: it is not for a CUDA GPU")
    return module_from(
        given.asm["ptx"], f"{given.name}.ptx", Path(package("triton", "triton", "`from_framework`").__file__).parent
    )


def _of_cute(given: Any) -> ir.Module:
    text = given.__ptx__
    if not text:
        raise TypeError(
            "CuTe DSL has not kept the PTX of this function: compile it by "
            'cute.compile(function, ..., options="--keep-ptx --dump-dir /tmp --gpu-arch sm_90a")'
        )
    return module_from(text.rstrip("\0"), f"{given.function_name}.ptx")


def _of_numba(given: Any, target: str, signature: object) -> ir.Module:
    compiler = numba_cuda("a kernel of Numba")
    signatures = [signature] if signature is not None else list(given.nopython_signatures)
    if len(signatures) != 1:
        raise TypeError(
            f"`{given.py_func.__name__}` has {len(signatures)} signatures: name one, as in "
            'from_framework(kernel, signature="void(float32[:], float32)")'
        )
    found = re.search(r"\d+", target)
    if found is None:
        raise ValueError(f"target={target!r}: sm_80, sm_90, … are wanted")
    try:
        text, _ = compiler.compile_ptx(given.py_func, signatures[0], cc=divmod(int(found[0]), 10), lineinfo=True)
    except Exception as problem:
        if "nvrtc" not in str(problem).lower() and "nvvm" not in str(problem).lower():
            raise
        raise ImportError(
            'Numba finds neither NVRTC nor NVVM, which compile its kernels: pip install "numba-cuda[cu13]"'
        ) from problem
    return module_from(text, f"{given.py_func.__name__}.ptx")


def _of_cupy(given: Any, target: str) -> ir.Module:
    """CuPy keeps the source and its options, and compiles when a kernel is first used."""
    if getattr(given, "backend", "nvrtc") not in ("nvrtc", "auto"):
        raise TypeError(f"CuPy compiles this by {given.backend}: ptxlab compiles its source by NVRTC")
    if not given.code:
        path = getattr(given, "file_path", None)
        raise TypeError(f"CuPy loads this from {path}, and there is no source: pass its PTX to ptxlab.load")
    name = getattr(given, "name", None) or "module"
    templates = list(getattr(given, "name_expressions", None) or ())
    return cuda(given.code, target, [str(one) for one in given.options], name=f"{name}.cu", instantiate=templates)


def _of_extension(path: Path) -> ir.Module:
    """An extension module: the PTX that nvcc has put into it, if it was asked for any."""
    tool = on_path("cuobjdump")
    if tool is None:
        raise TypeError(f"`cuobjdump` of the CUDA toolkit is needed to read the PTX in {path.name}")
    shown = subprocess.run([tool, "-ptx", str(path)], capture_output=True, text=True, check=False)
    texts = _listings(shown.stdout)
    if not texts:
        raise TypeError(
            f"{path.name} has no PTX: nvcc put only machine code into it; build it with TORCH_CUDA_ARCH_LIST=9.0+PTX, "
            "or pass its CUDA C++ to ptxlab.cuda"
        )
    if len(texts) > 1:
        raise TypeError(
            f"{path.name} has {len(texts)} modules of PTX: build it for one architecture, of one source file"
        )
    return module_from(texts[0], f"{path.stem}.ptx")


def _listings(text: str) -> Sequence[str]:
    """The modules in what cuobjdump prints."""
    starts = [found.start() for found in re.finditer(r"^\.version ", text, re.MULTILINE)]
    parts = pairwise([*starts, len(text)])
    return [re.split(r"^Fatbin ", text[start:end], flags=re.MULTILINE)[0] for start, end in parts]


_REASONS = {
    "_CudaKernel": "torch.cuda._compile_kernel keeps the loaded function alone: pass its source to ptxlab.cuda",
    "JITFunction": "a Triton kernel is compiled for its arguments: ptxlab.triton.run(kernel, grid, *args) does both",
    "GluonJITFunction": "a kernel is compiled for its arguments: ptxlab.triton.run(kernel, grid, *args) does both",
    "Autotuner": "a Triton kernel is compiled for its arguments: ptxlab.triton.run(kernel, grid, *args) does both",
    "PjitFunction": (
        "JAX compiles Pallas kernels for the GPU that it finds, and keeps no PTX: run it there with "
        "MOSAIC_GPU_DUMP_PTX=1, and pass what it prints to ptxlab.parse"
    ),
    "Compiled": "JAX keeps no PTX of what it compiled: run it with MOSAIC_GPU_DUMP_PTX=1 and pass that to ptxlab.parse",
}


def _refusal(given: object, kind: str) -> str:
    reason = _REASONS.get(type(given).__name__)
    if reason is not None:
        return reason
    return (
        f"{kind} is not a kernel that can be adopted: there are Triton's compiled kernels, CuTe's compiled functions, "
        "Numba's @cuda.jit, CuPy's RawKernel and RawModule, and extensions of torch"
    )
