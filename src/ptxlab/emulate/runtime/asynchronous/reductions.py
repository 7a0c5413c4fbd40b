"""What `cp.reduce.async.bulk` makes of two values: one in memory and one that a copy brings."""

from __future__ import annotations

from ptxlab.device.element_types import BFLOAT16, BITS32, FLOAT16, FLOAT32, FLOAT32_FTZ, FLOAT64, SIGNED32, SIGNED64
from ptxlab.native import Pointer, boolean, cast, native, s32, s64, table, u8, u16, u32, u64
from ptxlab.numbers.packing import is_nan
from ptxlab.numbers.parameters import BF16, F16, F32, F64, FTZ, RN, SIGN
from ptxlab.numbers.soft import add

# Operations, and types of values; 0: nothing is reduced.
ADD, MIN, MAX, INC, DEC, AND, OR, XOR = range(1, 9)
OPERATIONS = {"add": ADD, "min": MIN, "max": MAX, "inc": INC, "dec": DEC, "and": AND, "or": OR, "xor": XOR}
WIDTHS = table(u32, (4, 4, 8, 8, 2, 2, 4, 8, 4))  # in bytes
NAN = 0x7FFF  # what two NaNs become, of both formats with 16 bits


@native
def reduce_bytes(to: Pointer[u8], source: Pointer[u8], size: u64, operation: u32, type: u32) -> None:
    """Reduce contiguous values into others."""
    width: u32 = WIDTHS[type]
    for at in range(size // u64(width)):
        if width == 2:
            halves = cast(Pointer[u16], to)
            halves[at] = u16(reduced(u64(halves[at]), u64(cast(Pointer[u16], source)[at]), operation, type))
        elif width == 4:
            words = cast(Pointer[u32], to)
            words[at] = u32(reduced(u64(words[at]), u64(cast(Pointer[u32], source)[at]), operation, type))
        else:
            longs = cast(Pointer[u64], to)
            longs[at] = reduced(longs[at], cast(Pointer[u64], source)[at], operation, type)


@native
def can_reduce(operation: u32, type: u32) -> boolean:
    """Whether an H200 has such a reduction of elements of a tensor."""
    if type > FLOAT32_FTZ:
        return False
    if operation == ADD:
        return type != SIGNED64
    if operation == INC or operation == DEC:  # noqa: SIM109 - native functions know no tuples
        return type == BITS32
    if operation == MIN or operation == MAX:  # noqa: SIM109
        return type <= BFLOAT16
    return type < SIGNED64


@native
def reduced(old: u64, new: u64, operation: u32, type: u32) -> u64:
    """What is in memory afterwards."""
    if operation == AND:
        return old & new
    if operation == OR:
        return old | new
    if operation == XOR:
        return old ^ new
    if operation == INC:
        return 0 if old >= new else old + 1
    if operation == DEC:
        return new if old == 0 or old > new else old - 1
    if operation == ADD:
        return added(old, new, type)
    if (type == FLOAT16 and is_nan(old, F16) and is_nan(new, F16)) or (
        type == BFLOAT16 and is_nan(old, BF16) and is_nan(new, BF16)
    ):
        return NAN
    if operation == MIN:
        return old if is_less(old, new, type) else new
    return old if is_greater(old, new, type) else new


@native
def added(old: u64, new: u64, type: u32) -> u64:
    """The sum; an H200 keeps subnormal sums of f32, unlike `red`, whether or not `.noftz` is said."""
    if type == FLOAT16:
        return add(old, new, F16, RN, 0)
    if type == BFLOAT16:
        return add(old, new, BF16, RN, 0)
    if type == FLOAT32:
        return add(old, new, F32, RN, 0)
    if type == FLOAT32_FTZ:
        return add(old, new, F32, RN, FTZ)
    if type == FLOAT64:
        return add(old, new, F64, RN, 0)
    return u64(old + new)


@native
def is_less(a: u64, b: u64, type: u32) -> boolean:
    """Whether `a` is the smaller one; against a NaN every number is."""
    if type == SIGNED32:
        return s32(u32(a)) < s32(u32(b))
    if type == SIGNED64:
        return s64(a) < s64(b)
    if type == FLOAT16:
        return is_nan(b, F16) or (not is_nan(a, F16) and rank_of(a, F16) < rank_of(b, F16))
    if type == BFLOAT16:
        return is_nan(b, BF16) or (not is_nan(a, BF16) and rank_of(a, BF16) < rank_of(b, BF16))
    return a < b


@native
def is_greater(a: u64, b: u64, type: u32) -> boolean:
    """Whether `a` is the larger one; against a NaN every number is."""
    if type == FLOAT16:
        return is_nan(b, F16) or (not is_nan(a, F16) and rank_of(a, F16) > rank_of(b, F16))
    if type == BFLOAT16:
        return is_nan(b, BF16) or (not is_nan(a, BF16) and rank_of(a, BF16) > rank_of(b, BF16))
    return is_less(b, a, type)


@native
def rank_of(pattern: u64, format: u32) -> s64:
    """The rank of a float among all others; both zeros at 0."""
    sign: u64 = SIGN[format]
    return s64(pattern) if pattern & sign == 0 else 0 - s64(pattern ^ sign)
