"""Surfaces: loads, stores and reductions, out of bounds and in the format of a surface, as on an H200."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from tests.tools import header


def run(body: str, surface: Any, block: int = 1, words: tuple[int, ...] = ()) -> list[int]:
    """Run a kernel on a surface: %r0, %r1 and so on have these words, %r8 and %r9 are stored."""
    loads = "".join(f"mov.b32 %r{number}, {word};\n" for number, word in enumerate(words))
    text = f""".entry k(.param .u64 s, .param .u64 out) {{
    .reg .b64 %rd<6>; .reg .b32 %r<10>; .reg .b32 %t;
    ld.param.u64 %rd0, [s]; ld.param.u64 %rd1, [out]; mov.u32 %t, %tid.x; mov.b32 %r8, 0; mov.b32 %r9, 0;
{loads}
    {body}
    st.global.v2.b32 [%rd1], {{%r8, %r9}};
    ret;
}}
"""
    out = np.zeros(2, np.uint32)
    module = ptxlab.parse(header("8.1", "sm_90") + text, name="k.ptx")
    module["k"].launch(grid=1, block=block, args=[surface, out])
    return [int(word) for word in out]


def failure(body: str, surface: Any, **how: Any) -> tuple[str, str]:
    with pytest.raises(ptxlab.KernelError) as raised:
        run(body, surface, **how)
    found = raised.value.diagnostics[0]
    return found.code, found.message


def image() -> Any:
    return np.arange(15, dtype=np.uint32).reshape(3, 5)


def test_loads_and_stores_are_of_the_array() -> None:
    array = image()
    body = "suld.b.2d.v2.b32.trap {%r8, %r9}, [%rd0, {%r0, %r1}]; sust.b.2d.b32.trap [%rd0, {%r0, %r1}], %r2;"
    assert run(body, ptxlab.Surface(array), words=(8, 1, 99)) == [7, 8]
    assert array[1].tolist() == [5, 6, 99, 8, 9]
    assert np.array_equal(array[::2], image()[::2])


@pytest.mark.parametrize(("mode", "found"), [("clamp", 14), ("zero", 0)])
def test_what_is_out_of_bounds(mode: str, found: int) -> None:
    array = image()
    body = f"suld.b.2d.b32.{mode} %r8, [%rd0, {{%r0, %r1}}]; sust.b.2d.b32.{mode} [%rd0, {{%r0, %r2}}], %r3;"
    assert run(body, ptxlab.Surface(array), words=(20, 7, -1, 99)) == [found, 0]
    assert array[0, 4] == (99 if mode == "clamp" else 4)


def test_trap_is_reported_with_the_coordinate() -> None:
    body = "suld.b.2d.b32.trap %r8, [%rd0, {%r0, %r1}];"
    assert failure(body, ptxlab.Surface(image()), words=(20, 0)) == (
        "out-of-bounds",
        "access to a surface outside of its 20 bytes of a row: the coordinate is 20",
    )
    assert failure(body, ptxlab.Surface(image()), words=(4, -1)) == (
        "out-of-bounds",
        "access to a surface outside of its 3 rows: the coordinate is -1",
    )
    code, message = failure(body, ptxlab.Surface(image()), words=(6, 0))
    assert (code, message) == ("misaligned-access", "access to byte 6 of a surface row, not a multiple of 4")


def test_layers_and_slices() -> None:
    array = np.zeros((2, 3, 4), np.uint32)
    run(
        "sust.b.a2d.b32.trap [%rd0, {%r0, %r1, %r2, %r2}], %r3;", ptxlab.Surface(array, geometry="a2d"), 1, (1, 8, 2, 5)
    )
    run("sust.b.3d.b32.trap [%rd0, {%r0, %r1, %r2, %r2}], %r3;", ptxlab.Surface(array), 1, (4, 1, 1, 6))
    assert np.argwhere(array).tolist() == [[1, 1, 1], [1, 2, 2]]


@pytest.mark.parametrize(
    ("dtype", "value", "stored"),
    [
        ("uint8", 300, 255),
        ("int8", -200, -128),
        ("int16", 40000, 32767),
        ("uint32", 0xDEADBEEF, 0xDEADBEEF),
        ("float16", int(np.float32(300.7).view(np.uint32)), 300.5),
        ("float16", int(np.float32(1e6).view(np.uint32)), 65504.0),
    ],
)
def test_texels_are_stored_in_the_format_of_the_surface(dtype: str, value: int, stored: float) -> None:
    array = np.zeros((3, 5, 2), dtype)
    body = "sust.p.2d.v2.b32.trap [%rd0, {%r0, %r1}], {%r2, %r3};"
    run(body, ptxlab.Surface(array, geometry="2d"), words=(4, 2, value, value))
    assert array[2, 4].tolist() == [stored, stored]
    assert np.count_nonzero(array) == 2


def test_reductions() -> None:
    array = image().astype(np.int32)
    run("sured.b.add.2d.s32.clamp [%rd0, {%r0, %r1}], %r2;", ptxlab.Surface(array), 64, (4, 1, 3))
    assert array[1, 1] == 6 + 3 * 64
    run("sured.p.min.2d.b32.clamp [%rd0, {%r0, %r1}], %r2;", ptxlab.Surface(array), 1, (2, 2, -7))
    assert array[2, 2] == -7


def test_a_race_of_two_stores_is_found_and_its_twin_is_not() -> None:
    store = "sust.b.1d.b32.trap [%rd0, {%r0}], %t;"
    code, _ = failure(store, ptxlab.Surface(np.zeros(64, np.uint32)), block=64, words=(4,))
    assert code == "data-race"
    array = np.zeros(64, np.uint32)
    run("shl.b32 %r0, %t, 2; " + store, ptxlab.Surface(array), 64, (4,))
    assert array.tolist() == list(range(64))


def test_arrays_that_a_surface_cannot_be_of() -> None:
    with pytest.raises(ValueError, match="a surface needs a NumPy array without gaps"):
        ptxlab.Surface(np.zeros((4, 8), np.uint32)[:, ::2])
    constant = np.zeros((4, 4), np.uint32)
    constant.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ptxlab.Surface(constant)
