"""What may be an argument, and what is refused before anything runs; arrays that are empty, read-only or one memory."""

import numpy as np
import pytest

import ptxlab
from tests.emulate.launching import launch, problem

STORE = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, 7;
st.global.u32 [%rd1], %r1;
ret;
"""


@pytest.mark.parametrize(
    ("parameters", "args", "text"),
    [
        (".u64 p", [], "`k` takes 1 argument, not 0"),
        (".u64 p", [1, 2], "`k` takes 1 argument, not 2"),
        ("", [1], "`k` takes 0 arguments, not 1"),
        (".u32 n", [1 << 32], "argument 0 of `k`: 4294967296 does not fit `.u32`"),
        (".s32 n", [1 << 31], "2147483648 does not fit `.s32`"),
        (".u8 n", [256], "256 does not fit `.u8`"),
        (".u32 n", [1.5], "1.5 is not an integer, which `.u32` needs"),
        (".u32 n", ["four"], "str is not a number, array or bytes"),
        (".u32 n", [None], "`None` is a null pointer, which needs a `.u64` parameter, this one is `.u32`"),
        (".align 8 .b8 s[16]", [None], "the parameter is an aggregate of 16 bytes"),
        (".f64 x", [None], "`None` is a null pointer, which needs a `.u64` parameter, this one is `.f64`"),
        (".f16 x", [1e9], "argument 0"),
        (".f32 x", [10**400], "argument 0"),
        (".u32 n", [np.zeros(4, "f4")], "an array needs a 64-bit parameter"),
        (".u64 p", [np.zeros((4, 4), "f4")[:, ::2]], "the array has gaps"),
        (".u64 p", [np.array([object()])], "an array of Python objects"),
        (".u64 p", [np.zeros(3, ">f4")], "the bytes of an array of >f4 are in an order that no GPU reads"),
        (".f32 a", [1e39], "the number is too large for `.f32`"),
        (".f16 a", [65520.0], "the number is too large for `.f16`"),
        (".f64 a", [10**400], "the number is too large for `.f64`"),
        (".align 4 .b8 s[12]", [b"1"], "1 byte for a parameter of 12"),
        (".align 4 .b8 s[12]", [b"12345"], "5 bytes for a parameter of 12"),
        (".align 4 .b8 s[12]", [3], "the parameter is an aggregate of 12 bytes"),
    ],
)
def test_a_wrong_argument_is_refused(parameters: str, args: list[object], text: str) -> None:
    found = problem("ret;", parameters, args)
    assert found.code == "bad-argument"
    assert text in found.message
    assert found.line is not None


def test_all_wrong_arguments_are_reported_at_once() -> None:
    with pytest.raises(ptxlab.KernelError) as caught:
        launch("ret;", ".u32 a, .u64 b, .u32 c", [1 << 32, 5, 1 << 32])
    assert [found.message.split(":")[0] for found in caught.value.diagnostics] == [
        "argument 0 of `k`",
        "argument 2 of `k`",
    ]


@pytest.mark.parametrize("null", [None, 0])
def test_none_is_a_null_pointer(null: int | None) -> None:
    out = np.zeros(4, "u4")
    body = """
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    setp.eq.u64 %p1, %rd2, 0;
    @%p1 st.global.u32 [%rd1], 7;
    ld.param.u64 %rd3, [t];
    ld.global.u64 %rd2, [%rd3];
    setp.eq.u64 %p1, %rd2, 0;
    @%p1 st.global.u32 [%rd1+4], 8;
    ret;
    """
    launch(body, ".u64 p, .b64 q, .u64 t", [out, null, ptxlab.PointerArray([null, out])])
    assert out.tolist() == [7, 8, 0, 0]
    assert problem(STORE, ".u64 p", [null]).code == "out-of-bounds"


def test_numbers_of_every_kind_are_arguments() -> None:
    out = np.zeros(4, "u4")
    body = """
    ld.param.u64 %rd1, [p];
    ld.param.b32 %r1, [a];
    ld.param.b32 %r2, [b];
    ld.param.b32 %r3, [c];
    st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r3};
    ret;
    """
    launch(body, ".u64 p, .u32 a, .s32 b, .f32 c", [out, np.uint8(3), True, np.float64(0.5)])
    assert out.tolist() == [3, 1, 0x3F000000, 0x3F000000]


def test_an_empty_array_has_no_memory() -> None:
    assert launch("ret;", ".u64 p", [np.zeros(0, "f4")]).diagnostics == []
    found = problem(STORE, ".u64 p", [np.zeros(0, "f4")])
    assert found.code == "out-of-bounds"
    assert "argument 0 (`p`) has 0 bytes" in found.notes[0]


def test_a_read_only_array_is_not_written() -> None:
    array = np.zeros(4, "u4")
    array.flags.writeable = False
    found = problem(STORE, ".u64 p", [array])
    assert found.code == "read-only-write"
    assert "argument 0 (`p`), which is read-only" in found.message
    assert array.tolist() == [0, 0, 0, 0]
    array.flags.writeable = True
    assert launch(STORE, ".u64 p", [array]).diagnostics == []
    assert array.tolist() == [7, 0, 0, 0]


def test_an_array_is_written_though_a_view_of_it_may_not_be() -> None:
    array = np.zeros(4, "u4")
    view = array[:2]
    view.flags.writeable = False
    for given in ([array, view], [array, array, view]):
        array[:] = 0
        parameters = ", ".join(f".u64 {name}" for name in "pqr"[: len(given)])
        assert launch(STORE, parameters, given).diagnostics == []
        assert array.tolist() == [7, 0, 0, 0]


def test_a_store_that_writes_elsewhere_first_still_finds_a_read_only_array() -> None:
    """The memory that an instruction remembers as its last is memory that it may write."""
    wet, dry = np.zeros(4, "u4"), np.zeros(4, "u4")
    dry.flags.writeable = False
    body = """
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    ld.global.u32 %r2, [%rd2];
    selp.b64 %rd3, %rd1, %rd2, %p1;
    st.global.u32 [%rd3], %r1;
    ret;
    """
    found = problem(body, ".u64 p, .u64 q", [wet, dry], block=2)
    assert found.code == "read-only-write"
    assert dry.tolist() == [0, 0, 0, 0]


def test_arrays_that_overlap_are_one_memory() -> None:
    array = np.zeros(8, "u4")
    body = """
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    sub.u64 %rd3, %rd2, %rd1;
    st.global.u64 [%rd1], %rd3;
    ret;
    """
    launch(body, ".u64 p, .u64 q", [array, array[2:4]])
    assert array[0] == 8
    assert "overlaps argument 0 (`p`) in part" in problem(body, ".u64 p, .u64 q", [array[:5], array[3:]]).message


PRECISION = """
ld.param.u64 %rd1, [p];
cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd2, %r1, {bytes}, %rd1;
ld.global.{type} %{register}, [%rd2];
st.global.{type} [%rd2], %{register};
ret;
"""
SINGLE, DOUBLE = (
    PRECISION.format(bytes=4, type="f32", register="f1"),
    PRECISION.format(bytes=8, type="f64", register="rd3"),
)


def test_doubles_for_a_kernel_of_single_precision() -> None:
    doubles = np.zeros(2)
    (found,) = launch(SINGLE, ".u64 p", [doubles]).diagnostics
    assert (found.level, found.code) == ("warning", "mistyped-array")
    assert found.message == "argument 0 of `k` is an array of float64, and the kernel accesses it as `.f32`"
    assert launch(SINGLE, ".u64 p", [doubles], detectors="data-race").diagnostics == []
    with pytest.raises(ptxlab.KernelError, match="mistyped-array"):
        launch(SINGLE, ".u64 p", [doubles], on_error="strict")


@pytest.mark.parametrize("dtype", ["i4", "u4"])
def test_small_integers_for_a_kernel_of_single_precision(dtype: str) -> None:
    (found,) = launch(SINGLE, ".u64 p", [np.arange(2, dtype=dtype)]).diagnostics
    assert (found.level, found.code) == ("warning", "mistyped-array")
    assert found.labels[0].text == "the bits of an integer are read as a float"
    for others in (np.zeros(2, dtype), np.ones(2, "f4").view(dtype), -np.ones(2, "f4").view(dtype)):
        assert launch(SINGLE, ".u64 p", [others]).diagnostics == []


def test_arrays_of_the_type_that_is_accessed_and_numbers() -> None:
    assert launch(SINGLE, ".u64 p, .f64 x", [np.zeros(2, "f4"), np.float64(1)]).diagnostics == []
    assert launch(DOUBLE, ".u64 p", [np.zeros(2)]).diagnostics == []
