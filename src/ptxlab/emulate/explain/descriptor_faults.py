"""Descriptors of matrices in shared memory, and of MMAs, that are not right."""

from __future__ import annotations

from ptxlab.emulate.explain.fault_snapshot import FaultSnapshot
from ptxlab.emulate.runtime.tensor_memory import operands
from ptxlab.isa.descriptor import CHUNK, Descriptor
from ptxlab.isa.instruction_descriptor import KINDS, VIOLATIONS, InstructionDescriptor
from ptxlab.report import Diagnostic

_MORE = {
    operands.PACKED_IN_CELLS: "A of four or six bits in tensor memory is not emulated: the manual only draws it",
    operands.ABSOLUTE: "a leading dimension as an absolute address, which only `sm_103a` has, is not emulated",
    operands.NO_MODE: "modes of swizzling are 0, 1, 2, 4 and 6, the descriptor says {}",
    operands.COARSE_MODE: "128-byte swizzling with 32-byte atoms is that of MN-major tf32, and of nothing else here",
    operands.ROWS_IN_CELLS: "with `.ws`, 32 or 64 rows of A in tensor memory are not emulated: they are only drawn",
    operands.NO_PEER: "an MMA of two blocks needs a cluster that has the second one",
    operands.BAD_FACTORS: "its scale factors reach beyond the four bytes of a TMEM word",
}


def explain_bad_instruction_descriptor(fault: FaultSnapshot) -> Diagnostic:
    """A descriptor of an MMA that there is not, or of a matrix that can't be copied."""
    bits, reason, kind = fault.address, fault.extra & 0xFFFFFFFF, KINDS[fault.extra >> 32]
    instruction = "`tcgen05.cp`" if _copies(fault) else f"`tcgen05.mma`, kind `{kind}`"
    if reason in _MORE:
        return fault.error("bad-descriptor", f"{instruction}: {_MORE[reason].format(bits)}")
    said = InstructionDescriptor.decode(bits, kind)
    notes = [f"the instruction descriptor {bits:#010x} says: {said}"]
    return fault.error("bad-descriptor", f"{instruction}: {VIOLATIONS[reason]}", notes=notes)


def explain_bad_descriptor(fault: FaultSnapshot) -> Diagnostic:
    """A matrix in shared memory that is not all there; `extra` is its descriptor, `size` says which part is not."""
    about = fault.size
    row, chunk, width = about & 0xFFFF, about >> 16 & 0xFFFF, about >> 34
    along = chunk * (CHUNK * 8 // width)
    element = (along, row) if about >> 32 & 1 else (row, along)
    name = "A"
    if about >> 33 & 1:
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
            f"the descriptor says: {decode(fault.extra)}",
            f"the block has {fault.launch.shared_size} bytes of shared memory",
        ],
        helps=["a descriptor holds addresses and offsets as multiples of 16: `(bytes & 0x3ffff) >> 4`"],
    )


def _copies(fault: FaultSnapshot) -> bool:
    return fault.effects.does("tensor_memory", "copy")
