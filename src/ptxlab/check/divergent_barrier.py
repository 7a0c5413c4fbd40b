"""A barrier, or an instruction that needs the whole warp, stands under a branch that not all its threads take alike.

`bar.sync` without a thread count waits for every thread of the block: those that went another way never arrive, and the
block hangs or, worse, an unrelated barrier lets it through. Instructions with `.aligned` (`ldmatrix`, `mma`, `wgmma`,
`tcgen05.ld`, `setmaxnreg`, `bar.sync` with a count) need all 32 lanes of the warp at the same place; if a branch parts the
lanes, the result is undefined. ptxas assembles both without a word.

Move the instruction out of the branch, and put only the work of single threads under it. Where whole warps go different
ways, give the barrier a thread count of its own: `bar.sync 1, 128`. Threads that merely leave early are no problem for
`bar.sync`, as the hardware no longer counts them.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 out) {
    .reg .pred %p<2>;
    .reg .b64 %rd<2>;
    .reg .u32 %r<3>;
    .shared .u32 total;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra after;
    st.shared.u32 [total], %r1;
    bar.sync 0;
after:
    ld.shared.u32 %r2, [total];
    st.global.u32 [%rd1], %r2;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 out) {
    .reg .pred %p<2>;
    .reg .b64 %rd<2>;
    .reg .u32 %r<3>;
    .shared .u32 total;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra after;
    st.shared.u32 [total], %r1;
after:
    bar.sync 0;
    ld.shared.u32 %r2, [total];
    st.global.u32 [%rd1], %r2;
    ret;
}
```
"""

from collections.abc import Iterator
from typing import NamedTuple

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.report import Diagnostic, Label, warning

from .control import END, Control
from .divergence import BLOCK, LANE, WARP, Divergence
from .program import FunctionFacts, Program

COLLECTIVES = ("bar", "barrier", "ldmatrix", "stmatrix", "movmatrix", "mma", "wmma", "wgmma", "tcgen05", "setmaxnreg")
_TRIVIAL = frozenset(("ret", "exit", "trap", "bra"))


class Finding(NamedTuple):
    """Instruction `at` runs only if instruction `decision`, a branch or itself, decides so, which differs by `level`."""

    at: int
    decision: int
    level: int


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        collectives = _collectives(facts)
        if collectives:
            yield from _check_function(program, facts, collectives)


def _collectives(facts: FunctionFacts) -> dict[int, bool]:
    """The instructions that need company, and whether they need the whole block rather than the warp."""
    found: dict[int, bool] = {}
    for mnemonic in COLLECTIVES:
        for at in facts.by_mnemonic.get(mnemonic, ()):
            match = facts.matches[at]
            if match is not None:
                block, warp = _needs(facts.instructions[at], match)
                if block or warp:
                    found[at] = block
    return dict(sorted(found.items()))


def _needs(instruction: ir.Instruction, match: Match) -> tuple[bool, bool]:
    """Whether an instruction needs all threads of the block, and whether all lanes of the warp."""
    mnemonic, modifiers = instruction.opcode.mnemonic, instruction.opcode.modifiers
    if mnemonic not in ("bar", "barrier"):
        return False, mnemonic == "wgmma" or "aligned" in modifiers
    if "warp" in modifiers:
        return False, False
    if "cluster" in modifiers:
        return "aligned" in modifiers, "aligned" in modifiers
    counted = any(expected.name == "b" for expected in match.expected)
    return not counted, mnemonic == "bar" or "aligned" in modifiers


def _check_function(program: Program, facts: FunctionFacts, collectives: dict[int, bool]) -> Iterator[Diagnostic]:
    threads = _threads(facts.function)
    if threads == 1:
        return
    control = Control(facts)
    divergence = Divergence(facts, control)
    found: dict[int, list[Finding]] = {}
    for at, block_wide in collectives.items():
        finding = _judge(facts, control, divergence, at, block_wide and not 0 < threads <= 32, collectives)
        if finding is not None:
            found.setdefault(finding.decision, []).append(finding)
    for findings in found.values():
        yield _explain(program, facts, divergence, findings, collectives)


def _threads(function: ir.Function) -> int:
    """The most threads that a block can have, or 0."""
    directive = function.directive("reqntid") or function.directive("maxntid")
    count = 1
    for size in directive.arguments if directive else (0,):
        count *= int(size)
    return count


def _judge(
    facts: FunctionFacts,
    control: Control,
    divergence: Divergence,
    at: int,
    block_wide: bool,
    collectives: dict[int, bool],
) -> Finding | None:
    instruction = facts.instructions[at]
    home = divergence.block_of(at)
    if home not in control.successors:
        return None  # nothing leads here
    aligned = _needs(instruction, facts.matches[at])[1] if facts.matches[at] else False  # type: ignore[arg-type]
    wrong_from = WARP if block_wide else LANE
    if instruction.guard is not None and divergence.of_guard(at) >= wrong_from:
        return Finding(at, at, divergence.of_guard(at))
    pending, seen = [home], {home}
    while pending:
        block = pending.pop()
        for branch in control.branches[block]:
            if branch not in seen:
                seen.add(branch)
                pending.append(branch)
            decision = facts.flow.blocks[branch].end - 1
            level = divergence.of_guard(decision)
            if level < wrong_from:
                continue
            others = [s for s in control.successors[branch] if not (s != END and control.post_dominates(block, s))]
            if any(
                _misses(facts, control, divergence, branch, block, other, level, block_wide, aligned, collectives)
                for other in others
            ):
                return Finding(at, decision, level)
    return None


def _misses(
    facts: FunctionFacts,
    control: Control,
    divergence: Divergence,
    branch: int,
    block: int,
    other: int,
    level: int,
    block_wide: bool,
    aligned: bool,
    collectives: dict[int, bool],
) -> bool:
    """Whether threads that go to `other` instead of `block` are missed there."""
    side = control.reachable(other) if other != END else frozenset()
    if _only_traps(facts, control, branch, other, side):
        return False
    if not block_wide:
        return level == LANE
    if branch not in control.reachable(block) or branch in side:
        shared = side & control.reachable(block)
        if all(_is_trivial(facts, number) for number in shared) and branch not in side:
            return False  # they leave for good, and the hardware no longer counts them
    if level == LANE and aligned:
        return True
    region = control.region(other, control.merge(branch)) if other != END else frozenset()
    return not any(wide and divergence.block_of(at) in region for at, wide in collectives.items())


def _only_traps(facts: FunctionFacts, control: Control, branch: int, other: int, side: frozenset[int]) -> bool:
    """Whether all that can follow is that the kernel is aborted."""
    ends = [branch] if other == END else [number for number in side if END in control.successors[number]]
    last = [facts.instructions[facts.flow.blocks[number].end - 1].opcode.mnemonic for number in ends]
    return bool(last) and all(mnemonic in ("trap", "call") for mnemonic in last)


def _is_trivial(facts: FunctionFacts, number: int) -> bool:
    block = facts.flow.blocks[number]
    return all(facts.instructions[at].opcode.mnemonic in _TRIVIAL for at in range(block.start, block.end))


def _explain(
    program: Program,
    facts: FunctionFacts,
    divergence: Divergence,
    findings: list[Finding],
    collectives: dict[int, bool],
) -> Diagnostic:
    module = program.module
    at, decision, level = findings[0]
    instruction, branch = facts.instructions[at], facts.instructions[decision]
    name = _short(instruction)
    whole = "block" if collectives[at] else "warp"
    others: list[Label] = []
    if at != decision:
        span = module.guard_span(branch) or module.operand_span(branch, 0)
        others.append(Label(span, f"{_part(level)} go different ways here")) if span else None
    origin = divergence.origin(decision)
    span = module.span(origin)
    if span and origin is not branch and origin is not instruction:
        others.append(Label(span, _difference(origin, level)))
    more = len(findings) - 1
    notes = [f"the same holds for {more} more instruction{'s' if more > 1 else ''} under this branch"] if more else []
    if collectives[at] and level == WARP:
        helps = [f"move `{name}` to where all threads pass, or give it the count of the threads that do"]
    elif collectives[at]:
        helps = [f"move `{name}` to where all threads of the block pass"]
    else:
        helps = [f"move `{name}` to where the whole warp passes, or branch on the warp: `%tid.x` shifted right by 5"]
    return warning(
        "divergent-barrier",
        f"`{name}` needs all threads of the {whole}, but not all of them come here",
        module.guard_span(instruction) if at == decision else module.opcode_span(instruction),
        f"{_part(level)} decide differently" if at == decision else f"some threads of the {whole} miss it",
        others=others,
        notes=notes,
        helps=helps,
    )


def _part(level: int) -> str:
    assert level != BLOCK
    return "lanes of a warp" if level == LANE else "warps"


def _short(instruction: ir.Instruction) -> str:
    """The first words of an opcode, up to its modifiers."""
    words = instruction.opcode.text.split(".")
    stop = next((i for i, word in enumerate(words) if word in ("sync", "aligned")), len(words))
    if words[0] in ("bar", "barrier"):
        return ".".join(words)
    return ".".join(words[:stop])


def _difference(origin: ir.Instruction, level: int) -> str:
    special = next((o for o in origin.operands if isinstance(o, ir.SpecialRegister)), None)
    among = "lane to lane" if level == LANE else "warp to warp"
    if special is not None:
        name = special.name + (f".{special.component}" if special.component else "")
        return f"`{name}` differs from {among}"
    if origin.opcode.mnemonic == "elect":
        return "true in one lane of the warp only"
    if origin.opcode.mnemonic == "atom":
        return "each lane gets a result of its own"
    return f"differs from {among}"
