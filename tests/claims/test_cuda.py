"""What the texts say about inline PTX in CUDA C++, asked of NVRTC."""

from __future__ import annotations

import pytest

from ptxlab.toolchain import Compilation, assemble, compile_cuda, disassemble
from tests.claims.asking import needs_disassembler
from tests.tools import is_there

pytestmark = pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")

SUM = """extern "C" __global__ void k(float* p) {{
    float v = p[threadIdx.x];
    {}
    if (threadIdx.x == 0) p[0] = v;
}}"""
BY_INTRINSIC = "for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);"
BY_PTX = 'asm volatile("{{ .reg .f32 temp;"{} "}}" : "+f"(v));'.format(
    "".join(f'"shfl.sync.down.b32 temp, %0, {d}, 0x1f, 0xffffffff; add.f32 %0, %0, temp;"' for d in (16, 8, 4, 2, 1))
)


def compiled(source: str, target: str = "sm_90a") -> str:
    """The PTX of CUDA C++."""
    text = compile_cuda(source, target, name="k.cu").text
    assert text is not None
    return text


def machine_code(source: str) -> list[str]:
    """The SASS of CUDA C++."""
    cubin = assemble(compiled(source), "sm_90a").cubin
    assert cubin is not None
    (function,) = disassemble(cubin)
    return [one.opcode for one in function.instructions]


def test_a_pointer_to_shared_memory_is_not_a_32_bit_operand() -> None:
    source = """extern "C" __global__ void k(float* in) {{
        __shared__ float tile[256];
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"({}), "l"(&in[threadIdx.x]));
    }}"""
    wrong: Compilation = compile_cuda(source.format("&tile[threadIdx.x]"), "sm_90a", name="k.cu")
    assert [one.message for one in wrong.diagnostics if one.level == "error"] == [
        "asm operand type size(8) does not match type/size implied by constraint 'r'"
    ]
    assert "cp.async" in compiled(source.format("(unsigned)__cvta_generic_to_shared(&tile[threadIdx.x])"))


def test_launch_bounds_become_directives() -> None:
    text = compiled('extern "C" __global__ void __launch_bounds__(256, 4) k(float* p) { p[threadIdx.x] *= 2; }')
    assert ".maxntid 256" in text
    assert ".minnctapersm 4" in text


def test_r_l_f_and_d_are_registers_of_these_sizes() -> None:
    text = compiled("""extern "C" __global__ void k(double* p, int a, long long b, float c, double d) {
        asm volatile("add.s32 %0, %0, %0;" : "+r"(a)); asm volatile("add.s64 %0, %0, %0;" : "+l"(b));
        asm volatile("mul.f32 %0, %0, %0;" : "+f"(c)); asm volatile("mul.f64 %0, %0, %0;" : "+d"(d));
        p[0] = a + b + c + d;
    }""")
    assert all(spelling in text for spelling in ("add.s32 %r", "add.s64 %rd", "mul.f32 %", "mul.f64 %"))


def test_h_and_q_are_registers_of_16_and_128_bits() -> None:
    source = """extern "C" __global__ void k(unsigned __int128* p, short a) {
        unsigned __int128 b = p[0];
        asm volatile("add.s16 %0, %0, %0;" : "+h"(a)); asm volatile("mov.b128 %0, %0;" : "+q"(b));
        p[a] = b;
    }"""
    text = compile_cuda(source, "sm_90a", name="k.cu", options=["--device-int128"]).text
    assert text is not None
    assert all(spelling in text for spelling in ("add.s16 %rs", "mov.b128 %rq"))


def test_without_volatile_a_statement_whose_outputs_are_not_used_is_dropped() -> None:
    text = compiled("""extern "C" __global__ void k(int* p) {
        int a, b;
        asm("add.s32 %0, %1, 17;" : "=r"(a) : "r"(p[0])); asm volatile("add.s32 %0, %1, 19;" : "=r"(b) : "r"(p[1]));
        asm("bar.sync 3;"); asm volatile("bar.sync 4;");
    }""")
    assert [part in text for part in (", 17;", ", 19;", "bar.sync 3;", "bar.sync 4;")] == [False, True, True, True]


def test_there_is_no_prefetch_in_device_code() -> None:
    source = 'extern "C" __global__ void k(float* p) { __builtin_prefetch(p + 8); p[0] = 1; }'
    wrong = compile_cuda(source, "sm_90a", name="k.cu")
    assert [one.message for one in wrong.diagnostics] == ["identifier `__builtin_prefetch` is undefined"]


def test_pipelines_of_cuda_become_cp_async() -> None:
    text = compiled("""#include <cuda_pipeline_primitives.h>
    extern "C" __global__ void k(float4* p) {
        __shared__ float4 tile[32];
        __pipeline_memcpy_async(&tile[threadIdx.x], &p[threadIdx.x], 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        p[0] = tile[threadIdx.x];
    }""")
    found = [line.split()[0] for line in text.splitlines() if "cp.async" in line]
    assert found == ["cp.async.cg.shared.global", "cp.async.commit_group;", "cp.async.wait_group"]


@pytest.mark.slow
@needs_disassembler
def test_inline_shuffles_become_what_intrinsics_become() -> None:
    assert machine_code(SUM.format(BY_PTX)) == machine_code(SUM.format(BY_INTRINSIC))


@pytest.mark.parametrize(
    ("header", "call", "target", "spelling"),
    [
        ("fp8", "__nv_cvt_fp8x2_to_halfraw2(in[0], __NV_E4M3)", "sm_90a", "cvt.rn.f16x2.e4m3x2"),
        ("fp4", "__nv_cvt_fp4x2_to_halfraw2(in[0], __NV_E2M1)", "sm_100a", "cvt.rn.f16x2.e2m1x2"),
    ],
)
def test_conversions_of_fp8_and_fp4_are_one_instruction(header: str, call: str, target: str, spelling: str) -> None:
    kernel = f'extern "C" __global__ void k(unsigned short* in, __half2_raw* out) {{ *out = {call}; }}'
    text = compiled(f"#include <cuda_{header}.h>\n{kernel}", target)
    assert text.count(spelling) == 1
