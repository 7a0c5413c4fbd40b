"""LLVM IR of one thread, widened line by line to the lanes that execute it together.

Semantics write the text of one thread. Here a value is one of three: the same in all lanes, and then a scalar as
before; `Strided`, a scalar for the first lane and a constant step to the next; or a vector with an element for each
lane. An instruction whose operands are scalars stays as it is, so what is uniform is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ptxlab.emulate.abi import state
from ptxlab.emulate.translate.lane_masks import MaskBuilder
from ptxlab.emulate.translate.lane_shapes import (
    NUMBER,
    VARYING,
    Extension,
    Held,
    Indexed,
    NotTogetherError,
    Strided,
    Varying,
    cast_number,
    combined,
    moved,
    wrapped,
)
from ptxlab.native import offset_of, size_of

_TYPE = r"(i\d+|float|double|ptr)"
_BINARY = re.compile(rf"(\w+) {_TYPE} (\S+), (\S+)$")
_COMPARE = re.compile(rf"([if]cmp \w+) {_TYPE} (\S+), (\S+)$")
_CAST = re.compile(rf"(trunc|zext|sext|bitcast) {_TYPE} (\S+) to {_TYPE}$")
_SELECT = re.compile(rf"select i1 (\S+), {_TYPE} (\S+), {_TYPE} (\S+)$")
_CALL = re.compile(rf"call {_TYPE} @(\S+?)\((.*)\)$")
_LOAD = re.compile(rf"load {_TYPE}, ptr (%\S+?)(, !.*)?$")
_NAME = re.compile(r"%[\w.]+")
_THREAD_SIZE = size_of(state.Thread)
_OF_THREAD = "getelementptr i8, ptr %thread, i64 "
_LOCAL = re.compile(r"%local\b")  # local memory of the first lane
# What differs from lane to lane of a row of threads, by the offset in the thread; the row has a multiple of the lanes.
_STRIDES = {
    str(offset_of(state.Thread, name)): stride
    for name, stride in (("index.x", 1), ("index.y", 0), ("index.z", 0), ("lane", 1), ("number", 1))
}


class LaneBuilder(MaskBuilder):
    """The text of a function that lanes execute together."""

    __slots__ = (
        "_before",
        "_buffers",
        "_fields",
        "_lane",
        "functions",
        "is_reporting",
        "thread",
        "variables",
    )

    def __init__(self, group: int) -> None:
        super().__init__(group)
        self.variables: dict[str, Held] = {}  # of variables on the stack that hold no uniform values
        self.is_reporting = False  # whether it is written what one of the threads does, for all of them
        self.thread = "%thread"  # whose thread it is that something is reported of
        self._fields: dict[str, str] = {}  # pointers to fields of the thread: their offsets
        self._lane: str | None = None  # the number of the lane whose part is being written, alone
        self._before: list[str] = []  # what is executed before the parts of lanes
        self._buffers: list[str] = []
        self.functions: dict[str, str] = {}  # that it calls, by their names; see `lane_functions`

    def ramp(self, type: str, stride: int) -> str:
        """The distances of lanes from the first."""
        numbers = (wrapped(lane * stride, int(type[1:])) for lane in range(self.group))
        return f"<{', '.join(f'{type} {number}' for number in numbers)}>"

    # Text as one thread has it.

    def emit(self, line: str) -> None:
        if self._lane is None and any(name in self.shapes for name in _NAME.findall(line)):
            raise NotTogetherError(line.partition(" ")[0])
        super().emit(self._of_thread(line))

    def value(self, operation: str) -> str:
        if self._lane is not None:
            return super().value(self._of_thread(operation))
        found = _LOAD.match(operation)
        if found is not None and found[2] in self.variables:
            return self._load(found[1], found[2])
        if found is not None and found[2] in self._fields:
            return self._load_field(found[1], found[2])
        if operation.startswith(_OF_THREAD):
            name = super().value(operation)
            self._fields[name] = operation.removeprefix(_OF_THREAD)
            return name
        if not any(name in self.shapes for name in _NAME.findall(operation)):
            found = _CAST.match(operation)
            if found is not None and found[1] != "bitcast" and NUMBER.match(found[3]):
                return cast_number(*found.groups())  # a factor is to be seen as one
            return super().value(self._of_thread(operation))
        for pattern, widen in _WIDENING:
            found = pattern.match(operation)
            if found is not None:
                return widen(self, *found.groups())
        raise NotTogetherError(operation.partition(" ")[0])

    def branch(self, condition: str, yes: str, no: str, likely: bool | None = None) -> None:
        if condition in self.shapes and self._lane is None:
            raise NotTogetherError("br")
        super().branch(condition, yes, no, likely)

    @property
    def is_alone(self) -> bool:
        """Whether it is written what one lane does, as a thread."""
        return self._lane is not None

    def _of_thread(self, text: str) -> str:
        """A text in which the thread is the one whose turn it is."""
        if self._lane is not None and _LOCAL.search(text):
            text = _LOCAL.sub(self.plain(f"load ptr, ptr {self.plain(_local_of(self.thread))}"), text)
        if "%thread" not in text:
            return text
        if self._lane is None and not self.is_reporting:
            raise NotTogetherError("a call of the runtime")
        return re.sub(r"%thread\b", self.thread, text)

    def function(self, name: str, lines: Callable[[], Iterator[str]]) -> None:
        """Have a function be defined beside this one; its first line is its head."""
        if name not in self.functions:
            head, *body = lines()
            self.functions[name] = "\n".join([f"define internal {head} nounwind {{", *body, "}"])

    # Values.

    def widened(self, type: str, text: str) -> str:
        """Any value as a vector."""
        shape = self.shapes.get(text)
        if isinstance(shape, Varying):
            return self.mask(text) if type == "i1" else text
        if shape is None:
            return self.splat(type, text)
        if isinstance(shape, Indexed):
            extended = self.vector(f"{shape.cast} {self.wide('i32')} {shape.index} to {self.wide(type)}")
            scaled = self.vector(f"mul {self.wide(type)} {extended}, {self.splat(type, str(shape.factor))}")
            return self.vector(f"add {self.wide(type)} {self.splat(type, text)}, {scaled}")
        base, extension = self.splat(type, text), shape.extension
        if extension is None:
            steps = self.ramp(type, shape.stride)
        else:
            starts = self.splat("i32", extension.start)
            each = self.vector(f"add {self.wide('i32')} {starts}, {self.ramp('i32', extension.step)}")
            far, near = (
                self.vector(f"{extension.cast} {self.wide('i32')} {x} to {self.wide(type)}") for x in (each, starts)
            )
            steps = self.vector(f"sub {self.wide(type)} {far}, {near}")
            steps = self.vector(f"mul {self.wide(type)} {steps}, {self.splat(type, str(extension.factor))}")
        return self.vector(f"add {self.wide(type)} {base}, {steps}")

    def of_lane(self, text: str, shape: Strided) -> str:
        """A value of 64 bits of the lane whose part is being written."""
        extension = shape.extension
        if extension is None:
            return self.plain(f"add i64 {text}, {self.plain(f'mul i64 {self._lane}, {shape.stride}')}")
        lane = self.plain(f"trunc i64 {self._lane} to i32")
        own = self.plain(f"add i32 {extension.start}, {self.plain(f'mul i32 {lane}, {extension.step}')}")
        far, near = (self.plain(f"{extension.cast} i32 {x} to i64") for x in (own, extension.start))
        distance = self.plain(f"mul i64 {self.plain(f'sub i64 {far}, {near}')}, {extension.factor}")
        return self.plain(f"add i64 {text}, {distance}")

    def is_evenly_spaced(self, shape: Strided) -> str:
        """Whether the lanes of a value are: its sum of 32 bits does not wrap around between them."""
        extension = shape.extension
        if extension is None:
            return "true"
        last = (self.group - 1) * extension.step
        end = self.plain(f"add i32 {extension.start}, {wrapped(last, 32)}")
        first = self.plain(f"{extension.cast} i32 {extension.start} to i64")
        there = self.plain(f"add i64 {first}, {last}")
        return self.plain(f"icmp eq i64 {there}, {self.plain(f'{extension.cast} i32 {end} to i64')}")

    def linear(self, text: str, stride: int, extension: Extension | None = None) -> str:
        """Have a value be that of the first lane."""
        if stride or extension is not None:
            self.shapes[text] = Strided(stride, extension)
        return text

    def any(self, condition: str) -> str:
        return condition if self.is_alone else super().any(condition)

    def where(self, condition: str, type: str, yes: str, no: str) -> str:
        """`yes` in the lanes in which a condition holds that holds in some, else `no`."""
        if condition not in self.shapes or self._lane is not None:
            return yes
        return self.value(f"select i1 {condition}, {type} {yes}, {type} {no}")

    def phi(self, type: str, *ways: tuple[str, str]) -> str:
        if self._lane is not None or not any(text in self.shapes for text, _ in ways):
            return super().phi(type, *ways)
        assert type != "i1"
        assert all(self.shapes.get(text) is VARYING or text[0] != "%" for text, _ in ways), ways
        texts = [(text if text[0] == "%" else self.splat(type, text), label) for text, label in ways]
        return self.vector(f"phi {self.wide(type)} {', '.join(f'[ {text}, %{label} ]' for text, label in texts)}")

    def _load(self, type: str, variable: str) -> str:
        shape = self.variables[variable]
        if isinstance(shape, Varying):
            if type == "i1":
                return self.loaded_mask(variable)
            return self.vector(f"load {self.wide(type)}, ptr {variable}")
        name, extension = self.plain(f"load {type}, ptr {variable}"), shape.extension
        if extension is not None:
            start = self.plain(f"load i32, ptr {variable}.start")
            extension = Extension(start, extension.step, extension.cast, extension.factor)
        return self.linear(name, shape.stride, extension)

    def _load_field(self, type: str, pointer: str) -> str:
        """A field of the thread, where it is known how those of the other lanes differ from that of the first."""
        offset = self._fields[pointer]
        if offset not in _STRIDES:
            raise NotTogetherError("a field of the thread")
        return self.linear(self.plain(f"load {type}, ptr {pointer}"), _STRIDES[offset])

    # Lane after lane.

    def buffer(self, type: str, vector: str | None = None) -> str:
        """Memory for an element of each lane, perhaps with those of a vector in it."""
        bits = "i8" if type == "i1" else type
        name = f"%lanes.{len(self._buffers)}"
        self._buffers.append(f"  {name} = alloca [{self.group} x {bits}], align 64")
        if vector is not None:
            if type == "i1":
                vector = self.plain(f"zext {self.conditions} {self.condition(vector)} to {self.wide('i8')}")
            self.lines.append(f"  store {self.wide(bits)} {vector}, ptr {name}")
        return name

    def unbuffered(self, type: str, buffer: str) -> str:
        """The vector in a buffer."""
        if type == "i1":
            bytes = self.vector(f"load {self.wide('i8')}, ptr {buffer}")
            return self.vector(f"trunc {self.wide('i8')} {bytes} to {self.conditions}")
        return self.vector(f"load {self.wide(type)}, ptr {buffer}")

    def element(self, type: str, buffer: str) -> str:
        """An element of a buffer, of the lane whose part is being written."""
        found = self.plain(f"load {'i8' if type == 'i1' else type}, ptr {self._at(type, buffer)}")
        return self.plain(f"trunc i8 {found} to i1") if type == "i1" else found

    def own(self, type: str, variable: str) -> str:
        """What a variable holds for the lane whose part is being written."""
        if variable not in self.variables:
            return self.plain(f"load {type}, ptr {variable}")
        start = len(self.lines)
        buffer = self.buffer(type, self.widened(type, self._load(type, variable)))
        for line in self.lines[start:]:
            assert isinstance(line, str)
            self._before.append(line)
        del self.lines[start:]
        return self.element(type, buffer)

    def put_element(self, type: str, buffer: str, text: str) -> None:
        if type == "i1":
            text, type = self.plain(f"zext i1 {text} to i8"), "i8"
        self.lines.append(f"  store {type} {text}, ptr {self._at(type, buffer)}")

    def _at(self, type: str, buffer: str) -> str:
        return self.plain(f"getelementptr {'i8' if type == 'i1' else type}, ptr {buffer}, i64 {self._lane}")

    @contextmanager
    def each_lane(self, mask: str | None = None) -> Iterator[str]:
        """Write the part of one lane, which is executed for all of them, or those of a mask, in order."""
        assert self._lane is None
        active = None if mask is None else self.buffer("i1", mask)
        head, body, end, after = (self.new_label(name) for name in ("lane", "part", "next", "together"))
        self._before = self.gap()
        self.lines.append("  store i64 0, ptr %lane")
        self.jump(head)
        self.label(head)
        outside = self.thread
        self._lane = self.plain("load i64, ptr %lane")
        if active is None:
            self.jump(body)
        else:
            self.branch(self.element("i1", active), body, end)
        self.label(body)
        offset = self.plain(f"mul i64 {self._lane}, {_THREAD_SIZE}")
        self.thread = self.plain(f"getelementptr i8, ptr %thread, i64 {offset}")
        yield self._lane
        self.jump(end)
        self.label(end)
        following = self.plain(f"add i64 {self._lane}, 1")
        self.lines.append(f"  store i64 {following}, ptr %lane")
        more = self.plain(f"icmp ult i64 {following}, {self.group}")
        self._lane, self.thread = None, outside
        self.branch(more, head, after)
        self.label(after)

    def declarations(self) -> list[str]:
        """The variables that the text needs besides registers."""
        return ["  %lane = alloca i64", f"  %addresses = alloca {self.wide('i64')}, align 64", *self._buffers]

    # Widening.

    def _binary(self, operation: str, type: str, a: str, b: str) -> str:
        if type == "i1":
            return self.combined(operation, self.widened(type, a), self.widened(type, b))
        shapes = self.shapes.get(a), self.shapes.get(b)
        if VARYING not in shapes:
            to = moved(operation, shapes, b)
            if to is not None:
                name = self.plain(f"{operation} {type} {a}, {b}")
                self.shapes[name] = to
                return name
            shape = combined(operation, shapes, b)
            if shape is not None:
                return self.linear(self.plain(f"{operation} {type} {a}, {b}"), shape.stride, shape.extension)
        first, second = (self.widened(type, x) for x in (a, b))
        return self.vector(f"{operation} {self.wide(type)} {first}, {second}")

    def _compare(self, operation: str, type: str, a: str, b: str) -> str:
        first, second = (self.widened(type, x) for x in (a, b))
        return self.vector(f"{operation} {self.wide(type)} {first}, {second}")

    def _cast(self, operation: str, type: str, a: str, to: str) -> str:
        shape = self.shapes[a]
        if isinstance(shape, Strided):
            if operation == "trunc":
                return self.linear(self.plain(f"trunc {type} {a} to {to}"), shape.stride)
            if operation in ("zext", "sext") and (type, to) == ("i32", "i64") and abs(shape.stride) < 1 << 24:
                extension = Extension(a, shape.stride, operation, 1)
                return self.linear(self.plain(f"{operation} i32 {a} to i64"), shape.stride, extension)
        if operation in ("zext", "sext") and (type, to) == ("i32", "i64") and shape is VARYING:
            name = self.plain("add i64 0, 0")
            self.shapes[name] = Indexed(a, operation, 1)
            return name
        if type == "i1":
            return self.vector(f"{operation} {self.conditions} {self.condition(a)} to {self.wide(to)}")
        result = self.conditions if to == "i1" else self.wide(to)
        return self.vector(f"{operation} {self.wide(type)} {self.widened(type, a)} to {result}")

    def _select(self, condition: str, type: str, a: str, _: str, b: str) -> str:
        if condition[0] != "%" or condition not in self.shapes:
            first, second = (self.widened(type, x) for x in (a, b))
            name = self.vector(f"select i1 {condition}, {self.wide(type)} {first}, {self.wide(type)} {second}")
            return self._word(name) if type == "i1" else name
        first, second = (self.widened(type, x) for x in (a, b))
        return self.choose(condition, type, first, second)

    def _call(self, type: str, symbol: str, arguments: str) -> str:
        given = [argument.split(" ") for argument in arguments.split(", ")]
        if symbol.startswith("llvm."):
            name = re.sub(r"\.([if]\d+)", rf".v{self.group}\1", symbol)
            texts = [
                f"i1 {text}" if of == "i1" and text[0] != "%" else f"{self.wide(of)} {self.widened(of, text)}"
                for of, text in given
            ]
            return self.vector(f"call {self.wide(type)} @{name}({', '.join(texts)})")
        buffers = [
            (of, text, self.buffer(of, self.widened(of, text)) if text in self.shapes else None) for of, text in given
        ]
        results = self.buffer(type)
        with self.each_lane():
            texts = [f"{of} {text if held is None else self.element(of, held)}" for of, text, held in buffers]
            self.put_element(type, results, self.plain(f"call {type} @{symbol}({', '.join(texts)})"))
        return self.unbuffered(type, results)


def _local_of(thread: str) -> str:
    return f"getelementptr i8, ptr {thread}, i64 {offset_of(state.Thread, 'memory.local')}"


_WIDENING: tuple[tuple[re.Pattern[str], Callable[..., str]], ...] = (
    (_COMPARE, LaneBuilder._compare),
    (_CAST, LaneBuilder._cast),
    (_SELECT, LaneBuilder._select),
    (_CALL, LaneBuilder._call),
    (_BINARY, LaneBuilder._binary),
)
