"""Metadata of a sparse A that do not say which elements are stored (PTX ISA 9.7.16.10.8)."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import BAD_METADATA
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.isa.units.tensor_tile import TensorMma
from ptxlab.native import Pointer, native, u32, u64


@native
def judge_metadata(thread: Pointer[Thread], mma: Pointer[TensorMma], found: u32, instruction: u32) -> None:
    """Stop at what `isa.units.tensor_mma.find_bad_metadata` found, if it found something."""
    if found == 0:
        return
    position: u64 = u64(found) - 1
    if thread.worker.fault.kind == 0:
        thread.worker.fault.mma_kind = mma.kind
        thread.worker.fault.limit = position // 16
    fail(thread, BAD_METADATA, instruction, position % 16)
