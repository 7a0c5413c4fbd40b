"""Programs that call functions: every kind of parameter and result, called in every way, with what must come out.

A kind is a value of some bytes, passed in registers or in `.param`. For each there is one kernel, whose threads pass
their value to functions that compute `3 * element + constant` of every element: by name, by an address with a prototype
or a list of targets, through another function, recursively, and under a guard. The bytes that come back, and the
argument after the call, are stored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.tools import header

THREADS = 8
SLOT = 64
WAYS = ("by name", "prototype", "targets", "nested", "recursive", "guarded", "kept")
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Kind:
    """A parameter or result: `count` elements of a type, in the registers of a vector or in `.param`."""

    space: str
    type: str
    count: int = 1
    align: int = 0
    is_array: bool = False
    together: int = 1
    """How many elements one `ld.param` takes."""

    @property
    def name(self) -> str:
        shape = f"[{self.count}]" if self.is_array else f".v{self.count}" * (self.count > 1)
        return f"{self.space}.{self.type}{shape}" + f" by {self.together}" * (self.together > 1)

    @property
    def bits(self) -> int:
        return 32 if self.type == "f16x2" else int(re.sub(r"\D", "", self.type))

    @property
    def size(self) -> int:
        return self.count * self.bits // 8

    def declare(self, name: str) -> str:
        align = f".align {self.align} " if self.align else ""
        vector = f".v{self.count} " if self.count > 1 and not self.is_array else ""
        return f".{self.space} {align}{vector}.{self.type} {name}" + f"[{self.count}]" * self.is_array

    def elements(self, name: str) -> list[str]:
        """The registers of the kind; whole where it has one only."""
        return [f"{name}.{letter}" for letter in "xyzw"[: self.count]] if self.count > 1 else [name]

    # What functions do with it.

    def read(self, name: str) -> Iterator[str]:
        """Read all elements into temporaries."""
        for at in range(0, self.count, self.together):
            if self.space == "param":
                names = ", ".join(self.temporary(n) for n in range(at, at + self.together))
                names = f"{{{names}}}" if self.together > 1 else names
                vector = f".v{self.together}" if self.together > 1 else ""
                yield from self._wide(f"ld.param{vector}.b{self.bits}", f"[{name}+{at * self.bits // 8}]", at, names)
            elif self.bits == 128:
                yield f"mov.b128 {{%wide0, %wide1}}, {name};"
            else:
                move = "cvt.u16.u8" if self.bits == 8 else f"mov.b{self.bits}"
                yield f"{move} {self.temporary(at)}, {self.elements(name)[at]};"

    def write(self, name: str) -> Iterator[str]:
        """Write all elements from the temporaries."""
        for at in range(0, self.count, self.together):
            if self.space == "param":
                names = ", ".join(self.temporary(n) for n in range(at, at + self.together))
                names = f"{{{names}}}" if self.together > 1 else names
                vector = f".v{self.together}" if self.together > 1 else ""
                place = f"[{name}+{at * self.bits // 8}]"
                if self.bits == 128:
                    yield f"mov.b128 %whole, {{%wide0, %wide1}}; st.param.b128 {place}, %whole;"
                else:
                    yield f"st.param{vector}.b{self.bits} {place}, {names};"
            elif self.bits == 128:
                yield f"mov.b128 {name}, {{%wide0, %wide1}};"
            else:
                move = "cvt.u8.u16" if self.bits == 8 else f"mov.b{self.bits}"
                yield f"{move} {self.elements(name)[at]}, {self.temporary(at)};"

    def _wide(self, load: str, place: str, at: int, names: str) -> Iterator[str]:
        if self.bits == 128:
            yield f"{load} %whole, {place}; mov.b128 {{%wide0, %wide1}}, %whole;"
        else:
            yield f"{load} {names}, {place};"

    def temporary(self, at: int) -> str:
        return f"%t{max(self.bits, 16)}_{at}"

    def compute(self, constant: int) -> Iterator[str]:
        """`3 * element + constant` of each element, the constant one more for each."""
        if self.bits == 128:
            yield f"mad.lo.u64 %wide0, %wide0, 3, {constant}; mad.lo.u64 %wide1, %wide1, 3, {constant + 1};"
            return
        for at in range(self.count):
            one = self.temporary(at)
            yield f"mad.lo.u{max(self.bits, 16)} {one}, {one}, 3, {constant + at};"

    def computed(self, given: Bytes, constant: int) -> Bytes:
        """The same of bytes."""
        type = {1: "u1", 2: "u2", 4: "u4"}.get(self.bits // 8, "u8")
        numbers = given.view(type)
        return (numbers * 3 + np.arange(constant, constant + len(numbers), dtype=type)).astype(type).view("u1")

    # What the kernel does with it.

    def load(self, name: str) -> Iterator[str]:
        if self.space == "param":
            for at in range(self.count):
                place = f"[%in+{at * self.bits // 8}]"
                yield from (
                    self._wide_load(place)
                    if self.bits == 128
                    else [f"ld.global.b{self.bits} {self.temporary(at)}, {place};"]
                )
            yield from Kind("param", self.type, self.count).write(name)
        elif self.bits == 128:
            yield from self._wide_load("[%in]")
            yield from self.write(name)
        else:
            yield f"ld.global{f'.v{self.count}' if self.count > 1 else ''}.b{self.bits} {name}, [%in];"

    @staticmethod
    def _wide_load(place: str) -> list[str]:
        return [f"ld.global.v2.b64 {{%wide0, %wide1}}, {place};"]

    def store(self, name: str, way: str) -> Iterator[str]:
        base = WAYS.index(way) * THREADS * SLOT
        if self.space == "param" or self.bits == 128:
            yield from self.read(name)
        if self.bits == 128:
            yield f"st.global.v2.b64 [%out+{base}], {{%wide0, %wide1}};"
        elif self.space == "param":
            for at in range(self.count):
                yield f"st.global.b{self.bits} [%out+{base + at * self.bits // 8}], {self.temporary(at)};"
        else:
            yield f"st.global{f'.v{self.count}' if self.count > 1 else ''}.b{self.bits} [%out+{base}], {name};"


@dataclass(frozen=True)
class Program:
    """A kernel `k` of two pointers, what it is given, and what it leaves."""

    name: str
    text: str
    given: Bytes
    expected: Bytes


HEAD = header("8.6", "sm_80")
TEMPORARIES = ".reg .b16 %t16_<64>; .reg .b32 %t32_<64>; .reg .b64 %t64_<64>, %wide<2>; .reg .b128 %whole;"


def _function(kind: Kind, name: str, lines: Sequence[str], extra: str = "") -> str:
    body = "\n".join(f"    {line}" for line in (TEMPORARIES, *lines, "ret;"))
    return f".func ({kind.declare('o')}) {name}({kind.declare('i')}{extra})\n{{\n{body}\n}}\n"


def _computes(kind: Kind, constant: int) -> list[str]:
    return [*kind.read("i"), *kind.compute(constant), *kind.write("o")]


def _functions(kind: Kind) -> str:
    once = [f"{kind.declare('t')};", f"{kind.declare('u')};"]
    nested = [
        *once, *kind.read("i"), *kind.write("t"), "call (u), f, (t);", *kind.read("u"), *kind.write("t"),
        "call (u), g, (t);", *kind.read("u"), *kind.write("o"),
    ]  # fmt: skip
    recursive = [
        ".reg .pred %last; .reg .b32 %less;",
        *once, *kind.read("i"), "setp.eq.u32 %last, n, 0;", "@%last bra END;", *kind.compute(7), *kind.write("t"),
        "sub.u32 %less, n, 1;", "call (u), recursive, (t, %less);", *kind.read("u"),
        "END:", *kind.compute(11), *kind.write("o"),
    ]  # fmt: skip
    return "".join(
        [
            _function(kind, "f", _computes(kind, 5)),
            _function(kind, "g", _computes(kind, 9)),
            _function(kind, "nested", nested),
            _function(kind, "recursive", recursive, ", .reg .u32 n"),
            ".global .u64 table[2] = {f, g};\n",
        ]
    )


def _kernel(kind: Kind) -> str:
    prototype = f"P: .callprototype ({kind.declare('_')}) _ ({kind.declare('_')});"
    lines = [
        TEMPORARIES, ".reg .b32 %thread, %n; .reg .b64 %in, %out, %slot, %to; .reg .pred %odd;",
        f"{kind.declare('a')}; {kind.declare('b')};",
        "mov.u32 %thread, %tid.x; and.b32 %n, %thread, 1; setp.eq.u32 %odd, %n, 1;",
        f"ld.param.u64 %in, [given]; ld.param.u64 %out, [found]; mul.wide.u32 %slot, %thread, {SLOT};",
        "add.u64 %in, %in, %slot; add.u64 %out, %out, %slot;",
    ]  # fmt: skip
    calls = {
        "by name": ["call (_), g, (a);", *kind.load("a"), "call (b), f, (a);"],  # a call uses its `.param` up
        "prototype": ["mov.u64 %to, f;", prototype, "call (b), %to, (a), P;"],
        "targets": [
            "mul.wide.u32 %slot, %n, 8; mov.u64 %to, table; add.u64 %to, %to, %slot; ld.global.u64 %to, [%to];",
            "T: .calltargets f, g;",
            "call (b), %to, (a), T;",
        ],
        "nested": ["call (b), nested, (a);"],
        "recursive": ["and.b32 %n, %thread, 3;", "call (b), recursive, (a, %n);"],
    }
    for way, call in calls.items():
        lines += [*kind.load("a"), *call, *kind.store("b", way)]
    lines += kind.load("a")
    if kind.space == "reg":  # a `.param` that a call may not write has no value
        lines += [*kind.load("b"), "@%odd call (b), f, (a);", *kind.store("b", "guarded"), *kind.store("a", "kept")]
    else:
        lines += ["call (b), f, (a);", *kind.store("b", "guarded")]
    body = "\n".join(f"    {line}" for line in [*lines, "ret;"])
    return f".visible .entry k(.param .u64 given, .param .u64 found)\n{{\n{body}\n}}\n"


def _expected(kind: Kind, given: Bytes) -> Bytes:
    out = np.zeros((len(WAYS), THREADS, SLOT), np.uint8)
    for thread in range(THREADS):
        value = given[thread, : kind.size].copy()
        first = kind.computed(value, 5)
        deep = value
        for _ in range(thread & 3):
            deep = kind.computed(deep, 7)
        for _ in range((thread & 3) + 1):
            deep = kind.computed(deep, 11)
        found = {
            "by name": first,
            "prototype": first,
            "targets": kind.computed(value, 9) if thread & 1 else first,
            "nested": kind.computed(first, 9),
            "recursive": deep,
            "guarded": first if thread & 1 or kind.space == "param" else value,
        }
        if kind.space == "reg":
            found["kept"] = value
        for way, bytes in found.items():
            out[WAYS.index(way), thread, : kind.size] = bytes
    return out


def _kinds() -> Iterator[Kind]:
    for type in "b8 b16 f16 f16x2 b32 u32 s32 f32 b64 u64 s64 f64 b128".split():
        yield Kind("reg", type)
        if type != "f16x2":
            yield Kind("param", type)
    for type in "b8 u8 s8 b16 u16 s16 f16 f16x2 b32 u32 s32 f32".split():
        yield Kind("reg", type, 2)
        yield Kind("reg", type, 4)
    for type in "b64 u64 s64 f64".split():
        yield Kind("reg", type, 2)
    for count, align in ((1, 1), (3, 1), (4, 4), (8, 8), (12, 4), (16, 16), (40, 8)):
        yield Kind("param", "b8", count, align, is_array=True)
    yield Kind("param", "u16", 5, is_array=True)
    yield Kind("param", "f32", 4, 16, is_array=True, together=4)
    yield Kind("param", "b32", 6, 8, is_array=True, together=2)
    yield Kind("param", "f64", 2, 16, is_array=True, together=2)


def _program(kind: Kind) -> Program:
    given = np.random.default_rng(1).integers(0, 256, (THREADS, SLOT), np.uint8)
    return Program(kind.name, HEAD + _functions(kind) + _kernel(kind), given, _expected(kind, given))


PROGRAMS = [_program(kind) for kind in _kinds()]
