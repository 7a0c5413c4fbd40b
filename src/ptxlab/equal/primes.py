"""Two fields of numbers modulo primes, p = 2 q + 1: powers of `g` modulo p have exponents modulo q.

2 has a square root in both, so that constants such as 1/√128 have a place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ptxlab.equal.nodes import Words

_BABY = 1 << 20


def is_prime(number: int) -> bool:
    """Whether a number below 2^64 is prime."""
    if number < 2 or any(number % small == 0 and number != small for small in (2, 3, 5, 7, 11, 13)):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        if base % number == 0:
            continue
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


@dataclass(frozen=True)
class Primes:
    """A pair of primes."""

    p: int
    q: int

    @classmethod
    def near(cls, start: int) -> Primes:
        """The first pair below a number."""
        q = start - (start - 7) % 8
        while not (is_prime(q) and is_prime(2 * q + 1)):
            q -= 8
        return cls(2 * q + 1, q)

    @property
    def base(self) -> int:
        """A generator of the squares modulo p, of which there are q."""
        return 9

    @cached_property
    def _powers(self) -> Words:
        """Powers of the base, by the four bytes of an exponent."""
        table = np.ones((4, 256), np.uint64)
        for byte in range(4):
            step = pow(self.base, 1 << 8 * byte, self.p)
            for number in range(1, 256):
                table[byte, number] = int(table[byte, number - 1]) * step % self.p
        return table

    def power(self, exponents: Words) -> Words:
        """The base to the power of numbers modulo q."""
        found = np.ones_like(exponents)
        for byte in range(4):
            own = self._powers[byte, (exponents >> np.uint64(8 * byte)) & np.uint64(255)]
            found = found * own % np.uint64(self.p)
        return found

    @cached_property
    def _baby(self) -> tuple[Words, Words]:
        powers = self.power(np.arange(_BABY, dtype=np.uint64))
        order = np.argsort(powers)
        return powers[order], order.astype(np.uint64)

    def logarithm(self, numbers: Words) -> Words:
        """The exponents of squares modulo p; of others, of their negatives, with a mark."""
        p, q = np.uint64(self.p), np.uint64(self.q)
        unique, back = np.unique(numbers, return_inverse=True)
        is_square = raised(unique, q, p) == 1
        left = np.where(is_square, unique, p - unique)
        found = np.zeros_like(left)
        is_open = np.ones(len(left), bool)
        powers, exponents = self._baby
        step = np.uint64(pow(self.base, -_BABY, self.p))
        for giant in range(self.q // _BABY + 1):
            if not is_open.any():
                break
            at = np.minimum(np.searchsorted(powers, left), _BABY - 1)
            hits = is_open & (powers[at] == left)
            found[hits] = (exponents[at[hits]] + np.uint64(giant * _BABY)) % q
            is_open &= ~hits
            left = left * step % p
        found = np.where(is_square, found, (found + np.uint64(0x2545F491)) % q)
        return found[back]


def inverse(numbers: Words, moduli: Words) -> Words:
    """1/x modulo primes, one for each line; 0 of 0."""
    return raised(numbers, moduli - np.uint64(2), moduli)


def raised(numbers: Words, powers: Words | np.uint64, moduli: Words | np.uint64) -> Words:
    """Numbers to powers, modulo primes: those that are for a line are a column."""
    found, square = np.ones_like(numbers), numbers
    while powers.any():
        found = np.where(powers & np.uint64(1), found * square % moduli, found)
        square, powers = square * square % moduli, powers >> np.uint64(1)
    return found


def root_of_two(prime: int) -> int:
    """A square root of 2 modulo a prime that is 7 modulo 8."""
    return pow(2, (prime + 1) // 4, prime)
