"""Copies of boxes of tensors: what is where in shared memory, what is out of bounds, and which mbarrier counts it.

`placed` is what an H200 does, as it was found there: with a swizzle, rows of a box are as far apart as that spans, and
bits of the address in shared memory itself decide where a piece of 16 bytes goes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from ptxlab.report import Diagnostic

TILE = 16384
DEVICES = [
    "cpu",
    pytest.param("both", marks=[pytest.mark.gpu, pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")]),
]


def kernel(rank: int, work: str, base: int = 0) -> str:
    """Shared memory from `source`, then `work`, then shared memory to `out`."""
    return f""".version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 source, .param .u32 bytes,
    .param .s32 c0, .param .s32 c1, .param .s32 c2, .param .s32 c3, .param .s32 c4)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<12>, %c<5>;
    .reg .b64 %rd<8>;
    .shared .align 1024 .b8 tile[{TILE}];
    .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [source];
    ld.param.u32 %r1, [bytes];
    {" ".join(f"ld.param.s32 %c{at}, [c{at}];" for at in range(5))}
    mov.b64 %rd3, map;
    cvta.param.u64 %rd4, %rd3;
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p1, %r2, 0;
    mov.u32 %r3, tile;
    add.u32 %r4, %r3, {base};
    @!%p1 mbarrier.init.shared::cta.b64 [full], 1;
    mov.u32 %r5, %r2;
fill:
    mad.wide.u32 %rd5, %r5, 4, %rd2;
    ld.global.u32 %r6, [%rd5];
    mad.lo.u32 %r7, %r5, 4, %r3;
    st.shared.u32 [%r7], %r6;
    add.u32 %r5, %r5, 128;
    setp.lt.u32 %p2, %r5, {TILE // 4};
    @%p2 bra fill;
    fence.proxy.async;
    bar.sync 0;
{work.replace("DIM", f"{rank}d").replace("BOX", f"[%rd4, {{{', '.join(f'%c{at}' for at in range(rank))}}}]")}
    mov.u32 %r5, %r2;
copy:
    mad.lo.u32 %r7, %r5, 4, %r3;
    ld.shared.u32 %r6, [%r7];
    mad.wide.u32 %rd5, %r5, 4, %rd1;
    st.global.u32 [%rd5], %r6;
    add.u32 %r5, %r5, 128;
    setp.lt.u32 %p2, %r5, {TILE // 4};
    @%p2 bra copy;
    ret;
}}
"""


LOAD = """    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], %r1;
    @!%p1 cp.async.bulk.tensor.DIM.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], BOX, [full];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
    @!%p3 bra wait;
"""
STORE = """    @!%p1 cp.async.bulk.tensor.DIM.global.shared::cta.tile.bulk_group BOX, [%r4];
    @!%p1 cp.async.bulk.commit_group;
    @!%p1 cp.async.bulk.wait_group 0;
    bar.sync 0;
"""


def run(
    map: Any,
    work: str,
    coordinates: Sequence[int],
    *,
    source: Any = None,
    base: int = 0,
    device: str = "cpu",
    **how: Any,
) -> tuple[np.ndarray[Any, Any], list[Diagnostic]]:
    """What is in shared memory afterwards, and what is wrong."""
    out = np.zeros(TILE, np.uint8)
    given = np.full(TILE, 0xEE, np.uint8) if source is None else source
    module = ptxlab.parse(kernel(len(map.sizes), work, base), name="k.ptx")
    args = [map, out, given, map.box_bytes, *coordinates, *[0] * (5 - len(coordinates))]
    how = {"timeout": 30, "on_error": "collect"} | how
    result = module["k"].launch(1, 128, args, device=device, **how)
    return out, result.diagnostics


def cut(array: np.ndarray[Any, Any], box: Sequence[int], first: Sequence[int], steps: Sequence[int]) -> Any:
    """A box of an array, zeros where it is beyond; all in the array's order."""
    places = [np.arange(start, start + extent, step) for start, extent, step in zip(first, box, steps, strict=True)]
    inside = [(place >= 0) & (place < size) for place, size in zip(places, array.shape, strict=True)]
    taken = array[np.ix_(*(np.clip(place, 0, size - 1) for place, size in zip(places, array.shape, strict=True)))]
    return np.where(np.logical_and.reduce(np.meshgrid(*inside, indexing="ij")), taken, np.zeros((), array.dtype))


def placed(found: Any, swizzle: str | None, base: int = 0) -> np.ndarray[Any, Any]:
    """Shared memory with a box in it."""
    tile = np.full(TILE, 0xEE, np.uint8)
    rows = np.ascontiguousarray(found).view(np.uint8).reshape(-1, found.shape[-1] * found.itemsize)
    span = int(swizzle[:-1]) if swizzle else rows.shape[1]
    for number, row in enumerate(rows):
        for at in range(0, len(row), 16):
            offset = base + number * span + at
            if swizzle:
                offset ^= (offset >> 7 & (span // 16 - 1)) << 4
            tile[offset : offset + 16] = row[at : at + 16]
    return tile


def some(shape: Sequence[int], type: Any = np.uint8) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape)) * np.dtype(type).itemsize
    return np.random.default_rng(7).integers(1, 120, count, dtype=np.uint8).view(type).reshape(shape)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("swizzle", "inner"),
    [(None, 16), (None, 48), (None, 128), ("32B", 16), ("32B", 32), ("64B", 32), ("64B", 48), ("64B", 64), ("128B", 32),
     ("128B", 96), ("128B", 128)],
)  # fmt: skip
@pytest.mark.parametrize("base", [0, 384])
def test_swizzles(swizzle: str | None, inner: int, base: int, device: str) -> None:
    array = some((64, 256))
    map = ptxlab.tensor_map(array, box=(24, inner), swizzle=swizzle)
    tile, found = run(map, LOAD, (32, 3), base=base, device=device)
    assert found == []
    np.testing.assert_array_equal(tile, placed(array[3:27, 32 : 32 + inner], swizzle, base))


CUTS = [
    ((1000,), (64,), (960,)),
    ((20, 48), (8, 32), (-3, -16)),
    ((20, 48), (8, 32), (16, 32)),
    ((6, 10, 64), (3, 4, 32), (-1, 8, 16)),
    ((6, 4, 5, 48), (3, 2, 3, 16), (4, 3, 3, 32)),
    ((5, 3, 4, 3, 32), (2, 2, 3, 2, 16), (4, -1, 2, 2, -16)),
    ((20, 48), (8, 32), (100, 64)),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("type", [np.uint8, np.float16, np.int32, np.float64])
@pytest.mark.parametrize(("shape", "box", "first"), CUTS)
def test_a_box_that_is_partly_beyond_the_tensor(
    shape: tuple[int, ...], box: tuple[int, ...], first: tuple[int, ...], type: Any, device: str
) -> None:
    """An mbarrier hears of all its bytes; what is beyond is zero."""
    array = some(shape, type)
    map = ptxlab.tensor_map(array, box)
    assert map.box_bytes == np.prod(box) * array.itemsize
    tile, found = run(map, LOAD, first[::-1], device=device)
    assert found == []
    np.testing.assert_array_equal(tile, placed(cut(array, box, first, [1] * len(box)), None))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("swizzle", [None, "64B"])
@pytest.mark.parametrize("first", [(3, 16), (30, 96), (39, 112)])
def test_a_box_is_stored_where_the_tensor_is(first: tuple[int, int], swizzle: str | None, device: str) -> None:
    array, box = some((40, 128)), (16, 64)
    source = np.arange(TILE, dtype=np.uint32).astype(np.uint8)
    chunks = np.arange(box[0] * box[1]).reshape(box)
    offsets = chunks ^ ((chunks >> 7 & 3) << 4) if swizzle else chunks
    expected = array.copy()
    for row, column in np.ndindex(*box):
        y, x = first[0] + row, first[1] + column
        if 0 <= y < 40 and 0 <= x < 128:
            expected[y, x] = source[offsets[row, column]]
    map = ptxlab.tensor_map(array, box, swizzle=swizzle)
    _, found = run(map, STORE, first[::-1], source=source, device=device)
    assert found == []
    np.testing.assert_array_equal(array, expected)


def test_a_view_of_a_wider_array() -> None:
    wide = some((30, 64), np.float16)
    view = wide[2:, 8:45]
    tile, found = run(ptxlab.tensor_map(view, (8, 16)), LOAD, (24, 25))
    assert found == []
    np.testing.assert_array_equal(tile, placed(cut(view, (8, 16), (25, 24), (1, 1)), None))


def test_one_array_as_a_map_and_as_a_pointer() -> None:
    """What a copy stores through the map is seen through the pointer, and looked after like any other access."""
    array = np.zeros((16, 64), np.uint32)
    text = kernel(2, STORE).replace("[source];", "[source];\n    @%p7 st.global.u32 [%rd2], 0;")
    map = ptxlab.tensor_map(array, (8, 16))
    out = np.zeros(TILE, np.uint8)
    source = np.full(TILE, 3, np.uint8)
    result = ptxlab.parse(text)["k"].launch(1, 128, [map, out, source, 0, 16, 8, 0, 0, 0], device="cpu", seeds=2)
    assert result.diagnostics == []
    assert (array[8:, 16:32] == 0x03030303).all()
    assert array.astype(bool).sum() == 128


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("type", [np.float16, np.float32, np.float64])
def test_nan_beyond_the_tensor(type: Any, device: str) -> None:
    array = some((20, 64), type)
    tile, found = run(ptxlab.tensor_map(array, (8, 16), fill="nan"), LOAD, (-8, -3), device=device)
    assert found == []
    expected = np.full((8, 16), 0, type)
    expected.view(np.uint16)[:] = 0x7FF7
    expected[3:, 8:] = array[:5, :8]
    np.testing.assert_array_equal(tile, placed(expected, None))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("step", [2, 3, 8])
def test_only_every_so_many_rows(step: int, device: str) -> None:
    array = some((64, 64), np.uint16)
    map = ptxlab.tensor_map(array, (16, 32), element_strides=(step, 1))
    tile, found = run(map, LOAD, (8, 5), device=device)
    assert found == []
    np.testing.assert_array_equal(tile, placed(array[5:21:step, 8:40], None))


@pytest.mark.parametrize(("column", "start"), [(5, 10), (-1, -2), (4, 8)])
def test_a_box_begins_at_multiples_of_16_bytes(column: int, start: int) -> None:
    (found,) = run(ptxlab.tensor_map(some((20, 64), np.float16), (8, 16)), LOAD, (column, 0))[1]
    assert found.code == "misaligned"
    assert found.message == f"a box that starts at byte {start} of a tensor row, not a multiple of 16"


@pytest.mark.parametrize(("column", "row", "said"), [(-16, 3, "-16 in dimension 0"), (16, -5, "-5 in dimension 1")])
def test_a_box_is_not_stored_before_the_tensor(column: int, row: int, said: str) -> None:
    """An H200 takes it for an illegal instruction; loads may begin there."""
    map = ptxlab.tensor_map(some((40, 128)), (16, 32))
    assert run(map, LOAD, (column, row))[1] == []
    (found,) = run(map, STORE, (column, row))[1]
    assert found.code == "out-of-bounds"
    assert found.message == f"a box that is stored outside of the tensor: it starts at {said}"


# Reductions.


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("operation", "type"),
    [("add", np.uint32), ("add", np.float32), ("add", np.float16), ("add", np.float64), ("min", np.int32),
     ("max", np.uint64), ("max", np.float16), ("inc", np.uint32), ("xor", np.uint32), ("and", np.uint64)],
)  # fmt: skip
def test_reductions(operation: str, type: Any, device: str) -> None:
    array = (some((16, 64)).astype(np.int64) - (60 if np.dtype(type).kind != "u" else 0)).astype(type)
    box = some((8, 16)).astype(type)
    source = np.zeros(TILE, np.uint8)
    source[: box.nbytes] = box.view(np.uint8).reshape(-1)
    known = {"add": np.add, "min": np.minimum, "max": np.maximum, "xor": np.bitwise_xor, "and": np.bitwise_and,
             "inc": lambda old, new: np.where(old >= new, 0, old + 1)}  # fmt: skip
    expected = array.copy()
    expected[4:12, 8:24] = known[operation](array[4:12, 8:24], box)
    reduce = STORE.replace("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor").replace(
        "cta.tile", f"cta.{operation}.tile"
    )
    _, found = run(ptxlab.tensor_map(array, (8, 16)), reduce, (8, 4), source=source, device=device)
    assert found == []
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("operation", "type"),
    [
        ("add", np.uint8),
        ("add", np.int16),
        ("add", np.int64),
        ("min", np.float32),
        ("inc", np.int32),
        ("and", np.int64),
    ],
)
def test_reductions_that_there_are_not(operation: str, type: Any) -> None:
    reduce = STORE.replace("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor").replace(
        "cta.tile", f"cta.{operation}.tile"
    )
    (found,) = run(ptxlab.tensor_map(some((16, 64), type), (8, 16)), reduce, (0, 0))[1]
    assert (found.code, found.message) == ("bad-tensor-map", "a reduction that elements of this tensor map do not have")


# Which mbarrier counts it.


def test_a_copy_without_a_wait() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    tile, found = run(map, LOAD.partition("wait:")[0], (0, 0))
    assert {diagnostic.code for diagnostic in found} == {"data-race"}
    assert (tile == 0xEE).all()


def test_what_threads_wrote_needs_a_fence() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    text = kernel(2, STORE).replace("    fence.proxy.async;\n", "")
    args = [map, np.zeros(TILE, np.uint8), np.zeros(TILE, np.uint8), 0, 0, 0, 0, 0, 0]
    (found,) = ptxlab.parse(text)["k"].launch(1, 128, args, device="cpu", on_error="collect").diagnostics
    assert found.code == "missing-proxy-fence"


def test_too_many_bytes_are_expected() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    (found,) = run(map, LOAD.replace("[full], %r1", "[full], 4096"), (0, 0))[1]
    assert found.code == "hang"
    assert "2048 of 4096 bytes" in found.notes[0]


@pytest.mark.parametrize("base", [16, 32, 64])
def test_a_box_is_at_multiples_of_128(base: int) -> None:
    (found,) = run(ptxlab.tensor_map(some((64, 64)), (32, 64)), LOAD, (0, 0), base=base)[1]
    assert (found.code, found.message[-21:]) == ("misaligned", "not a multiple of 128")


def test_a_box_beyond_shared_memory() -> None:
    (found,) = run(ptxlab.tensor_map(some((256, 128)), (256, 128)), LOAD, (0, 0))[1]
    assert (found.code, found.message) == ("out-of-bounds", "write of 32768 bytes outside of shared memory")


def test_what_is_not_a_tensor_map() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    (found,) = run(map, LOAD.replace("DIM", "1d").replace("BOX", "[%rd4, {%c0}]"), (0, 0))[1]
    assert (found.code, found.message) == ("bad-tensor-map", "a tensor map of 2 dimensions for a copy with 1")
    text = ptxlab.parse(kernel(2, LOAD))
    args = [bytes(128), np.zeros(TILE, np.uint8), np.zeros(TILE, np.uint8), 0, 0, 0, 0, 0, 0]
    (found,) = text["k"].launch(1, 128, args, device="cpu", on_error="collect").diagnostics
    assert (found.code, found.message) == ("bad-tensor-map", "the address of a tensor map points to something else")


# Of a map of 64 x 64 bytes: words as `isa.tensor_map` places them.
@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, 0x1008, "`globalAddress` is 0x1008, not a multiple of 16, or of 32 where that is needed"),
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
    args = [bytes(encoded), np.zeros(TILE, np.uint8), np.zeros(TILE, np.uint8), 0, 0, 0, 0, 0, 0]
    (found,) = ptxlab.parse(kernel(2, LOAD))["k"].launch(1, 128, args, device="cpu", on_error="collect").diagnostics
    assert (found.code, found.message) == ("bad-tensor-map", f"a damaged tensor map: {message}")


@pytest.mark.parametrize(("offset", "value"), [(8, 0x8000_0010), (28, 1 << 16), (52, 1 << 15)])
def test_bits_that_no_tensor_map_has(offset: int, value: int) -> None:
    encoded = bytearray(ptxlab.tensor_map(some((64, 64)), (32, 64)).encode(0x1000))
    encoded[offset : offset + 4] = value.to_bytes(4, "little")
    args = [bytes(encoded), np.zeros(TILE, np.uint8), np.zeros(TILE, np.uint8), 0, 0, 0, 0, 0, 0]
    (found,) = ptxlab.parse(kernel(2, LOAD))["k"].launch(1, 128, args, device="cpu", on_error="collect").diagnostics
    assert (found.code, found.message) == ("bad-tensor-map", "the address of a tensor map points to something else")


def test_a_forged_tensor_map_reaches_no_memory_of_the_host() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    for address in (0x1000, 0x7000_0001_0000, (1 << 57) - 4096):
        args = [map.encode(address), np.zeros(TILE, np.uint8), np.zeros(TILE, np.uint8), 0, 0, 0, 0, 0, 0]
        found = ptxlab.parse(kernel(2, LOAD))["k"].launch(1, 128, args, device="cpu", on_error="collect").diagnostics
        assert [diagnostic.code for diagnostic in found] == ["out-of-bounds"]


def test_a_parameter_that_is_not_a_map() -> None:
    module = ptxlab.parse(".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u32 x) { ret; }")
    with pytest.raises(ptxlab.KernelError, match=r"a tensor map needs a parameter of 128 bytes"):
        module["k"].launch(1, 1, [ptxlab.tensor_map(some((64, 64)), (32, 64))], device="cpu")


def pointing(work: str) -> Any:
    """The kernel, with a pointer to the map as its parameter."""
    text = kernel(2, work).replace(".align 64 .b8 map[128]", ".u64 map")
    return ptxlab.parse(text.replace("mov.b64 %rd3, map;\n    cvta.param.u64 %rd4, %rd3;", "ld.param.u64 %rd4, [map];"))


@pytest.mark.parametrize("device", DEVICES)
def test_a_parameter_that_points_to_a_map(device: str) -> None:
    array = some((64, 64))
    map = ptxlab.tensor_map(array, (32, 64), swizzle="64B")
    out, source = np.zeros(TILE, np.uint8), np.full(TILE, 0xEE, np.uint8)
    pointing(LOAD)["k"].launch(1, 128, [map, out, source, map.box_bytes, 0, 16, 0, 0, 0], device=device)
    np.testing.assert_array_equal(out, placed(array[16:48], "64B"))
    source[:2048] = np.arange(2048) % 251
    map = ptxlab.tensor_map(array, (32, 64))
    pointing(STORE)["k"].launch(1, 128, [map, out, source, 0, 0, 32, 0, 0, 0], device=device)
    np.testing.assert_array_equal(array[32:], source[:2048].reshape(32, 64))


def test_a_map_that_is_pointed_to_is_read_only_and_its_tensor_is_watched() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    args = [map, np.zeros(TILE, np.uint8), np.zeros(TILE, np.uint8), map.box_bytes, 0, 0, 0, 0, 0]
    result = pointing("    st.global.u32 [%rd4], 0;")["k"].launch(1, 128, args, device="cpu", on_error="collect")
    assert [found.code for found in result.diagnostics] == ["read-only-write"]
    # `out` is the tensor too, and is written while a copy may still read it.
    args[1] = map.array
    hasty = LOAD.replace("wait:", "    st.global.u32 [%rd1], %r2;\nwait:")
    result = pointing(hasty)["k"].launch(1, 32, args, device="cpu", on_error="collect")
    assert "data-race" in {found.code for found in result.diagnostics}


def test_a_prefetch_changes_nothing() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    assert run(map, "@!%p1 cp.async.bulk.prefetch.tensor.DIM.L2.global.tile BOX;", (0, 0))[1] == []


# What the driver takes.


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"box": (8, 257)}, "dimension 1 of the box has 257 elements: there are 1 to 256"),
        ({"box": (0, 16)}, "dimension 0 of the box has 0 elements: there are 1 to 256"),
        ({"box": (8, 8)}, "a row of the box has 8 bytes: it must be a multiple of 16"),
        ({"box": (8,)}, "box has 1 dimensions, the array has 2"),
        ({"box": (8, 64), "swizzle": "32B"}, "a row of the box has 64 bytes: a swizzle of 32B has room for 32"),
        ({"box": (8, 16), "swizzle": "16B"}, "swizzle='16B': there are None, '32B', '64B', '96B', '128B', "
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
        (some((8, 64))[:, ::2], "elements of the last dimension of the array must lie side by side"),
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
    out, wrong = run(map, LOAD, (0, 16, 1))
    assert wrong == []
    np.testing.assert_array_equal(out, placed(view[1:3, 16:24], None))
