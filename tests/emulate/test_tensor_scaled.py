"""`tcgen05.mma` with scale factors in tensor memory, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.descriptor import ABSOLUTE
from ptxlab.isa.units.descriptor import Descriptor as ShapeOf
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor as Descriptor
from tests.emulate.blackwell import launch
from tests.emulate.tensor_kernels import BODY, CLEAR, FILL, SHARED, laid_out, patterns, values

# Factors of A in four columns from 256 on, of B in the next four.
FACTORS = "add.u32 %r24, %r15, 4;\n    "


def factors(rows: int, count: int, scale: str, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The numbers, and their bytes: a row of four for each row of A, or column of B."""
    if scale == "ue8m0":
        bits = random.integers(124, 131, (rows, 4)).astype(np.uint8)
        return 2.0 ** (bits[:, :count].astype(np.float64) - 127), bits
    numbers = random.choice([0.5, 1, 1.5, 2, 3.5], (rows, 4))
    return numbers[:, :count], numbers.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def in_lanes(bits: np.ndarray, *, split: bool = False) -> np.ndarray:
    """Where they are: 32 rows in 32 lanes, the next 32 a column further, the same in each quarter of the lanes.

    Those of B are `split` where two quarters compute half of the columns: they have the factors of these.
    """
    found = np.zeros((128, 4, 4), np.uint8)
    halves = np.split(bits, 2) if split else [bits, bits]
    for first, half in zip((0, 64), halves, strict=True):
        for row in range(len(half)):
            found[first + row % 32 : first + 64 : 32, row // 32] = half[row]
    return found


CASES = [
    ("scale_vec::1X", Descriptor("mxf8f6f4", 128, 64, "e4m3", "e5m2")),
    ("scale_vec::1X", Descriptor("mxf8f6f4", 128, 128, "e2m1", "e2m3", a_id=2, b_id=1)),
    ("scale_vec::2X", Descriptor("mxf4", 128, 32, "e2m1", "e2m1", b_id=2)),
    ("scale_vec::2X", Descriptor("mxf4nvf4", 128, 40, "e2m1", "e2m1")),
    ("scale_vec::4X", Descriptor("mxf4nvf4", 128, 64, "e2m1", "e2m1", scale="ue4m3", negate_a=True)),
    ("scale_vec::4X", Descriptor("mxf4nvf4", 128, 16, "e2m1", "e2m1")),
]


def multiply(
    size: str, said: Descriptor, *, damaged: int | None = None, bits: int = 0, detectors: bool = True
) -> tuple[np.ndarray, np.ndarray, list[ptxlab.Diagnostic]]:
    """What a kernel computes, what it should, and what was found.

    A `damaged` quarter has other factors of B; `bits` are set in the instruction descriptor.
    """
    random = np.random.default_rng(3)
    count, padded = int(size[-2]), said.kind == "mxf8f6f4"
    a = values(said.atype, said.rows, said.depth, random, exact=True)
    b = values(said.btype, said.columns, said.depth, random, exact=True)
    data, a_descriptor = laid_out(a, said.atype, 0, "128B", False, padded)
    data = data.ljust(-(-len(data) // 1024) * 1024, b"\0")
    more, b_descriptor = laid_out(b, said.btype, len(data), "none", False, padded)
    data = (data + more).ljust(-(-len(data + more) // 2048) * 2048, b"\0")
    left, left_bits = factors(said.rows, 4, said.scale, random)
    right, right_bits = factors(said.columns, 4, said.scale, random)
    given = [a_descriptor, b_descriptor, said.encode() | bits, len(data) // 16, said.columns, 1, 0, 0, 0, 256]
    rows = np.concatenate([in_lanes(left_bits), in_lanes(right_bits)], axis=1)
    if damaged is not None:
        rows[damaged * 32 : damaged * 32 + 32, 4:] += 1
    kind = f"tcgen05.mma.cta_group::1.kind::{said.kind}.block_scale.{size}"
    instruction = f"{FACTORS}{kind} [%r14], %rd10, %rd11, %r10, [%r15], [%r24], %p2;"
    body = BODY.replace("PREPARE", CLEAR + FILL).replace("MULTIPLY", instruction)
    out = np.zeros((128, said.columns), np.float32)
    args = [out, np.frombuffer(data + rows.tobytes(), np.uint8).copy(), np.array(given, np.uint64)]
    found = launch(body, args, shared=SHARED, detectors=detectors).diagnostics
    each = said.depth // count
    first, second = (array.astype(np.float64) for array in (a, b))
    first = first * np.repeat(left[:, said.a_id : said.a_id + count], each, axis=1) * (-1 if said.negate_a else 1)
    second = second * np.repeat(right[:, said.b_id : said.b_id + count], each, axis=1)
    return out, first @ second.T, found


@pytest.mark.parametrize(("size", "said"), CASES, ids=lambda case: str(case).replace("::", ""))
def test_blocks_are_scaled(size: str, said: Descriptor) -> None:
    out, expected, found = multiply(size, said)
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("case", [CASES[0], CASES[2]], ids=str)
def test_rows_have_the_factors_of_their_own_sub_partition(case: tuple[str, Descriptor]) -> None:
    """A copy of ue8m0 that is one too large doubles the rows of that quarter of the lanes."""
    out, expected, _ = multiply(*case, damaged=2, detectors=False)
    expected[64:96] *= 2
    assert np.array_equal(out, expected)
    *_, (found,) = multiply(*case, damaged=2)
    assert found.code == "unequal-scale-factors"


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (1 << 29, "two scale factors of a row are bytes 0 and 1 or 2 and 3 of a TMEM word, four are all of it"),
        (1 << 31, "a K of 96 (bit 31 of the instruction descriptor) is for `sm_103a` only"),
    ],
)
def test_bad_instruction_descriptors(bits: int, message: str) -> None:
    *_, (found,) = multiply(*CASES[3], bits=bits)
    assert (found.code, found.message) == ("bad-descriptor", f"`tcgen05.mma`, kind `mxf4nvf4`: {message}")


# A K of 96, of sm_103a: rows of 48 bytes, which may end in another buffer; three or six factors in two words.

LONG_CASES = [
    ("block32", Descriptor("mxf4", 128, 32, "e2m1", "e2m1", a_id=3, b_id=1, long=True), 0),
    ("block32", Descriptor("mxf4nvf4", 128, 192, "e2m1", "e2m1", b_id=2, long=True), 6),
    ("block16", Descriptor("mxf4nvf4", 128, 64, "e2m1", "e2m1", scale="ue4m3", a_id=2, long=True), 7),
]


def in_two_words(bits: np.ndarray) -> np.ndarray:
    """Factors of a row in two words: the second one four columns further, or eight where there are more than 128."""
    step = 8 if len(bits) > 128 else 4
    found = np.zeros((128, 2 * step, 4), np.uint8)
    for row in range(len(bits)):
        for word in range(2):
            found[row % 32 :: 32, word * step + row // 32] = bits[row, 4 * word : 4 * word + 4]
    return found


def in_groups(rows: np.ndarray) -> np.ndarray:
    """Words of lanes as `FILL` stores them: eight columns, then the next eight."""
    return np.ascontiguousarray(rows.reshape(128, -1, 8, 4).transpose(1, 0, 2, 3))


def long_factors(rows: int, scale: str, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Eight factors for each row, and their bytes."""
    (first, first_bits), (second, second_bits) = (factors(rows, 4, scale, random) for _ in range(2))
    return np.concatenate([first, second], axis=1), np.concatenate([first_bits, second_bits], axis=1)


def across(array: np.ndarray, start: int) -> bytes:
    """Rows of 48 bytes from chunk `start` of swizzled rows of 128 bytes on; what is beyond is in the next buffer."""
    rows = patterns(array, "e2m1").reshape(len(array), 3, 16, 2)
    packed = (rows[..., 0] | rows[..., 1] << 4).astype(np.uint8)
    found = np.zeros((2, len(array), 8, 16), np.uint8)
    for row in range(len(array)):
        for chunk in range(3):
            buffer, column = divmod(start + chunk, 8)
            found[buffer, row, column ^ row % 8] = packed[row, chunk]
    return found.tobytes()


def multiply_long(size: str, said: Descriptor, start: int) -> tuple[np.ndarray, np.ndarray, list[ptxlab.Diagnostic]]:
    """What a kernel for sm_103a computes, what it should, and what was found."""
    random = np.random.default_rng(4)
    count = 96 // int(size[-2:])
    a = values("e2m1", said.rows, 96, random, exact=True)
    b = values("e2m1", said.columns, 96, random, exact=True)
    data = across(a, start)
    a_descriptor = ShapeOf(16 * start, len(data) // 2, 1024, "128B").encode_for_tcgen05() | ABSOLUTE
    more, b_descriptor = laid_out(b, "e2m1", len(data), "none", False, False)
    data = (data + more).ljust(-(-len(data + more) // 2048) * 2048, b"\0")
    left, left_bits = long_factors(said.rows, said.scale, random)
    right, right_bits = long_factors(said.columns, said.scale, random)
    rows = np.concatenate([in_two_words(left_bits), in_two_words(right_bits)], axis=1)
    groups = rows.shape[1] // 8
    filled = in_groups(rows)
    given = [a_descriptor, b_descriptor, said.encode(), len(data) // 16, said.columns, 1, 0, 0, 0, 256]
    kind = f"tcgen05.mma.cta_group::1.kind::{said.kind}.block_scale.{size}"
    # The address of the next buffer is an absolute one.
    instruction = (
        "shl.b64 %rd17, %rd6, 16; add.u64 %rd10, %rd10, %rd17; add.u32 %r24, %r15, 8;\n"
        f"{kind} [%r14], %rd10, %rd11, %r10, [%r15], [%r24], %p2;"
    )
    body = BODY.replace("PREPARE", CLEAR + FILL.replace("%r13", str(groups))).replace("MULTIPLY", instruction)
    out = np.zeros((128, said.columns), np.float32)
    args = [out, np.frombuffer(data + filled.tobytes(), np.uint8).copy(), np.array(given, np.uint64)]
    found = launch(body, args, shared=SHARED + 4096, target="sm_103a").diagnostics
    first = a.astype(np.float64) * np.repeat(left[:, said.a_id : said.a_id + count], 96 // count, axis=1)
    second = b.astype(np.float64) * np.repeat(right[:, said.b_id : said.b_id + count], 96 // count, axis=1)
    return out, first @ second.T, found


@pytest.mark.parametrize(("size", "said", "start"), LONG_CASES, ids=str)
def test_rows_of_96_elements(size: str, said: Descriptor, start: int) -> None:
    out, expected, found = multiply_long(size, said, start)
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(out, expected)
