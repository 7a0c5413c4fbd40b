"""What `tcgen05.mma` multiplies: shape and types in 32 bits, the instruction descriptor (PTX ISA 9.7.16.4.2).

descriptor = InstructionDescriptor("f16", rows=128, columns=64, atype="bf16", btype="bf16", dtype="f32")
bits = descriptor.encode()
print(InstructionDescriptor.decode(bits, "f16"))  # 128x64x16: f32 += bf16 * bf16, A K-major, B K-major
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxlab.native import boolean, native, u32, u64
from ptxlab.values import dataclass

# The kinds, by the number that the emulator gives them.
KINDS = ("f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4")
F16, TF32, F8F6F4, I8, MXF8F6F4, MXF4, MXF4NVF4 = range(7)
DEPTHS = (16, 8, 32, 32, 32, 64, 64)
LONG = 96  # K of fp4 with bit 31 of the descriptor, on this target alone:
LONG_TARGET = "sm_103a"

_SMALL = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
_TYPES: dict[str, dict[str, int]] = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": _SMALL,
    "i8": {"u8": 0, "s8": 1},
    "mxf8f6f4": _SMALL,
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
}
_RESULTS = {"f16": {"f16": 0, "f32": 1}, "tf32": {"f32": 1}, "f8f6f4": {"f16": 0, "f32": 1}, "i8": {"s32": 2}}


def type_codes(kind: str) -> Mapping[str, int]:
    """The types that A and B of a kind can have, with their numbers in a descriptor."""
    return _TYPES[kind]


# What is wrong with one, as the emulator numbers it.
BAD_ROWS = 1
BAD_COLUMNS = 2
BAD_TYPE = 3
BAD_RESULT = 4
BAD_TRANSPOSE = 5
BAD_SPARSITY = 6
BAD_SIGN = 7
BAD_STATIONARY = 8
BAD_PAIR = 9
NOT_SPARSE = 10
BAD_SELECTOR = 11
BAD_DEPTH = 12

# The forms of an MMA: of one block, of one block with `.ws`, of two blocks.
PLAIN = 0
STATIONARY = 1
PAIR = 2


@native(inline=True)
def rows_of(bits: u32, kind: u32) -> u32:
    return ((bits >> 24) & 31) << 4 if kind < MXF8F6F4 else ((bits >> 27) & 3) << 7


@native(inline=True)
def columns_of(bits: u32) -> u32:
    return ((bits >> 17) & 63) << 3


@native
def is_type(code: u32, kind: u32) -> u32:
    """Whether the number of a type of A or B is one that the kind has."""
    if kind == F16 or kind == I8:  # noqa: SIM109 - native functions know no tuples
        return 1 if code < 2 else 0
    if kind == TF32:
        return 1 if code == 2 else 0
    if kind >= MXF4:
        return 1 if code == 1 else 0
    return 1 if code <= 5 and code != 2 else 0


@native(inline=True)
def is_long(bits: u32, kind: u32) -> boolean:
    """Whether K is 96."""
    return kind >= MXF4 and bits >> 31 != 0


@native(inline=True)
def stored_depth_of(bits: u32, kind: u32) -> u32:
    """The columns of A that are stored."""
    return u32(LONG) if is_long(bits, kind) else DEPTHS[kind]


@native(inline=True)
def depth_of(bits: u32, kind: u32, is_sparse: u32) -> u32:
    """The columns of A, of which a sparse one stores half."""
    return stored_depth_of(bits, kind) << is_sparse


@native(inline=True)
def bytes_of_row(bits: u32, kind: u32) -> u64:
    """The bytes of a row of A as it is stored."""
    return 48 if is_long(bits, kind) else 32


@native
def operations_of(bits: u32, kind: u32, is_sparse: u32) -> u64:
    """The multiplications and additions of an MMA, those with zeros of a sparse A included."""
    return 2 * u64(rows_of(bits, kind)) * u64(columns_of(bits)) * u64(depth_of(bits, kind, is_sparse))


@native
def bytes_of_a(bits: u32, kind: u32) -> u64:
    """The bytes of A that an MMA reads: 32 of each row or, where K is 96, 48; of a sparse one as it is stored."""
    return u64(rows_of(bits, kind)) * bytes_of_row(bits, kind)


@native
def bytes_of_b(bits: u32, kind: u32, is_sparse: u32) -> u64:
    """The bytes of B that an MMA reads: as many of each column as of a row of A, for a sparse A twice as many."""
    return u64(columns_of(bits)) * bytes_of_row(bits, kind) << is_sparse


# PTX ISA 9.7.16.2.1 has a table of what goes together. Each of these says what is wrong with a descriptor of an
# instruction with or without `.sp`; 0: nothing.


@native
def violation_of_sparsity(bits: u32, kind: u32, form: u32, is_sparse: u32) -> u32:
    """Whether the descriptor and the instruction say different things of A, or the selector is not one."""
    if bits >> 2 & 1 != is_sparse:
        return NOT_SPARSE if is_sparse != 0 else BAD_SPARSITY
    # PTX ISA 9.7.16.10.8.4: the kinds with scale factors ignore the selector.
    if is_sparse != 0 and kind < MXF8F6F4 and bits & 3 > (1 if kind <= TF32 else 0):
        return BAD_SELECTOR
    return 0


@native
def violation_of_shape(bits: u32, kind: u32, form: u32, is_sparse: u32) -> u32:
    """Whether the form does not have these rows and columns."""
    rows: u32 = rows_of(bits, kind)
    columns: u32 = columns_of(bits)
    if is_long(bits, kind) and (is_sparse != 0 or (form == PAIR and rows != 256)):
        return BAD_DEPTH
    if form == PAIR:
        if (rows != 256 and rows != 128) or columns % (32 if kind == I8 else 16) != 0:
            return BAD_PAIR
        if rows != 256 and kind >= MXF8F6F4 and is_sparse != 0:
            return BAD_PAIR
    elif form == STATIONARY:
        if rows != 128 and rows != 64 and rows != 32:
            return BAD_STATIONARY
        if (columns != 256 or is_sparse != 0) and columns != 128 and columns != 64:
            return BAD_STATIONARY
    elif rows != 128 and (rows != 64 or kind >= MXF8F6F4):
        return BAD_ROWS
    return 0


@native
def violation_of_columns(bits: u32, kind: u32, form: u32, is_sparse: u32) -> u32:
    """Whether no form of the kind has these columns."""
    columns: u32 = columns_of(bits)
    if columns == 0 or columns > 256:
        return BAD_COLUMNS
    return u32(BAD_COLUMNS) if kind == I8 and columns > 32 and columns % 16 != 0 else u32(0)


@native
def violation_of_types(bits: u32, kind: u32, form: u32, is_sparse: u32) -> u32:
    """Whether the kind does not have a type of A or B, or does not negate them."""
    second: u32 = (bits >> 10) & 7 if kind < MXF4 else (bits >> 10) & 3
    if is_type(bits >> 7 & 7, kind) == 0 or is_type(second, kind) == 0:
        return BAD_TYPE
    return 0


@native
def violation_of_result(bits: u32, kind: u32, form: u32, is_sparse: u32) -> u32:
    """Whether the kind does not have the type of D, or not with these types of A and B; or negates integers."""
    result: u32 = (bits >> 4) & 3
    if kind < MXF8F6F4:
        if result > 2 or (kind == I8) != (result == 2) or (kind == TF32 and result != 1):
            return BAD_RESULT
        if kind == F16 and result == 0 and bits >> 7 & 0x3F != 0:
            return BAD_RESULT
    return u32(BAD_SIGN) if kind == I8 and bits >> 13 & 3 != 0 else u32(0)


@native
def violation_of_transposes(bits: u32, kind: u32, form: u32, is_sparse: u32) -> u32:
    """Whether A or B cannot be transposed."""
    first: u32 = (bits >> 7) & 7
    second: u32 = (bits >> 10) & 7
    transposed: u32 = (bits >> 15) & 3
    if transposed == 0:
        return 0
    if kind >= MXF4:
        return BAD_TRANSPOSE
    has_small: boolean = (transposed & 1 != 0 and first > 1) or (transposed & 2 != 0 and second > 1)
    if has_small and kind != F16 and kind != TF32:
        return BAD_TRANSPOSE
    # Of bytes, B is transposed only in steps of sixteen columns (table 52).
    if kind >= F8F6F4 and transposed & 2 != 0 and columns_of(bits) % (32 if form == PAIR else 16) != 0:
        return BAD_COLUMNS
    return 0


@native
def violation_in(bits: u32, kind: u32, form: u32, is_sparse: u32) -> u32:
    """The first thing that is wrong with a descriptor of an instruction with or without `.sp`; 0: nothing."""
    found: u32 = violation_of_sparsity(bits, kind, form, is_sparse)
    if found == 0:
        found = violation_of_shape(bits, kind, form, is_sparse)
    if found == 0:
        found = violation_of_columns(bits, kind, form, is_sparse)
    if found == 0:
        found = violation_of_types(bits, kind, form, is_sparse)
    if found == 0:
        found = violation_of_result(bits, kind, form, is_sparse)
    if found == 0:
        found = violation_of_transposes(bits, kind, form, is_sparse)
    return found


def violations_in(bits: int, kind: int, form: int, is_sparse: int) -> list[int]:
    """All that is wrong with a descriptor, by the same functions."""
    parts = (violation_of_sparsity, violation_of_shape, violation_of_columns, violation_of_types, violation_of_result,
             violation_of_transposes)  # fmt: skip
    found = (int(part(bits, kind, form, is_sparse)) for part in parts)
    return list(dict.fromkeys(violation for violation in found if violation))


def reserved_bits(kind: str) -> int:
    """The bits of a descriptor that must be 0 in this kind (PTX ISA 9.7.16.4.2, tables 42 to 44)."""
    if not kind.startswith("mx"):
        return 1 << 6 | 1 << 23 | 1 << 29
    reserved = 0b11 | 1 << 3 | 1 << 6 | 0b111 << 24
    return reserved | (1 << 31 if kind == "mxf8f6f4" else 1 << 12)


VIOLATIONS = {
    BAD_ROWS: "a block alone multiplies 64 or 128 rows, and only 128 with scale factors",
    BAD_COLUMNS: "columns come in eights up to 256, of bytes in sixteens if B is transposed or D has more than 32",
    BAD_TYPE: "this kind does not have the type of A or B",
    BAD_RESULT: "this kind does not have the type of D with these types of A and B",
    BAD_TRANSPOSE: "A and B of four or six bits are not transposed",
    BAD_SPARSITY: "it says that A is sparse, which `.sp` must say, too",
    BAD_SIGN: "integers are not negated",
    BAD_PAIR: "two blocks multiply 128 or 256 rows, with scale factors and a sparse A 256, columns in sixteens or, of "
    "bytes, in 32s",
    BAD_STATIONARY: "with `.ws` there are 32, 64 or 128 rows, and 64, 128 or 256 columns, not 256 of a sparse A",
    NOT_SPARSE: "it says that A is dense, but the instruction has `.sp`",
    BAD_DEPTH: "a K of 96 goes with a dense A, and with two blocks with 256 rows",
    BAD_SELECTOR: "the sparsity selector is 0 or 1 for 16 bits and tf32, and 0 for smaller types",
}


@dataclass(frozen=True)
class InstructionDescriptor:
    """What an instruction descriptor says. `a_id` and `b_id` choose bytes of scale factors, whose type is `scale`."""

    kind: str
    rows: int
    columns: int
    atype: str
    btype: str
    dtype: str = "f32"
    negate_a: bool = False
    negate_b: bool = False
    transpose_a: bool = False
    transpose_b: bool = False
    saturate: bool = False
    scale: str = "ue8m0"
    a_id: int = 0
    b_id: int = 0
    selector: int | None = None
    """Which of two columns of TMEM has the metadata of a sparse A (`.sp`); `None`: A is dense."""
    form: int = PLAIN
    """Whether it is for `.ws`, or for two blocks, which have other shapes; the bits do not say."""
    long: bool = False
    """Whether K is 96, of fp4 on sm_103a."""

    @property
    def depth(self) -> int:
        """The columns of A, which are the rows of B."""
        return depth_of(self.long << 31, KINDS.index(self.kind), int(self.selector is not None))

    def encode(self) -> int:
        """The 32 bits; a `ValueError` says what the hardware does not multiply."""
        types, results = _TYPES.get(self.kind), _RESULTS.get(self.kind, {"f32": 0})
        if types is None:
            raise ValueError(f"there is no kind `{self.kind}`, only {', '.join(KINDS)}")
        for type in (self.atype, self.btype):
            if type not in types:
                raise ValueError(f"kind `{self.kind}` has no type `{type}`, only {', '.join(types)}")
        if self.dtype not in results:
            raise ValueError(f"kind `{self.kind}` gives no `{self.dtype}`, only {', '.join(results)}")
        bits = types[self.atype] << 7 | types[self.btype] << 10 | self.columns >> 3 << 17
        bits |= self.negate_a << 13 | self.negate_b << 14 | self.transpose_a << 15 | self.transpose_b << 16
        if self.is_scaled:
            bits |= self.rows >> 7 << 27 | self.a_id << 29 | self.b_id << 4 | (self.scale == "ue8m0") << 23
        else:
            bits |= self.rows >> 4 << 24 | results[self.dtype] << 4 | self.saturate << 3
        if self.long and not self.kind.startswith("mxf4"):
            raise ValueError(f"kind `{self.kind}` has no K of 96, only `mxf4` and `mxf4nvf4`")
        bits |= self.long << 31
        if self.selector is not None:
            bits |= 4 | self.selector & 3
        violation = violation_in(bits, KINDS.index(self.kind), self.form, int(self.selector is not None))
        if violation or self.columns % 8 or self.rows % 32:
            raise ValueError(f"{self}: {VIOLATIONS[violation or BAD_COLUMNS]}")
        return bits

    @property
    def is_scaled(self) -> bool:
        return self.kind.startswith("mx")

    @staticmethod
    def decode(bits: int, kind: str) -> InstructionDescriptor:
        """What 32 bits say in an instruction of that kind; a type that it does not have is `?`."""
        types = {number: name for name, number in _TYPES[kind].items()}
        results = {number: name for name, number in _RESULTS.get(kind, {}).items()}
        number, is_scaled = KINDS.index(kind), kind.startswith("mx")
        return InstructionDescriptor(
            kind,
            rows_of(bits, number),
            columns_of(bits),
            types.get(bits >> 7 & 7, "?"),
            types.get(bits >> 10 & (3 if kind.startswith("mxf4") else 7), "?"),
            "f32" if is_scaled else results.get(bits >> 4 & 3, "?"),
            negate_a=bool(bits >> 13 & 1),
            negate_b=bool(bits >> 14 & 1),
            transpose_a=bool(bits >> 15 & 1),
            transpose_b=bool(bits >> 16 & 1),
            saturate=not is_scaled and bool(bits >> 3 & 1),
            scale="ue4m3" if is_scaled and not bits >> 23 & 1 else "ue8m0",
            a_id=bits >> 29 & 3 if is_scaled else 0,
            b_id=bits >> 4 & 3 if is_scaled else 0,
            selector=bits & 3 if bits >> 2 & 1 else None,
            long=bool(is_long(bits, number)),
        )

    def __str__(self) -> str:
        left, right = "-" * self.negate_a + self.atype, "-" * self.negate_b + self.btype
        majors = f"A {'MN' if self.transpose_a else 'K'}-major, B {'MN' if self.transpose_b else 'K'}-major"
        more = f", factors {self.scale} from bytes {self.a_id} and {self.b_id}" if self.is_scaled else ""
        more += ", saturated" if self.saturate else ""
        more += "" if self.selector is None else f", A sparse with selector {self.selector}"
        return f"{self.rows}x{self.columns}x{self.depth}: {self.dtype} += {left} * {right}, {majors}{more}"
