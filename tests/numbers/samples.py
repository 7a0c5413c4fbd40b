"""Patterns to try functions with: any, near powers of two, near limits, with few bits set; from one seed."""

import random

from ptxlab.numbers import Format


def sample(format: Format, generator: random.Random) -> int:
    """A pattern, without padding."""
    width, mantissa = format.width - format.padding, format.mantissa_bits
    sign = generator.choice([0, format.sign_bit >> format.padding])
    match generator.randrange(5):
        case 0:
            return generator.getrandbits(width)
        case 1:
            near = (generator.getrandbits(width - mantissa) << mantissa) + generator.randint(-2, 2)
            return near % (1 << width)
        case 2:
            return sign | generator.choice(
                [0, 1, 1 << mantissa, format.largest >> format.padding, format.bias << mantissa]
            )
        case 3:
            field = generator.choice([0, 1, 2, format.bias // 2, format.bias * 3 // 2, 2 * format.bias - 1])
        case _:
            field = format.bias + generator.randint(-mantissa - 2, mantissa + 2)
    field = min(max(field, 0), 2 * format.bias)
    bits = generator.getrandbits(mantissa) if mantissa else 0
    if generator.random() < 0.4:
        bits &= -1 << generator.randint(0, mantissa)
    return (sign | field << mantissa | bits) % (1 << width)
