"""Arguments of a launch: structures and numbers become what the parameters say, wrong ones are reported at the call."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.author import (
    b32,
    bf16,
    f16,
    f16x2,
    f32,
    f64,
    kernel,
    pointer,
    ptx,
    s16,
    struct,
    tensor_map,
    u8,
    u32,
)
from ptxlab.report import KernelError, PtxError


class Point(struct):
    x: f64
    y: f16


class Options(struct):
    count: u32
    corner: Point
    shift: s16
    scale: bf16


@kernel(target="sm_90")
def read(out: pointer[f64], options: Options, factor: bf16):
    out[0] = ptx.cvt.rn.f64.u32(options.count)
    out[1] = options.corner.x
    out[2] = ptx.cvt.f64.f16(options.corner.y)
    out[3] = ptx.cvt.rn.f64.s16(options.shift)
    out[4] = ptx.cvt.f64.bf16(options.scale * factor)


def test_a_structure_is_an_argument() -> None:
    out = np.zeros(5)
    read.launch(grid=1, block=1, args=[out, Options(7, Point(0.1, 0.2), -3, 1.5), 0.1])
    tenth = ml_dtypes.bfloat16(0.1)
    assert out.tolist() == [7, 0.1, float(np.float16(0.2)), -3, float(ml_dtypes.bfloat16(1.5) * tenth)]


@kernel
def copy(x: pointer[f32], halves: pointer[f16x2], bits: pointer[b32], bytes: pointer[u8], n: u32):
    i = ptx.tid.x
    x[i] = x[i] + 1


def arguments(**others: Any) -> list[Any]:
    given = {
        "x": np.zeros(4, np.float32),
        "halves": np.zeros(8, np.float16),
        "bits": np.zeros(2, np.float64),
        "bytes": np.zeros(2, np.int64),
        "n": 4,
    }
    return list((given | others).values())


class Scaled(struct):
    unread: u32
    x: pointer[f32]
    y: pointer[f32]
    corner: Point


def test_a_tuple_of_arrays_and_numbers_is_a_structure() -> None:
    @kernel
    def scale(p: Scaled):
        p.y[ptx.tid.x] = p.x[ptx.tid.x] * ptx.cvt.rn.f32.f64(p.corner.x)

    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    for corner in ((2.0, 1.0), Point(2.0, 1.0)):
        y[:] = 0
        scale.launch(1, 32, [(7, x, y, corner)], device="cpu")
        assert (y == 2 * x).all()
    with pytest.raises(KernelError, match="1 value for the fields `unread`, `x`, `y`, `corner` of `Scaled`"):
        scale.launch(1, 32, [(x,)], device="cpu")
    with pytest.raises(KernelError, match="elements of float64 have 8 bytes"):
        scale.launch(1, 32, [(7, x.astype(float), y, (2.0, 1.0))], device="cpu")


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"x": np.zeros(4, np.uint32), "halves": np.zeros(8, np.uint16)},
        {"halves": np.zeros(4, np.uint32)},  # a pair is a word
        {"x": np.zeros(8, np.uint16)},
        {"x": np.zeros(16, np.uint8)},
    ],
)
def test_memory_of_another_kind_is_memory(others: dict[str, Any]) -> None:
    given = arguments(**others)
    copy.launch(grid=1, block=4, args=given)
    assert given[0].view(np.float32).tolist() == [1] * 4


class Arrays(struct):
    x: pointer[f32]
    bias: pointer[f32]


@kernel
def add_bias(arrays: Arrays, bias: pointer[f32]):
    with ptx.when(bias.address != 0):
        arrays.x[0] = arrays.x[0] + bias[0]


def test_none_is_a_null_pointer() -> None:
    x = np.ones(1, np.float32)
    add_bias.launch(grid=1, block=1, args=[(x, None), None])
    assert x.tolist() == [1]
    add_bias.launch(grid=1, block=1, args=[(x, x), x])
    assert x.tolist() == [2]


@pytest.mark.parametrize(
    ("args", "message", "shown"),
    [
        (
            arguments(x=np.zeros(4)),
            "argument 0 of `copy`: elements of float64 have 8 bytes, those of `pointer[f32]` have 4",
            "x: pointer[f32]",
        ),
        (
            arguments(x=np.arange(4)),
            "argument 0 of `copy`: elements of int64 have 8 bytes, those of `pointer[f32]` have 4",
            "x: pointer[f32]",
        ),
        (
            arguments(halves=np.zeros(8, np.float32)),
            "argument 1 of `copy`: elements of float32 have 4 bytes, those of `pointer[f16x2]` have 2",
            "halves: pointer[f16x2]",
        ),
        (arguments(n=1.5), "argument 4 of `copy`: 1.5 is not an integer, which `.u32` needs", "n: u32"),
        (arguments(n=None), "argument 4 of `copy`: `None` is a null pointer, and the parameter is a `u32`", "n: u32"),
        (arguments(n="1"), "argument 4 of `copy`: str is not a number, array or bytes", "n: u32"),
        (
            arguments()[:-1],
            "`copy` takes 5 arguments, not 4",
            "def copy(x: pointer[f32], halves: pointer[f16x2], bits: pointer[b32], bytes: pointer[u8], n: u32):",
        ),
    ],
)
def test_refused(args: list[Any], message: str, shown: str) -> None:
    with pytest.raises(KernelError) as raised:
        copy.launch(grid=1, block=4, args=args)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message, found.file) == ("bad-argument", message, __file__)
    assert [label.span.text for label in found.labels] == ["copy.launch(grid=1, block=4, args=args)", shown]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Point(1.0, 2.0), "a `Point` is given, expected a `Options`"),
        (Options(1.5, Point(1, 2), 3, 4), "the field `count` is 1.5, expected a number of `u32`"),
        (Options(1 << 32, Point(1, 2), 3, 4), "the field `count` is 4294967296, which does not fit into `u32`"),
    ],
)
def test_structures_refused(options: Any, message: str) -> None:
    with pytest.raises(KernelError) as raised:
        read.launch(grid=1, block=1, args=[np.zeros(5), options, 1.0])
    assert raised.value.diagnostics[0].message == f"argument 1 of `read`: {message}"


def test_parameters_need_types() -> None:
    @kernel
    def untyped(x):
        pass

    with pytest.raises(PtxError, match="parameter `x` of `untyped` has no type"):
        str(untyped)


def test_compile_time_arguments_have_names() -> None:
    @kernel
    def tiled(*, TILE: int = 4):  # noqa: N803
        ptx.shared(f32, TILE)

    assert tiled.specialize(TILE=8).name == "tiled_TILE_8"
    assert tiled.specialize(TILE=8) is tiled.specialize(TILE=8)
    assert "tile[8]" in str(tiled.specialize(TILE=8))
    with pytest.raises(PtxError, match="has no compile-time argument `TILES`"):
        str(tiled.specialize(TILES=8))


def test_an_array_where_a_tensor_map_belongs() -> None:
    @kernel(target="sm_90")
    def prefetch(source: tensor_map):
        ptx.prefetch.tensormap(source.generic)

    with pytest.raises(KernelError) as raised:
        prefetch.launch(grid=1, block=1, args=[np.zeros((8, 16), np.float32)])
    (found,) = raised.value.diagnostics
    assert found.message.endswith("`source` is a tensor map, and got an array")
    assert [help.text for help in found.helps] == [
        "describe the array and the box that is copied: `ptxlab.tensor_map(x, box=(rows, columns))`, on the command "
        "line `map:f16[64,64]=random,box=8x64`"
    ]
