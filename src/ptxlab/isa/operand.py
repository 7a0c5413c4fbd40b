"""What each operand of a form must be, and whether an operand at hand is that.

The words of `types`, in any order:

- a PTX type (`u32`) or the name of a slot that holds one (`type`); `2*type` is that type at twice the width;
- a count, for a vector operand: a number (`4`) or the name of a slot that holds `v2`, `v4`, `x2` and so on;
- `reg`: no immediate, and no vector of immediates alone; `bits`: no immediate, and no register but a `.b` one;
- `imm`: only an immediate, `imm(0..31)`: within that range, `imm(0|4|8)`: one of these;
- `within(0..15)`: an immediate within that range, or a register; `within(0..96/32)`: a multiple of 32 in it;
  a vector has one such limit for each element; `most(size)`: an immediate of a `within` range is not above the
  constant operand `size` of the same instruction;
- `loose`: the register may be wider than the type, as in `ld`, `st` and `cvt`;
- `sink`: the operand may be `_`, and nothing else if no type is named;
- for an address, the state space (`shared`) or the slot that holds it (`space`); nothing means the slot `space`, else
  the one space that the syntax spells out, else generic; `wide`: not 32 bits if the address is global or generic,
  `b64`: not 32 bits in any case, `full`: not 8 or 16 bits, which ptxas takes elsewhere, `b32` or `u32`: a register of
  32 bits, as for tensor memory;
- `label`, `function`, `targets`, `prototype`, `arguments`: what it says; `texref`, `samplerref`, `surfref`: the name of
  such a variable, or a 64-bit register that holds one;
- `padded`: the vector may have 2 or 4 elements where fewer are wanted; `indexed`: its first element is an index, apart
  from the others;
- `apart`: each element of the vector is checked by itself, as a scalar is; `bare`: the address may also be without
  its brackets; `element`: it may also be an element of an array, `table[3]`;
- `lone`: the vector may be one register; `short`: it may have 1 or 2 elements where more are wanted;
- `integers`: a vector of floats may be one of integers; `untyped`: a register may be of any type of that width;
  `predicate`: it may be a predicate, which ptxas takes for 32 bits; `halves`: it may be of `.f16x2`; `typed`: it (of
  a vector, one register instead of it) may not be of bits; `dropped`: a whole vector may be `_`; `scalar`: it may not
  be a vector, though it is of bf16; `vectors`: it may be one, though it is not;
- `stray`: ptxas takes it, and it does nothing;
- `unmixed`: predicates are not taken among other elements of a vector; `closing`: only if the last one is;
- `select(part)`: a part of the register may be chosen, `%r1.b0`, one of that set of `selectors.py`;
- `minus`: a minus sign may precede it;
- `single`: a scalar that may also be written as a vector of one, `{r}`;
- `special`: the operand may be a special register; `symbol`: the name of a variable or function may (its address);
  a state space: only the name of a variable in that space may.

Operands at hand are described by their *shape*, a value that is cheap to compare and to look up:

- `"b32"`: a register of that type; `"%u32"`: a special register of that type (`"%u16|u32"`: %tid.x and others
  that 16 or 32 bits can be read of);
- `"#int"`, `"#float"`, `"#f32"`: an immediate, the last one spelled with its 32 bits, `0f3F800000`;
- `"&shared"`: a variable of that state space; `"&texref"`: a variable of that opaque type,
  `"&texref[]"`: an array of such, in brackets;
  `"$b32"`: a variable of that type, no array, as an element of a vector;
  `"@label"`, `"@function"`, `"@targets"`, `"@prototype"`; `"_"`: the sink;
- `"?"`: a name that is not declared, which is reported once and fits everywhere;
- `("[", base, ...)`: an address and what else is in the brackets; `("[]", a)`: an element of an array, `table[3]`;
- `("{", ...)`: a vector; `("%{", ...)`: a special register of several components; `("(", ...)`: a list of arguments;
  `("|", a, b)`: a pair; `("!", a)`: a negation; `("-", a)`: a negated value; `("+", a)`: a sum with a constant;
  `(".", a, "b0")`: a selection; `(":", a)`: an element of a vector register; `(":",)`: a part that there is not.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ptxlab.values import dataclass

from .form import Form, Modifiers, Specification, SyntaxOperand
from .types import TYPES, Type

Limit = range | tuple[int, ...]  # the values that an immediate may have
Shape = Any  # str or nested tuples of str, as above

SPACES = frozenset(
    "const global local param param::entry param::func shared shared::cta shared::cluster tex reg sreg generic".split()
)
_WORDS = frozenset("label function targets prototype arguments".split())
_BRAIN = TYPES["bf16"], TYPES["bf16x2"]
_UNCHECKED = "half", "compare", "convert"  # chapters in which ptxas only checks the width of bf16
_ADDRESS_MARKS = frozenset("wide full bare element".split())
_FLAGS = frozenset(  # fields of `Expected`
    "loose sink special symbol single bits padded indexed minus apart integers lone untyped predicate halves typed"
    " dropped short unmixed closing stray".split()
)
_MARKS = _FLAGS | {"reg", "bare", "element", "scalar", "vectors"}


@dataclass(frozen=True, slots=True)
class Expected:
    """One operand as a form with given modifiers wants it."""

    name: str
    role: str  # "write", "update", "read"
    kind: str = "value"  # "value", "immediate", "address", or one of the words label, function, ...
    type: Type | None = None
    count: int = 0  # elements of a vector operand; 0 is a scalar
    register_only: bool = False
    loose: bool = False
    sink: bool = False
    special: bool = False
    symbol: bool = False
    single: bool = False
    bits: bool = False
    padded: bool = False
    indexed: bool = False
    wide: bool = False
    full: bool = False
    minus: bool = False
    apart: bool = False
    integers: bool = False
    lone: bool = False
    untyped: bool = False
    predicate: bool = False
    halves: bool = False
    stray: bool = False
    typed: bool = False
    dropped: bool = False
    short: bool = False
    unmixed: bool = False
    closing: bool = False
    bare: bool = False
    element: bool = False
    select: str | None = None
    negatable: bool = False
    space: str | None = None
    allowed: Limit | None = None
    most: str | None = None  # the constant operand that an immediate is not above
    optional: bool = False
    second: "Expected | None" = None
    second_optional: bool = False
    inner: tuple["Expected", ...] = ()
    fixed: bool = False  # of a type of its own, which none of the instruction's modifiers names
    whole: bool = False  # not an element of a vector register
    vectors: bool = False  # of a type that registers do not have, so that ptxas does not see that it is a vector

    def describe(self) -> str:
        """In a message: `.u32 register or immediate`."""
        if self.kind == "address" and self.type is not None and self.type.kind == "o":
            return f"a `.{self.type.name}`"
        if self.kind == "address":
            where = " in a register" if self.register_only else f" in `.{self.space}`" if self.space else ""
            return f"an address `[{self.name}]`{where}"
        if self.kind == "immediate":
            return "an immediate" + (f" ({_ranged(self.allowed)})" if self.allowed is not None else "")
        if self.kind == "sink":
            return "the sink `_`"
        if self.kind != "value":
            return f"a {self.kind}"
        one = f"`.{self.type.name}`" if self.type else ""
        if self.count:
            return f"a vector of {self.count} {one} registers".replace("  ", " ")
        if self.role != "read" or self.register_only:
            return f"a {one} register".replace("  ", " ")
        if self.type is not None and self.type.kind == "f" and (self.type.width < 32 or self.type.lanes > 1):
            return f"a {one} register"  # PTX has no constants of these
        limits = f" ({_ranged(self.allowed)})" if self.allowed is not None else ""
        return f"a {one} register or immediate{limits}".replace("  ", " ")


def _ranged(allowed: Limit) -> str:
    if isinstance(allowed, range):
        last = allowed[-1] if allowed else allowed.stop
        return f"{allowed.start} to {last}" + (f", a multiple of {allowed.step}" if allowed.step > 1 else "")
    return ", ".join(map(str, allowed))


def limited(expected: Expected, constants: Mapping[str, int]) -> Expected:
    """`expected` with the range that the instruction's constant operands leave it."""
    allowed, by = expected.allowed, expected.most
    if by is None or by not in constants or not isinstance(allowed, range):
        return expected
    return _replace(expected, allowed=range(allowed.start, min(allowed[-1], constants[by]) + 1, allowed.step))


def expect(form: Form, m: Modifiers) -> tuple[Expected, ...]:
    """The operands that `form` wants with modifiers `m`."""
    return _expect(form, tuple(vars(m).items()))


@lru_cache(maxsize=4096)
def _expect(form: Form, modifiers: tuple[tuple[str, object], ...]) -> tuple[Expected, ...]:
    m = Modifiers(**dict(modifiers))
    return tuple(_expected(form, m, operand) for operand in form.operands if _is_there(form, m, operand))


def expect_results(form: Form, m: Modifiers) -> tuple[Expected, ...]:
    """The operands that `form` writes with modifiers `m`, without those that it reads as well."""
    written = [one for one in form.operands if one.name in form.writes - form.updates and not one.is_address]
    return tuple(_expected(form, m, operand) for operand in written if _is_there(form, m, operand))


def _is_there(form: Form, m: Modifiers, operand: SyntaxOperand) -> bool:
    slot = form.present.get(operand.name)
    return slot is None or bool(vars(m).get(slot, True))


def _expected(form: Form, m: Modifiers, operand: SyntaxOperand) -> Expected:
    optional = operand.optional and not (operand.name in form.present and form.present[operand.name] in vars(m))
    if operand.is_address:
        given = form.types.get(operand.name, "")
        if isinstance(given, str) and set(given.split()) <= _ADDRESS_MARKS:
            given = f"{given} {_default_space(form, m)}"
        words = _words(given, m)
        space = next((word for word in words if word in SPACES), None)
        inner = tuple(_value(form, m, name) for name in operand.inner[1:])
        return Expected(operand.name, "read", "address", space=space, optional=optional, inner=inner,
                        register_only="reg" in words, wide="wide" in words, full="full" in words,
                        bare="bare" in words, element="element" in words,
                        type=next((TYPES[word] for word in words if word in TYPES), None))  # fmt: skip
    first = _value(form, m, operand.name, optional=optional, negatable=operand.negatable)
    if operand.second is None:
        return first
    second = _value(form, m, operand.second)
    return _replace(first, second=second, second_optional=operand.second_optional)


def _default_space(form: Form, m: Modifiers) -> str:
    """The space of an address that `types` does not name: that of the slot `space`, or the one that is spelled out."""
    if "space" in vars(m):
        return "space"
    spelled = [word for slot in form.slots if slot.flag and getattr(m, slot.name) for word in slot.values]
    spaces = [word for word in spelled if word in SPACES]
    return spaces[0] if len(spaces) == 1 else ""


def _replace(expected: Expected, **changes: object) -> Expected:
    values = {name: getattr(expected, name) for name in Expected.__slots__} | changes
    return Expected(**values)


def _words(specification: Specification, m: Modifiers) -> list[str]:
    """The words of a specification with slot names replaced by the value of the slot (nothing, if left out)."""
    text = specification if isinstance(specification, str) else specification(m)
    words = []
    for word in text.split():
        held = vars(m).get(word, word)
        if held is not None:
            words.append(word if isinstance(held, bool) else held)
    return words


def _default_type(form: Form, name: str) -> str:
    """What an operand is when `types` does not say: of the slot `type`, or of the one type that is spelled out."""
    if name == "cache_policy":
        return "u64"
    spelled = [word for slot in form.slots for word in slot.values if slot.flag and word in TYPES]
    return "type" if any(slot.name == "type" for slot in form.slots) or len(spelled) != 1 else spelled[0]


def _value(form: Form, m: Modifiers, name: str, optional: bool = False, negatable: bool = False) -> Expected:
    words = _words(form.types.get(name) or _default_type(form, name), m)
    words = [_widened(word, m).name if "*" in word else word for word in words]
    role = "update" if name in form.updates else "write" if name in form.writes else "read"
    fixed = _names_a_type(form.types.get(name, ""), m)
    return _value_of(name, role, tuple(words), form.chapter, fixed, optional, negatable)


@lru_cache(maxsize=4096)
def _value_of(
    name: str, role: str, words: tuple[str, ...], chapter: str, fixed: bool, optional: bool, negatable: bool
) -> Expected:
    """A value as words describe it; forms have few such descriptions, and thousands of spellings each."""
    kind, type_, count = "value", None, 0
    limits: list[Limit | None] = []
    space: str | None = None
    select: str | None = None
    most: str | None = None
    for word in words:
        if word in TYPES:
            type_ = TYPES[word]
        elif word.isdigit() or re.fullmatch(r"[vx]\d+", word):
            count = int(word.lstrip("vx"))
        elif word.startswith("imm"):
            kind = "immediate"
            limits.append(_range(word))
        elif word.startswith("within("):
            limits.append(_range(word))
        elif word.startswith("select("):
            select = word[7:-1]
        elif word.startswith("most("):
            most = word[5:-1]
        elif word in _WORDS:
            kind = word
        elif word in SPACES and word != "reg":
            space = word
        else:
            assert word in _MARKS, f"{chapter}: {name} is {word!r}"
    if kind == "value" and type_ is None and "sink" in words:
        kind = "sink"
    if type_ is not None and type_.kind == "o":
        kind = "opaque"
    assert type_ or kind != "value", f"{chapter}: no type for {name}"
    flags: dict[str, Any] = {mark: mark in words for mark in _FLAGS}
    return Expected(
        name,
        role,
        kind,
        type_,
        count,
        register_only="reg" in words,
        **flags,
        select=select,
        negatable=negatable,
        space=space,
        allowed=limits[0] if limits and not count else None,
        most=most,
        optional=optional,
        inner=tuple(Expected(name, role, type=type_, allowed=limit) for limit in limits) if count else (),
        fixed=fixed,
        whole=chapter == "video",
        vectors="vectors" in words
        or (not count and type_ in _BRAIN and chapter in _UNCHECKED and "scalar" not in words),
    )


def _names_a_type(specification: Specification, m: Modifiers) -> bool:
    text = specification if isinstance(specification, str) else specification(m)
    return any(word in TYPES for word in text.split())


def _range(word: str) -> Limit | None:
    if word == "imm":
        return None
    inside = word[word.index("(") + 1 : -1]
    if ".." in inside:
        low, high, step = re.split(r"\.\.|/", inside if "/" in inside else f"{inside}/1")
        return range(int(low), int(high) + 1, int(step))
    return tuple(int(part) for part in inside.split("|"))


def _widened(word: str, m: Modifiers) -> Type:
    factor, _, base = word.partition("*")
    narrow = TYPES[vars(m).get(base, base)]
    return TYPES[f"{narrow.kind}{narrow.bits * int(factor)}"]
