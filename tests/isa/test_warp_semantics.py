"""The semantics of instructions that lanes of a warp execute together, against what the manual says of them."""

import functools
import math
import operator
import random
import struct
from collections.abc import Callable, Mapping

import pytest

from ptxlab.isa.chapters import warp
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms
from ptxlab.isa.undefined import UNDEFINED
from ptxlab.native.engine import compiled

from .cases import Bits, Case, exact_warp, make_cases
from .sample import Choice, sample_choices

MACHINES = {"exact": exact_warp}
FORMS = [form for form in forms() if form.chapter == "warp"]
ALL = 0xFFFFFFFF
Lanes = Mapping[int, Case]


def _identity(form: Form) -> str:
    return form.syntax


def lanes_of(mask: int) -> list[int]:
    return [lane for lane in range(32) if mask >> lane & 1]


def make_warp(form: Form, choice: Choice, generator: random.Random) -> dict[int, Case]:
    """Lanes with operands of their own; half of the time from few values, so that some agree."""
    mask = generator.choice((ALL, 1, 1 << 31, 0x0000FFFF, generator.getrandbits(32) or 1))
    present = lanes_of(mask) if generator.random() < 0.7 else [lane for lane in lanes_of(mask) if lane % 3] or [31]
    mask |= sum(1 << lane for lane in present)
    pool = list(make_cases(form, choice, generator.choice((1, 2, 32)), seed=generator.getrandbits(32)))
    warp: dict[int, Case] = {}
    for lane in present:
        bits = dict(generator.choice(pool).bits)
        if "membermask" in bits:
            bits["membermask"] = mask
        warp[lane] = Case(form, choice, bits)
    return warp


def shfl(warp: Lanes, lane: int) -> tuple[int, int]:
    case = warp[lane]
    b, c = case.number("b") % 32, case.number("c")
    segment, clamp = c >> 8 & 31, c & 31
    low = lane & segment
    high = low | clamp & ~segment
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | b & ~segment}[case.m.mode]
    valid = source >= high if case.m.mode == "up" else source <= high
    if not valid:
        source = lane
    return warp[source].number("a") if source in warp else UNDEFINED, int(valid)


def vote(warp: Lanes, lane: int) -> tuple[int]:
    votes = [case.bits["a"] for case in warp.values()]
    modes = {"all": all(votes), "any": any(votes), "uni": len(set(votes)) == 1}
    ballot = sum(1 << other for other, case in warp.items() if case.bits["a"])
    return (int(modes.get(warp[lane].m.mode, ballot)),)


def match(warp: Lanes, lane: int) -> tuple[int, ...]:
    equal = sum(1 << other for other, case in warp.items() if case.bits["a"] == warp[lane].bits["a"])
    if warp[lane].m.any:
        return (equal,)
    every = len({case.bits["a"] for case in warp.values()}) == 1
    return equal if every else 0, int(every)


def redux(warp: Lanes, lane: int) -> tuple[int]:
    m, type = warp[lane].m, warp[lane].type("a")
    numbers = [case.number("a") for case in warp.values()]
    if type.kind == "f":
        return (reduce_floats(m.op, bool(m.abs), bool(m.nan), numbers),)
    return (functools.reduce(REDUCTIONS[m.op], numbers) % 2**32,)


REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
}


def reduce_floats(op: str, absolute: bool, nan: bool, patterns: list[int]) -> int:
    floats = [struct.unpack("<f", struct.pack("<I", bits))[0] for bits in patterns]
    floats = [abs(one) for one in floats] if absolute else floats
    numbers = [one for one in floats if not math.isnan(one)]
    if not numbers or (nan and len(numbers) < len(floats)):
        return 0x7FFFFFFF
    found = (min if op == "min" else max)(numbers, key=lambda one: (one, math.copysign(1, one)))
    return int(struct.unpack("<I", struct.pack("<f", found))[0])


def elect(warp: Lanes, lane: int) -> tuple[int, int]:
    return min(warp), int(lane == min(warp))


def activemask(warp: Lanes, lane: int) -> tuple[int]:
    return (sum(1 << other for other in warp),)


ORACLES: dict[str, Callable[[Lanes, int], tuple[int, ...]]] = {
    function.__name__: function for function in (shfl, vote, match, redux, elect, activemask)
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("form", FORMS, ids=_identity)
def test_lanes_get_what_the_manual_says(form: Form, machine: str) -> None:
    generator = random.Random(form.syntax)
    for choice in sample_choices(form, 16):
        for _ in range(12):
            warp = make_warp(form, choice, generator)
            found = MACHINES[machine](warp)
            expected: dict[int, tuple[Bits, ...]] = {lane: ORACLES[form.name[0]](warp, lane) for lane in warp}
            assert found == expected, f"{form.spell(choice)} in lanes {sorted(warp)}"


def test_lanes_with_other_members_meet_apart() -> None:
    (form,) = [form for form in FORMS if form.syntax.startswith("vote.sync.ballot")]
    choice = next(form.spellings())
    masks = {lane: 0x0000FFFF if lane < 16 else 0xFFFF0000 for lane in range(32)}
    warp = {lane: Case(form, choice, {"a": lane & 1, "membermask": masks[lane]}) for lane in masks}
    found = exact_warp(warp)
    assert found[3] == (0x0000AAAA,)
    assert found[17] == (0xAAAA0000,)


NATIVE = {warp.shuffle: (5, range(4)), warp.cast_votes: (3, None), warp.find_equal: (4, (1, 2)),
          warp.reduce: (2, range(len(warp.OPERATIONS))), warp.choose: (2, None)}  # fmt: skip


@pytest.mark.parametrize("function", NATIVE, ids=lambda function: str(function.__name__))
def test_machine_code_does_what_python_does(function: Callable[..., None]) -> None:
    generator = random.Random(1)
    words, statics = NATIVE[function]
    code = compiled(function)
    for static in [()] if statics is None else [(one,) for one in statics]:
        for _ in range(20):
            members = generator.choice((ALL, 1, 1 << 31, generator.getrandbits(32) or 1))
            longest = 1 if function is warp.cast_votes else generator.choice((2, 32))
            in_python = [generator.getrandbits(longest) for _ in range(32 * words)]
            in_machine_code = list(in_python)
            function(in_python, members, *static)
            code(in_machine_code, members, *static)
            assert in_python == in_machine_code, (members, static)
