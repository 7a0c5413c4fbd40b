"""Tensor maps themselves: which there are, how they are encoded, and what is reported of damaged ones."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.report import Diagnostic
from tests.emulate.tensor_boxes import TILE, Array, arguments, kernel, load, placed, run, some, store

DEVICES = [
    "cpu",
    pytest.param("both", marks=[pytest.mark.gpu, pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")]),
]


def loaded_by(map: bytes) -> list[Diagnostic]:
    """What is wrong with a copy by a map of these bytes."""
    module = ptxlab.parse(kernel(load(2)))
    return module["k"].launch(1, 128, arguments(map), device="cpu", on_error="collect").diagnostics


def test_what_is_not_a_tensor_map() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    (found,) = run(map, load(1), (0, 0))[1]
    assert (found.code, found.message) == ("bad-tensor-map", "a tensor map of 2 dimensions for a copy with 1")
    (found,) = loaded_by(bytes(128))
    assert (found.code, found.message) == ("bad-tensor-map", "the address of a tensor map points to something else")


# Of a map of 64 x 64 bytes: words as `isa.units.tensor_map` places them.
@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, 0x1008, "`globalAddress` is 0x1008, not a multiple of 16 below 2**57, or of 32 where that is needed"),
        (8, 7 << 4, "`tensorRank` is 8, not 1 to 5, and 3 to 5 of im2col"),
        (8, 1 << 4 | 1, "`tensorRank` is 2, not 1 to 5, and 3 to 5 of im2col"),
        (8, 1 << 4 | 15 << 7, "`tensorDataType` is 15, not 0 to 13"),
        (8, 1 << 4 | 1 << 11, "`interleave` is 1, not 0 to 2, and 0 with fewer than 3 dimensions"),
        (8, 1 << 4 | 1 << 19, "`swizzle_atomicity` is 1, not 0 to 3, and 0 but with a swizzle of 128 bytes"),
        (8, 1 << 4 | 1 << 15, "`oobFill` is NaN, and its elements are not floats"),
        (8, 1 << 4 | 1 << 22 | 1 << 13, "it has two swizzles at once"),
        (8, 1 << 4 | 1 << 13, "a row of its box has 64 bytes"),
        (52, 14 << 24, "a row of its box has 15 bytes"),
        (8, 1 << 4 | 12 << 7, "a row of its box has 64 padded elements"),
    ],
)  # fmt: skip
def test_a_damaged_tensor_map_names_its_field(offset: int, value: int, message: str) -> None:
    encoded = bytearray(ptxlab.tensor_map(some((64, 64)), (32, 64)).encode(0x1000))
    encoded[offset : offset + 4] = value.to_bytes(4, "little")
    (found,) = loaded_by(bytes(encoded))
    assert (found.code, found.message) == ("bad-tensor-map", f"a damaged tensor map: {message}")


@pytest.mark.parametrize(("offset", "value"), [(8, 0x8000_0010), (28, 1 << 16), (52, 1 << 15)])
def test_bits_that_no_tensor_map_has(offset: int, value: int) -> None:
    encoded = bytearray(ptxlab.tensor_map(some((64, 64)), (32, 64)).encode(0x1000))
    encoded[offset : offset + 4] = value.to_bytes(4, "little")
    (found,) = loaded_by(bytes(encoded))
    assert (found.code, found.message) == ("bad-tensor-map", "the address of a tensor map points to something else")


def test_a_forged_tensor_map_reaches_no_memory_of_the_host() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    for address in (0x1000, 0x7000_0001_0000, (1 << 57) - 4096):
        assert [found.code for found in loaded_by(map.encode(address))] == ["out-of-bounds"]


def test_a_parameter_that_is_not_a_map() -> None:
    module = ptxlab.parse(".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u32 x) { ret; }")
    with pytest.raises(ptxlab.KernelError, match=r"a tensor map needs a parameter of 128 bytes"):
        module["k"].launch(1, 1, [ptxlab.tensor_map(some((64, 64)), (32, 64))], device="cpu")


def pointing(work: str) -> Any:
    """The kernel, with a pointer to the map as its parameter."""
    text = kernel(work).replace(".align 64 .b8 map[128]", ".u64 map")
    return ptxlab.parse(text.replace("mov.b64 %rd4, map;\n    cvta.param.u64 %rd4, %rd4;", "ld.param.u64 %rd4, [map];"))


@pytest.mark.parametrize("device", DEVICES)
def test_a_parameter_that_points_to_a_map(device: str) -> None:
    array = some((64, 64))
    map = ptxlab.tensor_map(array, (32, 64), swizzle="64B")
    args = arguments(map, (0, 16), bytes=map.box_bytes)
    pointing(load(2))["k"].launch(1, 128, args, device=device)
    np.testing.assert_array_equal(args[1], placed(array[16:48], "64B"))
    source = some((TILE,))
    args = arguments(ptxlab.tensor_map(array, (32, 64)), (0, 32), source=source)
    pointing(store(2))["k"].launch(1, 128, args, device=device)
    np.testing.assert_array_equal(array[32:], source[:2048].reshape(32, 64))


def test_a_map_that_is_pointed_to_is_read_only_and_its_tensor_is_watched() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    args = arguments(map, bytes=map.box_bytes)
    result = pointing("    st.global.u32 [%rd4], 0;")["k"].launch(1, 128, args, device="cpu", on_error="collect")
    assert [found.code for found in result.diagnostics] == ["read-only-write"]
    # `out` is the tensor too, and is written while a copy may still read it.
    args[1] = map.array
    hasty = load(2).replace("wait:", "    st.global.u32 [%rd1], %r2;\nwait:")
    result = pointing(hasty)["k"].launch(1, 32, args, device="cpu", on_error="collect")
    assert "data-race" in {found.code for found in result.diagnostics}


def test_a_prefetch_changes_nothing() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    assert run(map, "@!%p1 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd4, {%c0, %c1}];", (0, 0))[1] == []


# What the driver takes.


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"box": (8, 257)}, "dimension 1 of the box has 257 elements: there are 1 to 256"),
        ({"box": (0, 16)}, "dimension 0 of the box has 0 elements: there are 1 to 256"),
        ({"box": (8, 8)}, "a row of the box has 8 elements of type `.u8`, 8 bytes: it must be a multiple of 16"),
        ({"box": (8,)}, "box has 1 dimensions, the array has 2"),
        (
            {"box": (8, 64), "swizzle": "32B"},
            "a row of the box has 64 elements of type `.u8`, 64 bytes: a swizzle of 32B has room for 32",
        ),
        ({"box": (8, 16), "swizzle": "16B"}, "swizzle='16B': expected one of None, '32B', '64B', '96B', '128B', "
         "'128B_ATOM_32B', '128B_ATOM_32B_FLIP_8B', '128B_ATOM_64B'"),
        (
            {"box": (8, 16), "fill": "nan"},
            "fill='nan' is for floats of 16, 32 or 64 bits, not for elements of type `.u8`",
        ),
        ({"box": (256, 4, 256)}, "box has 3 dimensions, the array has 2"),
        ({"box": (256, 256), "type": np.float64}, "the box has 524288 bytes: shared memory has room for 232448"),
        ({"box": (8, 16), "element_strides": (9, 1)}, "dimension 0 of element_strides is 9: there are 1 to 8"),
        (
            {"box": (8, 16), "element_strides": (1, 2)},
            "the last of element_strides is 1: elements of a row are copied side by side",
        ),
    ],
)  # fmt: skip
def test_boxes_that_there_are_not(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        ptxlab.tensor_map(some((64, 512), how.pop("type", np.uint8)), **how)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (some((8, 40))[:, :20], None),
        (some((8, 20)), "dimension 0 of the array has a stride of 20 bytes: it must be a multiple of 16"),
        (some((8, 64))[:, ::2], "elements of the last dimension of the array must be contiguous"),
        (np.zeros((2,) * 6, np.uint8), "a tensor map has 1 to 5 dimensions, this array has 6"),
        (np.zeros((4, 0), np.uint8), "dimension 1 of the array has 0 elements"),
        (np.zeros((4, 16), np.complex64), "a tensor map has no elements of type complex64"),
    ],
)
def test_arrays_that_have_no_map(array: Any, message: str) -> None:
    box = (1,) * (array.ndim - 1) + (16,)
    expected = "dimension 0 of the array has a stride of 40 bytes" if message is None else message
    with pytest.raises((ValueError, TypeError)) as raised:
        ptxlab.tensor_map(array, box)
    assert str(raised.value).startswith(expected)


def test_a_view_of_other_strides() -> None:
    """Columns in groups of 16, as kernels with a swizzle want them."""
    array = some((32, 64))
    view = np.lib.stride_tricks.as_strided(array, (4, 32, 16), (16, 64, 1))
    map = ptxlab.tensor_map(view, (2, 8, 16))
    assert (map.array is array, map.offset, map.strides) == (True, 0, (64, 16))
    out, wrong = run(map, load(3), (0, 16, 1))
    assert wrong == []
    np.testing.assert_array_equal(out, placed(view[1:3, 16:24], None))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"channels": 0}, "channels=0: there are 1 to 256"),
        ({"pixels": 1025}, "pixels=1025: there are 1 to 1024"),
        ({"lower": (-129, 0)}, "lower[0] is -129: there are -128 to 127"),
        ({"lower": (6, 0)}, "no pixel is between lower[0]=6 and upper[0]=0: the image has 6"),
        ({"lower": (0,)}, "lower has 1 dimensions, the array has 2"),
        ({"channels": 24}, "a row of the box has 24 elements of type `.u8`, 24 bytes: it must be a multiple of 16"),
        ({"interleave": "8B"}, "interleave='8B': expected one of None, '16B', '32B'"),
        ({"type": "f8"}, "type='f8': expected one of 'u8', 'u16', 'u32', 's32', 'u64', 's64', 'f16', 'f32', 'f32.ftz', "
         "'f64', 'bf16', 'tf32', 'tf32.ftz', 'b4x16', 'b4x16_p64', 'b6x16_p32'"),
    ],
)  # fmt: skip
def test_images_that_there_are_not(how: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"channels": 16, "pixels": 8, "lower": (0, 0), "upper": (0, 0)} | how
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        ptxlab.im2col_map(some((2, 6, 6, 32)), **given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("array", "how", "message"),
    [
        (some((4, 100)), {"box": (1, 128), "type": "b4x16_p64"}, "a row of the array has 200 elements of type "
         "`.b4x16_p64`: it must be a multiple of 128"),
        (some((4, 96)), {"box": (1, 64), "type": "b6x16_p32"}, "a row of the box has 64 elements of type `.b6x16_p32`: "
         "it must be 128"),
        (some((4, 64)), {"box": (1, 16), "interleave": "16B"}, "interleave='16B' needs 3 dimensions or more, the array "
         "has 2"),
    ],
)  # fmt: skip
def test_packed_elements_that_there_are_not(array: Array, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        ptxlab.tensor_map(array, **how)
    assert str(raised.value) == message


FIELDS = """
    .reg .b64 %rd<5>; .reg .b32 %r<3>;
    ld.param.u64 %rd1, [map];
    ld.param.u64 %rd2, [tensor];
    mov.u64 %rd3, 512;
    mov.u64 %rd4, 0x123450000;
    mov.u32 %r1, 64;
    mov.u32 %r2, 7;
    tensormap.replace.tile.global_address.SPACE.b1024.b64 [%rd1], %rd2;
    tensormap.replace.tile.rank.SPACE.b1024.b32 [%rd1], 2;
    tensormap.replace.tile.global_stride.SPACE.b1024.b64 [%rd1], 0, %rd3;
    tensormap.replace.tile.global_stride.SPACE.b1024.b64 [%rd1], 1, %rd4;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [%rd1], 0, 256;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [%rd1], 1, 1000;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [%rd1], 2, 3;
    tensormap.replace.tile.box_dim.SPACE.b1024.b32 [%rd1], 0, %r1;
    tensormap.replace.tile.box_dim.SPACE.b1024.b32 [%rd1], 1, 16;
    tensormap.replace.tile.box_dim.SPACE.b1024.b32 [%rd1], 2, 1;
    tensormap.replace.tile.element_stride.SPACE.b1024.b32 [%rd1], 0, 1;
    tensormap.replace.tile.element_stride.SPACE.b1024.b32 [%rd1], 1, %r2;
    tensormap.replace.tile.element_stride.SPACE.b1024.b32 [%rd1], 2, 1;
    tensormap.replace.tile.elemtype.SPACE.b1024.b32 [%rd1], 10;
    tensormap.replace.tile.interleave_layout.SPACE.b1024.b32 [%rd1], 0;
    tensormap.replace.tile.swizzle_mode.SPACE.b1024.b32 [%rd1], 3;
    tensormap.replace.tile.swizzle_atomicity.SPACE.b1024.b32 [%rd1], 1;
    tensormap.replace.tile.fill_mode.SPACE.b1024.b32 [%rd1], 1;
"""


@pytest.mark.parametrize("space", ["global", ""])
def test_a_map_made_by_a_kernel_is_that_of_the_driver(space: str) -> None:
    text = ".version 8.8\n.target sm_100a\n.address_size 64\n.entry k(.param .u64 map, .param .u64 tensor) {"
    made = np.zeros(128, np.uint8)
    fields = FIELDS.replace(".SPACE", f".{space}" if space else "")
    ptxlab.parse(f"{text}{fields} ret; }}")["k"].launch(1, 1, [made, 0x7000_0000], device="cpu")
    wanted = TensorMap(
        array=None, offset=0, type="bf16", sizes=(256, 1000, 3), strides=(512, 0x123450000), box=(64, 16, 1),
        steps=(1, 7, 1), swizzle="128B_ATOM_32B", l2_promotion=None, fill="nan",
    ).encode(0x7000_0000)  # fmt: skip
    # The driver notes the bytes of a box and the alignment of its swizzle as well, which copies do not read.
    assert struct.unpack("<16I", made[:64]) == struct.unpack_from("<16I", wanted)
    assert not made[64:].any()


def test_maps_are_encoded_as_a_driver_does() -> None:
    evidence = json.loads((Path(__file__).parents[2] / "evidence" / "tensor_maps.json").read_text(encoding="utf-8"))
    assert evidence["maps"]["different"] == evidence["replacements"]["different"] == 0
    assert evidence["copies"]["different"] == 0
    for fields, address, encoded in evidence["encodings"]:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        assert TensorMap(array=None, offset=0, **given).encode(address).hex() == encoded
