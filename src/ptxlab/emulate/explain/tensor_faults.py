"""What goes wrong with tensor memory: its allocation, and addresses in it."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import AllocationReason, TensorAddressReason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.isa.units.tensor_memory import BAND
from ptxlab.isa.units.tensor_sparsity import KEPT
from ptxlab.report import Diagnostic, Label

Explained = tuple[str, str, list[str]]  # message, what to do, facts


def explain_bad_allocation(fault: FaultSnapshot) -> Diagnostic:
    """`tcgen05.alloc` or `.dealloc` with columns that it can't have."""
    message, help, notes = _explain_allocation(fault)
    return fault.error("bad-allocation", message, notes=notes, helps=[help])


def explain_tensor_leak(fault: FaultSnapshot) -> Diagnostic:
    """A block that ends without giving its tensor memory back."""
    return fault.error(
        "tensor-memory-leak",
        f"{fault.value} columns of tensor memory are still allocated when the block ends",
        f"allocated here by {fault.who.partition(' of ')[2]}",
        helps=["`tcgen05.dealloc` with the same number of columns, after all uses"],
    )


def explain_bad_tensor_address(fault: FaultSnapshot) -> Diagnostic:
    """An access to tensor memory that the thread does not have, or no longer has."""
    if fault.reason != TensorAddressReason.FREED:
        message, help, notes = _explain_address(fault)
        return fault.error("out-of-bounds", message, notes=notes, helps=[help])
    freed = fault.launch.span_of(fault.record.get("other_instruction") - 1)
    return fault.error(
        "use-after-free",
        f"access to {_cells(fault)} of tensor memory after `tcgen05.dealloc` has freed them",
        others=[] if freed is None else [Label(freed, "freed here")],
        helps=["`bar.sync`, or another barrier of all warps that use the memory, before `tcgen05.dealloc`"],
    )


def explain_bad_metadata(fault: FaultSnapshot) -> Diagnostic:
    """Metadata of a sparse A that choose no elements, or one twice."""
    kept = KEPT[fault.record.get("mma_kind")]
    first, row = 2 * kept * fault.value, fault.limit
    values = "0b0100 or 0b1110" if kept == 1 else "0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110 or 0b1110"
    return fault.error(
        "bad-metadata",
        f"metadata of row {row} do not say which of its elements {first} to {first + 2 * kept - 1} are stored",
        notes=[
            f"the four bits for them must be {values}",
            "where metadata are in tensor memory is modelled, not measured; it depends on the kind and on the selector",
        ],
        helps=[
            "copy or store the metadata to tensor memory before the MMA, as `ptxlab explain bad-metadata` describes"
        ],
    )


def _explain_allocation(fault: FaultSnapshot) -> Explained:
    """Message, help and notes; what `limit` is depends on the reason."""
    columns, limit = fault.value, fault.limit
    match fault.reason:
        case AllocationReason.BAD_COUNT:
            return (
                f"{columns} columns of tensor memory are asked for, no power of two from 32 to 512",
                "ask for the next power of two",
                [],
            )
        case AllocationReason.TOO_MANY:
            return (
                f"`tcgen05.alloc` waits for {columns} columns of tensor memory, of which there are not so many left",
                "give columns back first, or ask for fewer",
                [f"the block has {limit} of its 512 columns already; no other warp is waited for that might free some"],
            )
        case AllocationReason.GROWING:
            return (
                f"{columns} columns of tensor memory are asked for, after an allocation of {limit}",
                "allocate the largest part first",
                ["the number of columns must not increase from one allocation of a block to the next"],
            )
        case AllocationReason.RELINQUISHED:
            return (
                "`tcgen05.alloc` after `tcgen05.relinquish_alloc_permit`",
                "give the permit up after the last allocation",
                [],
            )
        case AllocationReason.NOT_ALLOCATED:
            return (
                f"`tcgen05.dealloc` of {name(fault.address)}, where no allocation begins",
                "give back the address that `tcgen05.alloc` has written",
                [],
            )
        case AllocationReason.NO_PEER:
            return (
                "`.cta_group::2` in a cluster that has no second block for the pair",
                "launch clusters with an even number of blocks (`.reqnctapercluster 2`), or use `.cta_group::1`",
                [],
            )
        case AllocationReason.OTHER_IN_PEER:
            return (
                f"the other block of the pair executes another operation here: {limit} columns instead of {columns}",
                "let both blocks allocate and free the same columns in the same order",
                ["with `.cta_group::2` a warp of each block of the pair executes an allocation together"],
            )
    return (
        f"`tcgen05.dealloc` of {columns} columns, where {limit} have been allocated",
        f"give back all {limit} at once",
        [],
    )


def _explain_address(fault: FaultSnapshot) -> Explained:
    """Message, help and notes."""
    lane, lanes = fault.record.get("cells.lane"), fault.record.get("cells.lanes")
    warp, cells = fault.thread // 32, _cells(fault)
    match fault.reason:
        case TensorAddressReason.NOT_ALLOCATED:
            return (
                f"access to {cells} of tensor memory, which are not all allocated",
                "use the address that `tcgen05.alloc` has written, and allocate enough columns",
                [],
            )
        case TensorAddressReason.OTHER_LANES:
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
        case TensorAddressReason.NOT_A_BAND:
            return (
                f"`tcgen05.shift` starts at lane {lane} of tensor memory",
                f"start at lane {lane - lane % BAND}: it moves the rows of {BAND} lanes, those of one warp",
                [],
            )
        case TensorAddressReason.NOT_UNIFORM:
            return (
                "the lanes of a warp have different addresses of tensor memory",
                "use the same address in all of them",
                [],
            )
    return (
        f"access to {cells} of tensor memory, which has 128 lanes and 512 columns",
        "the upper half of an address is the lane, the lower half the column",
        [],
    )


def name(address: int) -> str:
    """`address 0x200040 (lane 32, column 64)`"""
    return f"address {address:#x} (lane {address >> 16}, column {address & 0xFFFF})"


def _cells(fault: FaultSnapshot) -> str:
    lane, column, lanes, columns = (
        fault.record.get(f"cells.{name}") for name in ("lane", "column", "lanes", "columns")
    )
    return f"lanes {lane}..{lane + lanes}, columns {column}..{column + columns}"
