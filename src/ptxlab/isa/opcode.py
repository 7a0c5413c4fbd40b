"""From the text of an opcode to the forms it can be, and from operands at hand to the one form that is meant.

`opcode("add.rn.f32")` is looked up once per spelling; `opcode.match(shapes)` once per spelling and shapes of operands.
A file of a million instructions therefore asks the table only a few hundred times.
"""

from collections.abc import Mapping, Sequence
from functools import cache, cached_property

from ptxlab.values import dataclass

from .effects import Effects, effects_of
from .form import Form, Modifiers, Slot
from .operand import SPACES, Expected, Shape, expect
from .shape import Problem, find_problem, is_odd
from .table import forms_of, heads
from .targets import Since, Target, Version
from .types import TYPES


@dataclass(frozen=True, eq=False)
class Candidate:
    """A form with a choice of its modifiers."""

    form: Form
    chosen: Mapping[str, str | None]
    modifiers: Modifiers
    expected: tuple[Expected, ...]
    in_order: bool
    violation: str | None  # why the form's `where` refuses this combination

    @cached_property
    def effects(self) -> Effects:
        """What it does besides computing."""
        return effects_of(self.form, self.modifiers)

    def unavailable(self, version: Version, target: Target) -> list[tuple[str, Since]]:
        """What of it a module of this version and target may not use: the modifier ("" for the whole) and its needs."""
        return [
            (part, needed) for part, needed in self.form.requirements(self.chosen) if not needed.holds(version, target)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The form an instruction is, with what each of its operands is to it."""

    candidate: Candidate
    expected: tuple[Expected, ...]  # one an operand at hand
    limited: bool  # whether an operand's value is limited, so that values must be checked
    odd: tuple[int, ...] = ()  # the operands that ptxas takes, but that can hardly be meant

    @property
    def form(self) -> Form:
        return self.candidate.form

    @property
    def effects(self) -> Effects:
        return self.candidate.effects


@dataclass(frozen=True, slots=True, eq=False)
class Mismatch:
    """The form that comes nearest to the operands at hand, and what is wrong with them."""

    candidate: Candidate
    problem: Problem


class Opcode:
    """One spelling of an opcode: its parts, and the forms that it can be."""

    __slots__ = ("_matches", "candidates", "jump", "mnemonic", "modifiers", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.mnemonic, *rest = text.split(".")
        self.modifiers = tuple(rest)
        known = forms_of(self.mnemonic)
        self.jump = known[0].jump if known else None
        parts = text.split(".")
        found = [c for form in known if (c := _choose(form, parts))]
        legal = [c for c in found if c.violation is None] or found
        self.candidates = tuple([c for c in legal if c.in_order] or legal)
        self._matches: dict[tuple[Shape, ...], Match | Mismatch] = {}

    @property
    def is_known(self) -> bool:
        """Whether there is an instruction of this mnemonic, with whatever modifiers."""
        return self.mnemonic in heads()

    def __repr__(self) -> str:
        return f"Opcode({self.text!r})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return opcode, (self.text,)

    def match(self, shapes: tuple[Shape, ...]) -> Match | Mismatch:
        """The form that these operands make of it; asked only of an opcode with candidates."""
        found = self._matches.get(shapes)
        if found is None:
            found = self._matches[shapes] = self._match(shapes)
        return found

    def _match(self, shapes: tuple[Shape, ...]) -> Match | Mismatch:
        nearest: Mismatch | None = None
        for candidate in self.candidates:
            aligned = align(candidate.expected, len(shapes))
            if aligned is None:
                problem = Problem("count", len(shapes), None)
            else:
                found = (find_problem(e, shape, i) for i, (e, shape) in enumerate(zip(aligned, shapes, strict=True)))
                first = next((p for p in found if p), None)
                if first is None:
                    limited = any(_is_limited(e) for e in aligned)
                    odd = tuple(i for i, (e, shape) in enumerate(zip(aligned, shapes, strict=True)) if is_odd(e, shape))
                    return Match(candidate, aligned, limited, odd)
                problem = first
            if nearest is None or _distance(problem) < _distance(nearest.problem):
                nearest = Mismatch(candidate, problem)
        assert nearest, self.text
        return nearest


def _is_limited(expected: Expected) -> bool:
    return expected.allowed is not None or any(_is_limited(e) for e in expected.inner)


def _distance(problem: Problem) -> tuple[bool, int, bool]:
    """A wrong count is worse than a wrong operand, an early one than a late one, a wrong size than a wrong type."""
    return problem.kind == "count", -problem.index, problem.kind in ("vector", "vector-size")


def align(expected: Sequence[Expected], given: int) -> tuple[Expected, ...] | None:
    """The operands that `given` operands are, optional ones filled from the left; None: the count is wrong."""
    spare = given - sum(not e.optional for e in expected)
    if spare < 0:
        return None
    taken = []
    for e in expected:
        if e.optional:
            if not spare:
                continue
            spare -= 1
        taken.append(e)
    return tuple(taken) if not spare else None


_opcodes: dict[str, Opcode] = {}


def opcode(text: str) -> Opcode:
    """The opcode spelled so; the same object each time."""
    found = _opcodes.get(text)
    if found is None:
        found = _opcodes[text] = Opcode(text)
    return found


# Flags that ptxas accepts twice; it refuses any other modifier the second time.
REPEATABLE = frozenset("approx sync relu NaN satfinite cc shiftamt sat uni".split())


# ptxas reads one word of each of these groups in any instruction, and ignores it in those that have none of the group.
# It ignores a few more in few instructions, which are refused here, since no one can mean them: layouts and types of
# matrices beside those of other matrix instructions, and in 13.4 `.scaled::n1::ue8m0` in any (see `--strays` of
# tests/isa/conformance.py).
_IGNORED = tuple(
    frozenset(words.split())
    for words in (
        "finite infinite number notanumber normal subnormal",
        "acc::f16 acc::f32",
        "b8x16 b6x16_p32 b4x16_p64",
        "global_address rank box_dim global_dim global_stride element_stride elemtype interleave_layout swizzle_mode "
        "swizzle_atomicity fill_mode",
    )
)


# Beside its own type, arithmetic ignores one of the first types, and all else the last.
_ARITHMETIC = frozenset(
    "abs add sub min max neg mul fma cvt cvt.pack set setp cos sin ex2 lg2 rcp rsqrt sqrt tanh atom red"
    " multimem.ld_reduce multimem.st multimem.red multimem.cp.reduce.async.bulk cp.reduce.async.bulk wgmma.mma_async"
    " wmma.mma spcompress spdecompress tcgen05.ld.spcompress tcgen05.ld.red.spcompress fabric.try_atom.async"
    " fabric.try_get.async.tensor fabric.try_pullred.async fabric.try_put.async.tensor fabric.try_red.async"
    " fabric.try_red.async.tensor".split()
)
_TYPES_OF_NOTHING = frozenset("pred texref surfref samplerref".split()), frozenset(("b2",))
_CARRY = frozenset(("cc",))  # ignored where there is nothing to carry: the instruction has no type
# Matrices ignore it after their own types, and not beside these.
_COUNTED = {
    "mma": frozenset("b1 tf32 bf16".split()),
    "wmma.load.a": frozenset("b1 tf32 bf16 u4 s4".split()),
    "wmma.load.b": frozenset("b1 tf32 bf16 u4 s4".split()),
    "wmma.load.c": frozenset[str](),
    "wmma.store.d": frozenset[str](),
}


@cache
def _ignored(name: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    """The groups of words of which ptxas ignores one in an instruction of this name."""
    words = frozenset(word for form in forms_of(name[0]) if form.name == name for word in form.words)
    types = _TYPES_OF_NOTHING[".".join(name) not in _ARITHMETIC]
    carry = () if words & TYPES.keys() else (_CARRY,)
    return (*(group for group in _IGNORED if not group & words), types, *carry)


def _counts(name: tuple[str, ...], parts: Sequence[str], stray: str) -> bool:
    """Whether a type that means nothing is not ignored, since those of a matrix are counted."""
    counted = _COUNTED.get(".".join(name))
    return counted is not None and stray in TYPES and (parts[-1] != stray or not counted.isdisjoint(parts))


# ptxas numbers the dimensions of tensors and the geometries of textures alike, and takes one for the other.
_MISTAKEN = {
    ("suld", "4d"): "1d",
    ("sust", "4d"): "1d",
    ("sured", "4d"): "1d",
    ("suld", "5d"): "a1d",
    ("sust", "5d"): "a1d",
    ("tex", "5d"): "a1d",
}


def _choose(form: Form, parts: Sequence[str]) -> Candidate | None:
    """Put each modifier into a slot of the form; in the order of the syntax if that works, else in any, like ptxas."""
    if tuple(parts[: len(form.name)]) != form.name:
        return None
    rest = [part for at, part in enumerate(parts) if part not in REPEATABLE or part not in parts[:at]][len(form.name) :]
    taken = [_MISTAKEN.get((form.name[0], part), part) for part in rest]
    is_mistaken, rest = taken != rest, taken
    for group in _ignored(form.name):
        strays = [part for part in rest if part in group and part not in form.words]
        if len(strays) == 1 and not _counts(form.name, rest, strays[0]):
            rest.remove(strays[0])
    if len(rest) > len(form.slots) or not form.words.issuperset(rest):
        return None
    for in_order in (True, False):
        filled = _fill(form.slots, rest, 0, {}, -1, in_order)
        if filled is not None:
            chosen = {form.slots[index].name: part for index, part in filled.items()}
            m = form.modifiers(chosen)
            violation = form.where(m) if form.where else None
            once = len(rest) + len(form.name) == len(parts) and not is_mistaken
            return Candidate(form, chosen, m, () if violation else expect(form, m), in_order and once, violation)
    return None


# Modifiers of one category keep their order among themselves: in `cvt.f32.s32` the result's type comes first.
_PRIORITIES = frozenset(f"L2::evict_{name}" for name in ("last", "normal", "first", "unchanged"))
_PACKINGS = frozenset(("b8x16", "b6x16_p32", "b4x16_p64"))
_CATEGORIES = (
    frozenset(TYPES),
    SPACES,
    frozenset(("row", "col")),
    frozenset(("xor", "and", "popc")),
    _PRIORITIES,
    _PACKINGS,
)


def _overtakes(part: str, index: int, filled: Mapping[int, str]) -> bool:
    return any(
        other > index and (part == word or any(part in category and word in category for category in _CATEGORIES))
        for other, word in filled.items()
    )


def _fill(
    slots: Sequence[Slot], parts: Sequence[str], at: int, filled: dict[int, str], last: int, in_order: bool
) -> dict[int, str] | None:
    if at == len(parts):
        return filled if all(slot.optional or index in filled for index, slot in enumerate(slots)) else None
    for index in range(last + 1 if in_order else 0, len(slots)):
        if index not in filled and parts[at] in slots[index].values and not _overtakes(parts[at], index, filled):
            found = _fill(slots, parts, at + 1, {**filled, index: parts[at]}, index, in_order)
            if found is not None:
                return found
    return None
