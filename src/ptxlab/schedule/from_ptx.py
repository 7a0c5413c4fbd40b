"""A naive kernel in PTX or CUDA C++ as an algorithm: a thread for each element of the result, and a loop that adds up.

```python
found = from_ptx(Path("sgemm.ptx"))
print(found.text)
s = schedule(found)
```

The kernel is executed on symbols (`executing.py`): integers are sums of products of indices and sizes, numbers are
expressions. What comes out is the Python text of an algorithm (`recognized.py`), which is then read as any other. The
number of a block times that of threads, and the number of a thread, are the index of a loop over independent
iterations; either alone is one where the kernel does not ask for the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import ptxlab
from ptxlab.ir import Function, Module
from ptxlab.ir.operands import Address, LabelReference, Register
from ptxlab.ir.statements import BlockStatement, Instruction, Label
from ptxlab.isa.jump import Jump
from ptxlab.isa.operation import Operation
from ptxlab.report import PtxError, Source, error
from ptxlab.schedule.executing import CHANGED, Execution, effects_of, name_of
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.read import algorithm_of
from ptxlab.schedule.statements import Algorithm
from ptxlab.schedule.symbolic import Float, Predicate, Value, multiplied

_BRANCH = "threads without an element branch to the end, and a loop from its end to its start"
_EMPTY = {"sum": 0.0, "max": -inf, "min": inf}
_LOOPS = re.compile(r"\bfor(?=\s*\()")


def from_ptx(source: str | Path, entry: str | None = None, name: str | None = None) -> Algorithm:
    """The algorithm of a kernel in PTX, text or a file, where its loops are recognized; what is not is refused."""
    if isinstance(source, Path):
        return _read(ptxlab.load(source), entry)
    return _read(ptxlab.parse(source, name=name or "kernel.ptx"), entry)


def from_cuda(
    source: str | Path, entry: str | None = None, name: str | None = None, options: Sequence[str] = ()
) -> Algorithm:
    """The algorithm of a kernel in CUDA C++, text or a file, by the PTX that NVRTC makes of it, without unrolled loops.

    It is refused on its line as a kernel in PTX is.
    """
    path = source if isinstance(source, Path) else None
    text = source if isinstance(source, str) else source.read_text("utf-8")
    called = name or str(path or "kernel.cu")
    beside = [f"-I{path.parent}"] if path is not None else []
    module = ptxlab.cuda(_LOOPS.sub('_Pragma("unroll 1") for', text), options=[*beside, *options], name=called)
    own = {file: Source(called, text) for file, one in module.origins.items() if one.name == called}
    module.origins = {**module.origins, **own}
    return _read(module, entry)


def _read(module: Module, entry: str | None) -> Algorithm:
    entries = list(module.entries)
    if entry is None and len(entries) != 1:
        known = ", ".join(f"`{one}`" for one in entries)
        helps = [f"it has {known}"] if known else []
        message = f"there are {len(entries)} kernels: say which, as `entry`"
        raise PtxError([error("not-an-algorithm", message, None, helps=helps)])
    return _Reader(module, module[entry or entries[0]]).read()


@dataclass(frozen=True)
class _Skip:
    """A branch around a loop that would run no times."""

    condition: Predicate
    values: dict[str, Value]
    """Of registers, there."""
    loops: frozenset[str]
    """Those that were there before it."""


class _Reader(Execution):
    def __init__(self, module: Module, function: Function) -> None:
        super().__init__(module, function)
        self.skips: dict[str, _Skip] = {}  # by the label that they branch to
        self.empty: dict[str, float] = {}  # what each reduction is without iterations

    def read(self) -> Algorithm:
        body: list[Instruction | Label] = []
        for one in self.found.function.body or ():
            if isinstance(one, (Instruction, Label)):
                body.append(one)
            elif isinstance(one, BlockStatement):
                self.found.refuse(None, f"`{self.found.name}` has statements in braces of their own")
        self._run(body)
        if not self.found.stores:
            self.here = None
            self.refuse(f"`{self.found.name}` stores no element of an array of f32")
        text = self.found.text()
        source = self.found.module.source
        file = f"<{self.found.name} of {source.name if source is not None else 'kernel.ptx'}>"
        return algorithm_of(text, self.found.name, file)

    def _run(self, body: list[Instruction | Label]) -> None:
        number = 0
        while number < len(body):
            one = self.here = body[number]
            if isinstance(one, Label):
                if one.name in self.skips:
                    self._join(self.skips.pop(one.name))
                back = next((n for n in range(number + 1, len(body)) if _jumps(body[n], one.name)), None)
                if back is not None:
                    number = self._loop(body, number, back)
                    continue
            elif one.opcode.jump is not None:
                if not self._ends(one, body[number + 1 :]):
                    self._skip(one, body[number + 1 :])
                elif one.guard is None:
                    return
                else:
                    self._leave(self._guard(one))
            else:
                self.execute(one)
            number += 1

    # Branches.

    def _ends(self, one: Instruction, rest: list[Instruction | Label]) -> bool:
        """Whether threads leave the kernel here."""
        if one.opcode.jump is not Jump.BRANCH:
            return one.opcode.jump in (Jump.RETURN, Jump.EXIT)
        place = _index(rest, name_of(one.operands[0]))
        after = [] if place is None else [i.opcode.jump for i in rest[place:] if isinstance(i, Instruction)]
        return bool(after) and all(jump in (Jump.RETURN, Jump.EXIT) for jump in after)

    def _guard(self, one: Instruction) -> Predicate:
        """The condition of a branch."""
        assert one.guard is not None
        found = self.predicate(one.guard.register)
        return found.negated if one.guard.negated else found

    def _leave(self, condition: Predicate) -> None:
        """Threads that are out of bounds leave; the others have indices below a limit."""
        for part in condition.parts:
            axis = next((name for name in self.found.axes.values() if part.left == Linear.of(name)), None)
            if axis is None:
                self.refuse(
                    f"threads leave by `{part.left}`, which is not the index of an element",
                    "an index is `%ctaid.x * %ntid.x + %tid.x`, or either of `%ctaid.x` and `%tid.x` alone",
                )
            if part.relation != "ge" or condition.join == "and":
                said = f"threads leave where `{axis}` is not beyond a limit"
                self.refuse(said, "`setp.ge`, or the opposite of `setp.lt`, of an index and a size")
            self.found.limits[axis] = part.right

    def _skip(self, one: Instruction, rest: list[Instruction | Label]) -> None:
        """Remember a branch around a loop that would run no times."""
        place = _index(rest, name_of(one.operands[0])) if one.opcode.jump is Jump.BRANCH else None
        if place is None or one.guard is None:
            self.refuse("a branch that is neither a loop nor the end of threads without an element", _BRANCH)
        self.skips[name_of(one.operands[0])] = _Skip(self._guard(one), dict(self.values), frozenset(self.found.loops))

    def _join(self, skip: _Skip) -> None:
        """Where a branch around a loop joins it: what the loop added up is right for no iterations, too."""
        limits = [limit for axis, limit in self.found.loops.items() if axis not in skip.loops]
        test = skip.condition.parts[0]
        less = {"lt": limits[0] - 1, "eq": limits[0]} if len(limits) == 1 else {}
        if len(skip.condition.parts) != 1 or less.get(test.relation) != test.left - test.right:
            self.refuse("a branch to here that is not around one loop that would run no times", _BRANCH)
        for name, value in list(self.values.items()):
            before = skip.values.get(name)
            is_same = isinstance(value, Float) and isinstance(before, Float) and before.constant == self._empty(value)
            if value != before and (not is_same or before is None):
                del self.values[name]

    def _empty(self, value: Float) -> float | None:
        """A number where loops run no times, if that depends on nothing else."""
        found = set()
        for scalar in (1.7, -0.3):
            known = {**self.empty, **dict.fromkeys(self.found.scalars, scalar)}
            try:
                found.add(eval(value.text, {"__builtins__": {}, "abs": abs, "max": max, "min": min}, known))
            except (NameError, ArithmeticError):  # an element of an array, or a function
                return None
        return found.pop() if len(found) == 1 else None

    # Loops.

    def _loop(self, body: list[Instruction | Label], start: int, back: int) -> int:
        """A loop from a label to the branch back to it; returns where the kernel continues."""
        inner = [one for one in body[start + 1 : back] if isinstance(one, Instruction)]
        if len(inner) != back - start - 1:
            self.refuse("a loop in a loop, or a branch in it: only a loop that adds up is recognized")
        end = body[back]
        assert isinstance(end, Instruction)
        steps = self._inductions(inner)
        counters = {name for name, (_, step) in steps.items() if step == Linear.of(1)}
        tests = [one for one in inner if effects_of(one).computes is Operation.COMPARISON]
        counter = next((name_of(r) for t in tests for r in t.operands[1:] if name_of(r) in counters), None)
        if counter is None:
            self.refuse("a loop without a counter that grows by one up to a limit")
        axis = self.found.named(counter)
        for name, (first, step) in steps.items():
            self.values[name] = first + multiplied(step, Linear.of(axis))
        totals = self._totals(inner)
        self._check_carried(inner, {*steps, *totals})
        limit, terms = self._iterate(inner, end, axis, {*steps, *totals}, set(totals))
        if any(name in product.split("*") for product in limit.names for name in self.found.axes.values()):
            help = "write the algorithm in Python: `sum(... for j in range(n) if j <= i)`"
            self.refuse("a loop up to the index of another one", help)
        self.found.loops[axis] = limit
        for name, before in totals.items():
            made = f"{self.found.named(name)}_of_{axis}"
            kind, term = terms[name]
            self.found.sums.append((made, f"{kind}({term} for {axis} in range({self.found.size(limit)}))"))
            both = f"({before.text} + {made})" if kind == "sum" else f"{kind}({before.text}, {made})"
            self.values[name] = Float(made if before.constant == _EMPTY[kind] else both)
            self.empty[made] = _EMPTY[kind]
        for name in {name_of(one.operands[0]) for one in inner} - {*totals}:
            self.values.pop(name, None)
        return back + 1

    def _iterate(
        self, inner: list[Instruction], end: Instruction, axis: str, carried: set[str], totals: set[str]
    ) -> tuple[Linear, dict[str, tuple[str, str]]]:
        """Execute one iteration; returns how many there are, and what is reduced to each total, and how."""
        limit: Linear | None = None
        terms: dict[str, tuple[str, str]] = {}
        changed = False
        for one in inner:
            self.here = one
            name = name_of(one.operands[0])
            changed = changed or name in carried
            if any(access.kind != "load" for access in effects_of(one).accesses):
                self.refuse("a store in a loop: only a loop that adds up is recognized")
            if one.opcode.jump is not None:
                if one.guard is None or changed or limit is not None:
                    self.refuse("a loop that is left in the middle")
                limit = self._limit(self._guard(one), axis, leaves=True)
            elif name in totals:
                terms[name] = self._term(one, name)
            else:
                self.execute(one)
        self.here = end
        if end.guard is not None:
            limit = self._limit(self._guard(end), axis, leaves=False)
        if limit is None:
            self.refuse("a loop without an end")
        return limit, terms

    def _check_carried(self, inner: list[Instruction], known: set[str]) -> None:
        """Refuse numbers that an iteration has from the one before, but for sums and what grows evenly."""
        writes = [name_of(one.operands[0]) for one in inner]
        for number, one in enumerate(inner):
            self.here = one
            own = writes[number]
            if own in known and writes.count(own) > 1:
                self.refuse(f"`{own}` is changed twice in an iteration")
            reads = [r.base if isinstance(r, Address) else r for r in one.operands[1:]]
            for name in filter(None, (name_of(r) for r in reads)):
                if name in writes[number:] and name not in writes[:number] and name not in known:
                    self.refuse(f"`{name}` is from the iteration before: the loop carries a dependence")
                if isinstance(self.values.get(name), Float) and name in known and name != own:
                    self.refuse(f"`{name}` is read while it is added up: the loop carries a dependence")

    def _inductions(self, inner: list[Instruction]) -> dict[str, tuple[Linear, Linear]]:
        """Registers that grow by the same in each iteration: their first value, and by how much."""
        found = {}
        written = {name_of(one.operands[0]) for one in inner} - {""}
        for one in inner:
            target, *rest = one.operands
            first = self.values.get(name_of(target))
            others = [r for r in rest if name_of(r) != name_of(target)]
            if effects_of(one).computes is not Operation.SUM or not isinstance(first, Linear) or len(others) != 1:
                continue
            step = self.values.get(name_of(others[0])) if isinstance(others[0], Register) else self.integer(others[0])
            if isinstance(step, Linear) and name_of(others[0]) not in written:
                found[name_of(target)] = (first, step)
        return found

    def _totals(self, inner: list[Instruction]) -> dict[str, Float]:
        """Numbers that a loop adds to, and their values before it."""
        found: dict[str, Float] = {}
        for one in inner:
            name = name_of(one.operands[0]) if one.operands else ""
            before = self.values.get(name)
            if name in [name_of(r) for r in one.operands[1:]] and isinstance(before, Float):
                self.here = one
                if name in found or before.constant is None:
                    self.refuse(f"`{name}` is changed twice in the loop, or does not start with a number")
                found[name] = before
        return found

    def _term(self, one: Instruction, name: str) -> tuple[str, str]:
        """What an instruction adds to a number, or that it is the maximum or minimum with it."""
        if one.guard is not None:
            self.refuse("a term that some threads skip")
        if not CHANGED.isdisjoint(one.opcode.modifiers):
            self.refuse_instruction(one)
        terms = [None if name_of(r) == name else self.operand(r) for r in one.operands[1:]]
        match effects_of(one).computes, terms:
            case Operation.PRODUCT_SUM, [Float(left), Float(right), None]:
                return "sum", f"{left} * {right}"
            case Operation.SUM, [None, Float(other)] | [Float(other), None]:
                return "sum", other
            case Operation.DIFFERENCE, [None, Float(other)]:
                return "sum", f"(-{other})"
            case Operation.MAXIMUM, [None, Float(other)] | [Float(other), None]:
                return "max", other
            case Operation.MINIMUM, [None, Float(other)] | [Float(other), None]:
                return "min", other
        return self.refuse(f"`{name}` is not a sum: `fma` and `add` add to a number")

    def _limit(self, condition: Predicate, axis: str, leaves: bool) -> Linear:
        """How many iterations there are; a counter that grows by one and differs from its limit is below it."""
        test = condition.parts[0]
        if len(condition.parts) == 1 and test.relation in (("ge", "eq") if leaves else ("lt", "ne")):
            rest = test.left - axis  # what the counter has more than the index
            if all(axis not in product.split("*") for product in rest.names | test.right.names):
                # A test after the counter has grown is for the next iteration.
                return test.right - rest if leaves else test.right - rest + 1
        return self.refuse("the counter of a loop is compared with a limit: `setp.lt`, or `setp.ge` to leave")


def _index(body: list[Instruction | Label], label: str) -> int | None:
    """Where a label is."""
    return next((n for n, one in enumerate(body) if isinstance(one, Label) and one.name == label), None)


def _jumps(one: Instruction | Label, label: str) -> bool:
    return (
        isinstance(one, Instruction)
        and one.opcode.jump is Jump.BRANCH
        and isinstance(one.operands[0], LabelReference)
        and name_of(one.operands[0]) == label
    )
