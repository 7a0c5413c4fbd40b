"""What goes wrong with tensor memory, in words: its allocation, and addresses in it."""

from __future__ import annotations

from ptxlab.emulate.runtime.asynchronous import tensor_maps
from ptxlab.emulate.runtime.tensor_memory import allocation as runtime
from ptxlab.emulate.runtime.tensor_memory import operands as operands
from ptxlab.isa.instruction_descriptor import KINDS, VIOLATIONS, InstructionDescriptor
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


def explain_use_after_free(address: int, extent: int) -> tuple[str, str]:
    """Message and help on an access to what is given back."""
    cells = _cells(address, extent & 0xFFFFFFFF, extent >> 32)
    return (
        f"access to {cells} of tensor memory after `tcgen05.dealloc` has freed them",
        "`bar.sync`, or another barrier of all warps that use the memory, before `tcgen05.dealloc`",
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
                f"add {first << 16:#x} to an address without a lane: its upper half is the lane",
                [
                    f"a warp reaches the {BAND} lanes of its number in its warpgroup; an address without a lane means "
                    "those (modelled, not measured)"
                ],
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
    operands.NO_MODE: "modes of swizzling are 0, 1, 2, 4 and 6, the descriptor says {}",
    operands.COARSE_MODE: "128-byte swizzling with 32-byte atoms is that of MN-major tf32, and of nothing else here",
    operands.ROWS_IN_CELLS: "with `.ws`, 32 or 64 rows of A in tensor memory are not emulated: they are only drawn",
    operands.NO_PEER: "an MMA of two blocks needs a cluster that has the second one",
    operands.BAD_FACTORS: "its scale factors reach beyond the four bytes of a TMEM word",
}


def explain_description(extra: int, bits: int, is_copy: bool) -> tuple[str, list[str]]:
    """Message and notes on a descriptor that stands for no MMA, or for no matrix that can be copied."""
    reason, kind = extra & 0xFFFFFFFF, KINDS[extra >> 32]
    instruction = "`tcgen05.cp`" if is_copy else f"`tcgen05.mma`, kind `{kind}`"
    if reason in _MORE:
        return f"{instruction}: {_MORE[reason].format(bits)}", []
    said = InstructionDescriptor.decode(bits, kind)
    return f"{instruction}: {VIOLATIONS[reason]}", [f"the instruction descriptor {bits:#010x} says: {said}"]


# Fields of a tensor map, as `cuTensorMapEncodeTiled` names them, and what they may hold.
_FIELDS = {
    tensor_maps.RANK: ("tensorRank", "1 to 5"),
    tensor_maps.WIDTH: ("tensorDataType", "elements of 1, 2, 4 or 8 bytes"),
    tensor_maps.SWIZZLE: ("swizzle", "0 to 3"),
    tensor_maps.ADDRESS: ("globalAddress", "a multiple of 16"),
    tensor_maps.SIZES: ("globalDim", "1 or more"),
    tensor_maps.BOX: ("boxDim", "1 to 256"),
    tensor_maps.STEPS: ("elementStrides", "1 to 8"),
    tensor_maps.STRIDES: ("globalStrides", "a multiple of 16"),
}
_PER_DIMENSION = (tensor_maps.SIZES, tensor_maps.BOX, tensor_maps.STEPS, tensor_maps.STRIDES)
_OVERWRITTEN = "no host makes such a map: its bytes were changed since, or are not all there"


def explain_map(reason: int, value: int, rank: int) -> tuple[str, list[str], list[str]]:
    """Message, notes and helps on a tensor map that is none, is damaged, or does not fit its copy."""
    field, dimension = reason & 0xFF, reason >> tensor_maps.DIMENSION_SHIFT
    match field:
        case tensor_maps.NO_MAP:
            return (
                "the address of a tensor map points to something else",
                [],
                ["make one with `ptxlab.tensor_map(array, box=…)`"],
            )
        case tensor_maps.OTHER_RANK:
            return f"a tensor map of {value} dimension{'s' * (value > 1)} for a copy with {rank}", [], []
        case tensor_maps.NO_REDUCTION:
            return "a reduction that elements of this tensor map do not have", [], []
        case tensor_maps.ROW:
            message = f"a damaged tensor map: a row of its box has {value} bytes"
            return message, ["it must be a multiple of 16, and no more than the swizzle spans", _OVERWRITTEN], []
        case tensor_maps.TOTAL:
            return "a damaged tensor map: its box has more bytes than shared memory", [_OVERWRITTEN], []
    name, allowed = _FIELDS[field]
    if field in _PER_DIMENSION:
        name += f"[{dimension}]"
    shown = f"{value:#x}" if field == tensor_maps.ADDRESS else str(value)
    return f"a damaged tensor map: `{name}` is {shown}, not {allowed}", [_OVERWRITTEN], []
