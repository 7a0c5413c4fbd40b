"""Values of indices, masks and addresses while a kernel is written: each is computed once, as early as it can be.

A sum of loop variables is a number where all of these are known (unrolled loops), else a register. The address of an
access is a pointer that follows the loops that run, with the rest as a number in the instruction; before a loop starts,
the pointers that it needs are computed, and at its end they are moved on.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ptxlab.author import Pointer, s32, s64, u32
from ptxlab.author.emit import emit
from ptxlab.author.pointers import Pointer as TypedPointer
from ptxlab.author.values import b8
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import Gathered, Load, gathered
from ptxlab.schedule.tree import BYTES, Buffer, Plan

Value = Any  # a Python number, or a register

READ, FILL = "read", "fill"  # whose slot of a ring an address is in


@dataclass(frozen=True)
class Place:
    """An access without what is known while it is written: an array with an index for each dimension, or a buffer."""

    array: str
    index: tuple[Linear, ...]
    buffer: int | None = None
    slot: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The variables that the address depends on."""
        return frozenset().union(*(one.names for one in self.index))


@dataclass(frozen=True)
class Below:
    """`value` < `limit`, or where there is no limit `value` >= 0."""

    value: Linear
    limit: Linear | None = None


class Addresses:
    """What is known at this point of the kernel that is being written."""

    def __init__(self, plan: Plan, pointers: dict[str, Pointer], sizes: dict[str, Value]) -> None:
        self.plan = plan
        self.pointers = pointers
        self.numbers: dict[str, int] = {}  # variables of loops that are unrolled
        self.registers: dict[str, Value] = dict(sizes)  # all other variables
        self.memory: dict[int, Value] = {}  # where each buffer starts
        self.known: ChainMap[Any, Any] = ChainMap()
        self.strides = {name: self._strides(name) for name in pointers}

    def _strides(self, array: str) -> list[Value]:
        """Bytes from an index to the next, in each dimension."""
        found: list[Value] = [BYTES[self.plan.state.algorithm.arrays[array].element]]
        for extent in reversed(self.plan.extents(array)[1:]):
            found.append(_product(found[-1], self.value(extent)))
        return found[::-1]

    def resolved(self, sum: Linear, numbers: Mapping[str, int] = MappingProxyType({})) -> Linear:
        """A sum with what is known in it: unrolled variables, and registers in place of elements of arrays."""
        numbers = {**self.numbers, **numbers}
        sum = sum.replaced(numbers)
        for load in gathered(sum):
            index = tuple(self.resolved(self.plan.index(one), numbers) for one in load.index)
            key = (load.array, index)
            if key not in self.known:
                self.known[key] = self._gather(load, index, numbers)
            sum = sum.replaced({Gathered.of(load): Linear.of(self.known[key])})
        return sum

    def _gather(self, load: Load, index: Sequence[Linear], numbers: Mapping[str, int]) -> str:
        """Load an element; the name of its register. It is zero where it is masked, or outside of its array."""
        limits = self.outside({axis for one in load.index for axis in self.plan.axes_of(one)})
        limits = [Below(one.value.replaced(numbers), one.limit) for one in limits]
        for at, extent in zip(index, self.plan.extents(load.array), strict=True) if not load.is_inside else ():
            limits += [Below(at, extent), Below(at)]
        when = self.predicate(limits)
        register = emit(
            "ld.global.b32", [self.element(load.array, index)], out=s32() if when is None else s32(0), when=when
        )
        self.registers[f".{register.name}"] = register
        return f".{register.name}"

    def outside(self, axes: Collection[str]) -> list[Below]:
        """The conditions that iterations of tiles are ones of these axes."""
        some = [axis for axis in sorted(axes) if not self.plan.is_exact(axis)]
        return [Below(self.plan.axis(axis), self.plan.state.extent(axis)) for axis in some]

    def value(self, sum: Linear) -> Value:
        """A number, or an `s32` register."""
        sum = self.resolved(sum)
        if sum.is_constant:
            return sum.constant
        if sum not in self.known:
            self.known[sum] = self._computed(sum)
        return self.known[sum]

    def _computed(self, sum: Linear) -> Value:
        if sum.constant:
            return emit("add.s32", [self.value(Linear(sum.terms)), sum.constant], out=s32())
        total: Value = None
        for name, coefficient in sorted(sum.terms, key=lambda term: term[1] != 1):
            one = self.registers[name]
            if total is None:
                total = one if coefficient == 1 else emit("mul.lo.s32", [one, coefficient], out=s32())
            elif coefficient in (1, -1):
                total = emit("add.s32" if coefficient == 1 else "sub.s32", [total, one], out=s32())
            else:
                total = emit("mad.lo.s32", [one, coefficient, total], out=s32())
        return total

    def predicate(self, conditions: Sequence[Below], negated: bool = False) -> Value | None:
        """A predicate that holds where all conditions do, or with `negated` where one does not; None for none."""
        found = None
        for one in dict.fromkeys(conditions):
            value, limit = self.resolved(one.value), one.limit
            if limit is not None and value.is_constant and limit.is_constant and value.constant < limit.constant:
                continue
            if limit is None and value.is_constant and value.constant >= 0:
                continue
            key = (value, limit, negated)
            if key not in self.known:
                self.known[key] = self._compared(value, limit, negated)
            both = self.known[key]
            if found is not None:
                pair = ("both", found.name, both.name, negated)
                if pair not in self.known:
                    self.known[pair] = emit("or.pred" if negated else "and.pred", [found, both])
                both = self.known[pair]
            found = both
        return found

    def _compared(self, value: Linear, limit: Linear | None, negated: bool) -> Value:
        """With a number on the right: what is left of the limit is computed once for neighbours."""
        moving = Linear(value.terms)
        if limit is None or (value.constant and value not in self.known):
            left = moving if limit is None else limit - moving
            relation = ("lt" if negated else "ge") if limit is None else ("le" if negated else "gt")
            number, bound = self.value(left), -value.constant if limit is None else value.constant
        else:
            relation = "ge" if negated else "lt"
            number, bound = self.value(value), self.value(limit)
        return emit(f"setp.{relation}.s32", [s32(number) if isinstance(number, int) else number, bound])

    def place(self, array: str, index: Sequence[Linear], buffer: int | None = None, slot: str = "") -> Place:
        """An access; unrolled variables are left out, since their part of the address is known."""
        index = [self.resolved(one) if gathered(one) else one for one in index]
        return Place(
            array,
            tuple(Linear(tuple(t for t in one.terms if t[0] not in self.plan.unrolled)) for one in index),
            buffer,
            slot,
        )

    def pointer(self, place: Place) -> Value:
        """The register with the address of a place; variables of loops that do not run yet are zero."""
        if place not in self.known:
            self.known[place] = self._address(place)
        return self.known[place]

    def _address(self, place: Place) -> Value:
        running = tuple(one.only(self.registers) for one in place.index)
        if place.buffer is not None:
            start = self.memory[place.buffer]
            size = BYTES[self.plan.buffers[place.buffer].element]
            offset = self.value(running[0])
            if isinstance(offset, int):
                return start
            return emit("mad.lo.u32", [offset.view(u32), size, start], out=u32())
        address = self.pointers[place.array].register
        for one, stride in zip(running, self.strides[place.array], strict=True):
            address = _moved(address, self.value(one), stride)
        return address

    def step(self, place: Place, name: str) -> Value:
        """Bytes that an address moves by where a variable grows by one."""
        if place.buffer is not None:
            return place.index[0].coefficient(name) * BYTES[self.plan.buffers[place.buffer].element]
        total: Value = 0
        for one, stride in zip(place.index, self.strides[place.array], strict=True):
            coefficient = one.coefficient(name)
            if coefficient:
                part = _product(stride, coefficient)
                total = part if isinstance(total, int) and total == 0 else _wide_sum(total, part)
        if not isinstance(total, int) and total.type.width < 64:
            key = ("step", total.name)
            if key not in self.known:
                self.known[key] = emit("cvt.s64.s32", [total])
            total = self.known[key]
        return total

    def element(self, array: str, index: Sequence[Linear], follows: bool = False) -> Pointer:
        """The address of an element of an array in global memory; where many follow each other, from the one before."""
        index = [self.resolved(one) for one in index]
        address, offset = self.pointer(self.place(array, index)), 0
        for one, stride in zip(index, self.strides[array], strict=True):
            if isinstance(stride, int):
                offset += one.constant * stride
            elif one.constant:
                key = ("moved", address.name, stride.name, one.constant)
                if key not in self.known:
                    self.known[key] = self._next(address, one.constant, stride, follows)
                address = self.known[key]
        return TypedPointer(b8, "global", address, offset=offset)

    def _next(self, address: Value, number: int, stride: Value, follows: bool) -> Value:
        """An address, and so many strides: from the last one that was computed, as far as to the one before that."""
        key = ("last", address.name, stride.name)
        before, last = self.known.get(key, (None, address))
        if not follows or before is None:
            made = _moved(address, number, stride)
        else:
            step = ("strides", stride.name, number - before)
            if step not in self.known:
                by = "mul.lo.s64" if stride.type.width == 64 else "mul.wide.s32"
                self.known[step] = emit(by, [stride, number - before], out=s64())
            made = emit(f"add.{address.type.name}", [last, self.known[step].view(type(address))], out=type(address)())
        self.known[key] = number, made
        return made

    def shared(self, buffer: int, inside: Linear, slot: str = "", slots: int = 0) -> Pointer:
        """The address of an element of a buffer, `slots` slots on."""
        inside = inside.replaced(self.numbers)
        found: Buffer = self.plan.buffers[buffer]
        offset = (inside.constant + slots * found.size) * BYTES[found.element]
        return TypedPointer(
            b8, "shared", self.pointer(self.place(found.stage.array, [inside], buffer, slot)), offset=offset
        )


def _product(first: Value, second: Value) -> Value:
    """The product of two extents: a number, an `s32` where one is a number, else an `s64`."""
    if isinstance(second, int):
        first, second = second, first
    if isinstance(second, int):
        return first * second
    if isinstance(first, int):
        return second if first == 1 else emit(f"mul.lo.{second.type.name}", [second, first])
    first, second = (one if one.type.width == 64 else emit("cvt.s64.s32", [one]) for one in (first, second))
    return emit("mul.lo.s64", [first, second])


def _wide_sum(first: Value, second: Value) -> Value:
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    if isinstance(first, int):
        first, second = second, first
    wide = [
        one if isinstance(one, int) or one.type.width == 64 else emit("cvt.s64.s32", [one]) for one in (first, second)
    ]
    return emit("add.s64", wide, out=s64())


def _moved(address: Value, number: Value, stride: Value) -> Value:
    """An address, and so many strides."""
    if isinstance(number, int) and not number:
        return address
    if isinstance(number, int) and isinstance(stride, int):
        return emit(f"add.{address.type.name}", [address, number * stride], out=type(address)())
    if isinstance(number, int):
        number, stride = stride, number  # a number can only be the second factor
        if number.type.width == 64:
            return emit("mad.lo.s64", [number, stride, address], out=type(address)())
    elif not isinstance(stride, int) and stride.type.width == 64:
        return emit("mad.lo.s64", [emit("cvt.s64.s32", [number]), stride, address], out=type(address)())
    return emit("mad.wide.s32", [number, stride, address], out=type(address)())


def advance(address: Value, step: Value) -> None:
    """Move an address in its register."""
    emit(
        f"add.{address.type.name}", [address, step if isinstance(step, int) else step.view(type(address))], out=address
    )
