"""CUDA C++ where PTX is expected: compiled first, and findings shown on its lines."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxlab.cli.group import ptxlab
from ptxlab.ir.inlining import is_toolkit_header
from ptxlab.report import PtxError
from ptxlab.toolchain import compilation, find
from ptxlab.toolchain.nvcc import has_host_compiler

RIGHT = """\
extern "C" __global__ void twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float r;
    if (i < n) {
        asm("add.f32 %0, %1, %1;" : "=f"(r) : "f"(x[i]));
        x[i] = r;
    }
}
"""
LAUNCH = ["--block", "32", "--arg", "f32[32]=arange"]


TEMPLATE = """\
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <vector>

template <int N, typename T> __global__ void scale(T *x, uint32_t n)
{
    assert(n == SIZE);
    if (threadIdx.x < n) x[threadIdx.x] *= N;
}

static std::vector<float> numbers(int n) { return std::vector<float>(n, 1.0f); }

int main()
{
    float *x;
    cudaMalloc(&x, 4 * numbers(SIZE).size());
    scale<3, float><<<1, SIZE>>>(x, SIZE);
    printf("%d\\n", (int)cudaDeviceSynchronize());
}
"""
SCALE = ["--block", "4", "--arg", "f32[4]=arange", "--arg", "u32=4"]


@pytest.fixture(autouse=True)
def nvrtc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile by NVRTC, which is quicker, but for tests that ask for nvcc."""
    name = "nvcc" if "nvcc" in request.fixturenames or "nvcc" in request.node.name else "nvrtc"
    try:
        find(name)
    except PtxError as missing:
        pytest.skip(f"no {name}: {missing.diagnostics[0].message}")
    if name == "nvrtc":
        monkeypatch.setattr(compilation, "has_host_compiler", lambda options: False)
    elif not has_host_compiler(()):
        pytest.skip("no compiler for the host, which nvcc needs")


@pytest.fixture
def nvcc() -> None:
    """For a test that compiles by nvcc."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("right.cu").write_text(RIGHT)
    Path("asm.cu").write_text(RIGHT.replace("add.f32 ", "add.f23 "))
    Path("wrong.cu").write_text(RIGHT.replace("x[i] = r", "x[i] = s"))


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(ptxlab, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_kernel_runs() -> None:
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32")
    assert result.exit_code == 0
    assert "0 2 4 6 8 10 12 14 ..." in result.stdout
    assert run("run", "right.cu", "--target", "sm_90a", *LAUNCH, "--arg", "s32=32").exit_code == 0


def test_a_finding_is_on_the_line_of_the_source() -> None:
    result = run("run", "right.cu", "--block", "64", *LAUNCH[2:], "--arg", "s32=64", "--format", "concise")
    assert result.exit_code == 1
    assert "right.cu:6:9: error[out-of-bounds]" in result.stdout
    for command in (["check"], ["run", *LAUNCH, "--arg", "s32=32"]):
        result = run(*command, "asm.cu", "--format", "concise")
        assert result.exit_code == 1
        assert "asm.cu:6:9: error[" in result.output
        assert ".f23" in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "wrong", "code"),
    [
        ("", "add.f23 ", "illegal-modifier"),
        ("", "add.f64 ", "operand-type"),
        pytest.param("int main() {}\n", "add.f23 ", "illegal-modifier", marks=pytest.mark.bulk),  # seconds of nvcc
        ("int main() {}\n", "add.f64 ", "operand-type"),
    ],
)
def test_inline_ptx_that_ptxas_refuses_is_on_the_line_of_the_source(
    nvcc: None, program: str, wrong: str, code: str
) -> None:
    Path("asm.cu").write_text(RIGHT.replace("add.f32 ", wrong) + program)
    command = ["run", "asm.cu"] if program else ["check", "asm.cu", "--target", "sm_90"]
    result = run(*command, "--format", "concise")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"asm.cu:6:9: error[{code}]"), result.stdout
    assert result.stdout.count("\n") == 1


def test_what_nvrtc_refuses_is_reported() -> None:
    result = run("check", "wrong.cu")
    assert result.exit_code == 1
    assert "error[cuda-error]: identifier `s` is undefined\n --> wrong.cu:7:16" in result.stdout
    assert result.stdout.endswith("1 warning in wrong.cu\n")


def test_warnings_of_the_compiler_are_findings() -> None:
    Path("unused.cu").write_text(RIGHT.replace("float r;", "float r; int unused;"))
    for command in (["check"], ["run", *LAUNCH, "--arg", "s32=32"]):
        result = run(*command, "unused.cu")
        assert (result.exit_code, result.stderr) == (1, "")
        assert "warning[cuda-warning]: variable `unused` was declared but never referenced" in result.stdout
        assert result.stdout.endswith("\n1 warning in unused.cu\n")


def test_warnings_of_the_headers_of_the_toolkit_are_not() -> None:
    Path("header.cu").write_text("#include <cuda_fp8.h>\n" + RIGHT)
    result = run("check", "header.cu")
    if "could not open source file" in result.stdout:
        pytest.skip("the headers of the toolkit are not installed")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "no errors or warnings in header.cu\n"


def test_warnings_of_other_headers_are_findings() -> None:
    Path("own.h").write_text("static __device__ int own(int n) { int unused; return n; }\n")
    Path("own.cu").write_text('#include "own.h"\n' + RIGHT.replace("int n)", "int n)").replace("i < n", "i < own(n)"))
    result = run("check", "own.cu")
    assert result.exit_code == 1
    assert "variable `unused` was declared" in result.stdout
    assert "= note: in `own.h`, line 1" in result.stdout


def test_a_finding_in_a_header_beside_the_source_is_on_its_line() -> None:
    Path("store.cuh").write_text(STORE)
    Path("store.cu").write_text(STORED)
    result = run("run", "store.cu", "--block", "64", *LAUNCH[2:], "--format", "concise")
    assert "store.cuh:3:5: error[out-of-bounds]" in result.stdout


STORE = "__device__ inline void store(float *x, int at)\n{\n    x[at] = 1;\n}\n"
STORED = '#include "store.cuh"\n__global__ void k(float *x)\n{\n    store(x, threadIdx.x);\n}\n'


@pytest.mark.parametrize(
    ("options", "project", "place"),
    [
        (["--", "-I../include"], "", "store.cuh:3:5"),
        (["--", "-I", "../include"], "", "store.cuh:3:5"),
        (["--", "-isystem", "../include"], "", "store.cu:4:5"),
        ([], "-I../include", "store.cu:4:5"),  # a project may be a stranger's: outside of it nothing is shown
        ([], "-Ibelow", "store.cuh:3:5"),
    ],
)
def test_headers_are_the_users_where_options_name_their_folder(
    options: list[str], project: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("include", "src", "src/below"):
        Path(folder).mkdir()
        Path(folder, "store.cuh").write_text(STORE)
    Path("src/store.cuh").unlink()
    Path("src/store.cu").write_text(STORED)
    if project:
        Path("src/pyproject.toml").write_text(f"[tool.ptxlab]\ncuda-options = ['{project}']\n")
    monkeypatch.chdir("src")
    result = run("run", "store.cu", "--block", "64", *LAUNCH[2:], "--format", "concise", *options)
    assert f"{place}: error[out-of-bounds]" in result.stdout


HANDED = """\
__device__ inline int handed(int x)
{
    __shared__ int cell;
    if (threadIdx.x == 0) cell = x;
    int lane = __shfl_sync(0xffffffff, x, 0);
    return cell + lane;
}
"""


def test_a_warning_about_a_header_of_the_toolkit_is_not_the_users() -> None:
    Path("cuda").mkdir()
    Path("cuda", "handed.h").write_text(HANDED)
    Path("k.cu").write_text(
        '#include "handed.h"\n__global__ void k(int *x) { x[threadIdx.x] = handed(x[threadIdx.x]); }\n'
    )
    launch = ["--block", "32", "--arg", "s32[32]=zeros", "--format", "concise", "--", "-Icuda"]
    assert "warning[unordered-collective]" in run("run", "k.cu", *launch).stdout
    Path("cuda", "cuda_runtime_api.h").touch()
    is_toolkit_header.cache_clear()
    result = run("run", "k.cu", *launch)
    assert (result.exit_code, "unordered-collective" in result.stdout) == (0, False)


def test_a_target_that_lacks_an_instruction_is_an_option() -> None:
    Path("bulk.cu").write_text(RIGHT.replace("float r;", 'float r; asm("cp.async.bulk.commit_group;");'))
    result = run("check", "bulk.cu")
    assert result.exit_code == 1
    assert (
        "`cp.async.bulk.commit_group` needs `.target sm_90`, and this module is compiled for `sm_80`" in result.stdout
    )
    assert "= help: compile it for `sm_90`: `--target sm_90`" in result.stdout
    assert run("check", "bulk.cu", "--target", "sm_90").exit_code == 0


def test_a_profile_is_of_the_lines_of_the_source() -> None:
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32", "--profile")
    assert result.exit_code == 0
    (head,) = [line for line in result.stdout.splitlines() if line.startswith("line ")]
    assert head.endswith("CUDA C++")
    assert re.search(r"^ *7 .* x\[i\] = r;$", result.stdout, re.MULTILINE)
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32", "--format", "json", "--profile")
    assert {int(line) for line in json.loads(result.stdout)["counters"]["lines"]} <= set(range(1, 10))


def test_a_line_of_the_source_is_drawn() -> None:
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32", "--draw", "7")
    assert result.exit_code == 0
    assert "line 7: 4 bytes a lane, global memory" in result.stdout


def test_a_kernel_has_its_name_in_the_source() -> None:
    Path("plain.cu").write_text(
        "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n__global__ void thrice(float *x) { *x *= 3; }\n"
    )
    result = run("run", "plain.cu", "--entry", "twice", *LAUNCH)
    assert result.exit_code == 0
    assert "0 2 4 6 8 10 12 14 ..." in result.stdout
    assert "there is no kernel `twic`" in run("run", "plain.cu", "--entry", "twic", *LAUNCH).output


def test_other_commands_take_it_too() -> None:
    assert "no errors or warnings in right.cu" in run("check", "right.cu").stdout
    assert "def twice(" in run("python", "right.cu").stdout


def test_what_is_for_one_of_them_is_refused_for_the_other() -> None:
    fix = run("check", "--fix", "asm.cu")
    assert fix.exit_code == 2
    assert "`--fix` mends PTX" in fix.output
    assert Path("asm.cu").read_text() == RIGHT.replace("add.f32 ", "add.f23 ")
    Path("kernel.ptx").write_text(".version 8.0\n.target sm_80\n.entry k() { ret; }\n")
    result = run("run", "kernel.ptx", "--block", "1", "--target", "sm_90")
    assert result.exit_code == 2
    assert "`--target` is for CUDA C++: PTX names its own" in result.output


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_a_file_with_host_code_and_headers_runs(compiler: str) -> None:
    Path("scale.cu").write_text(TEMPLATE)
    result = run("run", "scale.cu", "--entry", "scale", *SCALE, "--format", "json", "--", "-DSIZE=4", "-O3")
    if "could not open source file" in result.stdout:
        pytest.skip("CCCL's headers are not installed")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["title"] == "scale<3, float>"
    assert [change["first"] for change in found["arguments"]] == [[0, 3, 6, 9]]
    wrong = run("run", "scale.cu", *SCALE, "--format", "concise", "--", "-DSIZE=5")
    assert "scale.cu:8:5: error[" in wrong.output


DEDUCED = """\
#include <cublas_v2.h>
#include <iostream>
#include <map>
#include <vector>
#include "timer.h"

template <class Shape, class T> __global__ void fill(Shape shape, T *x) { x[threadIdx.x] = shape.rows * UNKNOWN; }

struct Shape { int rows; };
static std::map<int, int> seen;

template <class T> void start(int rows, T *x)
{
    Timer timer;
    auto kernel = fill<Shape, T>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 0);
    kernel<<<1, 32>>>(Shape{rows}, x);
}

int main(int argc, char **argv)
{
    std::vector<float> d(32);
    if (argc > 1 && seen.count(argc)) {
        std::cerr << "no" << std::endl;
    } else {
        start(atoi(argv[1]), d.data());
    }
    return gettimeofday(nullptr, nullptr);
}
"""
TIMER = """\
#include <sys/time.h>
struct Timer {
    Timer() { cudaEventCreate(&event); }
    double seconds() { struct timeval now; gettimeofday(&now, 0); return now.tv_sec; }
    cudaEvent_t event;
};
inline double now() { struct timeval now; gettimeofday(&now, 0); return now.tv_sec; }
"""


def test_nvrtc_makes_the_kernels_that_host_code_launches() -> None:
    Path("timer.h").write_text(TIMER)
    Path("deduced.cu").write_text(DEDUCED)
    launch = ["run", "deduced.cu", "--block", "4", "--arg", "(5)", "--arg", "f32[4]=zeros", "--format", "json"]
    result = run(*launch, "--", "-DUNKNOWN=2")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["title"] == "fill<Shape, float>"
    assert [change["first"] for change in found["arguments"]] == [[10, 10, 10, 10]]


@pytest.mark.bulk
def test_an_error_in_a_kernel_that_host_code_makes_is_reported() -> None:
    Path("timer.h").write_text(TIMER)
    Path("deduced.cu").write_text(DEDUCED)
    result = run("check", "deduced.cu", "--format", "concise")
    assert result.stdout == "deduced.cu:7:105: error[cuda-error]: identifier `UNKNOWN` is undefined\n"


@pytest.mark.parametrize("compiler", ["nvcc", "nvrtc"])
def test_a_kernel_is_made_of_its_template(compiler: str) -> None:
    Path("plain.cu").write_text("template <int N> __global__ void add(int *x) { x[threadIdx.x] += N; }\n")
    launch = ["--block", "2", "--arg", "s32[2]=zeros"]
    assert "7 7" in run("run", "plain.cu", "--entry", "add<7>", *launch).stdout
    assert "identifier `seven` is undefined" in run("run", "plain.cu", "--entry", "add<seven>", *launch).stdout
    nothing = run("run", "plain.cu", *launch)
    assert nothing.exit_code == 2
    assert "a template needs its arguments, as `--entry 'gemm<128, float>'`" in nothing.output


@pytest.mark.usefixtures("nvcc")
def test_what_nvcc_refuses_is_reported() -> None:
    result = run("check", "wrong.cu")
    assert result.exit_code == 1
    assert "error[cuda-error]: identifier `s` is undefined\n --> wrong.cu:7:16" in result.stdout
    Path("missing.cu").write_text("#include <not/there.h>\n")
    result = run("check", "missing.cu", "--format", "concise")
    assert result.stdout == "missing.cu:1:1: error[cuda-error]: not/there.h: No such file or directory\n"


def test_what_is_missing_is_shown_where_it_belongs() -> None:
    Path("missing.cu").write_text(RIGHT.replace("x[i] = r;", "x[i] = r // a result"))
    result = run("check", "missing.cu", "--format", "concise")
    assert result.stdout == "missing.cu:7:16: error[cuda-error]: expected a `;`\n"
    Path("parallel.cu").write_text("__global__ void a() {}\n__global__ void b() { a<<<1, 32>>>(); }\n")
    result = run("run", "parallel.cu", "--entry", "b", "--block", "1")
    assert "help: a whole program may: `ptxlab run FILE --nvcc -rdc=true`" in result.output
    Path("host.cu").write_text("int main() { return 0; }\n")
    result = run("run", "host.cu", "--block", "1")
    assert (result.exit_code, "no function is `__global__`" in result.output) == (2, True)


@pytest.mark.bulk
def test_a_header_of_a_host_library_is_left_to_nvrtc(nvcc: None) -> None:
    Path("library.cu").write_text("#include <torch/extension.h>\nvoid f(torch::Tensor x);\n" + RIGHT)
    assert run("check", "library.cu").stdout == "no errors or warnings in library.cu\n"


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "can_find", lambda *names: False)
    result = run("check", "right.cu")
    assert (result.exit_code, "no compiler of CUDA C++ was found" in result.output) == (2, True)
    assert "pip install 'ptxlab[toolchain]'" in result.output


def test_options_of_the_project_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("headers").mkdir()
    Path("headers", "two.h").write_text("#define TWO 2.0f\n")
    Path("kernels").mkdir()
    Path("kernels", "two.cu").write_text('#include "two.h"\n' + RIGHT.replace("= r", "= r * TWO * BY"))
    Path("pyproject.toml").write_text('[tool.ptxlab]\ntarget = "sm_90a"\ncuda-options = ["-Iheaders", "-DBY=5"]\n')
    monkeypatch.chdir("kernels")
    result = run("run", "two.cu", *LAUNCH, "--arg", "s32=32")
    assert "0 20 40 60" in result.stdout, result.output
    Path("../pyproject.toml").write_text("[tool.ptxlab]\noptions = []\n")
    result = run("check", "two.cu")
    assert result.exit_code == 2
    assert "there is no key `options`; did you mean `cuda-options`?" in result.output


def test_options_without_a_source_to_compile_are_refused() -> None:
    Path("kernel.ptx").write_text(".version 8.0\n.target sm_80\n.entry k() { ret; }\n")
    for command in (["check"], ["run", "--block", "1"], ["python"]):
        result = run(*command, "kernel.ptx", "--", "-Iinclude")
        assert result.exit_code == 2
        assert "what follows `--` goes to the compiler of CUDA C++, and there is no `.cu` file" in result.output


# Functions that are inlined: the user's own line, and what calls it.

HEADER_TWICE = """\
#include <cuda_pipeline.h>
__global__ void k(const float* left, const float* right, float* out) {
    __shared__ float s[32], t[32];
    __pipeline_memcpy_async(&s[threadIdx.x], left + threadIdx.x, 4);
    __pipeline_memcpy_async(&t[threadIdx.x], right + threadIdx.x + 1, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x] * t[threadIdx.x];
}
"""


def test_the_line_that_calls_a_header_function_twice() -> None:
    Path("twice.cu").write_text(HEADER_TWICE)
    result = run("run", "twice.cu", "--block", "32", *["--arg", "f32[32]"] * 3, "--profile")
    assert "error[out-of-bounds]: read of 4 bytes outside of argument 1 (`right`)\n" in result.stdout
    assert "--> twice.cu:5:5\n" in result.stdout
    assert "= note: line 5 calls `__pipeline_memcpy_async` (cuda_pipeline_helpers.h:" in result.stdout
    # How many instructions a line has depends on the release of nvcc.
    rows = {tuple(line.split()[:3:2]) for line in result.stdout.split("\n")}
    assert rows >= {("4", "256"), ("5", "252")}, result.stdout  # bytes: one thread is out of bounds


HELPERS = """\
template <class T> struct Ring {
  T* s;
  __device__ void put(T v) {
    s[threadIdx.x] = v;
  }
  __device__ T get(int i) const { return s[i]; }
};
__global__ void k(int* out) {
  __shared__ int s[64];
  Ring<int> ring{s};
  ring.put(threadIdx.x);
  __syncthreads();
  int a = ring.get(63 - threadIdx.x);
  ring.put(a);
  auto last = [&] { return ring.get(63 - threadIdx.x); };
  out[threadIdx.x] = last();
}
"""


def test_a_race_in_helpers_names_their_callers() -> None:
    Path("helpers.cu").write_text(HELPERS)
    result = run("run", "helpers.cu", "--block", "64", "--arg", "s32[64]", "--profile")
    assert "s[threadIdx.x] = v; (called from line 11, line 14)\n" in result.stdout
    assert "nothing orders line 6 (called from line 13) before line 4 (called from line 14)" in result.stdout
    assert "missing between line 4 (called from line 14) and line 6 (called from line 15)" in result.stdout
    assert result.stdout.endswith("1 error in helpers.cu\n")
    result = run("run", "helpers.cu", "--block", "64", "--arg", "s32[64]", "--gpu", "H200", "--estimate")
    assert "helpers.cu:4 (called from line 11, line 14): s[threadIdx.x] = v;\n" in result.stdout


def test_lists_and_profiles_name_the_callers_of_helpers() -> None:
    Path("helpers.cu").write_text(HELPERS)
    given = ["helpers.cu", "--block", "64", "--arg", "s32[64]"]
    race = "error[data-race]: unsynchronized: one thread reads shared memory that another writes"
    assert run("run", *given, "--format", "concise").stdout == f"helpers.cu:4:5: {race} (called from line 14)\n"
    assert f"helpers.cu:4 (called from line 14): {race}\n" in run("debug", *given, "--command", "where").stdout


def test_what_instances_of_a_template_say_is_said_once() -> None:
    instances = "".join(f"template __global__ void k<{n}>(int*);\n" for n in (1, 3, 4))
    Path("instances.cu").write_text(
        'template <int N> __global__ void k(int* p) { static_assert(N < 2, "too large"); }\n' + instances
    )
    result = run("check", "instances.cu")
    assert "= note: in 2 instances of the template, the first of them with N=3\n" in result.stdout
    assert result.stdout.endswith("\n1 error in instances.cu\n")
