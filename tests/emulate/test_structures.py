"""Structures as arguments: tuples, dictionaries, records and bytes, laid out as the kernel reads them."""

import ctypes
from typing import Any, NamedTuple

import numpy as np
import pytest

import ptxlab
from tests.emulate.launching import kernel, launch, problem
from tests.tools import header

# struct { const float *x; float *y; int count; float factor; }
SCALE = """
mov.b64 %rd9, p;
ld.param.b64 %rd1, [p];
ld.param.b64 %rd2, [%rd9+8];
ld.param.b32 %r1, [p+16];
ld.param.b32 %r2, [p+20];
mov.u32 %r3, %tid.x;
setp.ge.u32 %p1, %r3, %r1;
@%p1 ret;
mul.wide.u32 %rd3, %r3, 4;
add.s64 %rd1, %rd1, %rd3;
add.s64 %rd2, %rd2, %rd3;
ld.global.f32 %f1, [%rd1];
mov.b32 %f2, %r2;
mul.f32 %f3, %f1, %f2;
st.global.f32 [%rd2], %f3;
ret;
"""
PARAMETER = ".align 8 .b8 p[24]"


class Scale(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    count: int
    factor: float


class Record(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint64), ("y", ctypes.c_uint64), ("count", ctypes.c_int), ("factor", ctypes.c_float)]


def ramp() -> np.ndarray:
    return np.arange(32, dtype=np.float32)


@pytest.mark.parametrize(
    "given",
    [
        lambda x, y: (x, y, 16, 2.0),
        lambda x, y: [(x, y), (16, (2.0,), ())],
        lambda x, y: Scale(x, y, 16, 2.0),
        lambda x, y: {"x": x, "y": y, "count": np.int64(16), "factor": np.float32(2)},
        lambda x, y: {20: 2.0, 0: (x, y), 16: 16},
        lambda x, y: {13: bytes(11), 0: (x, y), 16: b"\x10\0\0\0\0\0\0@"},
    ],
    ids=["tuple", "nested", "named", "dictionary", "offsets", "bytes at offsets"],
)
def test_ways_to_give_a_structure(given: Any) -> None:
    x, y = ramp(), np.zeros(32, np.float32)
    launch(SCALE, PARAMETER, [given(x, y)], block=32, on_error="strict")
    assert (y[:16] == 2 * x[:16]).all()
    assert not y[16:].any()


@pytest.mark.parametrize(
    "given",
    [
        np.array((0, 0, 0, 2), dtype=[("x", "u8"), ("y", "u8"), ("count", "i4"), ("factor", "f4")]),
        np.array([(0, 0, 0, 2)], dtype=[("x", "u8"), ("y", "u8"), ("count", "i4"), ("factor", "f4")])[0],
        Record(0, 0, 0, 2.0),
        bytes(24),
        np.zeros(6, np.uint32),
        (),
    ],
    ids=["array", "record", "ctypes", "bytes", "words", "nothing"],
)
def test_the_bytes_of_a_structure(given: Any) -> None:
    assert launch(SCALE, PARAMETER, [given], block=32, on_error="collect").diagnostics == []


def test_arrays_in_a_structure_are_tried_under_seeds_on_copies() -> None:
    x, y = ramp(), np.zeros(32, np.float32)
    launch(SCALE, PARAMETER, [(x, y, 32, 3.0)], block=32, seeds=3)
    assert (y == 3 * x).all()


def test_a_step_beyond_an_array_of_a_structure_names_it() -> None:
    found = problem(SCALE, PARAMETER, [(ramp(), np.zeros(4, np.float32), 16, 1.0)], block=32)
    assert found.code == "out-of-bounds"
    assert "argument 0 at +8 (`p`)" in ptxlab.render([found])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, 2, 3), "3 values for `p`, of which the kernel reads 4 fields"),
        ((ramp(), ramp(), ramp(), 1.0), "an array for the field at +16 b32 of `p`"),
        ((1.5, ramp(), 1, 1.0), "1.5 for the field at +0 pointer of `p`"),
        ({0: ramp(), 22: 1}, "1 at offset 22 is not within the 24 bytes of the parameter"),
        ((ramp(), ramp(), 1 << 40, 1.0), "1099511627776 does not fit `.b32`"),
        (np.zeros(5, np.uint32), "1 value for `p`, of which the kernel reads 4 fields"),
    ],
)
def test_a_wrong_structure_is_refused(given: Any, message: str) -> None:
    found = problem(SCALE, PARAMETER, [given], block=32)
    assert found.code == "bad-argument"
    assert message in found.message


def test_a_refusal_shows_the_layout_that_was_read() -> None:
    found = problem(SCALE, ".align 8 .b8 p[32]", [(1, 2, 3)], block=32)
    assert found.notes == (
        "of the 32 bytes of `p`, the kernel reads +0 pointer, +8 pointer, +16 b32, +20 f32; bytes 24..32 are not read",
    )


def test_fields_that_are_not_read_may_be_given() -> None:
    out = np.zeros(1, np.uint32)
    body = "ld.param.b32 %r1, [s+8]; ld.param.b64 %rd1, [p]; st.global.b32 [%rd1], %r1; ret;"
    for given in ((7,), (5, 6, 7), 7):
        launch(body.replace("; ", ";\n"), ".align 4 .b8 s[12], .u64 p", [given, out])
        assert out[0] == 7


def test_a_number_that_is_used_as_a_float_is_one() -> None:
    out = np.zeros(1, np.float32)
    body = """
    .reg .b16 %h<2>;
    ld.param.b16 %h1, [s];
    cvt.f32.f16 %f1, %h1;
    ld.param.b64 %rd1, [s+8];
    st.global.f32 [%rd1], %f1;
    ret;
    """
    for given in (3, 3.0, np.float16(3), np.int64(3), np.float16(3).tobytes()):
        for structure in ((given, out), {0: given, 8: out}):
            launch(body, ".align 8 .b8 s[16]", [structure])
            assert out[0] == 3


def test_an_array_that_is_indexed_reaches_to_the_next_field() -> None:
    out = np.zeros(4, np.uint32)
    body = """
    mov.b64 %rd1, s;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.param.b32 %r2, [%rd3];
    ld.param.b64 %rd4, [s+16];
    add.s64 %rd4, %rd4, %rd2;
    st.global.b32 [%rd4], %r2;
    ret;
    """
    launch(body, ".align 8 .b8 s[24]", [((5, 6, 7, 8), out)], block=4)
    assert out.tolist() == [5, 6, 7, 8]
    assert "+0 b32, +4 b32, +8 b32, +12 b32, +16 pointer" in problem(body, ".align 8 .b8 s[24]", [(1,)]).notes[0]


MAPS = f"""{header("8.6", "sm_90a")}
.visible .entry k(.param .align 64 .b8 p[320])
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<8>;
    .reg .pred %q;
    .shared .align 128 .b8 tile[128];
    .shared .align 8 .b64 full;
    mov.b64 %rd1, p;
    cvta.param.u64 %rd4, %rd1;
    add.s64 %rd2, %rd4, 192;
    prefetch.tensormap [%rd2];
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [full], 128;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd4, {{0, 4}}], [full];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [full], 0;
    @!%q bra WAIT;
    ld.param.b32 %r1, [p+128];
    ld.shared.u32 %r2, [tile];
    add.u32 %r2, %r2, %r1;
    st.shared.u32 [tile], %r2;
    fence.proxy.async.shared::cta;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {{0, 0}}], [tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}
"""


def test_tensor_maps_in_a_structure() -> None:
    x = np.arange(64, dtype=np.uint32).reshape(8, 8)
    y = np.zeros((8, 8), np.uint32)
    wide = np.zeros((8, 8), np.uint32)
    module = ptxlab.parse(MAPS)
    source, target = (ptxlab.tensor_map(array, (4, 8)) for array in (x, y))
    module["k"].launch(1, 1, [(source, 100, target)], device="cpu", on_error="strict")
    assert (y[:4].ravel()[1:] == x[4:].ravel()[1:]).all()
    assert y[0, 0] == x[4, 0] + 100
    with pytest.raises(ptxlab.KernelError, match=r"an array for the field at \+192 tensor map of `p`"):
        module["k"].launch(1, 1, [(source, 100, wide)], device="cpu")


INDEXED = f"""{header("8.6", "sm_90a")}
.visible .entry k(.param .align 64 .b8 p[SIZE])
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<10>;
    .reg .pred %q;
    .shared .align 128 .b8 tile[128];
    .shared .align 8 .b64 full;
    mov.b64 %rd1, p;
    add.s64 %rd7, %rd1, FIRST;
    cvta.param.u64 %rd8, %rd7;
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd2, %r1, 256;
    add.s64 %rd4, %rd8, %rd2;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [full], 128;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd4, {{0, 4}}], [full];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [full], 0;
    @!%q bra WAIT;
    add.s64 %rd5, %rd4, 128;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd5, {{0, 0}}], [tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    SIZES
    ret;
}}
"""
SIZES = "mul.wide.u32 %rd6, %r1, 4; add.s64 %rd9, %rd1, %rd6; ld.param.b32 %r2, [%rd9];"


@pytest.mark.parametrize("numbers", [0, 16], ids=["maps alone", "after numbers"])
def test_tensor_maps_that_a_register_chooses(numbers: int) -> None:
    arrays = [np.full((8, 8), at, np.uint32) for at in range(4)]
    maps = [ptxlab.tensor_map(array, (4, 8)) for array in arrays]
    text = INDEXED.replace("FIRST", str(4 * numbers)).replace("SIZES", SIZES if numbers else "")
    kernel = ptxlab.parse(text.replace("[SIZE]", f"[{4 * numbers + 512}]"))["k"]
    kernel.launch(2, 1, [(*range(numbers), *maps)], device="cpu", on_error="strict")
    assert (arrays[1][:4] == 0).all()
    assert (arrays[3][:4] == 2).all()


WORDS = f"""{header("8.6", "sm_90a")}
.visible .entry k(.param .u64 out, .param .align 64 .b8 maps[256])
{{
    .reg .b32 %r1;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    mov.b64 %rd3, maps;
    cvta.param.u64 %rd3, %rd3;
    add.u64 %rd3, %rd3, %rd2;
    add.u64 %rd1, %rd1, %rd2;
    ld.b32 %r1, [%rd3];
    st.global.b32 [%rd1], %r1;
    ret;
}}
"""


def test_tensor_maps_whose_words_are_read_are_given_by_their_offset() -> None:
    """A kernel that changes maps starts from one of the host's, which it copies word by word."""
    x, out = np.zeros((8, 32), np.float32), np.zeros(64, np.uint32)
    maps = {0: ptxlab.tensor_map(x, box=(4, 32)), 128: ptxlab.tensor_map(x, box=(8, 32))}
    ptxlab.parse(WORDS)["k"].launch(1, 64, [out, maps], device="cpu")
    assert [word >> 24 for word in out[[13, 45]]] == [31, 31]  # columns of a box, less 1
    assert [word & 255 for word in out[[14, 46]]] == [3, 7]  # rows


def test_a_tensor_map_that_the_kernel_copies_by_words() -> None:
    """As kernels do that change it afterwards: that the words are a map, only the argument says."""
    x, words = np.zeros((8, 8), np.uint32), np.zeros(16, np.uint64)
    body = "".join(f"ld.param.u64 %rd2, [p+{64 + 8 * at}];\nst.global.u64 [%rd1+{8 * at}], %rd2;\n" for at in range(16))
    map = ptxlab.tensor_map(x, (4, 8))
    launch(f"ld.param.u64 %rd1, [p];\n{body}ret;", ".align 64 .b8 p[192]", [{0: words, 64: map}])
    assert words.tobytes()[8:] == map.encode(0)[8:]  # the rest is the address of the tensor


# Block b adds 1 to each element of array b, through `unsigned **p`.
THROUGH = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %ctaid.x;
mul.wide.u32 %rd2, %r1, 8;
add.s64 %rd3, %rd1, %rd2;
ld.global.u64 %rd4, [%rd3];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd5, %r2, 4;
add.s64 %rd6, %rd4, %rd5;
ld.global.u32 %r3, [%rd6];
add.u32 %r3, %r3, 1;
st.global.u32 [%rd6], %r3;
ret;
"""


@pytest.mark.parametrize(
    ("parameter", "given"),
    [(".u64 p", ptxlab.PointerArray), (".align 8 .b8 p[16]", lambda arrays: (ptxlab.PointerArray(arrays),))],
    ids=["pointer", "structure"],
)
def test_arrays_of_pointers(parameter: str, given: Any) -> None:
    arrays = [np.full(size, size, np.uint32) for size in (8, 16, 8)]
    launch(THROUGH, parameter, [given([*arrays[:2], arrays[2][:8]])], grid=3, block=8, seeds=2)
    assert [(array == array.size + 1).sum() for array in arrays] == [8, 8, 8]


def test_structures_that_a_register_chooses_are_given_by_offset() -> None:
    """`struct { unsigned *x; unsigned step; } p[2]`: which bytes are pointers, the accesses do not show."""
    body = """
    mov.b64 %rd1, p;
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd2, %r1, 16;
    add.s64 %rd3, %rd1, %rd2;
    ld.param.u64 %rd4, [%rd3];
    ld.param.u32 %r2, [%rd3+8];
    st.global.u32 [%rd4], %r2;
    ret;
    """
    x, y = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    launch(body, ".align 8 .b8 p[32]", [{0: x, 8: 5, 16: y, 24: 7}], grid=2)
    assert (x[0], y[0]) == (5, 7)


def test_a_step_beyond_an_array_that_is_pointed_to_names_it() -> None:
    arrays = ptxlab.PointerArray([np.zeros(8, np.uint32), np.zeros(4, np.uint32)])
    assert "argument 0 (`p`), array 1" in ptxlab.render([problem(THROUGH, ".u64 p", [arrays], grid=2, block=8)])
    assert "the pointers of argument 0 (`p`)" in ptxlab.render(
        [problem(THROUGH, ".u64 p", [ptxlab.PointerArray(arrays[:1])], grid=2, block=8)]
    )
    found = problem(THROUGH, ".u64 p", [ptxlab.PointerArray([1.5])])
    assert found.message == "argument 0 of `k`: pointer 0 is not an array: 1.5"


def test_a_structure_for_a_number_is_that_number() -> None:
    assert kernel("ret;", ".u32 n").launch(1, 1, [(3,)], device="cpu").diagnostics == []


def test_a_tensor_map_whose_words_are_read_is_given_by_its_offset() -> None:
    """As kernels do that copy a map to shared memory and change it there."""
    body = """
mov.b64 %rd1, p;
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd1, %rd1, %rd3;
add.s64 %rd2, %rd2, %rd3;
ld.param.b32 %r2, [%rd1+0];
st.global.b32 [%rd2], %r2;
ret;
"""
    x, out = np.zeros((8, 16), np.float32), np.zeros(32, np.uint32)
    map = ptxlab.tensor_map(x, box=(4, 16))
    launch(body, ".align 64 .b8 p[128], .u64 out", [{0: map}, out], block=32, on_error="strict")
    assert out.any()
    sizes = out[8:10]  # in elements, less one
    assert sizes.tolist() == [15, 7]


def test_values_of_which_those_that_are_read_are_not_clear_are_refused() -> None:
    body = "ld.param.u32 %r0, [p+8]; ld.param.u64 %rd0, [p+16]; st.global.u32 [%rd0], %r0;"
    found = problem(body, ".align 8 .b8 p[24]", [(1, 2, 3, np.zeros(1, np.uint32))], block=1)
    assert found.message.endswith("4 values for `p`, and which of them the kernel reads is not clear")
