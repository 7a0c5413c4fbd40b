"""wgmma on the emulator: tiles against NumPy in float64, and what goes wrong with them."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import ptxlab
from ptxlab.isa.units.descriptor import Descriptor

from .warpgroups import COPY, Bits, Product, element_bits, given, launch, lay_out

TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "tf32": np.float32, "s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32,
}  # fmt: skip
Floats = npt.NDArray[np.float64]


def bits_of(numbers: Any, type: str) -> Bits:
    """Numbers as patterns of a type that has them all."""
    found = np.asarray(numbers).astype(TYPES[type])
    return found.view(f"u{found.dtype.itemsize}").astype(np.uint32)


def numbers_of(bits: Bits, type: str) -> Floats:
    dtype = np.dtype(TYPES[type])
    found: Floats = bits.astype(f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    return found


def small(rng: np.random.Generator, rows: int, columns: int, type: str) -> Floats:
    """Small integers, of which all products and sums are exact in every type."""
    return rng.integers(0 if type == "u8" else -3, 4, (rows, columns)).astype(np.float64)


CASES = {
    "the smallest": (Product("f32", "f16", "f16", 8), "none"),
    "the widest": (Product("f32", "bf16", "bf16", 256, steps=2), "128B"),
    "half sums": (Product("f16", "f16", "f16", 40), "64B"),
    "two warpgroups": (Product("f32", "tf32", "tf32", 24, steps=2, groups=2), "32B"),
    "A in registers": (Product("f32", "f16", "f16", 16, steps=2, in_registers=True), "128B"),
    "A turned": (Product("f32", "f16", "f16", 16, trans_a=1), "128B"),
    "B turned": (Product("f32", "bf16", "bf16", 96, trans_b=1), "64B"),
    "both turned": (Product("f32", "f16", "f16", 32, trans_a=1, trans_b=1), "none"),
    "fp8": (Product("f32", "e4m3", "e5m2", 48), "128B"),
    "negated": (Product("f32", "e5m2", "e4m3", 8, scale_a=-1), "none"),
    "bytes": (Product("s32", "s8", "u8", 32, steps=2, groups=2), "64B"),
}


def describe(start: int, rows: int, columns: int, bits: int, turned: int, swizzle: str) -> tuple[Descriptor, int]:
    """A descriptor of a matrix in its canonical layout, and where the next one may begin.

    Rows of chunks, as wide as the swizzle; eight of them are a piece, and pieces follow each other.
    """
    long, short = (columns, rows) if not turned else (rows, columns)
    width = 16 if swizzle == "none" else int(swizzle[:-1])
    along = -(-long * bits // 8 // width)  # pieces side by side
    down = -(-short // 8)
    piece = 8 * width
    end = start + -(-along * down * piece // 1024) * 1024
    if swizzle == "none" and turned:
        return Descriptor(start, leading=piece, stride=down * piece, swizzle=swizzle), end
    return Descriptor(start, leading=down * piece, stride=piece, swizzle=swizzle), end


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_numpy(name: str) -> None:
    product, swizzle = CASES[name]
    rng = np.random.default_rng(len(name))
    bits, start = element_bits(product), 0
    image = np.zeros(1 << 17, np.uint8)
    descriptors, words, wanted = [], [], []
    for _ in range(product.groups):
        row, held = [], []
        sum = c = small(rng, 64, product.n, product.dtype)
        for _ in range(product.steps):
            a = small(rng, 64, product.depth, product.atype)
            b = small(rng, product.n, product.depth, product.btype)
            for matrix, type, turned in ((a, product.atype, product.trans_a), (b, product.btype, product.trans_b)):
                where, start = describe(start, *matrix.shape, bits, turned, swizzle)
                lay_out(image, where, bits_of(matrix, type), bits, turned)
                row.append(where)
            held.append(bits_of(a, product.atype))
            sum = sum + product.scale_a * product.scale_b * a @ b.T
        descriptors.append(row)
        words.append(given(product, bits_of(c, product.dtype), held))
        wanted.append(sum)
    kernel = ptxlab.parse(product.text(), name="multiply.ptx")["multiply"]
    found, _ = launch(kernel, product, image, descriptors, words)
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(numbers_of(one, product.dtype), other)


SMALL = Product("f32", "f16", "f16", 8)


def findings(product: Product = SMALL, stride: int = 256, threads: int = 128, **replaced: str) -> list[Any]:
    """What is found in a kernel of zeros, with other parts than it should have."""
    kernel = ptxlab.parse(product.text(**replaced), name="multiply.ptx")["multiply"]
    codes = np.array([[Descriptor(0, 128, stride).encode(), Descriptor(4096, 128, 256).encode()]] * 4, np.uint64)
    out = np.zeros((threads, 4), np.uint32)
    args = [np.zeros(8192, np.uint8), 8192, codes, np.zeros((threads, product.words), np.uint32), out]
    result = kernel.launch(1, threads, args, shared=8192, device="cpu", on_error="collect")
    found: list[Any] = result.diagnostics
    return found


def test_a_right_kernel_is_silent() -> None:
    assert findings() == []


def test_a_proxy_fence_is_missing() -> None:
    (found,) = findings(copy=COPY.replace("fence.proxy.async.shared::cta;", ""))
    assert found.code == "missing-proxy-fence"
    assert found.message.startswith("an MMA reads shared memory written by a thread")


def test_the_barrier_is_missing() -> None:
    (found,) = findings(copy=COPY.replace("bar.sync 0;", ""))
    assert found.code == "data-race"
    assert found.message == "unsynchronized: an MMA reads shared memory that a thread writes"


COMMIT = "    wgmma.commit_group.sync.aligned;\n"
WAIT = "    wgmma.wait_group.sync.aligned 0;\n"
ONE_LEFT = "    wgmma.wait_group.sync.aligned 1;\n"
ONE_STORES = """
    setp.ne.u32 %p2, %r0, 0;
    @%p2 bra stored;
    st.shared.b32 [%r2+4096], %r5;
stored:
"""


def test_memory_is_written_before_the_wait() -> None:
    (found,) = findings(commit=COMMIT + ONE_STORES)
    assert (found.code, found.message) == ("data-race", "a thread writes shared memory that an MMA still reads")


def test_memory_is_written_after_the_wait() -> None:
    assert findings(wait=WAIT + ONE_STORES) == []


def test_a_group_that_may_stay_pending_is_still_read() -> None:
    (found,) = findings(wait=ONE_LEFT + ONE_STORES + WAIT)
    assert found.code == "data-race"
    assert findings(commit=COMMIT + COMMIT, wait=ONE_LEFT + ONE_STORES + WAIT) == []


def test_a_descriptor_reaches_too_far() -> None:
    (found,) = findings(stride=2048)
    assert (found.code, found.message) == ("out-of-bounds", "matrix A reaches outside of shared memory")
    assert found.labels[0].text.endswith("element (48, 0) of A would be at address 0x3000")
    assert found.notes[0] == "the descriptor says: start 0x0, leading 128, stride 2048 bytes, no swizzle"


def test_a_warp_of_the_warpgroup_stays_away() -> None:
    away = "    setp.ge.u32 %p2, %r0, 96;\n    @%p2 bra away;\n    wgmma.fence.sync.aligned;\n"
    (found,) = findings(fence=away, store="away:\n")
    assert (found.code, found.message) == ("hang", "96 threads wait for an MMA that never completes")
    assert found.notes[0].endswith("; warp 3 has not")


def test_a_warpgroup_is_not_whole() -> None:
    (found,) = findings(threads=64)
    assert found.code == "barrier-divergence"
    assert found.message == "a warpgroup is four warps, but this one has fewer"


def test_lanes_stay_away() -> None:
    away = "    setp.eq.u32 %p2, %r0, 5;\n    @%p2 bra away;\n    wgmma.fence.sync.aligned;\n"
    (found,) = findings(fence=away, store="away:\n")
    assert found.code == "barrier-divergence"


OWN = "    shr.u32 %r15, %r0, {shift};\n    cvt.u64.u32 %rd9, %r15;\n    add.u64 %rda0, %rda0, %rd9;\n"
FENCE = "    wgmma.fence.sync.aligned;\n"


@pytest.mark.parametrize("shift", [4, 5])  # by halves of a warp, by warps
def test_descriptors_differ(shift: int) -> None:
    (found,) = findings(fence=OWN.format(shift=shift) + FENCE)
    assert found.code == "divergent-descriptor"
    assert found.message == "threads of a warpgroup gave `wgmma` different matrix descriptors"
    assert findings(fence=OWN.format(shift=7) + FENCE) == []
