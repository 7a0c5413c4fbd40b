"""A small compiler: typed Python functions on numbers and pointers, as machine code.

    @native
    def find_leading(a: u32) -> u32:
        position: u32 = 31
        while position != 0xFFFFFFFF and (a >> position) & 1 == 0:
            position = u32(position - 1)
        return position

Called from Python, such a function is Python and computes on Python's integers; nothing wraps around unless a type is
applied, `u32(…)`, so it is applied wherever a result can leave the range. `translate.emit` makes LLVM IR of it,
`engine` machine code. The words of the language are here; what may be written with them is said in `translate`.
"""

from typing import TYPE_CHECKING

from .allocation import calloc, free, malloc, realloc
from .functions import external, native
from .growable import Growable, append, free_items, reserve, resize
from .operations import (
    address_of,
    array,
    atomic_add,
    atomic_and,
    atomic_compare_exchange,
    atomic_exchange,
    atomic_load,
    atomic_or,
    atomic_store,
    bits_float,
    call,
    cast,
    constants,
    copy_bytes,
    count_ones,
    fill_bytes,
    float_bits,
    fma,
    function_pointer,
    leading_zeros,
    likely,
    reverse_bits,
    scratch,
    sqrt,
    table,
    trailing_zeros,
    trap,
    truncate,
    unlikely,
)
from .types import (
    Pointer,
    boolean,
    f32,
    f64,
    offset_of,
    s8,
    s16,
    s32,
    s64,
    size_of,
    struct,
    u8,
    u16,
    u32,
    u64,
    u128,
)

if TYPE_CHECKING:
    from typing import Annotated as Array  # an array in a structure; to mypy it is as its elements are
else:
    from .types import Array

__all__ = [
    "Array",
    "Growable",
    "Pointer",
    "address_of",
    "append",
    "array",
    "atomic_add",
    "atomic_and",
    "atomic_compare_exchange",
    "atomic_exchange",
    "atomic_load",
    "atomic_or",
    "atomic_store",
    "bits_float",
    "boolean",
    "call",
    "calloc",
    "cast",
    "constants",
    "copy_bytes",
    "count_ones",
    "external",
    "f32",
    "f64",
    "fill_bytes",
    "float_bits",
    "fma",
    "free",
    "free_items",
    "function_pointer",
    "leading_zeros",
    "likely",
    "malloc",
    "native",
    "offset_of",
    "realloc",
    "reserve",
    "resize",
    "reverse_bits",
    "s8",
    "s16",
    "s32",
    "s64",
    "scratch",
    "size_of",
    "sqrt",
    "struct",
    "table",
    "trailing_zeros",
    "trap",
    "truncate",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "unlikely",
]
