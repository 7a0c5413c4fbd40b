"""What comparisons and selections must give."""

import math
import struct

from ptxlab.isa.types import type_named

from ..cases import Bits, Case, number_of
from .table import oracle

SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
           "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip


def to_float(type: str, bits: int, ftz: bool) -> float:
    """A float of any width as Python's."""
    if type == "bf16":
        type, bits = "f32", bits << 16
    layout, width, mantissa = {"f16": ("e", "H", 10), "f32": ("f", "I", 23), "f64": ("d", "Q", 52)}[type]
    if ftz and bits % 2 ** (struct.calcsize(width) * 8 - 1) < 2**mantissa:
        return 0.0
    return float(struct.unpack(layout, struct.pack(width, bits))[0])


def holds(case: Case, type: str, a: int, b: int) -> bool:
    name = case.m.cmp
    if type[0] in "fb" and type not in ("b16", "b32", "b64"):
        x, y = to_float(type, a, case.m.ftz), to_float(type, b, case.m.ftz)
        unordered = math.isnan(x) or math.isnan(y)
        if name in ("num", "nan"):
            return unordered == (name == "nan")
        if unordered:
            return bool(name.endswith("u") and name != "u")
        return bool(eval(f"x {SYMBOLS[name[:2]]} y", {"x": x, "y": y}))
    x, y = number_of(type_named(type), a), number_of(type_named(type), b)
    return bool(eval(f"x {SYMBOLS[name]} y", {"x": x, "y": y}))


def joined(case: Case, answer: bool) -> int:
    if case.m.bool is None:
        return int(answer)
    c = bool(case.bits["c"])
    return int({"and": answer and c, "or": answer or c, "xor": answer != c}[case.m.bool])


def answers(case: Case) -> list[bool]:
    """What the comparison says, of each part of a packed type."""
    type, a, b = case.type("a"), int(case.bits["a"]), int(case.bits["b"])
    mask = (1 << type.bits) - 1
    shifts = range(0, type.width, type.bits)
    return [holds(case, type.name.partition("x")[0], a >> shift & mask, b >> shift & mask) for shift in shifts]


@oracle("compare", "setp")
def setp(case: Case) -> tuple[int, ...]:
    found = answers(case)
    if len(found) == 1 and case.form.operands[0].second:
        found.append(not found[0])
    return tuple(joined(case, answer) for answer in found)


@oracle("compare", "set")
def set_(case: Case) -> int:
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}
    found = answers(case)
    if case.m.type:  # of packed integers
        size = case.type("a").bits
        return sum(((1 << size) - 1) * answer << size * lane for lane, answer in enumerate(found))
    width = 16 if len(found) == 2 or case.m.dtype in ("u16", "s16") else 32
    one = ones.get(case.m.dtype, 2**width - 1)
    return sum(joined(case, answer) * one << 16 * half for half, answer in enumerate(found))


@oracle("compare", "selp")
def selp(case: Case) -> Bits:
    return case.bits["a" if case.bits["c"] else "b"]


@oracle("compare", "slct")
def slct(case: Case) -> Bits:
    if case.m.ctype == "s32":
        return case.bits["a" if case.number("c") >= 0 else "b"]
    return case.bits["a" if to_float("f32", case.bits["c"], case.m.ftz) >= 0 else "b"]
