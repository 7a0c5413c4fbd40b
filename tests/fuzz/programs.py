"""The programs: a kind and a seed make one, always the same."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import ptxlab
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms
from ptxlab.isa.targets import Version, target_named
from ptxlab.isa.types import TYPES
from tests.check.damage import mutants as damaged_files
from tests.corpus import files
from tests.emulate import calling, calling_mixed
from tests.emulate.defined import STRIDE, interpret
from tests.emulate.defined import Program as Defined
from tests.emulate.kernels.case import ROOT as KERNELS
from tests.emulate.test_float_semantics import CHAPTERS as FLOATS
from tests.emulate.test_float_semantics import make_group as make_float_group
from tests.emulate.test_semantics import ADDRESSES
from tests.emulate.test_semantics import CHAPTERS as INTEGERS
from tests.isa.cases import exact
from tests.isa.kernels import LANES, home, kernel, make_group, output, pack, unpack
from tests.isa.mutants import mutants
from tests.isa.sample import _declarations as declarations
from tests.isa.sample import instructions, sample_choices

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
VERSION: Version = (8, 8)
# Numbers at the edges of what 8, 16, 32 and 64 bits hold, and a little past them.
EDGES = [edge + step for bits in (8, 15, 16, 31, 32, 40, 63, 64) for edge in (1 << bits,) for step in (-1, 0, 1)]


@dataclass(frozen=True)
class Program:
    """A text; `expect` runs it and says what is wrong with its results, where that is known."""

    kind: str
    seed: str
    text: str
    expect: Callable[[], str | None] | None = None


def make(kind: str, seed: str) -> Program:
    """The program of a kind and a seed."""
    made = KINDS[kind](random.Random(f"{kind} {seed}"))
    text, expect = made if isinstance(made, tuple) else (made, None)
    return Program(kind, seed, text, expect)


# Instructions of the table, legal or damaged.


def _table(choose: random.Random) -> str:
    target = choose.choice(TARGETS)
    lines = [line for _ in range(choose.randrange(1, 10)) for line in _legal(choose, target)]
    return _kernel(lines, target, choose)


def _damaged_instructions(choose: random.Random) -> str:
    target = choose.choice(TARGETS)
    form = choose.choice(_forms(target))
    lines = list(mutants(form, 1, choose.getrandbits(30)))
    return _kernel([*_legal(choose, target), *lines], target, choose)


@cache
def _forms(target: str) -> list[Form]:
    chip = target_named(target)
    return [
        form
        for form in forms()
        if form.name[0] not in ("call", "bra", "brx", "ret", "exit", "trap")
        and any(all(since.holds(VERSION, chip) for _, since in form.requirements(c)) for c in sample_choices(form, 4))
    ]


def _legal(choose: random.Random, target: str) -> list[str]:
    form, chip = choose.choice(_forms(target)), target_named(target)
    choices = [c for c in sample_choices(form, 24, choose.randrange(20))
               if all(since.holds(VERSION, chip) for _, since in form.requirements(c))]  # fmt: skip
    return [choose.choice(list(instructions(form, choose.choice(choices))))] if choices else []


def _kernel(lines: list[str], target: str, choose: random.Random) -> str:
    """A kernel around instructions, whose registers hold addresses and numbers."""
    body = "\n".join(lines)
    mode = ", texmode_independent" if re.search(r"\bsampler\b", body) else ""
    outer = [f".global .{kind} {name};" for name, kind in
             (("texture", "texref"), ("sampler", "samplerref"), ("surface", "surfref")) if name in body]  # fmt: skip
    declared = declarations(body)
    start = [
        line
        for name, count in re.findall(r"\.reg \.\w+ %(\w+)_<(\d+)>", declared)
        for number in range(int(count))
        if (line := _start(name, f"%{name}_{number}", choose))
    ]
    return "\n".join(
        [
            f".version {VERSION[0]}.{VERSION[1]}", f".target {target}{mode}", ".address_size 64", *outer,
            ".const .align 16 .b8 cst[64];", ".func fn() { ret; }", ".shared .align 128 .b8 area[4096];",
            ".visible .entry k(.param .u64 data, .param .align 16 .b8 prm[64])", "{",
            f".reg .b64 %data; .reg .b32 %area; {declared}", "ld.param.u64 %data, [data]; mov.u32 %area, area;",
            *start, *lines, "L: ret;", "}", "",
        ]
    )  # fmt: skip


def _start(type: str, name: str, choose: random.Random) -> str:
    number = choose.choice([0, 1, 7, 16, 32, choose.choice(EDGES), choose.getrandbits(64)])
    match type:
        case "b64" | "u64" | "s64":
            return choose.choice(
                [f"add.u64 {name}, %data, {16 * choose.randrange(64)};", f"cvt.u64.u32 {name}, %area;",
                 f"mov.b64 {name}, {number & (1 << 64) - 1:#x};"]
            )  # fmt: skip
        case "b32" | "u32" | "s32":
            return choose.choice([f"mov.b32 {name}, %area;", f"mov.b32 {name}, {number & 0xFFFFFFFF:#x};"])
        case "b16" | "u16" | "s16":
            return f"mov.b16 {name}, {number & 0xFFFF:#x};"
        case "f32" | "f64":
            return f"mov.{type} {name}, {choose.choice(['0.0', '1.5', '-3.25', '1e30'])};"
        case "pred":
            return f"setp.lt.u32 {name}, %area, {choose.choice([0, 99999])};"
    return ""


def _vectors(choose: random.Random) -> str:
    """Legal instructions whose operands are vector registers and elements of them."""
    target = choose.choice(TARGETS)
    used: set[tuple[str, int]] = set()

    def whole(found: re.Match[str]) -> str:
        names = re.findall(r"%(\w+)_\d+", found[0])
        if len(names) not in (2, 4) or len(set(names)) > 1 or choose.random() < 0.3:
            return found[0]
        return _vector(names[0], len(names), used) or found[0]

    def element(found: re.Match[str]) -> str:
        name = _vector(found[1], choose.choice([2, 4]), used) if choose.random() < 0.4 else ""
        return f"{name}.{choose.choice('xyrg')}" if name else found[0]

    lines = []
    for line in (line for _ in range(choose.randrange(1, 8)) for line in _legal(choose, target)):
        opcode, space, operands = line.partition(" ")
        parts = re.split(r"(\{[^}]*\}|\[[^\]]*\]|\S*\|\S*)", operands)
        parts[::2] = [re.sub(r"%(\w+)_\d+\b(?!\.)", element, part) for part in parts[::2]]
        parts[1::2] = [re.sub(r"\{[^}]*\}", whole, part) for part in parts[1::2]]
        lines.append(opcode + space + "".join(parts))
    declared = " ".join(f".reg .v{count} .{type} %v{count}_{type};" for type, count in sorted(used))
    return _kernel(lines, target, choose).replace(".reg .b64 %data;", f".reg .b64 %data; {declared}", 1)


def _vector(type: str, count: int, used: set[tuple[str, int]]) -> str:
    known = TYPES.get(type)
    if known is None or known.kind == "p" or known.width * count > 128:
        return ""
    used.add((type, count))
    return f"%v{count}_{type}"


# Programs that tests of other parts make.


def _wild(choose: random.Random) -> str:
    from tests.emulate.wild import Wild

    return Wild(choose.getrandbits(40)).text()


def _defined(choose: random.Random) -> tuple[str, Callable[[], str | None]]:
    seed, threads = choose.getrandbits(40), 40
    text = Defined(seed).text()

    def expect() -> str | None:
        module = ptxlab.parse(text)
        out = np.zeros((threads, STRIDE), np.uint8)
        module["k"].launch(1, threads, [out], device="cpu", detectors=seed % 2 == 0, seed=seed % 3, timeout=60)
        for number, written in enumerate(interpret(module, threads)):
            for offset, bits in written.items():
                found = int.from_bytes(out[number, offset : offset + (8 if offset >= 80 else 4)].tobytes(), "little")
                if found != bits:
                    return f"thread {number}, offset {offset}: {found:#x}, not {bits:#x}"
        return None

    return text, expect


def _arithmetic(choose: random.Random) -> tuple[str, Callable[[], str | None]]:
    """Cases of some forms of one home, computed by the reference machine."""
    known = [form for form in forms() if form.chapter in (*INTEGERS, *FLOATS) and form.name[0] not in ADDRESSES]
    groups: dict[Any, list[Any]] = {}
    while not groups:
        for form in choose.sample(known, 4):
            choice = choose.choice(sample_choices(form, 16, choose.randrange(50)))
            try:
                place = home(form, choice)
            except StopIteration:  # too new for the targets that are compiled for
                continue
            if form.chapter in INTEGERS:
                groups.setdefault(place, []).append(make_group(form, choice, choose.getrandbits(30)))
            elif form.semantics is not None and "approx" not in form.syntax:
                groups.setdefault(place, []).append(make_float_group(form, choice))
    together = next(iter(groups.values()))
    text = kernel(together)

    def expect() -> str | None:
        given, found = pack(together), output(together)
        ptxlab.parse(text)["cases"].launch(grid=1, block=LANES, args=[given, found], device="cpu", timeout=60)
        for case, results in unpack(together, found):
            right = exact(case)[: len(results)]
            if results != right:
                return f"{case}: {results}, not {right}"
        return None

    return text, expect


def _calls(choose: random.Random) -> tuple[str, Callable[[], str | None]]:
    program = choose.choice([*calling.PROGRAMS, *calling_mixed.PROGRAMS])

    def expect() -> str | None:
        found = np.zeros_like(program.expected)
        ptxlab.parse(program.text)["k"].launch(
            1, calling.THREADS, [program.given, found], device="cpu", seed=choose.randrange(9)
        )
        return None if (found == program.expected).all() else "other bytes than expected"

    return program.text, expect


# Files that people or compilers wrote, damaged.


@cache
def _texts() -> list[tuple[str, str]]:
    small = [(case.name, case.text()) for case in files() if not case.assembler_flags]
    by_hand = [(path.name, path.read_text()) for path in sorted((KERNELS / "hand").glob("*.ptx"))]
    calls = [(program.name, program.text) for program in (*calling.PROGRAMS, *calling_mixed.PROGRAMS)]
    return [(name, text) for name, text in (*small, *by_hand, *calls) if len(text) < 12_000 and "\r" not in text]


def _damaged_file(choose: random.Random) -> str:
    return next(damaged_files(_texts(), 1, choose.getrandbits(40))).text


def _edges(choose: random.Random) -> str:
    """Some numbers of a program as large as they can be written, or one more."""
    text = choose.choice([_table, _wild, lambda c: c.choice(_texts())[1]])(choose)
    head, _, rest = text.partition(".target")
    places = list(re.finditer(r"(?<![\w.%$])(?:0x[0-9a-fA-F]+|\d+)(?![\w.])", rest))
    for found in sorted(choose.sample(places, min(len(places), choose.randrange(1, 4))), key=lambda m: -m.start()):
        edge = choose.choice([0, *EDGES, choose.getrandbits(64)])
        number = choose.choice([str(edge), hex(edge), f"-{edge}"])
        rest = rest[: found.start()] + number + rest[found.end() :]
    return f"{head}.target{rest}"


def _soup(choose: random.Random) -> str:
    """Lines of a program left out, doubled and moved."""
    lines = choose.choice([_table, _wild, lambda c: c.choice(_texts())[1]])(choose).split("\n")
    for _ in range(choose.randrange(1, 4)):
        at = choose.randrange(2, len(lines))
        match choose.randrange(3):
            case 0:
                del lines[at]
            case 1:
                lines.insert(choose.randrange(2, len(lines)), lines[at])
            case 2:
                words = lines[at].split(" ")
                choose.shuffle(words)
                lines[at] = " ".join(words)
        if len(lines) < 4:
            break
    return "\n".join(lines)


KINDS: dict[str, Callable[[random.Random], Any]] = {
    "table": _table,
    "damaged instructions": _damaged_instructions,
    "vectors": _vectors,
    "damaged file": _damaged_file,
    "edges": _edges,
    "soup": _soup,
    "wild": _wild,
    "defined": _defined,
    "arithmetic": _arithmetic,
    "calls": _calls,
}


def every(seed: int) -> Iterator[tuple[str, str]]:
    """Kinds and seeds, without end."""
    number = 0
    while True:
        for kind in KINDS:
            yield kind, f"{seed}.{number}"
        number += 1
