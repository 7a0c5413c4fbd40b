"""Where two expressions part: the first operations whose operands are the same and whose results are not, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ptxlab.equal.field import Field
from ptxlab.equal.nodes import Nodes
from ptxlab.equal.rules import rule_of
from ptxlab.equal.verdict import OperationSite
from ptxlab.trace import Trace

_SWAPPED = {"add": (0, 1), "mul": (0, 1), "fma": (0, 1), "max": (0, 1), "min": (0, 1)}
_MOST_TERMS = 200_000
_SHOWN = 3
Term = tuple[int, ...]
"""The factors of a product, by their nodes."""


@dataclass(frozen=True)
class Parting:
    """A node of each side."""

    a: int
    b: int
    field: Field | None

    def place(self, nodes: Nodes, sides: Sequence[Any], side: int) -> OperationSite | None:
        """Where the node of a side was computed."""
        node = (self.a, self.b)[side]
        origin = nodes.origin(node)
        if origin is None:
            return None
        line, text, source = sides[origin.side].line(origin.launch, origin.instruction)
        thread, trace = int(nodes.thread[node]), sides[origin.side].traces[origin.launch]
        return OperationSite(side, line, text, thread, _last_step(trace, origin.instruction, thread), source)

    def words(self, nodes: Nodes) -> list[str]:
        """What differs, where it can be said."""
        if self.field is None:
            return []
        found = _terms_in_words(nodes, self.field, self.a, self.b)
        return found or _inputs_in_words(nodes, self.a, self.b)


def _last_step(trace: Trace, instruction: int, thread: int) -> tuple[Trace, int] | None:
    """The last step in which a thread, or any, has executed an instruction."""
    columns = trace.columns
    has = np.array([instruction in segment.index_of for segment in columns.segments])[columns.segment]
    entries = np.flatnonzero(has & (columns.thread == thread) if thread >= 0 else has)
    if not len(entries):
        return None
    entry = int(entries[-1])
    return trace, int(columns.first_step[entry]) + columns.segment_of(entry).index_of[instruction]


def find_parting(nodes: Nodes, field: Field | None, a: int, b: int) -> Parting:
    """The operations at which two expressions part; `field` says what is the same, or the hashes do."""
    while True:
        a, b = (_through(nodes, one) if field is not None else one for one in (a, b))
        pairs = _pairs(nodes, field, a, b)
        if pairs is None or len(pairs) != 1:
            return Parting(a, b, field)
        ((a, b),) = pairs


def _through(nodes: Nodes, node: int) -> int:
    """What a conversion converts."""
    while True:
        rule = rule_of(nodes.kind(node))
        if rule.word != "copy" or rule.relu or rule.saturates:
            return node
        node = int(nodes.operands[0, node])


def _operands(nodes: Nodes, node: int) -> list[int]:
    """The operands of a node; of rows, their elements."""
    kind = nodes.kind(node).kind
    if kind in ("input", "constant"):
        return []
    if kind == "row":
        return [one for one in nodes.elements(node).tolist() if one >= 0]
    return [one for one in nodes.operands[:, node].tolist() if one >= 0]


def _same(nodes: Nodes, field: Field | None, a: int, b: int) -> bool:
    if field is not None and nodes.kind(a).kind != "row":
        return bool(field.same(np.array([a]), np.array([b]))[0])
    return bool((nodes.hashes(np.array([a])) == nodes.hashes(np.array([b]))).all())


def _pairs(nodes: Nodes, field: Field | None, a: int, b: int) -> list[tuple[int, int]] | None:
    """The operands that differ, of two operations that are the same; None if they are not."""
    one, other = nodes.kind(a), nodes.kind(b)
    if field is None and (one.kind, one.text, one.type) != (other.kind, other.text, other.type):
        return None
    word = rule_of(one).word
    if word != rule_of(other).word or one.kind in ("input", "constant"):
        return None
    if field is not None and word in ("add", "sub", "fma", "matmul"):
        return None  # sums are compared by their terms
    x, y = _operands(nodes, a), _operands(nodes, b)
    if len(x) != len(y):
        return None
    ways = [y]
    if word in _SWAPPED:
        ways.append([y[1], y[0], *y[2:]])
    found = [[(m, n) for m, n in zip(x, way, strict=True) if not _same(nodes, field, m, n)] for way in ways]
    return min(found, key=len)


# Sums.


def _terms(nodes: Nodes, node: int) -> list[tuple[int, Term]] | None:
    """The terms of a sum, each with its sign; None if there are too many."""
    found: list[tuple[int, Term]] = []
    stack = [(1, node)]
    while stack:
        if len(found) > _MOST_TERMS:
            return None
        sign, node = stack.pop()
        node = _through(nodes, node)
        rule = rule_of(nodes.kind(node))
        given = nodes.operands[:, node].tolist()
        match rule.word:
            case "add" | "sub":
                stack += [(sign, given[0]), (-sign if rule.word == "sub" else sign, given[1])]
            case "fma":
                found.append((sign, (given[0], given[1])))
                stack.append((sign, given[2]))
            case "matmul":
                pairs = zip(nodes.elements(given[0]).tolist(), nodes.elements(given[1]).tolist(), strict=True)
                own = -sign if rule.detail == -1 else sign
                found += [(own, pair) for pair in pairs]
                if given[2] >= 0:
                    stack.append((sign, given[2]))
            case "mul":
                found.append((sign, (given[0], given[1])))
            case _:
                found.append((sign, (node,)))
    return found


def _keyed(field: Field, terms: list[tuple[int, Term]]) -> list[tuple[int, ...]]:
    """What each term is in the field."""
    primes = field.moduli[:, 0].tolist()

    def key(sign: int, term: Term) -> tuple[int, ...]:
        known, own = field.known[:, term].tolist(), field.elements[:, term].tolist()
        return tuple(sign * prod(own[n]) % p if all(known[n]) else -1 for n, p in enumerate(primes))

    return [key(*one) for one in terms]


def _terms_in_words(nodes: Nodes, field: Field, a: int, b: int) -> list[str]:
    sums = [_terms(nodes, one) for one in (a, b)]
    if sums[0] is None or sums[1] is None:
        return []
    keys = [_keyed(field, one) for one in sums if one is not None]
    counts = [Counter(one) for one in keys]
    lacking = []
    for own, other in ((0, 1), (1, 0)):
        left = counts[own] - counts[other]
        terms = []
        for key, (sign, term) in zip(keys[own], sums[own] or (), strict=True):
            if left[key] > 0 and any(key):
                left[key] -= 1
                terms.append((sign, term))
        lacking.append(terms)
    if len(sums[0]) <= 1 and len(sums[1]) <= 1:
        return []
    found = []
    if lacking[0] and len(lacking[0]) <= len(sums[0]):
        found.append(f"b lacks {_described(nodes, lacking[0])}")
    if lacking[1]:
        found.append(f"b has {'instead' if lacking[0] else 'in addition'} {_described(nodes, lacking[1])}")
    return found


def _described(nodes: Nodes, terms: list[tuple[int, Term]]) -> str:
    """Terms in words, the indices of many as ranges."""
    groups: dict[tuple[str, ...], list[list[tuple[int, ...] | None]]] = defaultdict(list)
    for sign, term in terms:
        named = [_factor(nodes, node) for node in sorted(term)]
        groups["-" if sign < 0 else "", *(name for name, _ in named)].append([index for _, index in named])
    found = []
    for (minus, *names), indices in groups.items():
        shown = []
        for number, name in enumerate(names):
            own = [place for index in indices if (place := index[number]) is not None]
            shown.append(name + (f"[{_ranges(own)}]" if own else ""))
        found.append(minus + "·".join(shown))
    count = f"{len(terms)} terms: " if len(terms) > 1 else "the term "
    more = f" and {len(found) - _SHOWN} kinds more" if len(found) > _SHOWN else ""
    return count + ", ".join(found[:_SHOWN]) + more


def _ranges(indices: list[tuple[int, ...]]) -> str:
    parts = []
    for values in zip(*indices, strict=True):
        low, high = min(values), max(values)
        parts.append(str(low) if low == high else f"{low}..{high}")
    return ", ".join(parts)


def _factor(nodes: Nodes, node: int) -> tuple[str, tuple[int, ...] | None]:
    """The name of a factor, and its index if it is an element of an array."""
    node = _through(nodes, node)
    kind = nodes.kind(node)
    if kind.kind == "input" and kind.detail is None:
        return kind.text, None
    if kind.kind == "input":
        array = kind.detail
        index = np.unravel_index(int(nodes.operands[0, node]), array.data.shape)
        return array.name, tuple(int(one) for one in index)
    if kind.kind == "constant":
        from ptxlab.equal.constants import floats_of
        from ptxlab.equal.rules import format_of

        bits = nodes.operands[0, node : node + 1].view(np.uint64)
        format = format_of(kind.type, kind.width)
        return (f"{floats_of(bits, format)[0]:g}" if format else f"{int(bits[0]):#x}"), None
    word = rule_of(kind).word
    word = "bits" if word == "opaque" else word
    own = sorted({name for name, _ in _some_inputs(nodes, node)})
    return f"{word}({', '.join(own)})", None


# Inputs.


def _some_inputs(nodes: Nodes, node: int, most: int = 50_000) -> set[tuple[str, int]]:
    """The elements that a node depends on."""
    seen, stack, found = {node}, [node], set[tuple[str, int]]()
    while stack and len(seen) < most:
        at = stack.pop()
        kind = nodes.kind(at)
        if kind.kind == "input":
            found.add((kind.text, int(nodes.operands[0, at])))
        for one in _operands(nodes, at):
            if one not in seen:
                seen.add(one)
                stack.append(one)
    return found


def _inputs_in_words(nodes: Nodes, a: int, b: int) -> list[str]:
    own = [_some_inputs(nodes, one) for one in (a, b)]
    found = []
    for lacking, text in ((own[0] - own[1], "b does not depend on"), (own[1] - own[0], "b depends, in addition, on")):
        if lacking:
            shown = ", ".join(_named(nodes, one) for one in sorted(lacking)[:_SHOWN])
            more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
            found.append(f"{text} {shown}{more}")
    if not found:
        names = [_factor(nodes, one) for one in (a, b)]
        both = [name + (f"[{', '.join(map(str, index))}]" if index is not None else "") for name, index in names]
        is_one = both[0] == both[1]
        found.append(f"both have {both[0]}, with other values" if is_one else f"a has {both[0]} where b has {both[1]}")
    return found


def _named(nodes: Nodes, element: tuple[str, int]) -> str:
    for operation in nodes.operations:
        if operation.kind == "input" and operation.text == element[0] and operation.detail is not None:
            return str(operation.detail.element(element[1]))
    return element[0]


def find_opaque(nodes: Nodes, field: Field, roots: Sequence[int]) -> int | None:
    """The first operation that there is no rule for, of those that some nodes depend on."""
    seen, stack, found = set(roots), list(roots), list[int]()
    while stack:
        node = stack.pop()
        if not field.is_opaque[node] and nodes.kind(node).kind != "row":
            continue
        given = _operands(nodes, node)
        if field.is_opaque[node] and not any(field.is_opaque[one] or nodes.kind(one).kind == "row" for one in given):
            found.append(node)
        for one in given:
            if one not in seen:
                seen.add(one)
                stack.append(one)
    return min(found) if found else None
