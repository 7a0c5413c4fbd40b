"""A barrier, or an instruction that needs the whole warp, is under a branch that not all of these threads take.

`bar.sync` without a thread count waits for every thread of the block: those that took another path never arrive, and
the block hangs or, worse, an unrelated barrier releases it. Instructions with `.aligned` (`ldmatrix`, `mma`, `wgmma`,
`tcgen05.ld`, `setmaxnreg`, `bar.sync` with a count) need all 32 lanes of the warp at the same instruction; if a branch
separates the lanes, the result is undefined. ptxas assembles both without a warning.

Move the instruction out of the branch, and keep only the work of single threads under it. Where whole warps take
different paths, give the barrier a thread count of its own: `bar.sync 1, 128`. Threads that merely exit early are not a
problem for `bar.sync`, as the hardware no longer counts them. Blocks are assumed to be one-dimensional, of whole warps.

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
from contextlib import suppress
from typing import NamedTuple

from ptxlab import ir
from ptxlab.flow.control import END
from ptxlab.flow.effort import ExhaustedError
from ptxlab.isa import Jump, Match
from ptxlab.report import Diagnostic, Label, warning

from ..divergence import BLOCK, LANE, WARP, is_own
from ..program import FunctionFacts, Program
from ..same_decisions import Decision, SameDecisions

_LEAVING = frozenset((Jump.RETURN, Jump.EXIT, Jump.TRAP, Jump.BRANCH))


class DivergentAt(NamedTuple):
    """Whether instruction `at` runs is up to instruction `decision`, a branch or itself, which differs by `level`."""

    at: int
    decision: int
    level: int


class Need(NamedTuple):
    """The threads that an instruction needs: those of the block, lanes of the warp at the same instruction, or both."""

    block: bool
    warp: bool
    cluster: bool = False  # `barrier.cluster` waits for the threads that have not exited


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.followed_functions:
        collectives = _collectives(facts)
        if collectives and facts.most_threads != 1:
            with suppress(ExhaustedError):
                inspection = _Inspection(facts, collectives)
                for findings in inspection.findings():
                    yield _explain(program, inspection, findings)


def _collectives(facts: FunctionFacts) -> dict[int, Need]:
    """The instructions that need other threads."""
    found: dict[int, Need] = {}
    for at, match in enumerate(facts.matches):
        need = None if match is None else _need(match)
        if need is not None:
            found[at] = need
    return found


def _need(match: Match) -> Need | None:
    effects = match.effects
    if effects.barrier is None:
        return Need(False, True) if effects.aligned else None
    if effects.barrier == "cluster":
        return Need(True, True, cluster=True) if effects.aligned else None
    counted = any(expected.name == "b" for expected in match.expected)
    return Need(not counted, effects.aligned) if effects.aligned or not counted else None


class _Inspection:
    """The collective instructions of one function, and the threads that reach them."""

    def __init__(self, facts: FunctionFacts, collectives: dict[int, Need]) -> None:
        self.facts = facts
        self.collectives = collectives
        self._effort, self.control = facts.effort, facts.control
        self.divergence = facts.divergence
        self._cluster_barriers = [at for at, need in collectives.items() if need.cluster]
        self._presence = facts.presence
        self._same = SameDecisions(facts, lambda at: self._level(at) == BLOCK)
        self._decided: dict[tuple[int, Need, frozenset[int]], int | None] = {}
        self.one_warp = 0 < (facts.most_threads or 0) <= 32

    def findings(self) -> Iterator[list[DivergentAt]]:
        """The instructions that are missed, together by the decision that is to blame."""
        found: dict[int, list[DivergentAt]] = {}
        with suppress(ExhaustedError):  # what was found so far is kept
            for at, need in self.collectives.items():
                finding = self._judge(at, need)
                if finding is not None:
                    found.setdefault(finding.decision, []).append(finding)
        yield from found.values()

    def _judge(self, at: int, need: Need) -> DivergentAt | None:
        home = self.facts.chains.block_of(at)
        if home not in self.control.successors:
            return None  # nothing leads here
        if self.facts.instructions[at].guard is not None and self._level(at) >= self._wrong_from(need):
            return DivergentAt(at, at, self._level(at))
        decision = self._decision(home, need)
        return None if decision is None else DivergentAt(at, decision, self._level(decision))

    def _level(self, at: int) -> int:
        """How the decision of instruction `at` differs among the threads that can reach it."""
        level = self.divergence.of_guard(at)
        if level == BLOCK:
            return BLOCK
        true, false = self._presence.of_guard(at)
        if not true or not false:
            return BLOCK
        return level if self._presence.warps(true) & self._presence.warps(false) else WARP

    def _wrong_from(self, need: Need) -> int:
        return WARP if need.block and not self.one_warp else LANE

    def _decision(self, home: int, need: Need) -> int | None:
        """The nearest branch that keeps threads away from a block that are needed there."""
        warps = self._presence.warps(self._presence.of_block(home))
        pending, seen = [home], {home}
        found: int | None = None
        alike = True  # what holds for `home` holds for each block on the way
        while pending and found is None:
            self._effort.spend(1)
            block = pending.pop()
            if (block, need, warps) in self._decided:
                found = self._decided[block, need, warps]
                continue
            for branch in self.control.branches[block]:
                past = self._sent_past(branch, block, need, warps) if found is None else []
                if any(self._can_miss(branch, other, (block, home), need, warps) for other in past):
                    found = self.facts.flow.blocks[branch].end - 1
                elif past:
                    alike = False
                if branch not in seen:
                    seen.add(branch)
                    pending.append(branch)
        if found is None and alike:
            self._decided.update({(block, need, warps): None for block in seen})
        self._decided[home, need, warps] = found
        return found

    def _sent_past(self, branch: int, block: int, need: Need, warps: frozenset[int]) -> list[int]:
        """Where a branch sends threads that need not pass a block which these warps need to get to the instruction."""
        level = self._level(self.facts.flow.blocks[branch].end - 1)
        if level < self._wrong_from(need):
            return []
        return [
            other
            for other in self.control.successors[branch]
            if (other == END or not self.control.post_dominates(block, other))
            and self._concerns(branch, other, need, warps)
            and self._is_missed(branch, block, other, level, need)
        ]

    def _concerns(self, branch: int, other: int, need: Need, warps: frozenset[int]) -> bool:
        """Whether one of these warps can be at the branch and, if the instruction needs whole warps, go to `other`."""
        presence = self._presence
        here = presence.of_block(branch) if need.block else presence.of_edge(branch, other)
        return bool(presence.warps(here) & warps)

    def _can_miss(self, branch: int, other: int, wanted: tuple[int, int], need: Need, warps: frozenset[int]) -> bool:
        """Whether a thread that a branch sends to `other` can end and pass none of the wanted blocks.

        The second of these has the instruction: what is decided in the same way for all threads before some get there
        is decided so for this thread, too.
        """
        if not self._escapes(branch, other, wanted, need, warps, set()):
            return False
        needed = self._same.needed(branch, other, wanted[1])
        return not needed or self._escapes(branch, other, wanted, need, warps, {one.opposite() for one in needed})

    def _escapes(
        self, branch: int, other: int, wanted: tuple[int, int], need: Need, warps: frozenset[int], never: set[Decision]
    ) -> bool:
        """Whether such a thread can, without a decision that is never taken."""
        presence = self._presence
        threads = presence.of_edge(branch, other) & (presence.all if need.block else presence.lanes_of(warps))
        pending, seen = [(other, threads)], dict[int, int]()
        while pending:
            self._effort.spend(1)
            number, threads = pending.pop()
            if number in wanted or not threads & ~seen.get(number, 0):
                continue
            if number == END:
                return True
            seen[number] = seen.get(number, 0) | threads
            pending += [
                (after, threads & presence.of_edge(number, after))
                for after in self.control.successors[number]
                if not never or self._same.of_edge(number, after) not in never
            ]
        return False

    def _is_missed(self, branch: int, block: int, other: int, level: int, need: Need) -> bool:
        """Whether threads that a branch sends to `other` are missed in `block`."""
        side = self.control.reachable(other) if other != END else frozenset()
        if not need.block:
            return level == LANE
        after = self.control.reachable(block)
        if branch not in after and all(self._only_leaves(number) for number in side & after):
            return False  # they leave for good, and the hardware no longer counts them
        if level == LANE and need.warp:
            return True
        if need.cluster and not any(self.facts.chains.block_of(at) in side for at in self._cluster_barriers):
            return False  # they exit: `barrier.cluster.wait` waits for the non-exited threads of the cluster
        region = self.control.region(other, self.control.merge(branch)) if other != END else frozenset()
        return not any(need.block and self.facts.chains.block_of(at) in region for at, need in self.collectives.items())

    def _only_leaves(self, number: int) -> bool:
        block = self.facts.flow.blocks[number]
        return all(self.facts.instructions[at].opcode.jump in _LEAVING for at in range(block.start, block.end))


def _explain(program: Program, inspection: _Inspection, findings: list[DivergentAt]) -> Diagnostic:
    module, instructions = program.module, inspection.facts.instructions
    at, decision, level = findings[0]
    instruction, branch = instructions[at], instructions[decision]
    name = _short(instruction, inspection.facts.matches[at])
    block_wide = inspection.collectives[at].block
    whole = "block" if block_wide else "warp"
    others: list[Label] = []
    if at != decision:
        span = module.guard_span(branch) or module.operand_span(branch, 0)
        others += [Label(span, f"{_part(level)} take different paths here")] if span else []
    origin = inspection.divergence.origin(decision)
    span = module.span(instructions[origin])
    if span and origin not in (decision, at):
        others.append(Label(span, _difference(inspection.facts, origin, level)))
    more = len(findings) - 1
    notes = [f"the same holds for {more} more instruction{'s' if more > 1 else ''} under this branch"] if more else []
    if block_wide and level == WARP:
        helps = [f"move `{name}` to where all threads pass, or give it the number of threads that do"]
    elif block_wide:
        helps = [f"move `{name}` to where all threads of the block pass"]
    else:
        helps = [f"move `{name}` to where the whole warp passes, or branch on the warp: `%tid.x` shifted right by 5"]
    return warning(
        "divergent-barrier",
        f"`{name}` needs all threads of the {whole}, but not all of them get here",
        module.guard_span(instruction) if at == decision else module.opcode_span(instruction),
        f"{_part(level)} decide differently" if at == decision else f"some threads of the {whole} miss it",
        others=others,
        notes=notes,
        helps=helps,
    )


def _part(level: int) -> str:
    assert level != BLOCK
    return "lanes of a warp" if level == LANE else "warps"


def _short(instruction: ir.Instruction, match: Match | None) -> str:
    """The first words of an opcode, up to its modifiers; of a barrier all of them."""
    words = instruction.opcode.text.split(".")
    if match is not None and match.effects.barrier:
        return instruction.opcode.text
    stop = next((i for i, word in enumerate(words) if word in ("sync", "aligned")), len(words))
    return ".".join(words[:stop])


def _difference(facts: FunctionFacts, origin: int, level: int) -> str:
    instruction, match = facts.instructions[origin], facts.matches[origin]
    special = next((o for o in instruction.operands if isinstance(o, ir.SpecialRegister)), None)
    among = "lane to lane" if level == LANE else "warp to warp"
    if special is not None:
        name = special.name + (f".{special.component}" if special.component else "")
        return f"`{name}` differs from {among}"
    if match is not None and match.effects.elects:
        return "true in one lane of the warp only"
    if match is not None and is_own(match.effects):
        return "each lane gets a result of its own"
    return f"differs from {among}"
