"""`wgmma` in the code of a kernel: groups of MMAs, and what they read, go to the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import wgmma
from ptxlab.emulate.translate.fragments import MAPPED
from ptxlab.emulate.translate.records import OperationRecord
from ptxlab.emulate.translate.values import LlvmValue
from ptxlab.isa.asynchronous import MatrixChunks

if TYPE_CHECKING:
    from ptxlab.emulate.translate.machine import LlvmMachine


class WarpgroupMma:
    """`k.wgmma`, see `isa.asynchronous`."""

    def __init__(self, machine: LlvmMachine) -> None:
        self._machine = machine

    def read(self, matrix: MatrixChunks[LlvmValue]) -> None:
        machine = self._machine
        record = OperationRecord(
            wgmma.MatrixChunks,
            descriptor=matrix.descriptor,
            major=matrix.major,
            is_b=int(matrix.name == "b"),
            bits=matrix.bits,
            type=MAPPED.get(matrix.type, 0),
            first=matrix.first,
            rows=matrix.rows,
            first_chunk=matrix.first_chunk,
            chunks=matrix.chunks,
        )
        machine.runtime("read_matrix", record, machine.number)
        machine.check()

    def fence(self) -> None:
        """Registers are always up to date here."""

    def compare(self) -> None:
        self._machine.runtime("compare_products", self._machine.number)
        self._machine.check()

    def commit(self) -> None:
        self._machine.runtime("commit_products")
        self._machine.check()

    def wait(self, groups: int) -> None:
        self._machine.runtime("wait_for_products", groups, self._machine.number)
        self._machine.wait()
