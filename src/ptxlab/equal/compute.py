"""What an instruction computes of codes: its steps, as `flow.steps` has them from the table, on bytes and nodes.

Bits that are only moved stay the bytes that they were; all else becomes a node of the step, with all that
distinguishes it. What is computed from plain numbers alone stays a plain number where it is one on integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.codes import NOTHING, ZERO, Codes, is_symbolic, load, node_of, of_nodes, of_numbers
from ptxlab.equal.nodes import Ids, Nodes, Words
from ptxlab.flow.steps import Step, Steps
from ptxlab.isa.types import Type


class UnknownStepError(Exception):
    """A step that has no rule here."""


def bytes_of(type: Type) -> int:
    """The bytes that a value of a type takes."""
    return max(type.width // 8, 1)


class Computation:
    """Runs the steps of instructions for some threads."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def run(
        self, steps: Steps, operands: Callable[[object, Type], Codes], threads: Ids
    ) -> dict[tuple[str, int], Codes]:
        """The results; `operands` gives the codes of an operand, as wide as a type."""
        values: list[Codes] = []
        for step in steps.steps:
            if step.operation == "operand":
                values.append(operands(step.detail, step.type))
            else:
                values.append(self._apply(step, [values[part] for part in step.parts], threads))
        return {name: values[noted.at] for name, noted in steps.results.items()}

    def _apply(self, step: Step, parts: list[Codes], threads: Ids) -> Codes:
        count, width = len(threads), bytes_of(step.type)
        if step.operation == "constant":
            return np.repeat(of_numbers(np.array([step.detail & (1 << 64) - 1], np.uint64), width), count, 0)
        if step.operation in _MOVES:
            moved = _MOVES[step.operation](step, parts)
            if moved is not None:
                return moved
        if step.operation in ("&", "|", "^"):
            return self._bitwise(step, parts, threads)
        if step.operation == "select":
            return self.select(step, parts, threads)
        if width <= 8 and not any((is_symbolic(part) | (part == NOTHING).any(-1)).any() for part in parts):
            plain = computed(step, [load(part) for part in parts])
            if plain is not None:
                return of_numbers(plain, width)
        return self._node(step, parts, threads)

    def _node(self, step: Step, parts: Sequence[Codes], threads: Ids) -> Codes:
        """Nodes of a step."""
        if step.operation in ("unknown", "window", "peer", "shuffle"):
            raise UnknownStepError(step.operation)
        types = [type.name for type in step.read_as]
        ids = [node_of(self.nodes, part, type) for part, type in zip(parts, types, strict=True)]
        kind, text = described(step)
        if kind == "arithmetic" and step.detail[0] in ("add", "mul", "fma"):
            ids[:2] = _ordered(self.nodes, ids[0], ids[1])
        width = bytes_of(step.type)
        operation = self.nodes.operation(kind, text, step.type.name, width, step)
        if len(ids) > 3:
            ids = [self.nodes.rows(np.stack(ids, axis=1))]
        return of_nodes(self.nodes.add(operation, *ids, thread=threads), width)

    def _bitwise(self, step: Step, parts: list[Codes], threads: Ids) -> Codes:
        a, b = parts
        ones = -2 if step.type.width == 1 else -256  # the code of a byte, or a predicate, of ones
        found = np.zeros_like(a)
        is_done = np.zeros(a.shape, bool)

        def settle(where: npt.NDArray[np.bool_], value: Any) -> None:
            np.copyto(found, value, where=where & ~is_done)
            is_done[where] = True

        both = (a < 0) & (b < 0) & (a != NOTHING) & (b != NOTHING)
        plain = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[step.operation](-1 - a, -1 - b)
        settle(both, -1 - plain)
        for one, other in ((a, b), (b, a)):
            if step.operation == "&":
                settle(one == ZERO, ZERO)
                settle(one == ones, other)
            else:
                settle(one == ZERO, other)
            if step.operation == "|":
                settle(one == ones, ones)
        settle(a == b, ZERO if step.operation == "^" else a)
        open = np.flatnonzero(~is_done.all(-1))
        if len(open):
            found[open] = self._node(step, [a[open], b[open]], threads[open])
        return found

    def select(self, step: Step, parts: list[Codes], threads: Ids) -> Codes:
        """One of two values, as a condition says."""
        condition, yes, no = parts
        found = np.where(condition == ZERO, no, yes)
        unknown = (condition[:, 0] >= 0) | (condition[:, 0] == NOTHING)
        open = np.flatnonzero(unknown & (yes != no).any(-1))
        if len(open):
            types = ("pred", step.type.name, step.type.name)
            given = [node_of(self.nodes, one[open], type) for one, type in zip(parts, types, strict=True)]
            width = bytes_of(step.type)
            operation = self.nodes.operation("select", "", step.type.name, width)
            found[open] = of_nodes(self.nodes.add(operation, *given, thread=threads[open]), width)
        return found


def described(step: Step) -> tuple[str, str]:
    """The kind of a step, and all that distinguishes it."""
    read = " ".join(type.name for type in step.read_as)
    match step.operation:
        case "arithmetic":
            name, how = step.detail
            flags = " ".join(str(value) if key == "rounding" else key for key, value in how.items() if value)
            return "arithmetic", f"{name} {flags} {read}"
        case "call":
            function, how = step.detail
            given = " ".join(str(one) if isinstance(one, int) else one.name for one in how)
            return "call", f"{function.__module__}.{function.__qualname__} {given}"
        case "<" | "<=" | "==":
            return "compare", f"{step.operation} {read}"
        case "cast" | "part" | "pack":
            return step.operation, f"{read} {step.detail if step.operation == 'part' else ''}"
    return "integer", f"{step.operation} {read}"


def _ordered(nodes: Nodes, a: Ids, b: Ids) -> tuple[Ids, Ids]:
    """Two operands whose order does not matter, in an order of their own."""
    swaps = nodes.hashes(a)[0] > nodes.hashes(b)[0]
    return np.where(swaps, b, a), np.where(swaps, a, b)


# Steps that move bytes; None where they do more.


def _cast(step: Step, parts: list[Codes]) -> Codes | None:
    (given,) = parts
    width, own = bytes_of(step.type), step.of
    if step.type.width == own.width:
        return given
    if own.width < 8 or step.type.width < 8:
        return None
    if width <= given.shape[1]:
        return given[:, :width]
    more = width - given.shape[1]
    if own.kind != "s":
        return np.pad(given, ((0, 0), (0, more)), constant_values=ZERO)
    top = given[:, -1:]
    if (top >= 0).any():
        return None
    return np.concatenate([given, np.repeat(np.where(-1 - top > 127, -256, ZERO), more, 1)], axis=1)


def _pack(step: Step, parts: list[Codes]) -> Codes | None:
    if any(type.width % 8 for type in step.detail):
        return None
    return np.concatenate(parts, axis=1)


def _part(step: Step, parts: list[Codes]) -> Codes | None:
    if step.detail % 8 or step.type.width % 8:
        return None
    return parts[0][:, step.detail // 8 : (step.detail + step.type.width) // 8]


def _shift(step: Step, parts: list[Codes]) -> Codes | None:
    given, count = parts
    if is_symbolic(count).any() or not is_symbolic(given).any():
        return None
    bits = load(count)
    if (bits != bits[0]).any() or bits[0] % 8 or bits[0] >= step.type.width:
        return None
    bytes = int(bits[0]) // 8
    if not bytes:
        return given
    if step.operation == "<<":
        return np.pad(given, ((0, 0), (bytes, 0)), constant_values=ZERO)[:, : given.shape[1]]
    if step.type.kind == "s":
        return None
    return np.pad(given, ((0, 0), (0, bytes)), constant_values=ZERO)[:, bytes:]


_MOVES: dict[str, Callable[[Step, list[Codes]], Codes | None]] = {
    "cast": _cast, "pack": _pack, "part": _part, "<<": _shift, ">>": _shift,
}  # fmt: skip


_INTEGERS: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "<<": np.left_shift, ">>": np.right_shift, "<": np.less,
    "<=": np.less_equal, "==": np.equal, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip


def computed(step: Step, parts: Sequence[Words]) -> Words | None:
    """What a step makes of plain integers; None if it is about floats, or not known here."""
    if step.operation not in (*_INTEGERS, "cast", "part", "pack") or (step.of.kind == "f" and step.operation != "pack"):
        return None
    if step.operation == "pack":
        shifts = np.cumsum([0, *(type.width for type in step.detail)])[:-1].astype(np.uint64)
        packed: Words = np.bitwise_or.reduce([one << shift for one, shift in zip(parts, shifts, strict=True)])
        return packed
    given = [signed(part, type) for part, type in zip(parts, step.read_as, strict=True)]
    with np.errstate(all="ignore"):
        if step.operation in _INTEGERS:
            found = _INTEGERS[step.operation](*given)
        else:
            found = given[0] >> given[0].dtype.type(step.detail if step.operation == "part" else 0)
    mask = np.uint64((1 << min(step.type.width, 64)) - 1)
    words: Words = found.astype(np.int64).view(np.uint64) & mask if found.dtype != np.uint64 else found & mask
    return words


def signed(words: Words, type: Type) -> Any:
    """Numbers as their type has them."""
    if type.kind != "s" or type.width >= 64:
        return words.view(np.int64) if type.kind == "s" else words
    shift = np.int64(64 - type.width)
    return words.view(np.int64) << shift >> shift
