"""Arithmetic written as LLVM IR, compiled, against arithmetic on exact values."""

import ctypes
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ptxlab.emulate.translate.floats import arithmetic
from ptxlab.native.engine import compile_text, load
from ptxlab.native.functions import signature
from ptxlab.native.text import METADATA, Builder
from ptxlab.native.translate import emit
from ptxlab.numbers import FORMATS, Format
from ptxlab.numbers import arithmetic as reference
from tests.numbers.samples import sample

OPERANDS = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1}
WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
FLAGS: list[dict[str, bool]] = [{}, {"ftz": True}, {"sat": True}, {"ftz": True, "sat": True}, {"relu": True}]


def cases() -> list[tuple[str, str, str, dict[str, bool]]]:
    """Operation, type, rounding and modifiers of which there are instructions, and some more."""
    found = []
    for type in WIDTHS:
        for operation in OPERANDS:
            for rounding in ("rn", "rz", "rm", "rp"):
                for flags in FLAGS:
                    if flags.get("relu") and operation != "fma":
                        continue
                    if flags.get("sat") and operation in ("div", "sqrt"):
                        continue
                    if flags and rounding != "rn" and type != "f32":
                        continue
                    found.append((operation, type, rounding, flags))
    return found


@pytest.fixture(scope="module")
def functions() -> list[Callable[..., int]]:
    """All cases in one library: to compile them one by one takes long."""
    natives: dict[str, Any] = {}

    def call(function: Callable[..., Any], arguments: Sequence[str]) -> str:
        known = signature(function)
        natives[known.symbol] = function
        assert known.result is not None
        pairs = zip(known.parameters, arguments, strict=True)
        passed = ", ".join(f"{parameter.llvm} {text}" for (_, parameter), text in pairs)
        return f'call {known.result.llvm} @"{known.symbol}"({passed})'

    texts = []
    for number, (operation, type, rounding, flags) in enumerate(cases()):
        name = f"i{WIDTHS[type]}"
        operands = [f"%x{index}" for index in range(OPERANDS[operation])]
        builder = Builder()
        builder.label("entry")
        result = arithmetic(builder, operation, type, operands, rounding=rounding, call=call, **flags)
        head = ", ".join(f"{name} {operand}" for operand in operands)
        texts.append(f"define {name} @f{number}({head}) {{\n{builder}\n  ret {name} {result}\n}}\n")
    module = "\n".join([*texts, emit(list(natives.values()), linkage="internal"), METADATA])
    library = load([compile_text(module)])
    integers = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}
    entries = []
    for number, (operation, type, _, _) in enumerate(cases()):
        integer = integers[WIDTHS[type]]
        prototype = ctypes.CFUNCTYPE(integer, *[integer] * OPERANDS[operation])
        entries.append(prototype(library.address(f"f{number}")))
    functions.library = library  # type: ignore[attr-defined]
    return entries


@pytest.mark.parametrize("operation", OPERANDS)
def test_results_are_exact(operation: str, functions: list[Callable[..., int]]) -> None:
    generator = random.Random(operation)
    for function, (name, type, rounding, flags) in zip(functions, cases(), strict=True):
        if name != operation:
            continue
        format = FORMATS[type]
        assert isinstance(format, Format)
        for _ in range(150 if rounding == "rn" else 40):
            operands = [sample(format, generator) for _ in range(OPERANDS[operation])]
            expected = getattr(reference, operation)(format, *operands, rounding, **flags)
            assert function(*operands) == expected, (type, rounding, flags, [hex(bits) for bits in operands])


def test_a_product_next_to_the_least_normal_is_flushed_by_its_exact_value(functions: list[Callable[..., int]]) -> None:
    product = functions[cases().index(("mul", "f32", "rn", {"ftz": True}))]
    assert product(0x3F7F_FFFF, 0x0080_0000) == 0
    assert product(0x3F7F_FFFE, 0x0080_0001) == 0x0080_0000
    assert product(0xBF80_0000, 0x0080_0000) == 0x8080_0000


def test_what_is_common_takes_few_instructions() -> None:
    def never(function: Callable[..., Any], arguments: Sequence[str]) -> str:
        raise AssertionError(function)

    builder = Builder()
    arithmetic(builder, "fma", "f32", ["%a", "%b", "%c"], call=never)
    steps = [line for line in str(builder).splitlines() if "bitcast" not in line]
    assert len(steps) == 3
