"""How an instruction is declared: `@form("shl.type d, a, b", type="b16 b32 b64", types={"b": "u32"}, since="1.0")`.

The syntax is a line of the manual's Syntax block. `.type` names a slot when the keyword argument of that name lists its
values, otherwise it is spelled as written; `{.ftz}` may be left out. `[a]` is an address, `[map, coordinates]` an
address with more inside, `p{|q}` a pair, `{!}c` a predicate that may be negated, `{, c}` an operand that may be
left out.

Availability (`since`) is that of the whole form; a value of a slot that came later says so itself:
`scope=("cta gpu sys", ("cluster", "7.8 sm_90"))`.

`types` says what each operand is; see `operand.py` for its words. An operand without an entry is of the slot `type`.
`writes` names the operands that are results (default: `d`), `updates` those that are read and written.
`present` ties an optional operand to a slot: the operand is present exactly when the slot is.
`where` is a function of the modifiers that returns the violation of a combination that is not legal, or None.
`bounds` says how exact an approximate result is: the first bound that holds for an operand counts; where none does,
the manual promises nothing. `effects` says what the semantic function does not show; see `effects.py`.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from ptxlab.values import dataclass

from .bound import Bound
from .jump import Jump
from .operation import Operation
from .targets import ALWAYS, Since, since
from .types import TYPES

if TYPE_CHECKING:
    from .held import Held


class Modifiers(SimpleNamespace):
    """The values of the slots of an instruction: `m.type == "f32"`, `m.ftz is True`.

    A slot that is left out, and one that the form does not have, reads as None (a flag that is left out as False).
    """

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


Slots = dict[str, Any]  # keyword arguments of `form` that several syntax lines share
F = TypeVar("F", bound=Callable[..., object])
Specification = str | Callable[[Modifiers], str]
Values = str | Sequence[str | tuple[str, str]]
Where = Callable[[Modifiers], str | None]


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot among the modifiers: its values, each with its own availability."""

    name: str
    values: Mapping[str, Since]
    optional: bool
    flag: bool  # spelled in the syntax itself, so that the only question is whether it is there


@dataclass(frozen=True, slots=True)
class SyntaxOperand:
    """One operand of the syntax line. `inner` are the names in brackets of an address, `second` is `q` of `p|q`."""

    name: str
    optional: bool = False
    negatable: bool = False
    second: str | None = None
    second_optional: bool = False
    inner: tuple[str, ...] = ()

    @property
    def is_address(self) -> bool:
        return bool(self.inner)


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One line of an instruction's syntax, with all that is known of it."""

    syntax: str
    name: tuple[str, ...]
    slots: tuple[Slot, ...]
    operands: tuple[SyntaxOperand, ...]
    since: Since
    types: Mapping[str, Specification]
    writes: frozenset[str]
    updates: frozenset[str]
    present: Mapping[str, str]
    where: Where | None
    bounds: tuple[Bound, ...] = ()
    effects: frozenset[str] = frozenset()
    computes: Operation | None = None
    extents: Mapping[str, Specification] = field(default_factory=dict)
    holds: Callable[[Modifiers], Iterator["Held"]] | None = None  # the matrices in registers, if it has any
    text: str = ""
    semantics: Callable[..., Any] | None = field(default=None)
    unknown: str = ""
    chapter: str = ""
    words: frozenset[str] = field(init=False)
    """The modifiers that it can have, besides its name."""
    jump: Jump | None = field(init=False)
    """How execution continues, if not at the next instruction."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", frozenset(word for slot in self.slots for word in slot.values))
        object.__setattr__(self, "jump", next((jump for jump in Jump if jump in self.effects), None))

    def modifiers(self, chosen: Mapping[str, str | None]) -> Modifiers:
        """What the form's functions receive."""
        values: dict[str, Any] = {}
        for slot in self.slots:
            value = chosen.get(slot.name)
            values[slot.name] = (value is not None) if slot.flag else value
        return Modifiers(**values)

    def spell(self, chosen: Mapping[str, str | None]) -> str:
        """The opcode with these values, in the order of the syntax line."""
        parts = [*self.name, *(value for slot in self.slots if (value := chosen.get(slot.name)) is not None)]
        return ".".join(parts)

    def spellings(self) -> Iterator[dict[str, str | None]]:
        """Every legal choice of values."""
        options = [[None, *slot.values] if slot.optional else list(slot.values) for slot in self.slots]
        for values in product(*options):
            chosen = {slot.name: value for slot, value in zip(self.slots, values, strict=True)}
            if self.where is None or self.where(self.modifiers(chosen)) is None:
                yield chosen

    def requirements(self, chosen: Mapping[str, str | None]) -> list[tuple[str, Since]]:
        """What this choice needs: the form's availability, and that of each value that has its own."""
        needed = [("", self.since)]
        for slot in self.slots:
            value = chosen.get(slot.name)
            if value is not None and slot.values[value] is not ALWAYS:
                needed.append((value, slot.values[value]))
        return needed


# What makes the forms of a chapter and a first word of opcodes: their syntax is read when that word is first met.
DECLARED: defaultdict[tuple[str, str], list[Callable[[], Form]]] = defaultdict(list)

# ptxas reads modifiers in any order, but for the words it takes as the instruction's name (`mul.lo`, `cp.async`): the
# words that a syntax line starts with, up to one of these. `name=` says it where that is not so.
_NOT_NAMES = frozenset(TYPES) | frozenset("sync aligned cc sat ftz approx full rn rz rm rp".split())


def form(
    syntax: str,
    *,
    since: str = "1.0",
    types: Mapping[str, Specification] | None = None,
    writes: str = "d",
    updates: str = "",
    present: Mapping[str, str] | None = None,
    where: Where | None = None,
    bounds: Sequence[Bound] = (),
    effects: str = "",
    name: str | None = None,
    **values: Values,
) -> Callable[[F], F]:
    """Declare one syntax line of the instruction that the decorated function describes."""

    def declare(function: F) -> F:
        chapter = function.__module__.rpartition(".")[2]

        def build() -> Form:
            opcode, _, rest = syntax.partition(" ")
            fixed, slots = _read_opcode(opcode, values, name)
            operands = _read_operands(rest)
            named = {inner for operand in operands for inner in (*operand.inner, operand.name, operand.second)}
            unknown = set(types or ()) - named
            assert not unknown, f"{syntax}: types for {unknown}, which the syntax does not have"
            return Form(
                syntax=syntax,
                name=fixed,
                slots=slots,
                operands=operands,
                since=_since(since),
                types=dict(types or {}),
                writes=frozenset(writes.split()) & named,
                updates=frozenset(updates.split()),
                present=dict(present or {}) | _CACHE_POLICY,
                where=where,
                bounds=tuple(bounds),
                effects=frozenset(effects.split()) | getattr(function, "effects", frozenset()),
                computes=getattr(function, "computes", None),
                extents=getattr(function, "extents", {}),
                holds=getattr(function, "holds", None),
                text=inspect.cleandoc(function.__doc__ or ""),
                semantics=function if function.__code__.co_argcount else None,
                unknown=getattr(function, "unknown", function.__globals__.get("UNKNOWN", "")),
                chapter=chapter,
            )

        head = syntax.partition(" ")[0].partition(".")[0].partition("{")[0]
        DECLARED[chapter, head].append(build)
        return function

    return declare


def unknown(why: str, effects: str = "") -> Callable[[F], F]:
    """Say, below the forms of an instruction without semantics, why it has none, and its `effects` in words.

    A chapter in which no instruction has semantics says why in its constant `UNKNOWN`.
    """

    def note(function: F) -> F:
        function.unknown = why  # type: ignore[attr-defined]
        function.effects = frozenset(effects.split())  # type: ignore[attr-defined]
        return function

    return note


_OPERAND = re.compile(r"\s*(?:(\{!\})?(\w+)(?:\{\|(\w+)\}|\|(\w+))?|\[([^\]]*)\]|(\{,|\{|\}|,))")
_since = since
_CACHE_POLICY = {"cache_policy": "l2_cache_hint"}


def slot_name(literal: str) -> str:
    """The name a literal modifier has in `m`: `L2::cache_hint` is `m.l2_cache_hint`."""
    return literal.replace("::", "_").lower()


def read_values(values: Values) -> dict[str, Since]:
    """The values of a slot, each with its availability."""
    found: dict[str, Since] = {}
    for group in [values] if isinstance(values, str) else values:
        names, available = (group, ALWAYS) if isinstance(group, str) else (group[0], _since(group[1]))
        found.update(dict.fromkeys(names.split(), available))
    return found


# Modifiers that came later than the instructions that take them, whichever those are.
_WORDS_SINCE = {
    "ftz": _since("1.4"),
    "weak": _since("6.0 sm_70"),
    "L2::cache_hint": _since("7.4 sm_80"),
    "pzo": _since("9.4 sm_107f"),
    "scaled::n1::ue8m0": _since("9.4 sm_107f"),
}


def _read_opcode(
    opcode: str, values: Mapping[str, Values], name: str | None
) -> tuple[tuple[str, ...], tuple[Slot, ...]]:
    parts = re.findall(r"\{\.([^}]+)\}|\.?([^.{}]+)", opcode)
    fixed: list[str] = []
    slots: list[Slot] = []
    used = set()
    wanted = len(name.split(".")) if name else None
    for index, (optional, required) in enumerate(parts):
        part = optional or required
        if part in values:
            used.add(part)
            slots.append(Slot(part, read_values(values[part]), bool(optional), flag=False))
        elif required and not slots and (index < wanted if wanted else required not in _NOT_NAMES):
            fixed.append(part)
        else:
            slots.append(Slot(slot_name(part), {part: _WORDS_SINCE.get(part, ALWAYS)}, bool(optional), flag=True))
    assert used == set(values), f"{opcode}: values for {set(values) - used}, which the syntax does not have"
    assert len({slot.name for slot in slots}) == len(slots), f"{opcode}: two slots of one name"
    return tuple(fixed), tuple(slots)


def _read_operands(text: str) -> tuple[SyntaxOperand, ...]:
    """Read `d, [a]{, cache_policy}`; an optional group holds whole operands, its comma inside."""
    operands: list[SyntaxOperand] = []
    depth = 0
    position = 0
    while position < len(text.rstrip()):
        found = _OPERAND.match(text, position)
        assert found, f"operands {text!r} at {text[position:]!r}"
        position = found.end()
        negatable, plain, maybe, second, inner, mark = found.groups()
        if mark:
            depth += mark.startswith("{")
            depth -= mark == "}"
        elif inner is not None:
            names = tuple(part.strip() for part in inner.split(","))
            operands.append(SyntaxOperand(names[0], depth > 0, inner=names))
        else:
            operands.append(SyntaxOperand(plain, depth > 0, bool(negatable), maybe or second, bool(maybe)))
    return tuple(operands)
