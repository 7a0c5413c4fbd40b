"""CUDA C++ through NVRTC: inline PTX comes out as written, messages land on the source."""

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from ptxlab.report import PtxError, Source
from ptxlab.toolchain import Tool, assemble, compile_cuda, find
from ptxlab.toolchain.compiler_messages import read_log

SOURCE = """\
#include <cuda_fp16.h>
extern "C" __global__ void lanes(float* out, __half x) {
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[threadIdx.x] = lane + __half2float(x);
}
"""


def test_inline_ptx_is_in_the_text(nvrtc: Tool) -> None:
    compilation = compile_cuda(SOURCE, "sm_90a", name="lanes.cu")
    assert compilation.text
    assert ".target sm_90a" in compilation.text
    assert "%laneid;" in compilation.text
    assert compilation.diagnostics == ()
    assert compilation.tool == nvrtc


@pytest.mark.usefixtures("nvrtc", "ptxas")
def test_the_text_assembles() -> None:
    text = compile_cuda(SOURCE, "sm_90a").text
    assert text
    assembly = assemble(text)
    assert assembly.cubin, assembly.diagnostics
    assert assembly.resources[0].function == "lanes"


@pytest.mark.usefixtures("nvrtc")
def test_a_mistake_is_marked_on_the_source() -> None:
    compilation = compile_cuda(SOURCE.replace("= lane +", "= line +"), name="lanes.cu")
    assert compilation.text is None
    (diagnostic,) = (found for found in compilation.diagnostics if found.level == "error")
    assert (diagnostic.code, diagnostic.file, diagnostic.line) == ("cuda-error", "lanes.cu", 5)
    assert diagnostic.message == "identifier `line` is undefined"
    assert diagnostic.labels[0].span.text == "line"


@pytest.mark.usefixtures("nvrtc")
def test_an_unknown_target_is_an_error() -> None:
    compilation = compile_cuda(SOURCE, "sm_5")
    assert compilation.text is None
    assert compilation.diagnostics[0].code == "cuda-error"
    assert "gpu-architecture" in compilation.diagnostics[0].message


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("source", ["", "\0", "int", "#error stop"])
def test_any_source_has_an_answer(source: str) -> None:
    compilation = compile_cuda(source)
    assert compilation.text is not None or compilation.diagnostics


def test_a_message_about_another_file_is_reported_without_a_span() -> None:
    log = (
        'other.h(3): error: expected a ";"\n      int x\n           ^\n\n1 error detected in the compilation of "a.cu".'
    )
    (diagnostic,) = read_log(log, Source("a.cu", "#include <other.h>\n"))
    assert diagnostic.labels == ()
    assert diagnostic.notes == ("in `other.h`, line 3",)


def test_what_cuda_13_took_away_is_said() -> None:
    log = 'k.cu(2): error: class "cudaDeviceProp" has no member "clockRate"\n'
    (found,) = read_log(log, Source("k.cu", "int main() {\n  p.clockRate;\n}\n"))
    assert "cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, device)" in found.helps[0].text
    (other,) = read_log(log.replace("clockRate", "clockrate"), Source("k.cu", "\n\n"))
    assert not other.helps


def test_a_name_in_another_encoding_is_not_warned_of() -> None:
    log = "/tmp/x/lat.cpp1.ii(1): warning #870-D: invalid multibyte character sequence\n\n"
    assert read_log(log, Source("lat.cu", "\n")) == []
    assert read_log(log.replace("/tmp/x/lat.cpp1.ii", "lat.cu"), Source("lat.cu", "\n")) != []


def test_a_call_that_cuda_13_has_changed_is_known_by_its_line() -> None:
    log = (
        "k.cu(1): error: too few arguments in function call\n  cuCtxCreate_v4(&c, 0, d);\n                         ^\n"
    )
    (found,) = read_log(log, Source("k.cu", "  cuCtxCreate(&c, 0, d);\n"))
    assert "`cuCtxCreate(&context, nullptr, flags, device)`" in found.helps[0].text
    (other,) = read_log(log.replace("cuCtxCreate_v4", "cuCtxGetDevice"), Source("k.cu", "  cuCtxGetDevice(c);\n"))
    assert not other.helps


def test_a_library_that_is_missing() -> None:
    with pytest.raises(PtxError, match="which is not a file"):
        find("nvrtc", "/nowhere/libnvrtc.so")


@pytest.mark.usefixtures("nvrtc")
def test_cuda_gives_a_module_that_runs() -> None:
    out, half = np.zeros(4, np.float32), np.float16(0.5).tobytes()
    module = ptxlab.cuda(SOURCE, "sm_90a", name="lanes.cu")
    assert (module.target, module.entries) == ("sm_90a", ["lanes"])
    module["lanes"].launch(1, 4, [out, half], device="cpu")
    assert out.tolist() == [0.5, 1.5, 2.5, 3.5]
    with pytest.raises(ptxlab.KernelError) as raised:
        module["lanes"].launch(1, 8, [out, half], device="cpu")
    assert [(found.file, found.line) for found in raised.value.diagnostics] == [("lanes.cu", 5)]


INLINE = """\
extern "C" __global__ void k(float* x)
{
    float r;
    asm("%s %%0, %%1;" : "=f"(r) : "f"(*x));
    *x = r;
}
"""


@pytest.mark.usefixtures("nvrtc")
def test_findings_in_inline_ptx_are_on_the_line_of_the_source() -> None:
    wrong = ptxlab.cuda(INLINE % "ex2.aprox.f32", name="wrong.cu")
    (found,) = ptxlab.check(wrong)
    assert (found.code, found.file, found.line) == ("illegal-modifier", "wrong.cu", 4)
    assert [label.span.source.name for label in found.labels] == ["wrong.cu", "wrong.ptx"]
    with pytest.raises(PtxError) as raised:
        ptxlab.cuda(INLINE % "ex2.approx.f32 !!", name="wrong.cu")
    assert [(found.code, found.file, found.line) for found in raised.value.diagnostics] == [
        ("unexpected-token", "wrong.cu", 4)
    ]
    assert ptxlab.check(ptxlab.cuda(INLINE % "ex2.approx.f32", name="right.cu")) == []


@pytest.mark.usefixtures("nvrtc")
def test_cuda_raises_what_nvrtc_says() -> None:
    with pytest.raises(PtxError, match="identifier `line` is undefined"):
        ptxlab.cuda(SOURCE.replace("= lane +", "= line +"))


@pytest.mark.usefixtures("nvrtc")
def test_cuda_warns_of_what_nvrtc_warns_of() -> None:
    with pytest.warns(UserWarning, match="was declared but never referenced"):
        ptxlab.cuda(SOURCE.replace("unsigned lane;", "unsigned lane, spare;"))


def test_calls_of_constexpr_functions_are_one_message_a_line() -> None:
    refused = (
        'calling a constexpr __host__ function("std::get<{}>") from a __global__ function("k<{}>") is not allowed. '
    )
    option = "The experimental flag '--expt-relaxed-constexpr' can be used to allow this"
    log = "".join(
        f"k.cu({line}): error: {refused.format(which, instance)}{option}\n\n"
        f'k.cu({line}): error: identifier "std::get<{which}>" is undefined in device code\n\n'
        for line in (2, 3)
        for which in (0, 1)
        for instance in (0, 1)
    )
    found = read_log(log, Source("k.cu", "\na = get<0>(x) + get<1>(x);\nb = get<0>(x) + get<1>(x);\n"))
    assert [(one.line, one.notes) for one in found] == [
        (2, ("in 4 calls and instances",)),
        (3, ("in 4 calls and instances",)),
    ]
    option_help = "give nvcc that option: `ptxlab run FILE --nvcc --expt-relaxed-constexpr`"
    assert [[help.text for help in one.helps] for one in found] == [[option_help]] * 2
    (alone,) = read_log('k.cu(1): error: identifier "f" is undefined in device code\n\n', Source("k.cu", "f();\n"))
    assert alone.message == "identifier `f` is undefined in device code"
