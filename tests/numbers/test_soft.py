"""Arithmetic on integers of fixed width, in Python and compiled, against arithmetic on exact values."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from ptxlab.native.engine import compiled
from ptxlab.numbers import BF16, F16, F32, F64, Format, arithmetic, extremum, half, soft
from ptxlab.numbers.parameters import FORMAT, ROUNDING, modifiers

from .samples import sample

FORMATS = [F16, BF16, F32, F64]
OPERANDS = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "sqrt": 1}


def name(parameter: object) -> str | None:
    return parameter.name if isinstance(parameter, Format) else None


def as_python(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(("way", "count"), [(as_python, 25), (compiled, 120)])
@pytest.mark.parametrize("operation", OPERANDS)
def test_every_format_and_rounding(way: Callable[..., Any], count: int, operation: str) -> None:
    generator = random.Random(operation)
    function, reference = way(getattr(soft, operation)), getattr(arithmetic, operation)
    for format in FORMATS:
        for rounding in ("rn", "rz", "rm", "rp"):
            for _ in range(count):
                operands = [sample(format, generator) for _ in range(OPERANDS[operation])]
                flags = {"ftz": generator.random() < 0.3}
                if operation not in ("div", "sqrt"):
                    flags["sat"] = generator.random() < 0.2
                if operation == "fma" and not flags["sat"]:
                    flags["relu"] = generator.random() < 0.2
                expected = reference(format, *operands, rounding, **flags)
                found = function(*operands, FORMAT[format.name], ROUNDING[rounding], modifiers(**flags))
                assert found == expected, (format.name, rounding, flags, [hex(bits) for bits in operands])


@pytest.mark.parametrize("way", [as_python, compiled])
@pytest.mark.parametrize("format", [F16, BF16], ids=name)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_half_precision(way: Callable[..., Any], format: Format, operation: str) -> None:
    generator = random.Random(operation + format.name)
    function, reference = way(getattr(half, operation)), getattr(arithmetic, operation)
    for _ in range(700):
        operands = [sample(format, generator) for _ in range(OPERANDS[operation])]
        flags = {"ftz": generator.random() < 0.2, "sat": generator.random() < 0.2}
        if operation == "fma" and not flags["sat"]:
            flags["relu"] = generator.random() < 0.2
        expected = reference(format, *operands, **flags)
        found = function(*operands, FORMAT[format.name], modifiers(**flags))
        assert found == expected, (flags, [hex(bits) for bits in operands])


@pytest.mark.parametrize("way", [as_python, compiled])
@pytest.mark.parametrize("format", FORMATS, ids=name)
def test_lesser_and_greater(way: Callable[..., Any], format: Format) -> None:
    generator = random.Random(format.name)
    least, greatest = way(extremum.minimum), way(extremum.maximum)
    for _ in range(400):
        a, b = sample(format, generator), sample(format, generator)
        ftz, nan = generator.random() < 0.5, generator.random() < 0.5
        rest = FORMAT[format.name], modifiers(ftz=ftz), nan
        assert least(a, b, *rest) == arithmetic.min(format, a, b, ftz=ftz, nan=nan)
        assert greatest(a, b, *rest) == arithmetic.max(format, a, b, ftz=ftz, nan=nan)
