"""How much an instruction that multiplies matrices does: on which unit, and how many multiplications and additions.

>>> from ptxlab.isa import opcode
>>> opcode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").candidates[0].effects.mma
MmaSize(unit='mma.sync', threads=32, operations=4096)
"""

from __future__ import annotations

from collections.abc import Collection

from ptxlab.isa.form import Form, Modifiers
from ptxlab.isa.operation import Operation
from ptxlab.isa.recorder import UnitStep
from ptxlab.isa.units.fragment import extents
from ptxlab.values import dataclass

_QUARTERS = "m8n8k4", "f16"  # each group of eight lanes multiplies matrices of its own


@dataclass(frozen=True, slots=True)
class MmaSize:
    """What one execution of an MMA is."""

    unit: str
    """`mma.sync`, `wgmma` or `tcgen05`."""
    threads: int
    """How many threads execute it together."""
    operations: int | None
    """Multiplications and additions, those with zeros of a sparse A included; None: the instruction descriptor says."""


def mma_size(form: Form, m: Modifiers, steps: Collection[UnitStep]) -> MmaSize | None:
    """The size of a form with these modifiers that does these steps; None if it is not an MMA."""
    if UnitStep("tensor_memory", "multiply") in steps:
        return MmaSize("tcgen05", 1, None)
    if UnitStep("wgmma", "start") in steps:
        return MmaSize("wgmma", 128, _operations(m.shape))
    if form.computes in (Operation.MMA, Operation.OPAQUE_MMA):
        return MmaSize("mma.sync", 32, _operations(m.shape) * (4 if (m.shape, m.atype) == _QUARTERS else 1))
    return None


def _operations(shape: str) -> int:
    rows, columns, depth = extents(shape)
    return 2 * rows * columns * depth
