"""What video instructions must give."""

from collections.abc import Callable, Mapping

from ptxlab.isa.types import Type, type_named

from ..cases import Case, number_of
from .bits import parts
from .comparison import SYMBOLS
from .table import clamp, limits, oracle, wrap


def chosen_part(case: Case, name: str) -> int:
    kind, place = case.type(name).kind, case.selections.get(name)
    if place is None:
        return case.number(name)
    return parts(case, name, kind, 8 if place[0] == "b" else 16)[int(place[1])]


def shifted(case: Case, a: int, b: int) -> int:
    count = b % 32 if case.m.mode == "wrap" else min(b, 32)
    if case.form.name == ("vshr",):
        return a // 2**count
    # The manual wraps to 34 bits. The code of ptxas does so before it clamps, and else compares 64 bits with `c`.
    width = 34 if case.m.sat else 64
    return number_of(Type("", "s", width), wrap(width, a * 2**count))


VIDEO: Mapping[str, Callable[[Case, int, int], int]] = {
    "vadd": lambda _, a, b: a + b,
    "vsub": lambda _, a, b: a - b,
    "vabsdiff": lambda _, a, b: abs(a - b),
    "vmin": lambda _, a, b: min(a, b),
    "vmax": lambda _, a, b: max(a, b),
    "vshl": shifted,
    "vshr": shifted,
    "vset": lambda case, a, b: int(eval(f"a {SYMBOLS[case.m.cmp]} b", {"a": a, "b": b})),
    "vavrg": lambda _, a, b: (a + b + (a + b >= 0)) // 2,
}


# The scalar video instructions are what the code of ptxas 13.0 and 13.4 computes, as measured on an H200 (see
# `h200_integers.txt`); only of `d.h1` does ptxas 13.0 make something else.
@oracle("video", "vadd vsub vabsdiff vmin vmax vshl vshr vset")
def video(case: Case) -> int:
    name, place = case.form.name[0], case.selections.get("d")
    width = 32 if place is None else 8 if place[0] == "b" else 16
    result = VIDEO[name](case, chosen_part(case, "a"), chosen_part(case, "b"))
    if case.m.sat:
        result = video_clamp(case, width, result)
    if case.m.op2:
        return second_operation(case, result)
    if place is None:
        return wrap(32, result)
    into = bytearray(int(case.bits["c"]).to_bytes(4, "little"))
    first = int(place[1]) * width // 8
    into[first : first + width // 8] = wrap(width, result).to_bytes(width // 8, "little")
    return int.from_bytes(into, "little")


def video_clamp(case: Case, width: int, result: int) -> int:
    """What `.sat` makes of a result; the manual has it clamped to the range of what is written."""
    type = case.m.dtype
    if case.form.name[0] in ("vshl", "vshr"):
        return clamp(type, result)  # measured: to 32 bits, also where a part is written
    if width < 32:
        greatest = limits(f"{type[0]}{width}")[1]
        return result if result in range(greatest + 1) else greatest  # measured: 255 for -1, too
    return clamp(type, result) if type == "s32" else max(result, 0)  # measured: 0 for 2**32


def second_operation(case: Case, result: int) -> int:
    """The result and `c` added up, or one of them, whichever is less or greater when they are compared."""
    if case.m.op2 == "add":
        return wrap(32, result + int(case.bits["c"]))
    name = case.form.name[0]
    if name in ("vadd", "vsub") or (name in ("vshl", "vshr") and case.m.sat):
        result = number_of(type_named("s32"), wrap(32, result))  # measured: these are extended by bit 31
    # `vset` has no type of a result; measured: that of `a` is used.
    if (case.m.dtype or case.m.atype) == "s32":
        c = number_of(type_named("s32"), case.bits["c"])
    else:
        result, c = wrap(64, result), int(case.bits["c"])  # measured: -1 is the greatest of all
    return wrap(32, sorted((result, c))[case.m.op2 == "max"])


@oracle("video", "vmad")
def vmad(case: Case) -> int:
    minus = len(case.minus & {"a", "b"}) == 1
    signed = "s32" in (case.m.atype, case.m.btype) or minus or "c" in case.minus
    # Measured: whole registers are signed factors and addends, even those of u32.
    a, b, c = (number_of(type_named("s32"), wrap(32, one))
               for one in (chosen_part(case, "a"), chosen_part(case, "b"), int(case.bits["c"])))  # fmt: skip
    total = a * b * (-1 if minus else 1) + c * (-1 if "c" in case.minus else 1) + bool(case.m.po)
    scaled = (total if signed else wrap(64, total)) // 2 ** int((case.m.scale or "shr0")[3:])
    if case.m.sat:
        scaled = clamp("s32" if signed else "u32", number_of(type_named("s64"), wrap(64, scaled)))
    return wrap(32, scaled)


@oracle("video", " ".join(f"{name}{count}" for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")
                          for count in (2, 4)))  # fmt: skip
def video_lanes(case: Case) -> int:
    name, count = case.form.name[0][:-1], int(case.form.name[0][-1])
    width, kind = 32 // count, (case.m.dtype or "u32")[0]
    pools = {type: parts(case, "a", type, width) + parts(case, "b", type, width) for type in "us"}
    defaults = {"a": "3210"[-count:], "b": "32" if count == 2 else "7654", "d": "3210"[-count:]}
    picked = {one: case.selections.get(one, " " + defaults[one])[1:] for one in "abd"}
    d = case.number("c") if case.m.add else 0
    for lane in range(count):
        a, b = (pools[case.m.__dict__[f"{one}type"][0]][int(picked[one][-1 - lane])] for one in "ab")
        result = VIDEO[name](case, a, b)
        if case.m.sat:
            result = clamp(f"{kind}{width}", result)
        written = str(lane) in picked["d"]
        if case.m.add:
            d += result * written
        else:
            d |= wrap(width, result if written else parts(case, "c", kind, width)[lane]) << width * lane
    return wrap(32, d)
