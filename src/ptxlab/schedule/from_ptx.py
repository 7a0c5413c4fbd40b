"""A naive kernel in PTX as an algorithm: a thread for each element of the result, and a loop that adds up.

```python
found = from_ptx(text)
print(found.text)
s = schedule(found)
```

The kernel is executed on symbols: integers are sums of products of indices and sizes, numbers are expressions. What
comes out is the Python text of an algorithm (`recognized.py`), which is then read as any other. The number of a block
times that of threads, and the number of a thread, are the index of a loop over independent iterations.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import ptxlab
from ptxlab.ir import Function, Module
from ptxlab.ir.operands import Address, Immediate, LabelReference, Register, SpecialRegister
from ptxlab.ir.statements import BlockStatement, Instruction, Label
from ptxlab.report import PtxError, error
from ptxlab.schedule.read import algorithm, f32
from ptxlab.schedule.recognized import Product, Recognized, Sum
from ptxlab.schedule.statements import Algorithm

BYTES = 4
_NUMBERS = {"add": "+", "sub": "-", "mul": "*"}


def from_ptx(text: str, entry: str | None = None, name: str = "kernel.ptx") -> Algorithm:
    """The algorithm of a kernel in PTX, where its loops are recognized; what is not is refused on its line."""
    module = ptxlab.parse(text, name=name)
    entries = {one: module[one] for one in module.entries}
    if entry is None and len(entries) != 1:
        raise PtxError([error("not-an-algorithm", f"there are {len(entries)} kernels: say which, as `entry`", None)])
    chosen = entries.get(entry or next(iter(entries)))
    if chosen is None:
        raise PtxError([error("not-an-algorithm", f"there is no kernel `{entry}`", None)])
    return _Reader(module, chosen).read()


@dataclass(frozen=True)
class Float:
    """A number as Python text; `{3}` in it are the indices of the fourth access."""

    text: str


@dataclass(frozen=True)
class Compared:
    """A predicate: an integer is less than another one, or not less."""

    left: Mapping[Product, int]
    right: Mapping[Product, int]
    less: bool


def _add(left: Mapping[Product, int], right: Mapping[Product, int], factor: int = 1) -> Sum:
    found = dict(left)
    for product, count in right.items():
        found[product] = found.get(product, 0) + factor * count
    return {product: count for product, count in found.items() if count}


def _multiply(left: Mapping[Product, int], right: Mapping[Product, int]) -> Sum:
    found: Sum = {}
    for one, first in left.items():
        for other, second in right.items():
            key = tuple(sorted(one + other))
            found[key] = found.get(key, 0) + first * second
    return found


class _Reader:
    def __init__(self, module: Module, function: Function) -> None:
        self.name = module.source.name if module.source is not None else "kernel.ptx"
        self.values: dict[str, Any] = {}
        self.found = Recognized(module, function)
        self.here: Instruction | Label | None = None

    def refuse(self, message: str, help: str = "") -> NoReturn:
        self.found.refuse(self.here, message, help)

    def read(self) -> Algorithm:
        body: list[Instruction | Label] = []
        for one in self.found.function.body or ():
            if isinstance(one, (Instruction, Label)):
                body.append(one)
            elif isinstance(one, BlockStatement):
                self.found.refuse(None, f"`{self.found.function.name}` has statements in braces of their own")
        self._run(body)
        if not self.found.stores:
            self.here = None
            self.refuse(f"`{self.found.function.name}` stores no element of an array of f32")
        text = self.found.text()
        file = f"<{self.found.function.name} of {self.name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        space: dict[str, Any] = {"f32": f32}
        exec(compile(text, file, "exec"), space)
        made = space[self.found.function.name]
        return replace(algorithm(made), text=text)

    # Execution on symbols.

    def _run(self, body: list[Instruction | Label]) -> None:
        number = 0
        while number < len(body):
            one = self.here = body[number]
            if isinstance(one, Label):
                back = next((n for n in range(number + 1, len(body)) if _jumps(body[n], one.name)), None)
                if back is not None:
                    number = self._loop(body, number, back)
                    continue
            elif one.opcode.mnemonic in ("bra", "ret", "exit"):
                if not self._leaves(one, body[number + 1 :]):
                    self.refuse("a branch that is neither a loop nor the end of threads without an element")
                if one.guard is None:
                    return
            else:
                self._execute(one)
            number += 1

    def _leaves(self, one: Instruction, rest: list[Instruction | Label]) -> bool:
        """Whether threads that are out of bounds leave here; the others have indices below a limit."""
        if one.opcode.mnemonic == "bra":
            name = _name(one.operands[0])
            after = [other for other in rest if isinstance(other, Label) and other.name == name]
            end = rest[rest.index(after[0]) + 1 :] if after else None
            if end is None or any(isinstance(i, Instruction) and i.opcode.mnemonic not in ("ret", "exit") for i in end):
                return False
        if one.guard is None:
            return True
        for condition in self._conditions(one.guard):
            axis = next((name for name in self.found.axes.values() if condition.left == {(name,): 1}), None)
            if axis is None or condition.less:
                return False
            self.found.limits[axis] = dict(condition.right)
        return True

    def _conditions(self, guard: Any) -> list[Compared]:
        found = self.values.get(_name(guard.register))
        if not isinstance(found, list):
            self.refuse(f"`{_name(guard.register)}` does not compare an index with a limit")
        return [replace(one, less=one.less != guard.negated) for one in found]

    def _loop(self, body: list[Instruction | Label], start: int, back: int) -> int:
        """A loop from a label to the branch back to it; returns where the kernel continues."""
        inner = [one for one in body[start + 1 : back] if isinstance(one, Instruction)]
        if len(inner) != back - start - 1:
            self.refuse("a loop in a loop, or a branch in it: only a loop that adds up is recognized")
        end = body[back]
        assert isinstance(end, Instruction)
        steps = self._inductions(inner)
        counters = {name for name, (_, step) in steps.items() if step == {(): 1}}
        tests = [one for one in inner if one.opcode.mnemonic == "setp"]
        counter = next((_name(r) for t in tests for r in t.operands[1:] if _name(r) in counters), None)
        if counter is None:
            self.refuse("a loop without a counter that grows by one up to a limit")
        axis = self.found.named(counter)
        entry = {name: first for name, (first, _) in steps.items()}
        for name, (first, step) in steps.items():
            self.values[name] = _add(first, _multiply(step, {(axis,): 1}))
        totals = self._totals(inner)
        self._check_carried(inner, {*steps, *totals})
        limit: Sum | None = None
        changed = False
        for one in inner:
            self.here = one
            name = _name(one.operands[0])
            changed = changed or name in steps or name in totals
            if one.opcode.mnemonic in ("st", "red", "atom"):
                self.refuse("a store in a loop: only a loop that adds up is recognized")
            if one.opcode.mnemonic == "bra":
                if one.guard is None or changed or limit is not None:
                    self.refuse("a loop that is left in the middle")
                limit = self._limit(self._conditions(one.guard), axis, entry[counter], leaves=True)
            elif name in totals:
                totals[name] = self._added(one, name)
            else:
                self._execute(one)
        self.here = end
        if end.guard is not None:
            limit = self._limit(self._conditions(end.guard), axis, entry[counter], leaves=False)
        if limit is None:
            self.refuse("a loop without an end")
        self.found.loops[axis] = limit
        for name, value in totals.items():
            made = f"{self.found.named(name)}_of_{axis}"
            self.found.sums.append((made, f"sum({value} for {axis} in range({self.found.size(limit)}))"))
            before = self.values[name].text
            self.values[name] = Float(made if float(before) == 0 else f"({before} + {made})")
        for name in {_name(one.operands[0]) for one in inner} - {*totals}:
            self.values.pop(name, None)
        return back + 1

    def _check_carried(self, inner: list[Instruction], known: set[str]) -> None:
        """Refuse numbers that an iteration has from the one before, but for sums and what grows evenly."""
        writes = [_name(one.operands[0]) for one in inner]
        for number, one in enumerate(inner):
            self.here = one
            own = writes[number]
            if own in known and writes.count(own) > 1:
                self.refuse(f"`{own}` is changed twice in an iteration")
            reads = [r.base if isinstance(r, Address) else r for r in one.operands[1:]]
            for name in filter(None, (_name(r) for r in reads)):
                if name in writes[number:] and name not in writes[:number] and name not in known:
                    self.refuse(f"`{name}` is from the iteration before: the loop carries a dependence")
                if isinstance(self.values.get(name), Float) and name in known and name != own:
                    self.refuse(f"`{name}` is read while it is added up: the loop carries a dependence")

    def _inductions(self, inner: list[Instruction]) -> dict[str, tuple[Sum, Sum]]:
        """Registers that grow by the same in each iteration: their first value, and by how much."""
        found = {}
        for one in inner:
            first, *rest = one.operands
            name = _name(first)
            if one.opcode.mnemonic != "add" or name not in self.values or not isinstance(self.values[name], dict):
                continue
            others = [r for r in rest if _name(r) != name]
            if len(others) == 1 and isinstance(others[0], Immediate):
                found[name] = (self.values[name], self._whole(others[0]))
            elif len(others) == 1 and isinstance(self.values.get(_name(others[0])), dict):
                found[name] = (self.values[name], self.values[_name(others[0])])
        return found

    def _totals(self, inner: list[Instruction]) -> dict[str, str]:
        """Numbers that a loop adds to: they have a value before it."""
        found = {}
        for one in inner:
            name = _name(one.operands[0]) if one.operands else ""
            reads = [_name(r) for r in one.operands[1:]]
            if name in reads and isinstance(self.values.get(name), Float):
                self.here = one
                if name in found or not _is_number(self.values[name].text):
                    self.refuse(f"`{name}` is changed twice in the loop, or does not start with a number")
                found[name] = ""
        return found

    def _added(self, one: Instruction, name: str) -> str:  # noqa: RET503 - `refuse` does not return
        if one.guard is not None:
            self.refuse("a term that some threads skip")
        terms = [self._operand(r) if _name(r) != name else None for r in one.operands[1:]]
        match one.opcode.mnemonic, terms:
            case "fma", [Float(left), Float(right), None]:
                return f"{left} * {right}"
            case "add", [None, Float(other)] | [Float(other), None]:
                return other
        self.refuse(f"`{name}` is not a sum: `fma` and `add` add to a number")

    def _limit(self, conditions: list[Compared], axis: str, first: Sum, leaves: bool) -> Sum:  # noqa: RET503 - `refuse` does not return
        if len(conditions) == 1 and conditions[0].less != leaves:
            rest = _add(conditions[0].left, {(axis,): 1}, -1)  # what the counter has more than the index
            if all(axis not in product for product in (*rest, *conditions[0].right)):
                # A test after the counter has grown is for the next iteration.
                return _add(conditions[0].right, rest if leaves else _add(rest, {(): 1}, -1), -1)
        self.refuse("the counter of a loop is compared with a limit: `setp.lt`, or `setp.ge` to leave")

    def _execute(self, one: Instruction) -> None:
        kind = one.opcode.text.split(".")
        match kind[0]:
            case "ld" if "param" in kind:
                self._parameter(one)
            case "ld" if kind[-1] == "f32" and "shared" not in kind and "local" not in kind:
                self.values[self._target(one)] = self._element(one)
            case "st" if kind[-1] == "f32" and "shared" not in kind and "local" not in kind:
                self._store(one)
            case "mov" | "cvt" | "cvta":
                self.values[self._target(one)] = self._operand(one.operands[1])
            case "setp" if kind[1] in ("lt", "ge"):
                left, right = (self._integer(r) for r in one.operands[1:3])
                self.values[self._target(one)] = [Compared(left, right, kind[1] == "lt")]
            case "or" if kind[-1] == "pred":
                left, right = (self.values[_name(r)] for r in one.operands[1:3])
                self.values[self._target(one)] = left + right
            case "add" | "sub" | "mul" | "mad" | "shl" | "fma" if kind[-1] != "f32":
                self.values[self._target(one)] = self._indexed(kind[0], one)
            case "add" | "sub" | "mul" | "fma" if kind[-1] == "f32":
                parts = [self._number(r) for r in one.operands[1:]]
                is_fused = kind[0] == "fma"
                text = "{} * {} + {}".format(*parts) if is_fused else f" {_NUMBERS[kind[0]]} ".join(parts)
                self.values[self._target(one)] = Float(f"({text})")
            case _:
                self.refuse(f"`{one.opcode.text}` is not part of what is recognized", "write the algorithm in Python")

    def _target(self, one: Instruction) -> str:
        if one.guard is not None:
            self.refuse("an instruction that some threads skip")
        return str(_name(one.operands[0]))

    def _parameter(self, one: Instruction) -> None:
        address = one.operands[1]
        if not isinstance(address, Address) or address.offset:
            self.refuse("a part of a parameter")
        name = _name(address.base)
        if one.opcode.text.endswith("f32"):
            self.found.scalars.append(name)
            self.values[self._target(one)] = Float(name)
        else:
            self.values[self._target(one)] = {(name,): 1}

    def _indexed(self, what: str, one: Instruction) -> Sum:
        values = [self._integer(r) for r in one.operands[1:]]
        if what == "add" or what == "sub":
            found = _add(values[0], values[1], 1 if what == "add" else -1)
        elif what == "shl":
            if list(values[1]) != [()]:
                self.refuse("a shift by a number that is not known")
            found = _multiply(values[0], {(): 1 << values[1][()]})
        else:
            found = _multiply(values[0], values[1])
            if what == "mad":
                found = _add(found, values[2])
        for direction in "xyz":
            block = tuple(sorted((f"%ctaid.{direction}", f"%ntid.{direction}")))
            if found.get(block) and found.get(block) == found.get((f"%tid.{direction}",)):
                count = found.pop(block)
                del found[(f"%tid.{direction}",)]
                name = self.found.axes.setdefault(direction, self.found.named(_name(one.operands[0])))
                found = _add(found, {(name,): count})
        return found

    def _integer(self, operand: Any) -> Sum:  # noqa: RET503 - `refuse` does not return
        value = self._operand(operand)
        if isinstance(value, dict):
            return value
        self.refuse(f"`{_name(operand)}` is not a sum of indices and sizes")

    def _number(self, operand: Any) -> str:  # noqa: RET503 - `refuse` does not return
        value = self._operand(operand)
        if isinstance(value, Float):
            return value.text
        self.refuse(f"`{_name(operand)}` is not a number in f32 that is known")

    def _operand(self, operand: Any) -> Any:  # noqa: RET503 - `refuse` does not return
        match operand:
            case Register(name=name):
                if name not in self.values:
                    self.refuse(f"`{name}` depends on a loop, or is not written")
                return self.values[name]
            case SpecialRegister(name=name, component=component):
                return {(f"{name}.{component}",): 1}
            case Immediate(value=value, kind="f32"):
                return Float(repr(struct.unpack("<f", struct.pack("<I", value))[0]))
            case Immediate(value=value, kind="f64"):
                return Float(repr(struct.unpack("<d", struct.pack("<Q", value))[0]))
            case Immediate():
                return self._whole(operand)
        self.refuse("an operand that is not a register or a number")

    def _whole(self, operand: Immediate) -> Sum:
        return {(): int(operand.value)} if operand.value else {}

    def _place(self, one: Instruction, address: Any) -> tuple[str, Mapping[Product, int]]:
        """The array that an address is in, and how many elements on."""
        if not isinstance(address, Address) or not isinstance(address.base, Register):
            self.refuse("an address that is not in a register")
        value = _add(self._integer(address.base), {(): address.offset})
        pointers = {p.name for p in self.found.function.parameters if str(p.type) in (".u64", ".b64", ".s64")}
        found = [product for product in value if len(product) == 1 and product[0] in pointers and value[product] == 1]
        if len(found) != 1 or any(count % BYTES for product, count in value.items() if product != found[0]):
            self.refuse("an address that is not a pointer and a multiple of 4 bytes")
        offset = {product: count // BYTES for product, count in value.items() if product != found[0]}
        self.found.accesses.append((found[0][0], offset, one))
        return found[0][0], offset

    def _element(self, one: Instruction) -> Float:
        array, _ = self._place(one, one.operands[1])
        return Float(f"{array}[{{{len(self.found.accesses) - 1}}}]")

    def _store(self, one: Instruction) -> None:
        if one.guard is not None:
            self.refuse("a store that some threads skip")
        array, offset = self._place(one, one.operands[0])
        self.found.stores.append((array, offset, self._number(one.operands[1]), one))


def _name(operand: Any) -> str:
    """The name of a register, a variable or a label; others have none."""
    return str(getattr(operand, "name", ""))


def _jumps(one: Instruction | Label, label: str) -> bool:
    return (
        isinstance(one, Instruction)
        and one.opcode.mnemonic == "bra"
        and isinstance(one.operands[0], LabelReference)
        and _name(one.operands[0]) == label
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
