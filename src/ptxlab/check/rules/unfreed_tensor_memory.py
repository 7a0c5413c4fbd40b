"""Tensor memory is allocated and not given back before the kernel ends, or allocated after the block gave up the right.

Tensor memory belongs to the SM, not to the block: columns that a block keeps are gone when it ends, and the next block
there waits in its own `tcgen05.alloc` forever. ptxas assembles such a kernel without a warning.
After `tcgen05.relinquish_alloc_permit` no thread of the block may allocate again.

Free the columns with `tcgen05.dealloc` when no operation on them is in flight, in the warp that allocated them or in
another one of the block.

Wrong:

```ptx
.version 8.6
.target sm_100a
.entry k() {
    .shared .align 4 .b32 address;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 128;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    ret;
}
```

Right:

```ptx
.version 8.6
.target sm_100a
.entry k() {
    .reg .b32 %r<2>;
    .shared .align 4 .b32 address;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 128;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    bar.sync 0;
    ld.shared.b32 %r1, [address];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.flow.effort import ExhaustedError
from ptxlab.report import Diagnostic, Label, warning

from ..divergence import BLOCK
from ..program import FunctionFacts, Program


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        allocations = facts.doing("tensor_memory", "allocate")
        if not allocations:
            continue
        reachable = facts.flow.reachable()
        relinquished = facts.doing("tensor_memory", "relinquish")
        freed = facts.doing("tensor_memory", "free")
        for at in allocations:
            if not reachable[block_at(facts, at)]:
                continue
            given_up = next((other for other in relinquished if _always_before(facts, other, at)), None)
            if given_up is not None:
                yield _explain_order(program, facts, at, given_up)
            # A function that is called, or the one that calls this, may free it.
            if facts.function.kind != "entry" or facts.calls:
                continue
            if not any(_group(facts, other) == _group(facts, at) and _can_free(facts, other, at) for other in freed):
                yield _explain_kept(program, facts, at, freed)


def block_at(facts: FunctionFacts, at: int) -> int:
    """The number of the block that instruction `at` is in."""
    return next(block.number for block in facts.flow.blocks if block.start <= at < block.end)


def _group(facts: FunctionFacts, at: int) -> str:
    return next(word for word in facts.instructions[at].opcode.modifiers if word.startswith("cta_group"))


def _can_free(facts: FunctionFacts, dealloc: int, alloc: int) -> bool:
    """Whether `dealloc` can free what `alloc` allocates: it follows, or another warp executes it."""
    if _can_follow(facts, alloc, dealloc):
        return True
    return not _can_follow(facts, dealloc, alloc) and _are_of_different_warps(facts, dealloc, alloc)


def _are_of_different_warps(facts: FunctionFacts, first: int, second: int) -> bool:
    """Whether a branch that warps take differently chooses between two instructions."""
    try:
        deciding = facts.control.deciding
        shared = deciding(block_at(facts, first)) & deciding(block_at(facts, second))
        return any(facts.divergence.of_guard(facts.flow.blocks[branch].end - 1) > BLOCK for branch in shared)
    except ExhaustedError:
        return True  # too tangled to say: no warning


def _can_follow(facts: FunctionFacts, first: int, then: int) -> bool:
    """Whether some path leads from one instruction to the other."""
    blocks = facts.flow.blocks
    start, end = block_at(facts, first), block_at(facts, then)
    if start == end and first < then:
        return True
    seen: set[int] = set()
    pending = list(blocks[start].successors)
    while pending:
        number = pending.pop()
        if number not in seen:
            seen.add(number)
            pending.extend(blocks[number].successors)
    return end in seen


def _always_before(facts: FunctionFacts, first: int, then: int) -> bool:
    """Whether every path to `then` leads through `first`, which no guard skips unless it skips both."""
    guard = facts.instructions[first].guard
    start, end = block_at(facts, first), block_at(facts, then)
    if start == end and first < then:
        return guard is None or guard == facts.instructions[then].guard
    if guard is not None:
        return False
    seen = {start}
    pending = [0]
    while pending:
        number = pending.pop()
        if number == end and number not in seen:
            return False
        if number not in seen:
            seen.add(number)
            pending.extend(facts.flow.blocks[number].successors)
    return start != end


def _explain_kept(program: Program, facts: FunctionFacts, at: int, freed: list[int]) -> Diagnostic:
    instruction = facts.instructions[at]
    columns = instruction.operands[1]
    amount = f"{columns.value} columns" if isinstance(columns, ir.Immediate) else "columns"
    others = [Label(span, "frees on no path from there") for other in freed[:1]
              if (span := program.module.span(facts.instructions[other]))]  # fmt: skip
    return warning(
        "unfreed-tensor-memory",
        f"`{facts.function.title}` allocates {amount} of tensor memory and never frees them",
        program.module.opcode_span(instruction),
        "no `tcgen05.dealloc` follows",
        others=others,
        notes=["the next block on this SM waits for them for ever"],
        helps=[f"free them with `tcgen05.dealloc.{_group(facts, at)}.sync.aligned.b32` before the kernel ends"],
    )


def _explain_order(program: Program, facts: FunctionFacts, at: int, given_up: int) -> Diagnostic:
    span = program.module.span(facts.instructions[given_up])
    return warning(
        "unfreed-tensor-memory",
        "tensor memory is allocated after the block gave up the right to",
        program.module.opcode_span(facts.instructions[at]),
        "no longer allowed",
        others=[Label(span, "gives up the right")] if span else [],
        helps=["allocate first, or remove `tcgen05.relinquish_alloc_permit`"],
    )
