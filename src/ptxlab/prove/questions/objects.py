"""Objects: the memory that addresses are in, and accesses to it that differ in a constant distance only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptxlab import ir
from ptxlab.flow.expressions import ADDRESS, PARAMETER, Atom, Linear, linear
from ptxlab.prove.execution.segments import Access
from ptxlab.prove.terms.terms import RANK, Loop, Symbol, atoms_of, is_own_rank, without, without_rank

from .intervals import At, Reached, loops_of

BASE_ALIGNMENT = 16  # of array arguments
DYNAMIC = "dynamic shared memory"


@dataclass(frozen=True)
class Object:
    """Memory that addresses are in: a variable, dynamic shared memory, or an array that a parameter points to."""

    name: str
    space: str
    bytes: int | None
    """None: as many as a contract says."""
    align: int
    key: object


def may_overlap(one: Access, other: Access, apart: Linear) -> bool:
    """Whether accesses to an object, so many bytes apart, may be to the same ones: not where a constant says so."""
    return not (apart.is_constant and not -one.bytes < apart.constant < other.bytes)


@dataclass(eq=False)
class Group:
    """Accesses of one kind that differ in a constant distance only: offsets from `offset` on."""

    object: Object
    offset: Linear
    distances: list[tuple[int, Access]]
    turns: dict[Loop, int] = field(default_factory=dict)
    rank: Linear | None = None
    """In a cluster, which block's shared memory it is."""

    @property
    def first(self) -> Access:
        """One of them."""
        return self.distances[0][1]

    @property
    def is_own(self) -> bool:
        """Whether it is the shared memory of the thread's own block."""
        if self.rank is None:
            return True
        factors = [factor for atom, factor in self.rank.terms if is_own_rank(atom)]
        return factors == [1] and len(self.rank.terms) == 1 and not self.rank.constant

    @property
    def values(self) -> list[Linear]:
        """What says which memory it is."""
        return [self.offset, *([] if self.rank is None else [self.rank])]

    @property
    def place(self) -> At:
        """Where the first of them is."""
        return At(self.first.path, self.first.segment.loops, self.values)

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of all of them."""
        return tuple(sorted({access.line for _, access in self.distances}))


class Objects:
    """The objects of a kernel. `sizes` are the bytes of an element of arrays; `shared` is that of dynamic memory."""

    def __init__(self, accesses: Sequence[Access], shared: int, sizes: dict[str, int]) -> None:
        self.accesses, self.shared, self.sizes = accesses, shared, sizes
        self._known: dict[Linear, tuple[Object, Linear] | None] = {}
        self._pointers = _pointers(accesses)
        for access in accesses:
            found = self.located(access)
            if found is not None and found[0].bytes is None:
                sizes.setdefault(found[0].name, access.element)

    def located(self, access: Access) -> tuple[Object, Linear] | None:
        """The object that an address is in, and its distance from the start; None if that is not known."""
        if access.address not in self._known:
            self._known[access.address] = self._locate(access)
        return self._known[access.address]

    def _locate(self, access: Access) -> tuple[Object, Linear] | None:
        address, space = access.address, access.space
        if space == "tensor":
            ((base, symbol),) = ((atom, atom.detail) for atom, _ in address.terms
                                 if isinstance(atom.detail, Symbol) and atom.detail.columns)  # fmt: skip
            offset = without(without_rank(address)[0], base)
            return Object("tensor memory", space, 4 * symbol.columns, 4, id(symbol)), offset
        address, _ = without_rank(address)
        if any(atom.kind == RANK for atom in atoms_of([address])):
            return None  # one of several blocks
        bases: list[Atom] = []
        window = None
        for atom, factor in address.terms:
            if atom.kind == "window" and factor == 1:
                window = atom
            elif factor == 1 and (atom.kind == ADDRESS or (atom.kind == PARAMETER and atom in self._pointers)):
                bases.append(atom)
        if len(bases) != 1:
            return None
        (base,) = bases
        offset = without(address, base)
        if window is not None:
            offset = without(offset, window)
        if base.kind == PARAMETER:
            assert isinstance(base.detail, tuple)
            variable, place = base.detail
            name = f"{variable.title}+{place}" if place else variable.title
            is_global = space in ("global", "generic") and window is None
            return (Object(name, "global", None, BASE_ALIGNMENT, (id(variable), place)), offset) if is_global else None
        variable = base.detail
        assert isinstance(variable, ir.Variable)
        own = variable.state_space.partition("::")[0]
        is_generic = window is not None or (own == "global" and space == "generic")
        if space != ("generic" if is_generic else own):
            return None
        elements = variable.elements
        if elements is None and own == "shared":
            return Object(DYNAMIC, own, self.shared, variable.align or 1, DYNAMIC), offset
        if elements is None:
            return None
        width = variable.type.width // 8
        align = variable.align or width * variable.vector
        return Object(variable.title, own, elements * width, align, id(variable)), offset

    def groups(self, reached: Iterable[Reached]) -> list[Group]:
        """Accesses, those together that differ in a constant distance."""
        found: dict[tuple[Any, ...], Group] = {}
        for one in reached:
            access = one.access
            place = self.located(access)
            if place is None:
                continue
            (object, offset), (_, rank) = place, without_rank(access.address)
            needed = {*access.segment.loops, *loops_of([*access.path, access.address])}
            turns = {loop: turn for loop, turn in one.turns.items() if loop in needed}
            key = (object.key, offset.terms, offset.type, access.path, access.kind, access.order, access.bytes,
                   access.align, access.is_collective, access.unit, access.epoch, frozenset(turns.items()),
                   access.segment.loops, access.instance, access.places, rank)  # fmt: skip
            group = found.get(key)
            if group is None:
                group = found[key] = Group(object, offset, [], turns, rank)
            group.distances.append((offset.constant, access))
        for group in found.values():
            group.distances.sort(key=lambda one: one[0])
            group.offset = linear(group.offset.type, group.distances[0][0], dict(group.offset.terms))
        return list(found.values())


def _pointers(accesses: Sequence[Access]) -> frozenset[Atom]:
    """The parameters that are addresses: each access has at most one that is declared so, or the only one there is."""
    found: set[Atom] = set()
    for access in accesses:
        wide = [atom for atom, factor in access.address.terms
                if atom.kind == PARAMETER and factor == 1 and atom.type.width == 64]  # fmt: skip
        declared = [atom for atom in wide if atom.detail[0].pointer is not None]  # type: ignore[index]
        if len(declared or wide) == 1:
            found.update(declared or wide)
    return frozenset(found)
