"""`spdecompress`: the emulator, the reference machine and plain Python put elements where their indices say."""

import random

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.exact import evaluate
from ptxlab.isa.form import Form
from ptxlab.isa.pattern import Pattern
from ptxlab.isa.table import forms

(FORM,) = [form for form in forms() if form.name == ("spdecompress",)]
CHOICES = [choice for choice in FORM.spellings() if choice["num"] in ("x1", "x4", "x16")]


def expand(element: int, index: int, few: int, many: int, num: int, indices: list[int], kept: list[int]) -> list[int]:
    """The registers of the dense vector."""
    positions, elements, dense = whole(indices), whole(kept), 0
    for group in range(num):
        row = [0] * many
        for at in range(group * few, (group + 1) * few):
            position = positions >> index * at & (1 << index) - 1
            if position < many:
                row[position] = elements >> element * at & (1 << element) - 1
        for position, value in enumerate(row):
            dense |= value << element * (group * many + position)
    return [dense >> at & 0xFFFFFFFF for at in range(0, many * element * num, 32)]


def whole(words: list[int]) -> int:
    return sum(word << 32 * at for at, word in enumerate(words))


def numbers_of(form: Form, choice: dict[str, str | None]) -> tuple[int, int, int, int, int]:
    """Bits of an element and of an index, elements kept, elements of a group, and groups."""
    m = form.modifiers(choice)
    few, many = (int(part) for part in m.factor.removeprefix("sp::").split(":"))
    return int(m.element[1:]), int(m.index[1:]), few, many, int(m.num[1:])


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("choice", CHOICES[::3], ids=FORM.spell)
def test_elements_go_where_their_indices_say(choice: dict[str, str | None]) -> None:
    element, index, few, many, num = numbers_of(FORM, choice)
    generator = random.Random(FORM.spell(choice))
    counts = [-(-few * index * num // 32), -(-few * element * num // 32), many * element * num // 32]
    indices, kept = ([generator.getrandbits(32) for _ in range(count)] for count in counts[:2])
    expected = expand(element, index, few, many, num, indices, kept)
    operands = {
        "indices": tuple(Pattern.of("b32", word) for word in indices),
        "kept": tuple(Pattern.of("b32", word) for word in kept),
    }
    (exact,) = evaluate(FORM, FORM.modifiers(choice), operands)
    assert [word.bits for word in exact] == expected
    assert run(FORM.spell(choice), indices, kept, len(expected)) == expected


def run(spelling: str, indices: list[int], kept: list[int], size: int) -> list[int]:
    names = {"i": len(indices), "k": len(kept), "d": size}
    lists = {name: ", ".join(f"%{name}{at}" for at in range(count)) for name, count in names.items()}
    lines = [
        *(f"ld.global.b32 %i{at}, [%rd1+{4 * at}];" for at in range(len(indices))),
        *(f"ld.global.b32 %k{at}, [%rd1+{4 * (len(indices) + at)}];" for at in range(len(kept))),
        f"{spelling} {{{lists['d']}}}, {{{lists['i']}}}, {{{lists['k']}}};",
        *(f"st.global.b32 [%rd2+{4 * at}], %d{at};" for at in range(size)),
    ]
    registers = "".join(f".reg .b32 %{name}<{count}>; " for name, count in names.items())
    text = (
        ".version 9.4\n.target sm_107a\n.address_size 64\n.entry k(.param .u64 given, .param .u64 found)\n{\n"
        f"{registers}.reg .b64 %rd<3>;\nld.param.u64 %rd1, [given];\nld.param.u64 %rd2, [found];\n"
        + "\n".join(lines)
        + "\nret;\n}\n"
    )
    out = np.zeros(size, np.uint32)
    given = np.array([*indices, *kept], np.uint32)
    ptxlab.parse(text)["k"].launch(grid=1, block=1, args=[given, out], device="cpu")
    return [int(word) for word in out]
