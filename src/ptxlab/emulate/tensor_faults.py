"""What goes wrong with tensor memory, in words: its allocation, and addresses in it."""

from __future__ import annotations

from ptxlab.emulate.runtime import tensor_memory as runtime
from ptxlab.emulate.runtime import tensor_operands as operands
from ptxlab.isa.instruction_descriptor import COMPLAINTS, KINDS, InstructionDescriptor
from ptxlab.isa.tensor_memory import BAND

Told = tuple[str, str, list[str]]  # message, what to do, facts


def explain_allocation(extra: int, other: int, size: int) -> Told:
    """Message, help and notes on `tcgen05.alloc` or `.dealloc`."""
    reason, columns = extra & 0xFFFFFFFF, extra >> 32
    match reason:
        case runtime.BAD_COUNT:
            return (
                f"{columns} columns of tensor memory are asked for, no power of two from 32 to 512",
                "ask for the next power of two",
                [],
            )
        case runtime.TOO_MANY:
            return (
                f"`tcgen05.alloc` waits for {columns} columns of tensor memory, of which there are not so many left",
                "give columns back first, or ask for fewer",
                [f"the block has {other} of its 512 columns already; nobody is waited for who might give some back"],
            )
        case runtime.GROWING:
            return (
                f"{columns} columns of tensor memory are asked for, after an allocation of {other}",
                "allocate the largest part first",
                ["the number of columns must not increase from one allocation of a block to the next"],
            )
        case runtime.RELINQUISHED:
            return (
                "`tcgen05.alloc` after `tcgen05.relinquish_alloc_permit`",
                "give the permit up after the last allocation",
                [],
            )
        case runtime.NOT_ALLOCATED:
            return (
                f"`tcgen05.dealloc` of {name(other)}, where no allocation begins",
                "give back the address that `tcgen05.alloc` has written",
                [],
            )
    return (
        f"`tcgen05.dealloc` of {columns} columns, where {size} have been allocated",
        f"give back all {size} at once",
        [],
    )


def explain_address(reason: int, address: int, extent: int, warp: int) -> Told:
    """Message, help and notes on an access."""
    lane, lanes, columns = address >> 16, extent & 0xFFFFFFFF, extent >> 32
    cells = _cells(address, lanes, columns)
    match reason:
        case runtime.NO_COLUMNS:
            return (
                f"access to {cells} of tensor memory, which are not all allocated",
                "use the address that `tcgen05.alloc` has written, and allocate enough columns",
                [],
            )
        case runtime.OTHER_LANES:
            first = warp % 4 * BAND
            return (
                f"warp {warp} accesses lanes {lane}..{lane + lanes} of tensor memory, of which it reaches "
                f"{first}..{first + BAND}",
                f"add {first << 16:#x} to the address: the lane stands in its upper half",
                [f"a warp reaches the {BAND} lanes of its number in its warpgroup"],
            )
        case runtime.NOT_UNIFORM:
            return (
                "the lanes of a warp have different addresses of tensor memory",
                "use the same address in all of them",
                [],
            )
    return (
        f"access to {cells} of tensor memory, which has 128 lanes and 512 columns",
        "the lane stands in the upper half of an address, the column in the lower half",
        [],
    )


def name(address: int) -> str:
    """`address 0x200040 (lane 32, column 64)`"""
    return f"address {address:#x} (lane {address >> 16}, column {address & 0xFFFF})"


def _cells(address: int, lanes: int, columns: int) -> str:
    lane, column = address >> 16, address & 0xFFFF
    return f"lanes {lane}..{lane + lanes}, columns {column}..{column + columns}"


_MORE = {
    operands.PACKED_IN_CELLS: "A of four or six bits in tensor memory is not emulated: the manual only draws it",
    operands.ABSOLUTE: "a leading dimension as an absolute address, which only `sm_103a` has, is not emulated",
    operands.NO_MODE: "modes of swizzling are 0, 1, 2, 4 and 6",
    operands.COARSE_MODE: "128-byte swizzling with 32-byte atoms is that of MN-major tf32, and of nothing else here",
    operands.ROWS_IN_CELLS: "with `.ws`, 32 or 64 rows of A in tensor memory are not emulated: they are only drawn",
    operands.NO_PEER: "a product of two blocks needs a cluster that has the second one",
    operands.BAD_FACTORS: "its scale factors reach beyond the four bytes of a cell",
}


def explain_description(extra: int, bits: int) -> tuple[str, list[str]]:
    """Message and notes on a descriptor that stands for no product."""
    reason, kind = extra & 0xFFFFFFFF, KINDS[extra >> 32]
    if reason in _MORE:
        return f"`tcgen05.mma`, kind `{kind}`: {_MORE[reason]}", []
    said = InstructionDescriptor.decode(bits, kind)
    return (
        f"`tcgen05.mma`, kind `{kind}`: {COMPLAINTS[reason]}",
        [f"the instruction descriptor {bits:#010x} says: {said}"],
    )
