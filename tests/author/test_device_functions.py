"""Functions that kernels call, and structures that are passed to them."""

import struct as struct_module

import numpy as np

from ptxlab.author import (
    f32,
    function,
    kernel,
    pointer,
    ptx,
    s32,
    struct,
    u32,
)


@function
def squared_distance(x: f32, y: f32) -> tuple[f32, u32]:
    """Its square, and whether x is smaller."""
    difference = x - y
    return difference * difference, ptx.selp.u32(1, 0, x < y)


class Options(struct):
    scale: f32
    out: pointer[f32]
    count: u32


@kernel
def distances(x: pointer[f32], options: Options, smaller: pointer[u32]):
    i = ptx.tid.x
    with ptx.when(i < options.count):
        square, less = squared_distance(x[i], options.scale)
        options.out[i] = square
        smaller[i] = less


def test_device_functions_and_structures() -> None:
    assert "call.uni (result), squared_distance, (argument_0, argument_1);" in str(distances)
    assert str(distances).count(".func") == 1
    assert ".param .align 8 .b8 options[24]" in str(distances)


class Scaling(struct):
    factor: f32
    shift: s32


def test_a_structure_is_passed_as_bytes() -> None:
    @kernel
    def scale(x: pointer[f32], how: Scaling, raw: struct[8, 4]):
        i = ptx.tid.x
        x[i] = how.factor * x[i] + ptx.cvt.rn.f32.s32(how.shift) + raw.field(f32, 4)

    x = np.arange(4, dtype=np.float32)
    scale.launch(grid=1, block=4, args=[x, struct_module.pack("fi", 2.0, -1), struct_module.pack("ff", 0.0, 0.5)])
    assert x.tolist() == [-0.5, 1.5, 3.5, 5.5]
