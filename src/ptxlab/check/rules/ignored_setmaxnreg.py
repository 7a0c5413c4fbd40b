"""A `setmaxnreg` has no effect, because ptxas leaves it out.

ptxas can only move registers between warps if it knows how many each of them starts with. The kernel says so by
`.maxnreg`, or by `.maxntid` or `.reqntid` together with `.minnctapersm`. `.maxntid` or `.reqntid` alone is enough if
one `wgmma.mma_async`, `tcgen05.ld` or `tcgen05.st` holds so many registers that only one block fits on an SM: with 384
threads, from 56 accumulators (`n112` in f32) on. In all other cases, with calls through a pointer or recursion, and in
code that is compiled separately from its kernel, ptxas drops the instruction and says so in an info line that most
builds hide (C7504, C7506, C7508). The kernel still runs, with the same number of registers for every warp: the consumer
warps spill, the producer warps waste theirs.

State the threads of a block and the blocks of an SM in the kernel's header.

Wrong:

```ptx
.version 8.0
.target sm_90a
.entry k() .maxntid 384, 1, 1 {
    setmaxnreg.dec.sync.aligned.u32 40;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_90a
.entry k() .maxntid 384, 1, 1 .minnctapersm 1 {
    setmaxnreg.dec.sync.aligned.u32 40;
    ret;
}
```
"""

from collections.abc import Iterator
from typing import NamedTuple

from ptxlab import ir
from ptxlab.flow.facts import threads_of
from ptxlab.isa import Match
from ptxlab.report import Diagnostic, Label, warning

from ..calls import CallGraph
from ..launch import blocks_of, registers_for, wide_instructions
from ..program import FunctionFacts, Program

MOST_BLOCKS = 32  # of an SM, on every target that has the instruction
MOST_THREADS = {"sm_90": 2048, "sm_100": 2048, "sm_103": 2048}  # elsewhere ptxas's limit depends on more


class Reason(NamedTuple):
    """Why ptxas drops the instruction: in the message, at the kernel or call, what to do about it, the info line."""

    message: str
    label: Label | None
    help: str
    info: str


def _changes_registers(match: Match) -> bool:
    return match.effects.more_registers or match.effects.fewer_registers


def check(program: Program) -> Iterator[Diagnostic]:
    users = {id(facts): facts for facts in program.sound_functions if facts.where(_changes_registers)}
    if not users:
        return
    calls = program.calls
    for kernel in program.functions:
        if kernel.function.kind != "entry":
            continue
        reached = calls.reached_from(kernel)
        dropped = [facts for facts in reached if id(facts) in users]
        if not dropped or not all(facts.is_sound for facts in reached):
            continue
        reason = _without_count(program, kernel.function, reached) or _calls(program, calls, kernel, reached)
        if reason is not None:
            yield _explain(program, dropped, reason)
    for facts in users.values():
        if facts.function.linkage in ("visible", "weak") and not calls.is_reached(facts):
            reason = Reason(
                f"no kernel of this module calls `{facts.function.title}`, which is compiled apart from its kernels",
                None,
                "have the kernel change its registers itself",
                "C7504",
            )
            if facts.function.kind != "entry":
                yield _explain(program, [facts], reason)


def _without_count(program: Program, kernel: ir.Function, reached: list[FunctionFacts]) -> Reason | None:
    """The header leaves the registers of a thread open, and so does the code."""
    if kernel.directive("maxnreg") is not None:
        return None
    threads, blocks = threads_of(kernel), blocks_of(kernel)
    fits = blocks is not None and threads is not None and blocks <= _most_blocks(program, threads)
    if threads is not None and (fits or _only_one_fits(threads, reached)):
        return None
    span = program.module.name_span(kernel)
    message = f"the header of `{kernel.title}` does not say how many registers a thread starts with"
    if threads is None:
        missing = "has neither `.maxnreg` nor `.maxntid`"
        help = f"add `.maxntid` and `.minnctapersm 1` to the header of `{kernel.title}`"
    elif blocks is None:
        missing = "has neither `.maxnreg` nor `.minnctapersm`"
        help = f"add `.minnctapersm 1` to the header of `{kernel.title}`"
    else:
        most = _most_blocks(program, threads)
        missing = f"asks for {blocks} blocks of {threads} threads on an SM, which holds {most}"
        message = f"`.minnctapersm {blocks}` of `{kernel.title}` is more than fits, and ptxas ignores it"
        help = f"ask for `.minnctapersm {most}` at most"
    return Reason(message, Label(span, missing) if span else None, help, "C7508")


def _only_one_fits(threads: int, reached: list[FunctionFacts]) -> bool:
    """Whether one instruction holds so many registers that two blocks never fit on an SM."""
    return any(needed >= registers_for(threads, 2) for facts in reached for _, needed in wide_instructions(facts))


def _most_blocks(program: Program, threads: int) -> int:
    """The blocks of so many threads that an SM can hold, as far as that is certain."""
    most = MOST_THREADS.get(program.target_name.rstrip("af"))
    whole_warps = -(-threads // 32) * 32
    return min(MOST_BLOCKS, most // whole_warps) if most and whole_warps <= most else MOST_BLOCKS


def _calls(program: Program, calls: CallGraph, kernel: FunctionFacts, reached: list[FunctionFacts]) -> Reason | None:
    """A call that ptxas cannot follow; what is called so must find the registers it was compiled for."""
    for facts in reached:
        for call in facts.calls:
            callee = calls.callee(call)
            if callee is None:
                why, label = "calls a function through a pointer", "which function, is not known"
                help = "call it by its name"
            elif calls.is_recursive(callee):
                why, label = f"calls `{callee}`, which calls itself", "cannot be inlined"
                help = "turn the recursion into a loop"
            else:
                continue
            span = program.module.span(call)
            return Reason(f"`{kernel.function.title}` {why}", Label(span, label) if span else None, help, "C7506")
    return None


def _explain(program: Program, dropped: list[FunctionFacts], reason: Reason) -> Diagnostic:
    ignored = [facts.instructions[at] for facts in dropped for at in facts.where(_changes_registers)]
    more = len(ignored) - 1
    return warning(
        "ignored-setmaxnreg",
        f"`setmaxnreg` has no effect: {reason.message}",
        program.module.opcode_span(ignored[0]),
        "ptxas leaves this out" + (f", and {more} more" if more else ""),
        others=[reason.label] if reason.label else [],
        notes=[f"ptxas says so only in an info line, {reason.info}"],
        helps=[reason.help],
    )
