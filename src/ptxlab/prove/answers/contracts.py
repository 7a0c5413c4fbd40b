"""Contracts: what a proof may assume of the arguments and the grid, as people write it.

`n <= len(x)`, `grid.x * 128 == n`, `k % 4 == 0`: integers without bounds, names of parameters, `len` of an array in its
elements, `grid` and `block` with `.x`, `.y` and `.z`, and Python's arithmetic, comparisons, `and`, `or`, `not`.

From an example launch, contracts are guessed that it meets: what an array's length is a product of. A guess that makes
the proof go through is one of its assumptions, and is said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from keyword import iskeyword
from math import prod
from typing import Any

from ptxlab.prove.terms.terms import AXES, LARGEST
from ptxlab.prove.theories.integers import Space
from ptxlab.prove.theories.polynomials import Poly
from ptxlab.prove.theories.solver import z3

MOST_FACTORS = 3
SHORTEST = 8  # a size that has a guessed limit
WIDEST = 16  # elements of a vector
PER_THREAD = (1, 2, 4, 8, 16)  # elements


WORD = re.compile(r"\s*(?P<name>[\w$]+(?:\+\d+)?)\[(?P<index>\d+|:)\]\s*==\s*(?P<value>\d+)\s*")
"""What is said of a word of an array, or of all its words: what it holds when the kernel starts."""


class ContractError(ValueError):
    """A contract that can't be read."""


@dataclass(frozen=True)
class Example:
    """The numbers of a launch: integer arguments and lengths of arrays by name, and the grid."""

    numbers: Mapping[str, int]
    lengths: Mapping[str, int]
    sizes: Mapping[str, int]
    """Bytes of an element of each array."""
    grid: tuple[int, int, int]
    allocated: Mapping[str, int] = field(default_factory=dict)
    """Bytes of arrays whose elements are as large as what accesses them."""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    """What arrays hold when the kernel starts, or what they start with."""

    def in_elements(self, sizes: Mapping[str, int]) -> Example:
        """The same, with lengths in elements of these sizes."""
        lengths = {name: size // sizes[name] for name, size in self.allocated.items() if name in sizes}
        return replace(self, lengths={**self.lengths, **lengths})

    def holds_word(self, word: str, value: int, size: int) -> bool:
        """Whether a word of an array is a number, or whether all are: `x[3]`, `x[:]`, of so many bytes each."""
        name, _, index = word.removesuffix("]").rpartition("[")
        data, number = self.contents.get(name, b""), value.to_bytes(size, "little")
        if index == ":":
            whole = self.lengths.get(name, -1) * self.sizes.get(name, 1)
            return len(data) == whole and data == number * (whole // size)
        return data[int(index) * size : (int(index) + 1) * size] == number


@dataclass(frozen=True)
class Names:
    """The names that a contract may use."""

    scalars: frozenset[str]
    arrays: frozenset[str]
    block: tuple[int, int, int]
    words: frozenset[str] = frozenset()
    """The arrays and variables of which it may be said what they hold."""

    def contract(self, text: str) -> Callable[[Space], Any]:
        """A contract as a formula in a space of variables; of what an array holds, `contents_of` says it."""
        word = WORD.fullmatch(text)
        if word is not None:
            self.known(word["name"], self.words, text)
            return lambda _: z3.BoolVal(True)
        try:
            parsed = ast.parse(_without_keywords(text.strip(), self.scalars | self.arrays), mode="eval").body
        except SyntaxError:
            raise ContractError(f"prove: `{text}` is not an expression") from None
        self._condition(parsed, text, _EMPTY)  # what is wrong with it is said before anything is proved
        return lambda space: self._condition(parsed, text, space)

    def _condition(self, node: ast.expr, text: str, space: Space) -> Any:
        match node:
            case ast.Constant(value=bool() as value):
                return z3.BoolVal(value)
            case ast.BoolOp(op=op, values=values):
                join = z3.And if isinstance(op, ast.And) else z3.Or
                return join(*(self._condition(one, text, space) for one in values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return z3.Not(self._condition(operand, text, space))
            case ast.Compare(left=left, ops=ops, comparators=others):
                numbers = [self._number(one, text, space) for one in (left, *others)]
                pairs = zip(ops, numbers, numbers[1:], strict=False)
                return z3.And(*(self._compared(op, a, b, text, space) for op, a, b in pairs))
        raise ContractError(f"prove: `{ast.unparse(node)}` in `{text}` is not a condition")

    @staticmethod
    def _compared(op: ast.cmpop, a: Poly, b: Poly, text: str, space: Space) -> Any:
        match op:
            case ast.LtE():
                return space.at_most(a, b)
            case ast.Lt():
                return z3.Not(space.at_most(b, a))
            case ast.GtE():
                return space.at_most(b, a)
            case ast.Gt():
                return z3.Not(space.at_most(a, b))
            case ast.Eq():
                return space.equal(a, b)
            case ast.NotEq():
                return z3.Not(space.equal(a, b))
        raise ContractError(f"prove: a comparison in `{text}` is not understood")

    def _number(self, node: ast.expr, text: str, space: Space) -> Poly:
        match node:
            case ast.Constant(value=int() as value):
                return Poly.of(value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Poly.of(-1).times(self._number(operand, text, space))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
                a, b = self._number(left, text, space), self._number(right, text, space)
                return a.times(b) if isinstance(op, ast.Mult) else a.plus(b, 1 if isinstance(op, ast.Add) else -1)
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=ast.Constant(value=int() as by)) if (
                by > 0
            ):
                return space.divided(self._number(left, text, space), by)[isinstance(op, ast.Mod)]
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=right):
                a, b = self._number(left, text, space), self._number(right, text, space)
                return space.euclid(a, b)[isinstance(op, ast.Mod)]
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                return _variable(f"len({self.known(name, self.arrays, text)})", space)
            case ast.Call(
                func=ast.Name(id="len"),
                args=[ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int() as byte))],
            ):  # a pointer in a struct
                return _variable(f"len({self.known(f'{name}+{byte}', self.arrays, text)})", space)
            case ast.Attribute(value=ast.Name(id="grid" | "gridDim"), attr="x" | "y" | "z" as axis):
                return _variable(f"%nctaid.{axis}", space)
            case ast.Attribute(value=ast.Name(id="block" | "blockDim"), attr="x" | "y" | "z" as axis):
                return Poly.of(self.block[AXES.index(axis)])
            case ast.Name(id=name):
                return _variable(self.known(name, self.scalars, text), space)
        raise ContractError(f"prove: `{ast.unparse(node)}` in `{text}` is not understood")

    def known(self, name: str, names: frozenset[str], text: str) -> str:
        """A name, if it is one of those that are meant."""
        if name not in names:
            listed = ", ".join(f"`{one}`" for one in sorted(names)) or "none"
            what = "an array" if names is not self.scalars else "an integer parameter"
            raise ContractError(f"prove: `{name}` in `{text}` is not {what}; expected one of {listed}")
        return name


def ranges_of(texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """What sizes are at least and at most, of conditions that say no more than that.

    >>> ranges_of(["k >= 1", "0 < n", "n <= len(x)", "n < 64", "grid.y == 1"])
    {'k': (1, 2147483647), 'n': (1, 63), '%nctaid.y': (1, 1)}
    """
    size = r"(?P<size>len\(\w+\)|(?:grid|gridDim)\.[xyz]|[A-Za-z_$]\w*)"
    sign, number = "(?P<sign>==|[<>]=?)", r"(?P<number>\d+)"
    found: dict[str, tuple[int, int]] = {}
    for text in texts:
        one = re.fullmatch(rf"\s*{size}\s*{sign}\s*{number}\s*", text)
        other = re.fullmatch(rf"\s*{number}\s*{sign}\s*{size}\s*", text)
        parts = one or other
        if parts is not None:
            name = re.sub(r"^grid(Dim)?\.", "%nctaid.", parts["size"])
            compared = parts["sign"] if one else parts["sign"].translate({ord("<"): ">", ord(">"): "<"})
            bound, step = int(parts["number"]), int("=" not in compared)
            low, high = found.get(name, (0, LARGEST))
            low = low if compared.startswith("<") else max(low, bound + step)
            high = high if compared.startswith(">") else min(high, bound - step)
            found[name] = low, high
    return found


def contents_of(texts: Iterable[str]) -> dict[str, int]:
    """What words of arrays are when a kernel starts, as conditions say.

    >>> contents_of(["n <= len(x)", "ticket[0] == 0", "locks[:] == 1"])
    {'ticket[0]': 0, 'locks[:]': 1}
    """
    said = (one for text in texts if (one := WORD.fullmatch(text)) is not None)
    return {f"{one['name']}[{one['index']}]": int(one["value"]) for one in said}


def _without_keywords(text: str, names: frozenset[str]) -> str:
    """The text with fullwidth letters in parameters' names that Python reserves; Python reads a name as plain ones.

    >>> ast.unparse(ast.parse(_without_keywords("len(in) > n", frozenset({"in", "n"}))))
    'len(in) > n'
    """
    reserved = [name for name in names if iskeyword(name)]
    if not reserved:
        return text
    wide = {ord(letter): ord(letter) + 0xFEE0 for name in reserved for letter in name}
    return re.sub(rf"\b({'|'.join(reserved)})\b", lambda found: found[0].translate(wide), text)


def _variable(name: str, space: Space) -> Poly:
    return (
        space.variable(name, 0, MOST) if space is _EMPTY else space.variable(name, *space.bounds.get(name, (0, MOST)))
    )


MOST = (1 << 63) - 1
_EMPTY = Space()


def length_guesses(name: str, example: Example, block: tuple[int, int, int]) -> Iterator[str]:
    """What the length of an array may be a product of: sizes above 1, the grid, any sizes; without a factor first."""
    length = example.lengths[name]
    numbers = dict(sorted(example.numbers.items()))
    sizes = {one: value for one, value in numbers.items() if value > 1}
    blocks = {f"grid.{axis}": extent for axis, extent in zip(AXES, example.grid, strict=True)}
    threads = prod(block)
    several = sizes | {one: extent for one, extent in blocks.items() if extent > 1 or one == "grid.x"}
    pools = [sizes, dict(sorted(several.items()))]
    pools.append({one: value for one, value in numbers.items() if value > 0} | {"grid.x": blocks["grid.x"]})
    seen = {f"len({name}) == {length}"}
    for pool in pools:
        ways = [(length // product, chosen) for count in range(1, MOST_FACTORS + 1)
                for chosen in combinations_with_replacement(pool, count) if chosen.count("grid.x") < 2
                and (product := prod(pool[one] for one in chosen)) and length % product == 0]  # fmt: skip
        for factor, chosen in sorted(ways, key=lambda one: (one[0] != 1, len(one[1]), len(one[1]) - len(set(one[1])))):
            if factor > 64 and (pool is sizes or factor % threads):
                continue
            text = f"len({name}) == " + " * ".join([*([str(factor)] if factor != 1 else []), *chosen])
            if text not in seen:
                seen.add(text)
                yield text


def longer_guesses(name: str, example: Example) -> Iterator[str]:
    """What an array may be longer than: sizes above 1, blocks of the grid, and products of two of them."""
    sizes = {one: value for one, value in example.numbers.items() if value > 1}
    sizes |= {f"grid.{axis}": extent for axis, extent in zip(AXES, example.grid, strict=True) if extent > 1}
    sizes = sizes or {"grid.x": 1}
    for count in (1, 2):
        for chosen in combinations_with_replacement(sorted(sizes), count):
            if prod(sizes[one] for one in chosen) <= example.lengths[name]:
                yield f"{' * '.join(chosen)} <= len({name})"


def grid_guesses(example: Example, block: tuple[int, int, int]) -> Iterator[str]:
    """How the grid may follow from the sizes: as many blocks as cover them."""
    for axis, extent in zip(AXES, example.grid, strict=True):
        for name, value in sorted(example.numbers.items()):
            if value > 1 and (extent > 1 or (axis == "x" and len(example.numbers) == 1)):
                tiles = sorted({1 << n for n in range(13)} | {threads * n for threads in block for n in (1, 2, 4, 8)})
                tile = next((one for one in tiles if -(-value // one) == extent), None)
                if tile is not None:
                    yield f"(grid.{axis} - 1) * {tile} < {name}"


def one_block_guesses(example: Example, block: tuple[int, int, int]) -> Iterator[str]:
    """How a grid that is one block may follow from the only size: a block may cover any multiple of its threads."""
    if example.grid == (1, 1, 1) and len(example.numbers) == 1:
        (name,) = example.numbers
        for elements in PER_THREAD:
            yield f"(grid.x - 1) * {prod(block) * elements} < {name}"


def multiple_guesses(example: Example) -> Iterator[str]:
    """Which powers of two sizes may be multiples of, as vectors of 16 bytes need it."""
    for name, value in sorted(example.numbers.items()):
        power = min(value & -value, WIDEST)
        if value > 1 and power > 1:
            yield f"{name} % {power} == 0"


def vector_guesses(example: Example) -> Iterator[str]:
    """Which sizes may be others in vectors of a power of two elements, as those of rows in vectors."""
    sizes = [(name, value) for name, value in sorted(example.numbers.items()) if value > 1]
    for name, value in sizes:
        for other, count in sizes:
            if (
                count * 2 <= value <= count * WIDEST
                and value % count == 0
                and not (value // count) & (value // count - 1)
            ):
                yield f"{name} == {value // count} * {other}"


def room_guesses(example: Example, block: tuple[int, int, int], sizes: Collection[str]) -> Iterator[str]:
    """That a size and all threads of the grid, or of a block, are a number of 31 bits, if both are among some.

    A loop goes that far, and no further.
    """
    names = [(name, value) for name, value in sorted(example.numbers.items()) if name in sizes]
    for axis, extent, threads in zip(AXES, example.grid, block, strict=True):
        for name, value in names:
            if f"%nctaid.{axis}" in sizes and value + extent * threads <= LARGEST:
                yield f"{name} + grid.{axis} * {threads} <= {LARGEST}"
    if not any(f"%nctaid.{axis}" in sizes for axis in AXES):
        most = PER_THREAD[-1] * prod(block)
        yield from (f"{name} + {most} <= {LARGEST}" for name, value in names if value + most <= LARGEST)


def least_guesses(example: Example) -> Iterator[str]:
    """Which powers of two sizes may be at least, as kernels for rows of a certain length need it."""
    for name, value in sorted(example.numbers.items()):
        if value >= SHORTEST:
            yield f"{name} >= {1 << value.bit_length() - 1}"
