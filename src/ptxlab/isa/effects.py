"""What an instruction does: memory, threads that wait for each other, asynchronous operations, jumps, what it computes.

`Match.effects` is found by running the semantic function once on the recording machine. What that cannot
know, the keyword `effects` of `@form` says:

- control flow: the words of `jump.Jump`;
- `aligned`: all lanes of the warp must execute it together, although no modifier says so;
- `uniform`: the results are the same in all lanes that converge there;
- `elects`: its predicate is true in one of those lanes only, and the other result is the number of that lane;
- `undefines`: the contents of the memory at its address are undefined after it;
- `more-registers`, `fewer-registers`: the threads of the warp own more or fewer registers after it;
- `tensor_memory.load` and the like: a step, for an instruction without semantics.

What an instruction computes, the decorator `@computes` says: see `operation.py`. How many bytes its addresses are of,
and their alignment, `@addresses` says where the recorder does not show it: see `extent.py`.

>>> from ptxlab.isa import opcode
>>> opcode("cp.async.wait_all").candidates[0].effects.steps
(UnitStep(unit='async_copy', name='commit'), UnitStep(unit='async_copy', name='wait'))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ptxlab.isa.asynchronous import UNITS, Reduction
from ptxlab.isa.extent import Extent, extents_of
from ptxlab.isa.form import Form, Modifiers
from ptxlab.isa.jump import Jump
from ptxlab.isa.mma_size import MmaSize, mma_size
from ptxlab.isa.operand import Expected, expect
from ptxlab.isa.operation import Operation
from ptxlab.isa.recorder import Access, EffectRecorder, MemoryOperand, Placeholder, UnitStep, step_named
from ptxlab.isa.types import type_named
from ptxlab.values import dataclass

__all__ = ["Access", "Effects", "UnitStep", "effects_of"]


@dataclass(frozen=True, slots=True)
class Effects:
    """What a form with given modifiers does."""

    jump: Jump | None = None
    """How execution continues, if not at the next instruction."""
    accesses: tuple[Access, ...] = ()
    """What it does to memory, by its address operands."""
    steps: tuple[UnitStep, ...] = ()
    """What it does with units beside the thread: asynchronous operations issued, committed and waited for."""
    fences: tuple[str, ...] = ()
    """Which accesses it orders: semantics and scope such as `acq_rel.gpu`, or a state space such as `proxy.shared`."""
    converges: bool = False
    """Whether lanes of the warp wait for each other here."""
    orders: bool = False
    """Whether what they do before it is ordered before what they do after it."""
    aligned: bool = False
    """Whether all lanes of the warp must execute this very instruction."""
    barrier: str | None = None
    """`block` or `cluster`: whose threads arrive at a barrier here."""
    waits: bool = False
    """Whether they also wait there for the others."""
    uniform: bool = False
    """Whether its results are the same in all lanes that converge."""
    elects: bool = False
    """Whether it chooses one lane, where its predicate is true."""
    carry: bool = False
    """Whether it reads or writes the carry flag."""
    ranks: bool = False
    """Whether it computes with the rank of a block in an address of shared memory."""
    more_registers: bool = False
    """Whether the warp waits for more registers."""
    fewer_registers: bool = False
    """Whether the warp gives registers back."""
    computes: Operation | None = None
    """What its results are of its operands, where there is a word for it."""
    reduction: Reduction | None = None
    """What a copy does to the values at its destination, if it does not replace them."""
    extents: Mapping[str, Extent] = field(default_factory=dict)
    """How many bytes its addresses are of, and their alignment, by the names of the operands."""
    mma: MmaSize | None = None
    """What it does if it multiplies matrices."""
    undefines: bool = False
    """Whether it leaves undefined contents in the memory at its address."""
    follows: bool = False
    """Whether lanes hand values to each other, so that undefined ones are undefined results."""

    @property
    def synchronizes(self) -> bool:
        """Whether it is a fence, an acquire or a release of memory."""
        orders = [*self.fences, *(access.order for access in self.accesses)]
        return any(order.startswith(("acq", "rel", "sc")) and not order.startswith("relaxed") for order in orders)

    def does(self, unit: str, name: str) -> bool:
        """Whether it does this with a unit: `does("wgmma", "commit")`; a `KeyError` if the unit has no such step."""
        return step_named(unit, name) in self.steps

    def uses(self, unit: str) -> bool:
        """Whether it does anything with a unit: `uses("bulk")`; a `KeyError` if there is none of that name."""
        if unit not in UNITS:
            raise KeyError(unit)
        return any(step.unit == unit for step in self.steps)


def effects_of(form: Form, m: Modifiers) -> Effects:
    """The effects of a form with these modifiers; `Candidate.effects` and `Match.effects` keep them."""
    said = form.effects
    recorder = EffectRecorder()
    operands = expect(form, m)
    if form.semantics is not None:
        placeholders = _placeholders(operands)
        names = form.semantics.__code__.co_varnames[2 : form.semantics.__code__.co_argcount]
        form.semantics(recorder, m, *(placeholders.get(name) for name in names))
    else:
        recorder.converges = bool(m.sync)
    recorder.steps += [UnitStep(*word.split(".")) for word in said if "." in word]
    aligned = bool(m.aligned) or "aligned" in said or recorder.is_aligned
    return Effects(
        form.jump,
        tuple(dict.fromkeys(recorder.accesses)),
        tuple(dict.fromkeys(recorder.steps)),
        tuple(recorder.fences),
        recorder.converges or (aligned and form.semantics is None),
        recorder.orders,
        aligned,
        recorder.barrier_scope,
        recorder.waits,
        "uniform" in said,
        "elects" in said,
        recorder.uses_carry,
        recorder.uses_ranks,
        "more-registers" in said,
        "fewer-registers" in said,
        form.computes,
        recorder.reduction,
        extents_of(form, m, operands, recorder.accesses),
        mma_size(form, m, recorder.steps),
        "undefines" in said,
        recorder.follows,
    )


def _placeholders(operands: Sequence[Expected]) -> dict[str, object]:
    """Something for each operand that the semantic function may ask for."""
    found: dict[str, Any] = {}
    for expected in operands:
        for one in (expected, expected.second, *expected.inner):
            if one is not None and one.role != "write":
                found[one.name] = placeholder(one)
    return found


def placeholder(expected: Expected) -> int | MemoryOperand | tuple[Placeholder, ...] | Placeholder | None:
    """Something of the kind that a semantic function gets for an operand."""
    if expected.kind == "address":
        return MemoryOperand(expected.name, expected.space)
    if expected.kind == "immediate":
        return next(iter(expected.allowed or (0,)))
    if expected.kind != "value":
        return None
    value = Placeholder(expected.type or type_named("u32"))
    return (value,) * expected.count if expected.count else value
