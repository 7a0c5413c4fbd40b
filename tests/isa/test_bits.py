"""Native functions on bits: machine code does what Python does."""

import random
from collections.abc import Callable

import pytest

from ptxlab.isa import bits
from ptxlab.native.engine import compiled
from ptxlab.native.functions import signature

COUNTS = (bits.ones_32, bits.ones_64, bits.leading_zeros_32, bits.leading_zeros_64, bits.reversed_32, bits.reversed_64)


@pytest.mark.parametrize("function", COUNTS, ids=lambda function: str(function.__name__))
def test_machine_code_does_what_python_does(function: Callable[[int], int]) -> None:
    generator, code = random.Random(1), compiled(function)
    width = 64 if signature(function).parameters[0][1].name == "u64" else 32
    for a in [0, 2**width - 1, *(generator.getrandbits(generator.randrange(1, width + 1)) for _ in range(100))]:
        assert code(a) == function(a), hex(a)


def test_machine_code_finds_the_set_bit_that_python_finds() -> None:
    generator, code = random.Random(1), compiled(bits.find_set_bit)
    for _ in range(1000):
        offset = generator.choice((0, generator.randrange(-34, 35), -(2**31), 2**31 - 1))
        asked = generator.getrandbits(32), generator.choice((generator.randrange(32), 32, 2**32 - 1)), offset
        assert code(*asked) == bits.find_set_bit(*asked), asked
