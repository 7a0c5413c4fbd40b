"""Copies of tiles of tensors: what is where in shared memory, what is out of bounds, and which mbarrier counts it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from tests.emulate.tensor_boxes import TILE, arguments, kernel, load, placed, run, some, store

DEVICES = [
    "cpu",
    pytest.param("both", marks=[pytest.mark.gpu, pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")]),
]


def cut(array: np.ndarray[Any, Any], box: Sequence[int], first: Sequence[int], steps: Sequence[int]) -> Any:
    """A box of an array, zeros where it is beyond; all in the array's order."""
    places = [np.arange(start, start + extent, step) for start, extent, step in zip(first, box, steps, strict=True)]
    inside = [(place >= 0) & (place < size) for place, size in zip(places, array.shape, strict=True)]
    taken = array[np.ix_(*(np.clip(place, 0, size - 1) for place, size in zip(places, array.shape, strict=True)))]
    return np.where(np.logical_and.reduce(np.meshgrid(*inside, indexing="ij")), taken, np.zeros((), array.dtype))


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
    tile, found = run(map, load(2), (32, 3), base=base, device=device)
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
    tile, found = run(map, load(len(box)), first[::-1], device=device)
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
    _, found = run(map, store(2), first[::-1], source=source, device=device)
    assert found == []
    np.testing.assert_array_equal(array, expected)


def test_a_view_of_a_wider_array() -> None:
    wide = some((30, 64), np.float16)
    view = wide[2:, 8:45]
    tile, found = run(ptxlab.tensor_map(view, (8, 16)), load(2), (24, 25))
    assert found == []
    np.testing.assert_array_equal(tile, placed(cut(view, (8, 16), (25, 24), (1, 1)), None))


def test_one_array_as_a_map_and_as_a_pointer() -> None:
    """What a copy stores through the map is seen through the pointer, and looked after like any other access."""
    array = np.zeros((16, 64), np.uint32)
    args = arguments(ptxlab.tensor_map(array, (8, 16)), (16, 8), source=np.full(TILE, 3, np.uint8))
    result = ptxlab.parse(kernel(store(2)))["k"].launch(1, 128, args, device="cpu", seeds=2)
    assert result.diagnostics == []
    assert (array[8:, 16:32] == 0x03030303).all()
    assert array.astype(bool).sum() == 128


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("type", [np.float16, np.float32, np.float64])
def test_nan_beyond_the_tensor(type: Any, device: str) -> None:
    array = some((20, 64), type)
    tile, found = run(ptxlab.tensor_map(array, (8, 16), fill="nan"), load(2), (-8, -3), device=device)
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
    tile, found = run(map, load(2), (8, 5), device=device)
    assert found == []
    np.testing.assert_array_equal(tile, placed(array[5:21:step, 8:40], None))


@pytest.mark.parametrize(("column", "start"), [(5, 10), (-1, -2), (4, 8)])
def test_a_box_begins_at_multiples_of_16_bytes(column: int, start: int) -> None:
    (found,) = run(ptxlab.tensor_map(some((20, 64), np.float16), (8, 16)), load(2), (column, 0))[1]
    assert found.code == "misaligned-access"
    assert found.message == f"a box that starts at byte {start} of a tensor row, not a multiple of 16"


@pytest.mark.parametrize(("column", "row", "said"), [(-16, 3, "-16 in dimension 0"), (16, -5, "-5 in dimension 1")])
def test_a_box_is_not_stored_before_the_tensor(column: int, row: int, said: str) -> None:
    """An H200 takes it for an illegal instruction; loads may begin there."""
    map = ptxlab.tensor_map(some((40, 128)), (16, 32))
    assert run(map, load(2), (column, row))[1] == []
    (found,) = run(map, store(2), (column, row))[1]
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
    reduce = store(2, reduction=f".{operation}")
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
    reduce = store(2, reduction=f".{operation}")
    (found,) = run(ptxlab.tensor_map(some((16, 64), type), (8, 16)), reduce, (0, 0))[1]
    assert (found.code, found.message) == ("bad-tensor-map", "a reduction that elements of this tensor map do not have")


# Which mbarrier counts it.


def test_a_copy_without_a_wait() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    tile, found = run(map, load(2).partition("wait:")[0], (0, 0))
    assert {diagnostic.code for diagnostic in found} == {"data-race"}
    assert (tile == 0xEE).all()


def test_what_threads_wrote_needs_a_fence() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    text = kernel(store(2)).replace("    fence.proxy.async;\n", "")
    (found,) = ptxlab.parse(text)["k"].launch(1, 128, arguments(map), device="cpu", on_error="collect").diagnostics
    assert found.code == "missing-proxy-fence"


def test_too_many_bytes_are_expected() -> None:
    map = ptxlab.tensor_map(some((64, 64)), (32, 64))
    (found,) = run(map, load(2).replace("[full], %r1", "[full], 4096"), (0, 0))[1]
    assert found.code == "hang"
    assert "2048 of 4096 bytes" in found.notes[0]


@pytest.mark.parametrize("base", [16, 32, 64])
def test_a_box_is_at_multiples_of_128(base: int) -> None:
    (found,) = run(ptxlab.tensor_map(some((64, 64)), (32, 64)), load(2), (0, 0), base=base)[1]
    assert (found.code, found.message[-21:]) == ("misaligned-access", "not a multiple of 128")


def test_a_box_beyond_shared_memory() -> None:
    (found,) = run(ptxlab.tensor_map(some((256, 128)), (256, 128)), load(2), (0, 0))[1]
    assert (found.code, found.message) == ("out-of-bounds", "write of 32768 bytes outside of shared memory")
