"""A `setmaxnreg`, or an instruction with long vectors of registers, needs more registers than a thread can have.

A block gets its registers when it starts: each warp as many as the kernel's header says. `setmaxnreg.dec` gives some
back to the pool of the block, `setmaxnreg.inc` waits until the pool holds enough. If the other warps cannot give that
many back, even at their smallest number, it waits forever. Giving back so that more remain than the warp could ever
have had is what ptxas refuses (C7406).

With the threads and blocks of the header a thread starts with 65536 / (threads * blocks) registers, rounded down to a
multiple of 8 (less if the warps do not divide evenly by 4), or with `.maxnreg` if that is less. Lower the number of
`.inc`, or that of every `.dec`.

One `wgmma.mma_async`, `tcgen05.ld` or `tcgen05.st` holds all registers of its vectors at once: with 512 threads a
block, a thread has 128, and `n256` in f32 alone holds 128. ptxas refuses it (C7602). Use a smaller shape or fewer
threads.

Wrong:

```ptx
.version 8.0
.target sm_90a
.entry k() .maxntid 256, 1, 1 .minnctapersm 2 {
    .reg .u32 %r<2>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 128;
    @%p1 bra CONSUMER;
    setmaxnreg.dec.sync.aligned.u32 40;
    ret;
CONSUMER:
    setmaxnreg.inc.sync.aligned.u32 232;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_90a
.entry k() .maxntid 256, 1, 1 .minnctapersm 2 {
    .reg .u32 %r<2>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 128;
    @%p1 bra CONSUMER;
    setmaxnreg.dec.sync.aligned.u32 40;
    ret;
CONSUMER:
    setmaxnreg.inc.sync.aligned.u32 216;
    ret;
}
```
"""

from collections.abc import Callable, Iterator

from ptxlab import ir
from ptxlab.flow.facts import threads_of
from ptxlab.isa import Match
from ptxlab.report import Diagnostic, Label, error, warning

from ..launch import LEAST, MOST, blocks_of, registers_at_start, registers_for, wide_instructions
from ..program import FunctionFacts, Program

WARPS = 32  # of the largest block
GROUP = 4  # warps that execute the instruction together


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        if facts.function.kind == "entry":
            yield from _check_vectors(program, facts)
        if facts.function.kind != "entry" or facts.calls:
            continue  # a function that is called could change the registers too
        raised = _counts(facts, lambda match: match.effects.more_registers)
        lowered = _counts(facts, lambda match: match.effects.fewer_registers)
        start = registers_at_start(facts.function) if raised or lowered else None
        if start is not None:
            yield from _check(program, facts, raised, lowered, start)


def _check_vectors(program: Program, facts: FunctionFacts) -> Iterator[Diagnostic]:
    """Instructions whose vectors alone leave no register for anything else."""
    kernel = facts.function
    most = _most_registers(kernel)
    span = program.module.name_span(kernel)
    for instruction, needed in wide_instructions(facts):
        if needed >= most:
            name = ".".join(instruction.opcode.text.split(".")[:2])
            yield error(
                "unavailable-registers",
                f"`{name}` needs more than {needed} registers, and a thread of `{kernel.title}` has at most {most}",
                program.module.opcode_span(instruction),
                "its vectors alone are too long",
                others=[Label(span, f"at most {most} registers for a thread, by its header")] if span else [],
                helps=["use a smaller shape, or fewer threads a block"],
            )
            return


def _most_registers(kernel: ir.Function) -> int:
    """The registers that a thread can have, by the header."""
    limits = [MOST]
    directive = kernel.directive("maxnreg")
    if directive is not None and isinstance(directive.arguments[0], int):
        limits.append(max(LEAST, directive.arguments[0]))
    threads, blocks = threads_of(kernel), blocks_of(kernel) or 1
    if threads is not None and threads <= WARPS * 32:
        # ptxas ignores more blocks than fit; how many do depends on the target.
        fits = -(-threads // 32) * blocks <= WARPS
        limits.append(registers_for(threads, blocks if fits else 1))
    return min(limits)


def _counts(facts: FunctionFacts, holds: Callable[[Match], bool]) -> dict[int, int]:
    """The `setmaxnreg` of a kind that execution can get to, and their counts; ptxas drops the others."""
    positions = facts.where(holds)
    if not positions:
        return {}
    reachable = facts.flow.reachable()
    return {at: _count(facts.instructions[at]) for at in positions if reachable[facts.chains.block_of(at)]}


def _count(instruction: ir.Instruction) -> int:
    operand = instruction.operands[0]
    assert isinstance(operand, ir.Immediate)
    return operand.value


def _check(
    program: Program, facts: FunctionFacts, raised: dict[int, int], lowered: dict[int, int], start: int
) -> Iterator[Diagnostic]:
    kernel = facts.function
    most = max([start, *raised.values()])
    warps = -(-(threads_of(kernel) or WARPS * 32) // 32)
    held = -(-start // 8) * 8  # what hardware allocates
    least = min([held, *lowered.values()])
    available = (held * warps - least * (warps - GROUP)) // GROUP if warps >= GROUP else held
    span = program.module.name_span(kernel)
    header = [Label(span, f"threads start with {start} registers")] if span else []
    for at, count in lowered.items():
        if min(count, MOST) > most:
            yield error(
                "unavailable-registers",
                f"`setmaxnreg.dec` cannot keep {count} registers of {most}",
                program.module.operand_span(facts.instructions[at], 0),
                f"at most {most}",
                others=header,
                helps=["use `setmaxnreg.inc` to have more"],
            )
    for at, count in raised.items():
        if count > available:
            others = f"all other warps keep {least}" if lowered else "no warp gives registers back"
            yield warning(
                "unavailable-registers",
                f"`setmaxnreg.inc` waits for {count} registers, and there are never more than {available} for a thread",
                program.module.operand_span(facts.instructions[at], 0),
                "the kernel hangs here",
                others=header,
                notes=[f"{warps} warps of {held} registers a thread, of which {others}"],
                helps=[f"ask for {available // 8 * 8} at most"],
            )
