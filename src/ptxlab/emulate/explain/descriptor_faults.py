"""Descriptors of matrices in shared memory, and of MMAs, that are not right."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import DescriptorReason as Reason
from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.isa.units.descriptor import CHUNK, MN_MAJOR, Descriptor
from ptxlab.isa.units.instruction_descriptor import KINDS, VIOLATIONS, InstructionDescriptor
from ptxlab.report import Diagnostic

_MORE: dict[int, str] = {
    Reason.ABSOLUTE: "a leading dimension is an absolute address only where K is 96, on `sm_103a`",
    Reason.NO_MODE: "modes of swizzling are 0, 1, 2, 4 and 6, the descriptor says {}",
    Reason.COARSE_MODE: "128-byte swizzling with 32-byte atoms is that of MN-major tf32, and of nothing else here",
    Reason.NO_PEER: "with `.cta_group::2` it needs a cluster that has the second block of the pair",
    Reason.LONG_ROWS: "a K of 96 (bit 31 of the instruction descriptor) is for `sm_103a` only",
    Reason.LONG_IN_TENSOR_MEMORY: "where an A with a K of 96 is in tensor memory is not in the manual",
    Reason.BAD_FACTORS: "two scale factors of a row are bytes 0 and 1 or 2 and 3 of a TMEM word, four are all of it",
    Reason.ODD_METADATA: "metadata for 16 bits and tf32 are at an even column; the selector chooses it or the next one",
    Reason.OTHER_HALF: "D has 16 of each 32 lanes; A in tensor memory and metadata must have the same ones",
    Reason.SHIFTED_ROWS: "`.ashift` needs 128 rows, or 256 of two blocks",
    Reason.FAR_SHIFT: "the zero-column mask shifts B further than the maximum in bits 30 and 31 of the instruction "
    "descriptor, or by more than 16 columns with 32 rows",
}


def explain_bad_instruction_descriptor(fault: FaultSnapshot) -> Diagnostic:
    """A descriptor of an MMA that there is not, or of a matrix that can't be copied."""
    bits, reason, kind = fault.value, fault.reason, KINDS[fault.record.get("mma_kind")]
    instruction = "`tcgen05.cp`" if _copies(fault) else f"`tcgen05.mma`, kind `{kind}`"
    if fault.effects.does("tensor_memory", "shift"):
        instruction = "`tcgen05.shift`"
    if reason in _MORE:
        return fault.error("bad-descriptor", f"{instruction}: {_MORE[reason].format(bits)}")
    said = InstructionDescriptor.decode(bits, kind)
    notes = [f"the instruction descriptor {bits:#010x} says: {said}"]
    return fault.error("bad-descriptor", f"{instruction}: {VIOLATIONS[reason]}", notes=notes)


def explain_bad_descriptor(fault: FaultSnapshot) -> Diagnostic:
    """A matrix in shared memory that is not all there; `chunk` is a part that is not."""
    row, chunk = fault.record.get("chunk.row"), fault.record.get("chunk.chunk")
    along = chunk * (CHUNK * 8 // fault.record.get("chunk.bits"))
    element = (along, row) if fault.record.get("chunk.major") == MN_MAJOR else (row, along)
    name = "A"
    if fault.record.get("chunk.is_b"):
        name, element = "B", (element[1], element[0])
    matrix, part = f"matrix {name}", f"element ({element[0]}, {element[1]}) of {name}"
    if _copies(fault):
        matrix, part = "the matrix that `tcgen05.cp` copies", f"byte {CHUNK * chunk} of its row {row}"
    decode = Descriptor.decode_for_tcgen05 if fault.effects.uses("tensor_memory") else Descriptor.decode
    return fault.error(
        "out-of-bounds",
        f"{matrix} reaches outside of shared memory",
        f"{fault.who}: {part} would be at address {fault.address:#x}",
        notes=[
            f"the descriptor says: {decode(fault.record.get('chunk.descriptor'))}",
            f"the block has {fault.launch.shared_size} bytes of shared memory",
        ],
        helps=["a descriptor holds addresses and offsets as multiples of 16: `(bytes & 0x3ffff) >> 4`"],
    )


def _copies(fault: FaultSnapshot) -> bool:
    return fault.effects.does("tensor_memory", "copy")
