"""Shared memory that a `cp.async` fills is read on a path with no wait that covers the copy.

`cp.async` only starts a copy. The bytes are there after a `cp.async.wait_group` or `cp.async.wait_all` of the thread
that started it, or after the wait on an mbarrier that counts it, and after a barrier for other threads; until then a
read gets what was there before. `cp.async.wait_group n` waits for groups that `cp.async.commit_group` has closed, all
but the `n` latest: what is in no group, or in one of the `n`, it does not wait for. ptxas assembles it without a
warning, and it may even work most of the time.

The rule reports only what is certain: a copy that nothing waits for, a copy in a loop that is not waited for before it
is made again to the same address, and a read of the very bytes that the thread itself copies.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 in, .param .u64 out) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    .shared .align 16 .b8 tile[16];
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    cp.async.ca.shared.global [tile], [%rd1], 16;
    cp.async.commit_group;
    ld.shared.u32 %r1, [tile];
    st.global.u32 [%rd2], %r1;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 in, .param .u64 out) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    .shared .align 16 .b8 tile[16];
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    cp.async.ca.shared.global [tile], [%rd1], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    ld.shared.u32 %r1, [tile];
    st.global.u32 [%rd2], %r1;
    ret;
}
```
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

from ptxlab import ir
from ptxlab.flow.effort import ExhaustedError
from ptxlab.ir.effects import registers_in
from ptxlab.report import Diagnostic, Label, warning

from ..accesses import accesses
from ..copies import OPEN, READ, Copies
from ..program import FunctionFacts, Program


class _Reads:
    """The reads of shared memory in a function, to be looked up by address."""

    def __init__(self, facts: FunctionFacts, reads: list[int]) -> None:
        self._facts = facts
        self._reads = frozenset(reads)
        self._known: dict[tuple[object, int], list[int]] = defaultdict(list)
        self._found_roots: dict[int, frozenset[int]] = {}
        for at in reads:
            for key, _ in self._keys(at):
                self._known[key].append(at)

    def _address(self, at: int) -> tuple[ir.Operand, int] | None:
        """The first address of an instruction and how many bytes it accesses there."""
        instruction, match = self._facts.instructions[at], self._facts.matches[at]
        access = next(iter(accesses(instruction, match)), None) if match is not None else None
        return None if access is None else (instruction.operands[access.operand], access.size)

    def _keys(self, at: int) -> Iterator[tuple[tuple[object, int], int | None]]:
        """Each unit of 4 bytes that is accessed, from a variable or from what a register holds, and that register."""
        address, size = self._address(at) or (None, 0)
        if not isinstance(address, ir.Address):
            return
        pointer = self._facts.value(at, address).pointer
        if pointer is not None:
            for unit in range(pointer.offset // 4, (pointer.offset + size + 3) // 4):
                yield (id(pointer.variable), unit), None
        elif isinstance(address.base, ir.Register):
            for unit in range(address.offset // 4, (address.offset + size + 3) // 4):
                yield (f"register {address.base.index}", unit), address.base.index

    def of_the_same_bytes(self, copy: int) -> dict[int, int | None]:
        """The reads of bytes that a copy writes, each with the register that both addresses start from, if any."""
        return {at: register for key, register in self._keys(copy) for at in self._known.get(key, ())}

    def may_meet(self, copy: int, at: int) -> bool:
        """Whether `at` is a read, and not surely of other variables than the copy writes."""
        if at not in self._reads:
            return False
        first, second = self._roots(copy), self._roots(at)
        return not first or not second or bool(first & second)

    def _roots(self, at: int) -> frozenset[int]:
        """The variables that an address is computed from."""
        known = self._found_roots.get(at)
        if known is None:
            known = self._found_roots[at] = frozenset(self._find_roots(at))
        return known

    def _find_roots(self, at: int) -> Iterator[int]:
        address = self._address(at)
        pending: list[tuple[ir.Operand, int]] = [(address[0], at)] if address is not None else []
        seen: set[int] = set()
        while pending:
            operand, where = pending.pop()
            base = operand.base if isinstance(operand, (ir.Address, ir.Element)) else operand
            if isinstance(base, ir.VariableReference):
                yield id(base.variable)
            for register in registers_in(base):
                for written in self._facts.chains.definitions(where, register.index):
                    if written not in seen and len(seen) < 200:
                        seen.add(written)
                        pending.extend((source, written) for source in self._facts.instructions[written].operands[1:])


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        if facts.doing("async_copy", "start"):
            with suppress(ExhaustedError):
                yield from _check_function(program, facts)


def _check_function(program: Program, facts: FunctionFacts) -> Iterator[Diagnostic]:
    copies = Copies(facts)
    reads = _Reads(facts, [at for at, kind in copies.kinds.items() if kind == READ])
    reported: set[object] = set()
    chosen = copies.chosen_waits()
    for copy in copies.copies:
        waits = copies.waits(copy)
        if any(age is None for at, age in waits.items() if at in chosen):
            continue
        covering = frozenset(at for at, age in waits.items() if age is None)
        cause = (facts.chains.block_of(copy), covering)
        if cause in reported:
            continue
        read = _early_read(facts, copies, reads, copy, covering)
        if read is not None and read not in reported:
            reported |= {cause, read}
            weak = {at: age for at, age in waits.items() if age is not None and _is_between(at, copy, read)}
            yield _explain(program, facts, copies, copy, read, weak)


def _is_between(at: int, copy: int, read: int) -> bool:
    """Whether a wait is between the two in the text or, where the read is first, around the loop."""
    return copy < at < read if copy < read else not read < at < copy


def _early_read(facts: FunctionFacts, copies: Copies, reads: _Reads, copy: int, covering: frozenset[int]) -> int | None:
    """The nearest read that certainly may see the bytes of a copy before they are there."""
    if facts.function.kind == "entry" and not covering:
        return next((at for at in copies.walk(copy, covering) if reads.may_meet(copy, at)), None)
    if copies.repeats(copy):
        following = list(copies.walk(copy, covering))
        if copy in following:
            return next((at for at in following if reads.may_meet(copy, at)), None)
    candidates = reads.of_the_same_bytes(copy)
    if not candidates:
        return None
    own = (at for at in copies.walk(copy, covering) if at in candidates)
    for at in own:
        register = candidates[at]
        if register is None or at in copies.walk(copy, covering | set(facts.chains.writes.get(register, ()))):
            return at
    return None


def _explain(
    program: Program, facts: FunctionFacts, copies: Copies, copy: int, read: int, weak: dict[int, int]
) -> Diagnostic:
    module = program.module
    span = module.span(facts.instructions[copy])
    others = [Label(span, "this copy may still be on its way")] if span else []
    helps = ["wait first: `cp.async.wait_all;`, then a barrier if other threads read the bytes"]
    if weak:
        wait, age = max(weak.items())
        limit = copies.limits[wait]
        said = "waits for closed groups only, and the copy is in none"
        helps = ["put `cp.async.commit_group;` after the last copy of the group"]
        if age != OPEN:
            latest = "latest group" if limit == 1 else f"{limit} latest groups"
            said = f"lets the {latest} stay pending, and the copy with it"
            helps = [f"wait with `cp.async.wait_group {age};`"]
        span = module.span(facts.instructions[wait])
        others += [Label(span, said)] if span else []
    return warning(
        "unwaited-copy",
        "shared memory is read while `cp.async` may still be filling it",
        module.span(facts.instructions[read]),
        "may see what was there before",
        others=others,
        helps=helps,
    )
