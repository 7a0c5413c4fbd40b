"""What the texts say about inline PTX in CUDA C++, asked of NVRTC."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ptxlab.cli.samples import SAXPY
from ptxlab.toolchain import Compilation, assemble, compile_cuda, disassemble, find
from tests.claims.asking import needs_disassembler
from tests.tools import is_there, needs_ptxas

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


@pytest.mark.bulk
def test_there_is_prefetch_in_device_code_by_another_name() -> None:
    source = 'extern "C" __global__ void k(float* p) {{ {}; p[0] = 1; }}'
    wrong = compile_cuda(source.format("__builtin_prefetch(p + 8)"), "sm_90a", name="k.cu")
    assert [one.message for one in wrong.diagnostics] == ["identifier `__builtin_prefetch` is undefined"]
    by_name = compile_cuda(f"#include <cuda/ptx>\n{source.format('cuda::ptx::prefetch_L2(p)')}", "sm_90a", name="k.cu")
    if by_name.text is None:  # then the function is missing, and nothing else is wrong
        (missing,) = by_name.diagnostics
        assert "prefetch_L2" in missing.message
    else:
        assert "prefetch.global.L2 [" in by_name.text
    persisting = source.format("cuda::apply_access_property(p, 128, cuda::access_property::persisting{})")
    assert "prefetch.global.L2::evict_last [" in compiled(f"#include <cuda/annotated_ptr>\n{persisting}")


PIPELINES = {
    "cuda_pipeline_primitives.h": """__pipeline_memcpy_async(&tile[threadIdx.x], &p[threadIdx.x], 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);""",
    "cuda/pipeline": """auto pipe = cuda::make_pipeline();
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[threadIdx.x], &p[threadIdx.x], cuda::aligned_size_t<16>(16), pipe);
        pipe.producer_commit();
        pipe.consumer_wait();""",
}


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("header", PIPELINES)
def test_pipelines_of_cuda_become_cp_async(header: str) -> None:
    text = compiled(f"""#include <{header}>
    extern "C" __global__ void k(float4* p) {{
        __shared__ float4 tile[32];
        {PIPELINES[header]}
        p[0] = tile[threadIdx.x];
    }}""")
    found = [line.split()[0] for line in text.splitlines() if "cp.async" in line]
    assert found == ["cp.async.cg.shared.global", "cp.async.commit_group;", "cp.async.wait_group"]


def test_an_operand_of_asm_has_to_be_declared() -> None:
    wrong = compile_cuda("""extern "C" __global__ void k() {
        __shared__ float as[64];
        unsigned long long a_smem_ptr = __cvta_generic_to_shared(as);
        asm volatile("st.shared.u32 [%0], 0;" :: "l"(a_ptr + 16));
    }""", "sm_90a", name="k.cu")  # fmt: skip
    assert "identifier `a_ptr` is undefined" in [one.message for one in wrong.diagnostics]


@pytest.mark.parametrize(
    ("call", "spelling"),
    [("__hfma2(p[1], p[2], p[3])", "fma.rn.f16x2"), ("__hmul2(p[1], p[2])", "mul.f16x2"),
     ("__hadd2(p[1], p[2])", "add.f16x2")],
)  # fmt: skip
def test_half_intrinsics_are_one_instruction(call: str, spelling: str) -> None:
    text = compiled(f'#include <cuda_fp16.h>\nextern "C" __global__ void k(__half2* p) {{ p[0] = {call}; }}')
    assert text.count("f16x2") == 1
    assert spelling in text


def test_wmma_accumulators_need_a_layout_and_are_not_operands() -> None:
    source = """#include <mma.h>
    using namespace nvcuda;
    extern "C" __global__ void k(half* h, float* p) {{
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> c, d;
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
        wmma::load_matrix_sync(a, h, 16);
        wmma::load_matrix_sync(b, h, 16);
        {}
        wmma::store_matrix_sync(p, d, 16, wmma::mem_row_major);
    }}"""
    right = "wmma::load_matrix_sync(c, p, 16, wmma::mem_row_major); wmma::mma_sync(d, a, b, c);"
    assert "wmma.mma" in compiled(source.format(right))
    for old, new in ((", 16, wmma::mem_row_major)", ", 16)"), ("(d, a, b, c)", "(d, c, b, c)")):
        wrong = compile_cuda(source.format(right.replace(old, new, 1)), "sm_90a", name="k.cu")
        assert any("no instance of overloaded function" in one.message for one in wrong.diagnostics)


@needs_ptxas
def test_ptxas_without_a_name_writes_elf_o(tmp_path: Path) -> None:
    (tmp_path / "kernel.ptx").write_text(SAXPY)
    ptxas = find("ptxas")
    subprocess.run([ptxas.path, "-arch=sm_80", "kernel.ptx"], cwd=tmp_path, check=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["elf.o", "kernel.ptx"]


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
