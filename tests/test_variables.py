"""Variables of a module as the host sees them: `Module.set` and `Module.get`."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from ptxlab.author import Module, f32, kernel, pointer, ptx, u32
from tests.tools import is_there

TABLES = """
.version 8.3
.target sm_80
.address_size 64
.const .align 4 .f32 filter[3] = {1.0, 2.0, 0.5};
.const .align 8 .b8 bytes[24];
.global .u32 launches = 40;
.global .s16 steps[2][3] = {{1, -2}, {3}};
.global .v4 .f32 corners[2];
.global .f16x2 halves[2];
.global .b128 wide;
.global .u64 where = launches;
.global .u32 open[] = {7, 8};
.extern .global .u32 elsewhere[];
.shared .u32 tile[32];
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    mov.u64 %rd3, filter;
    add.u64 %rd3, %rd3, %rd2;
    ld.const.f32 %f1, [%rd3];
    add.u64 %rd4, %rd1, %rd2;
    st.global.f32 [%rd4], %f1;
    atom.global.add.u32 %r2, [launches], 1;
    ret;
}
"""


def tables() -> ptxlab.ir.Module:
    return ptxlab.parse(TABLES, name="tables.ptx")


def run(module: ptxlab.ir.Module, **how: Any) -> list[float]:
    out = np.zeros(3, np.float32)
    module["k"].launch(1, 3, [out], **how)
    return [float(value) for value in out]


def test_before_a_launch_variables_are_what_the_ptx_says() -> None:
    module = tables()
    found = {name: module.get(name) for name in ("filter", "bytes", "launches", "steps", "corners", "halves", "wide")}
    assert {name: (array.dtype.name, array.shape) for name, array in found.items()} == {
        "filter": ("float32", (3,)),
        "bytes": ("uint8", (24,)),
        "launches": ("uint32", ()),
        "steps": ("int16", (2, 3)),
        "corners": ("float32", (2, 4)),
        "halves": ("float16", (2, 2)),
        "wide": ("uint64", (2,)),
    }
    assert found["filter"].tolist() == [1, 2, 0.5]
    assert found["steps"].tolist() == [[1, -2, 0], [3, 0, 0]]
    assert found["launches"] == 40
    assert module.get("open").tolist() == [7, 8]


def test_what_is_set_is_what_kernels_read_and_what_they_write_is_read() -> None:
    module = tables()
    module.set("filter", np.array([3, 4, 5], np.float32))
    assert run(module) == [3, 4, 5]
    assert module.get("launches") == 43
    module.set("filter", [0.25, 7, -1])
    module.set("launches", 10)
    assert run(module) == [0.25, 7, -1]
    assert module.get("launches") == 13
    assert tables().get("launches") == 40


def test_what_get_returns_is_a_copy() -> None:
    module = tables()
    module.get("filter")[:] = 9
    before = module.get("launches")
    assert run(module) == [1, 2, 0.5]
    assert before == 40


def test_every_seed_begins_with_what_was_set() -> None:
    module = tables()
    module.set("launches", 100)
    run(module, seeds=4)
    assert module.get("launches") == 103
    module.set("filter", [1, 1, 1])
    assert run(module, seeds=4) == [1, 1, 1]
    assert module.get("launches") == 106


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("bytes", np.arange(6, dtype=np.float32), np.arange(6, dtype=np.float32).tobytes()),
        ("bytes", np.ones((2, 6), ml_dtypes.bfloat16), b"\x80\x3f" * 12),
        ("bytes", b"x" * 24, b"x" * 24),
        ("bytes", list(range(24)), bytes(range(24))),
        ("launches", -1, b"\xff" * 4),
        ("launches", np.array([-1], np.int32), b"\xff" * 4),
        ("launches", True, b"\1\0\0\0"),
        ("steps", np.arange(6, dtype=np.int16), np.arange(6, dtype=np.int16).tobytes()),
        ("steps", np.arange(6, dtype=">i2").reshape(2, 3), np.arange(6, dtype=np.int16).tobytes()),
        ("steps", [[1, 2, 3], [4, 5, 6]], np.arange(1, 7, dtype=np.int16).tobytes()),
        ("corners", np.ones((4, 2), np.float32).T, np.ones(8, np.float32).tobytes()),
        ("filter", [1, float("inf"), float("nan")], np.array([1, np.inf, np.nan], np.float32).tobytes()),
        ("where", 5, b"\5" + bytes(7)),
    ],
)
def test_values_that_fit(name: str, value: Any, expected: bytes) -> None:
    module = tables()
    module.set(name, value)
    assert module.get(name).tobytes() == expected


def test_bytes_have_the_type_that_is_said() -> None:
    module = tables()
    module.set("bytes", [1, 2, 3], dtype=np.float64)
    assert module.get("bytes", dtype="f8").tolist() == [1, 2, 3]
    point = np.dtype([("x", "f4"), ("count", "i4")])
    module.set("bytes", [(0.5, 1), (1.5, -2), (2.5, 3)], dtype=point)
    assert module.get("bytes", dtype=point)["count"].tolist() == [1, -2, 3]
    module.set("launches", -3)
    assert module.get("launches", dtype="i4") == -3
    module.set("filter", np.array([1.0, 2.0, 3.0]), dtype="f4")
    assert module.get("filter").tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("filter", [1, 2], "`filter` is float32[3], the value float32[2]"),
        ("filter", np.zeros(4, np.float32), "`filter` is float32[3], the value float32[4]"),
        ("filter", np.zeros(3), "`filter` is `.f32`, the array holds float64"),
        ("filter", np.zeros(3, np.int32), "`filter` is `.f32`, the array holds int32"),
        ("filter", [1, 2, 1e39], "1e+39 does not fit `filter`, which holds float32"),
        ("filter", "abc", "the value for `filter` is not an array of numbers of up to 64 bits"),
        ("filter", None, "the value for `filter` is not an array of numbers of up to 64 bits"),
        (
            "filter",
            [[1], [2, 3]],
            "the value for `filter` is not an array of float32: setting an array element with a se",
        ),
        ("bytes", [1.0, 2.0, 3.0], "`bytes` takes integers, `.b8`, not floats"),
        ("bytes", [1, 2, 3], "`bytes` is uint8[24], the value uint8[3]"),
        ("bytes", b"abc", "`bytes` has 24 bytes, the value 3"),
        ("bytes", np.array([None] * 3), "`bytes` is `.b8`, the array holds object"),
        ("launches", 1.5, "`launches` takes integers, `.u32`, not floats"),
        ("launches", 1 << 32, "4294967296 does not fit `launches`, which holds uint32"),
        ("launches", 1 << 70, "the value for `launches` is not an array of numbers of up to 64 bits"),
        ("launches", np.zeros(1, np.float32), "`launches` is `.u32`, the array holds float32"),
        ("launches", [1, 2], "`launches` is uint32, the value uint32[2]"),
        ("steps", [[0, 1 << 15, 0]] * 2, "32768 does not fit `steps`, which holds int16"),
        ("steps", np.zeros((3, 2), np.int16), "`steps` is int16[2,3], the value int16[3,2]"),
        ("elsewhere", 1, "`elsewhere` has no memory here: its size is left to another module"),
        ("tile", 1, "`tile` is a `.shared` variable; the host sets `.global` and `.const` ones"),
        ("fliter", [1, 2, 3], "the module has no variable `fliter`"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(name: str, value: Any, message: str) -> None:
    module = tables()
    with pytest.raises(ptxlab.KernelError) as refused:
        module.set(name, value)
    (found,) = refused.value.diagnostics
    assert found.code == "bad-argument"
    assert found.message.startswith(message)
    assert (name == "fliter") == any(help.text == "did you mean `filter`?" for help in found.helps)
    assert run(module) == [1, 2, 0.5]


def test_wrong_questions() -> None:
    module = tables()
    with pytest.raises(ptxlab.KernelError, match="`bytes` has 24 bytes, no whole number of"):
        module.get("bytes", dtype=[("x", "f4"), ("y", "u1")])
    with pytest.raises(ptxlab.KernelError, match="which is not a type of numbers"):
        module.get("bytes", dtype=object)
    with pytest.raises(ValueError, match="each of the two has its own"):
        module.get("filter", device="both")
    with pytest.raises(ValueError, match="expected one of 'auto', 'cpu'"):
        module.get("filter", device="tpu")
    with pytest.raises(ptxlab.KernelError, match="it has none"):
        ptxlab.parse(".version 8.0\n.target sm_80\n").get("x")
    with pytest.raises(ptxlab.PtxError):
        ptxlab.parse(".version 8.0\n.target sm_80\n.global .u32 a = b;\n").get("a")


def test_a_module_without_kernels_has_variables() -> None:
    module = ptxlab.parse(".version 8.0\n.target sm_80\n.global .u32 a = 5;\n")
    assert module.get("a") == 5


@pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")
def test_variables_of_cuda() -> None:
    module = ptxlab.cuda("""
        __constant__ float filter[3];
        namespace image { __device__ int runs = 7; }
        extern "C" __global__ void k(float* out) {
            out[threadIdx.x] = filter[threadIdx.x];
            if (threadIdx.x == 0) image::runs++;
        }
    """)
    module.set("filter", np.array([1, 2, 4], np.float32))
    assert run(module) == [1, 2, 4]
    for name in ("image::runs", "runs"):
        with pytest.raises(ptxlab.KernelError, match="did you mean `_ZN5image4runsE`"):
            module.get(name)
    assert module.get("_ZN5image4runsE") == 8
    assert module.get("filter", dtype=np.float32).tolist() == [1, 2, 4]


def test_variables_of_a_kernel_in_python() -> None:
    @kernel
    def scale(x: pointer[f32]) -> None:
        table = ptx.constant(f32, 4, name="table")
        calls = ptx.global_(u32, 1, name="calls")
        ptx.red.global_.add.u32(calls, 1)
        x[ptx.tid.x] = table[ptx.tid.x] * x[ptx.tid.x]

    x = np.ones(4, np.float32)
    scale.set("table", [1, 2, 3, 4])
    scale.launch(1, 4, [x])
    assert x.tolist() == [1, 2, 3, 4]
    assert scale.get("calls") == [4]


def test_a_kernel_that_is_added_finds_what_was_set() -> None:
    module = Module()
    table = module.declare(".const .f32 table[2];")

    @module.kernel
    def first(x: pointer[f32]) -> None:
        x[ptx.tid.x] = ptx.ld.const.f32(table)

    module.set("table", [5, 6])

    @module.kernel
    def second(x: pointer[f32]) -> None:
        x[ptx.tid.x] = ptx.ld.const.f32(table) + 1.0

    x = np.zeros(2, np.float32)
    module["second"].launch(1, 2, [x])
    assert x.tolist() == [6, 6]
    assert module.get("table").tolist() == [5, 6]
