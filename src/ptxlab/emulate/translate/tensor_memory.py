"""Tensor memory in the code of a kernel: what instructions ask for goes to the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.amounts import COLLECTED, FLOPS, OPERANDS
from ptxlab.emulate.abi.tensor_memory import ALLOCATE, FREE, RELINQUISH, SEVERAL, TensorCopy, TensorMove
from ptxlab.emulate.runtime.order.vector_clocks import TENSOR_LOADS, TENSOR_STORES
from ptxlab.emulate.translate.records import OperationRecord
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.isa.asynchronous import MatrixCopy, Mma
from ptxlab.isa.types import type_named
from ptxlab.isa.units.collector import is_kept_of_a, may_be_kept
from ptxlab.isa.units.instruction_descriptor import LONG_TARGET, bytes_of_a, bytes_of_b, operations_of
from ptxlab.isa.units.tensor_tile import TensorMma

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine


class TensorMemory:
    """`k.tensor_memory`, see `isa.asynchronous`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def address(self, taddr: LlvmAddress) -> LlvmValue:
        return self._machine.cast(taddr.value, "u32")

    def allocate(self, columns: LlvmValue, is_pair: bool) -> LlvmValue:
        if is_pair:
            self._join(ALLOCATE, columns)
        found = self._machine.ask_runtime("allocate_columns", columns, self._machine.number, result="u32")
        self._machine.check()
        return found

    def free(self, address: LlvmValue, columns: LlvmValue, is_pair: bool) -> None:
        if is_pair:
            self._join(FREE, columns)
        self._machine.runtime("free_columns", address, columns, self._machine.number)
        self._machine.check()

    def relinquish(self, is_pair: bool) -> None:
        if is_pair:
            self._join(RELINQUISH, 0)
        self._machine.runtime("relinquish_columns")

    def route(self, address: LlvmValue) -> LlvmValue:
        return self._machine.ask_runtime("route_lanes", address, result="u32")

    def start_load(self, address: LlvmValue, is_uniform: LlvmValue, lanes: int, columns: int, split: int) -> None:
        self._move(address_spaces.LOAD, address, is_uniform, lanes, columns, split)

    def start_store(self, address: LlvmValue, is_uniform: LlvmValue, lanes: int, columns: int, split: int) -> None:
        self._move(address_spaces.STORE, address, is_uniform, lanes, columns, split)

    def read(self, word: LlvmValue) -> LlvmValue:
        return self._machine.ask_runtime("read_cell", word, result="u32")

    def write(self, word: LlvmValue, value: LlvmValue, mask: int) -> None:
        bits = LlvmValue(self._machine.function, type_named("u32"), value.text)
        self._machine.runtime("write_cell", word, bits, mask)

    def multiply(self, mma: Mma[LlvmValue, LlvmAddress]) -> None:
        machine = self._machine
        given = (mma.scale_a, mma.scale_b, mma.metadata)
        scale_a, scale_b, metadata = (0 if address is None else self.address(address) for address in given)
        record = OperationRecord(
            TensorMma,
            kind=mma.kind,
            form=mma.form,
            instruction_descriptor=mma.instruction_descriptor,
            a_in_tensor_memory=int(mma.a_in_tensor_memory),
            a=mma.a,
            b=mma.b,
            d=self.address(mma.d),
            accumulate=machine.cast(mma.accumulate, "u32"),
            scale_d=mma.scale_d,
            scale_factors=mma.scale_factors,
            scale_a=scale_a,
            scale_b=scale_b,
            is_sparse=int(mma.metadata is not None),
            metadata=metadata,
            is_shifted=int(mma.is_shifted),
            collector=mma.collector,
            zero_columns=0 if mma.zero_columns is None else mma.zero_columns,
            disabled_lanes=mma.disabled_lanes,
            has_long_rows=int(machine.function.unit.module.target == LONG_TARGET),
        )
        machine.runtime("start_mma", record, machine.number)
        machine.check()
        self._count(mma)
        machine.function.unit.counting.note_change(machine.function, "shared")

    def _count(self, mma: Mma[LlvmValue, LlvmAddress]) -> None:
        """Count the operations of an MMA, the bytes of its operands in shared memory, and those that may be kept."""
        machine, bits, is_sparse = self._machine, mma.instruction_descriptor, int(mma.metadata is not None)
        count = machine.function.unit.counting.count_amount
        count(machine.function, FLOPS, machine.call(operations_of, bits, mma.kind, is_sparse, type="u64").text)
        a = machine.call(bytes_of_a, bits, mma.kind, type="u64")
        b = machine.call(bytes_of_b, bits, mma.kind, is_sparse, type="u64")
        count(machine.function, OPERANDS, b.text if mma.a_in_tensor_memory else (a + b).text)
        of_a = is_kept_of_a(mma.collector)
        if may_be_kept(mma.collector) and not (of_a and mma.a_in_tensor_memory):
            count(machine.function, COLLECTED, a.text if of_a else b.text)

    def copy(self, copy: MatrixCopy[LlvmValue, LlvmAddress]) -> None:
        machine = self._machine
        record = OperationRecord(
            TensorCopy,
            descriptor=copy.descriptor,
            address=self.address(copy.address),
            rows=copy.rows,
            chunks=copy.chunks,
            group=copy.group,
            step=copy.step,
            stride=copy.stride,
            copies=copy.copies,
            bits=copy.bits,
            is_pair=int(copy.is_pair),
        )
        machine.runtime("start_tensor_copy", record, machine.number)
        machine.check()

    def shift(self, address: LlvmAddress, is_pair: bool) -> None:
        machine = self._machine
        machine.runtime("start_shift", self.address(address), int(is_pair), machine.number)
        machine.check()

    def commit(self, barrier: LlvmAddress, blocks: LlvmValue | None = None) -> None:
        machine = self._machine
        given = 0 if blocks is None else blocks | SEVERAL
        mbarrier = barrier.value
        if (
            barrier.space is None
        ):  # hardware takes the low bits, so that an address of shared memory, as Triton's, will do
            mbarrier = mbarrier & (address_spaces.SHARED_WINDOW - 1)
        machine.runtime("start_commit", mbarrier, given, machine.number)
        machine.check()
        machine.function.unit.counting.note_change(machine.function, "shared")

    def wait(self, stores: bool) -> None:
        self._machine.runtime("wait_for_cells", int(stores))

    def fence_before(self) -> None:
        self._machine.runtime("fence_before")

    def fence_after(self) -> None:
        self._machine.runtime("fence_after")

    def _join(self, what: int, columns: LlvmValue | int) -> None:
        """Have a warp of each block of a pair execute an operation together."""
        self._machine.runtime("join_peer", what, columns, self._machine.number)
        self._machine.wait()

    def _move(self, kind: int, address: LlvmValue, is_uniform: LlvmValue, lanes: int, columns: int, split: int) -> None:
        record = OperationRecord(
            TensorMove,
            address=address,
            is_uniform=is_uniform,
            lanes=lanes,
            columns=columns,
            split=split,
            kind=kind,
            channel=TENSOR_LOADS if kind == address_spaces.LOAD else TENSOR_STORES,
        )
        self._machine.runtime("access_cells", record, self._machine.number)
        self._machine.check()
