"""Whether an operand at hand, described by its shape (see `operand.py`), is what a form expects, and if not, why."""

from collections.abc import Sequence
from itertools import pairwise

from ptxlab.values import dataclass

from .operand import Expected, Shape
from .selectors import SELECTORS
from .types import TYPES, Type


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with operand `index`: `kind` says it in a word, `expected` what should be there."""

    kind: str
    index: int
    expected: Expected | None


def find_problem(expected: Expected, shape: Shape, index: int) -> Problem | None:
    """What is wrong with operand number `index` of this shape, or None."""
    kind = _wrong(expected, shape)
    return Problem(kind, index, expected) if kind else None


def _wrong(expected: Expected, shape: Shape) -> str | None:
    if shape == "?":
        return None
    if expected.kind == "address":
        return _wrong_address(expected, shape)
    if expected.kind == "immediate":
        return None if shape == "#int" else "not-immediate"
    if expected.kind == "sink":
        return None if shape == "_" else "not-sink"
    if expected.kind == "opaque":
        if expected.type and shape == f"&{expected.type.name}[]":
            return "object-array"
        return None if expected.type and shape in (f"&{expected.type.name}", "b64", "u64", "s64") else "kind"
    if expected.kind == "arguments":
        return None if shape[0] == "(" else "kind"
    if expected.kind != "value":
        # Whether a label is code or a list of targets, only the whole function says.
        return None if shape == f"@{expected.kind}" or (shape, expected.kind) == ("@label", "targets") else "kind"
    if isinstance(shape, tuple) and shape[0] != ":":
        return _wrong_compound(expected, shape)
    if expected.second is not None and not expected.second_optional:
        return "not-pair"
    if expected.count and not expected.lone and not (expected.dropped and shape == "_"):
        return "vector-size"
    if expected.typed and shape in TYPES and TYPES[shape].kind == "b":
        return "type"
    return wrong_scalar(expected, shape)


def _wrong_compound(expected: Expected, shape: Shape) -> str | None:
    mark, *parts = shape
    if mark == "|":
        if expected.second is None:
            return "pair"
        if parts == ["_", "_"]:
            return "sink"
        if parts[0][0] == ":":  # to ptxas, a `|` after an element is a syntax error
            return "element"
        if expected.count and not isinstance(parts[0], tuple):
            return "vector-size"
        first = _wrong_compound if isinstance(parts[0], tuple) else wrong_scalar
        return first(expected, parts[0]) or wrong_scalar(expected.second, parts[1])
    if mark == "!":
        return wrong_scalar(expected, parts[0]) if expected.negatable else "negated"
    if mark == "%{":  # a special register such as %ctaid with all its components
        return _wrong_compound(expected, ("{", *parts)) if expected.special else "special-register"
    if mark == "[]":
        return wrong_scalar(expected, parts[0]) if is_array(parts[0]) else "not-array"
    if mark == "-":
        return _wrong(expected, parts[0]) if expected.minus else "negated"
    if mark == "+":
        return wrong_scalar(expected, parts[0]) if expected.role == "read" and not expected.count else "result-register"
    if mark == ".":
        known = expected.select and parts[1] in SELECTORS[expected.select]
        return wrong_scalar(expected, parts[0]) if known else "selector"
    if mark == "{":
        if expected.single and len(parts) == 1:
            return _wrong_vector(expected, parts)
        if not (expected.padded and len(parts) in (2, 4) and len(parts) > expected.count):
            if not expected.count:
                return _wrong_vector(expected, parts) if expected.vectors and len(parts) in (1, 2, 4) else "vector"
            if len(parts) != expected.count and not (expected.short and len(parts) in (1, 2)):
                return "vector-size"
        if expected.indexed:
            return wrong_scalar(_INDEX, parts[0]) or _wrong_vector(expected, parts[1:])
        return _wrong_vector(expected, parts)
    return "kind"


_INDEX = Expected("index", "read", type=TYPES["u32"], special=True, fixed=True)


def _wrong_vector(expected: Expected, parts: Sequence[Shape]) -> str | None:
    """ptxas gives a vector one type and checks that type only, unless it checks each element apart."""
    if all(part == "_" for part in parts) and not expected.apart:
        return "sink"
    if expected.role != "read" and any(part in _CONSTANTS for part in parts):
        return "result-register"
    joined = _join([part for part in parts if _element_type(part)])
    if joined is None:
        return "vector-types"
    if joined == "pred" and expected.predicate:
        return "type"
    if "pred" in parts and joined != "pred" and (expected.unmixed or (expected.closing and parts[-1] != "pred")):
        return "vector-types"
    if _is_converted(expected, parts[0]) or _are_integers_for_floats(expected, joined):
        assert expected.type is not None
        joined = f"b{expected.type.width}"
    for part in parts:
        if part == "_" and expected.vectors and expected.role != "read":
            continue
        if _element_type(part):
            part = part.removeprefix("$") if expected.apart else joined
        if wrong := wrong_scalar(expected, part):
            return "decimal" if expected.register_only and "#float" in parts and joined == "b64" else wrong
    return None


def _is_converted(expected: Expected, first: Shape) -> bool:
    """Whether a vector starts with a constant that ptxas converts: it then looks no further."""
    assert expected.type is not None
    if first not in _CONSTANTS or expected.register_only or expected.bits or expected.apart:
        return False
    if first == "#int":
        return expected.type.kind in "bus" and expected.type.lanes == 1
    return expected.type.name in ("f32", "f64")


def _are_integers_for_floats(expected: Expected, joined: str) -> bool:
    """Whether these are integers where floats are wanted, in an instruction that does not mind."""
    assert expected.type is not None
    if not expected.integers or expected.type.kind != "f" or joined not in TYPES:
        return False
    return TYPES[joined].kind in "us" and TYPES[joined].width == expected.type.width


def _join(parts: Sequence[str]) -> str | None:
    """The shape that elements have together, their own or that of an untyped register; None if they don't agree.

    Neighbours must both be floats, integers or halves, unless one is untyped. Registers must have one width, which
    constants take; but where a constant comes first, all have the width of the last element that is not as wide as it.
    """
    if not parts:
        return ""
    types = [type for part in parts if (type := _element_type(part))]
    if any(_number(a) != _number(b) and "b" not in (_number(a), _number(b)) for a, b in pairwise(types)):
        return None
    width, others = _width(types[0]), [_width(type) for type in types if _width(type) != _width(types[0])]
    if parts[0] in _CONSTANTS:
        width = others[-1] if others else width
    elif any(_width(type) != width for part, type in zip(parts, types, strict=True) if part not in _CONSTANTS):
        return None
    if any(type is not types[0] for type in types):
        return f"b{width}"
    return next((type.name for part, type in zip(parts, types, strict=True) if part not in _CONSTANTS), parts[0])


_CONSTANTS = {"#int": TYPES["s64"], "#float": TYPES["f64"], "#f32": TYPES["f32"]}


def _element_type(part: Shape) -> Type | None:
    """The type of an element, or None for what takes the type of the others."""
    if not isinstance(part, str):
        return None
    if part.startswith("%"):
        return TYPES[f"b{TYPES[part[1:].rpartition('|')[2]].width}"]
    return _CONSTANTS.get(part) or TYPES.get(part.removeprefix("$"))


def _width(type: Type) -> int:
    return 32 if type.kind == "p" else type.width


def is_odd(expected: Expected, shape: Shape) -> bool:
    """Whether ptxas takes an operand in silence that hardly can be meant: a predicate among integers and the like."""
    if expected.stray or (expected.bare and not (isinstance(shape, tuple) and shape[0] == "[")):
        return True
    if expected.lone and not isinstance(shape, tuple):
        return True
    if (expected.untyped or expected.predicate) and shape in TYPES:
        assert expected.type is not None
        return not register_fits(TYPES[shape], expected.type, expected.loose)
    if expected.kind == "address" and isinstance(shape, tuple):
        base = TYPES.get(shape[1]) if isinstance(shape[1], str) else None
        return (base is not None and not (_is_address(base) and base.width >= 32)) or any(
            is_odd(inner, part) for inner, part in zip(expected.inner, shape[2:], strict=False)
        )
    if not isinstance(shape, tuple) or shape[0] != "{" or expected.kind != "value":
        return False
    assert expected.type is not None
    if expected.vectors or (expected.short and len(shape) - 1 < expected.count):
        return True
    if shape[1] in _CONSTANTS:
        widths = {type.width for part in shape[1:] if part not in _CONSTANTS and (type := _element_type(part))}
        if widths - {expected.type.width}:
            return True
    return any(
        (part == "pred" and expected.type.kind != "p")
        or (part == "_" and expected.role == "read")
        or (isinstance(part, str) and part.startswith("$"))
        or (isinstance(part, str) and part.startswith("%") and expected.role != "read")
        for part in shape[1:]
    )


def _number(type: Type) -> str:
    return "x" if type.lanes > 1 else {"u": "i", "s": "i"}.get(type.kind, type.kind)


def is_array(base: Shape) -> bool:
    """Whether `base[3]` is an element: of a variable, which `shapes.py` calls `scalar` where it is not an array."""
    return isinstance(base, str) and base.startswith("&")


def _wrong_address(expected: Expected, shape: Shape) -> str | None:
    if expected.bare and not isinstance(shape, tuple):
        if shape in TYPES:
            return None if TYPES[shape].kind != "p" else "not-address"
        if shape.startswith("&"):
            return None if _within(shape[1:], expected.space) else "state-space"
        return None if shape in ("#float", "#f32") else "not-address"
    if expected.bare and shape[0] == "+":
        return _wrong_address(expected, shape[1])
    if not isinstance(shape, tuple) or shape[0] not in ("[", "[]"):
        return "not-address"
    if shape[0] == "[]" and not (expected.element and is_array(shape[1])):
        return "not-address" if is_array(shape[1]) else "not-array"
    base, *rest = shape[1:]
    if len(rest) != len(expected.inner):
        return "address-parts"
    if not isinstance(base, str):
        return "address-type"
    if expected.type and expected.type.width == 32:
        kinds = "b" if expected.type.kind == "b" else "bus"
        is_pair = base == "f16x2" and expected.type.kind != "b"  # which ptxas takes for an integer
        if not is_pair and (base not in TYPES or TYPES[base].width != 32 or TYPES[base].kind not in kinds):
            return "address-type"
    elif base.startswith("&"):
        space = base[1:]
        if expected.register_only:
            return "kind"
        if expected.type is not None and expected.type.kind == "o":
            if space.endswith("[]"):
                return "object-array"
            if space not in (expected.type.name, "tex" if expected.type.name == "texref" else None):
                return "kind"
        elif space.removesuffix("[]") in TYPES or not _within(space, expected.space):
            return "state-space"
    elif base == "#int" and expected.space != "local":
        return "immediate-address"
    elif base in TYPES and _is_address(TYPES[base]) and not _has_width(expected, TYPES[base].width):
        return "address-width"
    elif base in TYPES:
        # ptxas does not check a register that has coordinates beside it, unless it holds a texture or a surface.
        is_unchecked = bool(rest) and not (expected.type is not None and expected.type.kind == "o")
        if not (_is_address(TYPES[base]) or is_unchecked):
            return "address-type"
    elif base in ("#float", "#f32", "_") or base.startswith(("%", "@")):
        return "address-type"
    return next((wrong for e, part in zip(expected.inner, rest, strict=True) if (wrong := _wrong(e, part))), None)


def _is_address(type: Type) -> bool:
    return type.kind in "bus" and type.width <= 64


def _has_width(expected: Expected, width: int) -> bool:
    """Whether ptxas takes an address of that many bits; it looks for 32 where 64 are needed, and not for fewer."""
    is_wide = bool(expected.type) or (expected.wide and expected.space in (None, "global"))
    return not (is_wide and width == 32) and not (expected.full and width < 32)


def _within(space: str, wanted: str | None) -> bool:
    """Whether a variable of `space` may be named where `wanted` (None: a generic address) is accessed."""
    if wanted is None:  # ptxas: a generic access does not take a name in `.const` or `.param`
        return space.partition("::")[0] not in ("const", "param")
    return space.partition("::")[0] == wanted.partition("::")[0]


def wrong_scalar(expected: Expected, shape: Shape) -> str | None:
    """What is wrong with a single register or immediate."""
    type_ = expected.type
    assert type_ is not None
    if isinstance(shape, tuple) and shape[0] == ":":
        if len(shape) == 1:
            return "no-part"
        return "element" if expected.whole else wrong_scalar(expected, shape[1])
    if not isinstance(shape, str):
        return "kind"
    if shape == "?":
        return None
    if shape == "_":
        return None if expected.sink else "sink"
    if shape.startswith("#"):
        if expected.role != "read":
            return "result-register"
        if expected.register_only or expected.bits:  # ptxas takes `0f3F800000` for a register of 32 bits
            if shape == "#f32" and type_.name in ("b32", "f32") and not expected.bits:
                return None
            return "decimal" if shape == "#float" and type_.name == "f32" else "register-only"
        return None if immediate_fits(shape, type_) else "immediate-type"
    if shape.startswith("%"):
        if not expected.special:
            return "special-register"
        fits = any(register_fits(TYPES[name], type_, expected.loose) for name in shape[1:].split("|"))
        return None if fits and type_.kind != "f" else "type"
    if shape.startswith("&") and expected.space:
        return None if _within(shape[1:], expected.space) else "state-space"
    if shape.startswith("&") or shape == "@function":
        return None if expected.symbol else "symbol"
    if shape not in TYPES:
        return "kind"
    if expected.bits and TYPES[shape].kind != "b" and TYPES[shape].declarable:  # others are declared as bits
        return "type"
    if shape == "f16x2" and expected.fixed and type_.kind in "us" and not expected.halves:
        return "type"
    if expected.untyped and _width(TYPES[shape]) == type_.width:
        return None
    if expected.predicate and shape == "pred":
        return None
    return None if register_fits(TYPES[shape], type_, expected.loose) else "type"


def register_fits(register: Type, wanted: Type, loose: bool) -> bool:
    """Whether a register is legal where an instruction works on `wanted` (PTX ISA, Operand Type Checking)."""
    if register.kind == "p" or wanted.kind == "p":
        return register.kind == wanted.kind
    if register.width != wanted.width and not (loose and register.width > wanted.width):
        return False
    if register.kind == "b" or wanted.kind == "b" or register is wanted:
        return True
    if wanted.kind == "f":  # formats that no register is declared with (bf16, f32x2) live in `.b` registers
        return False
    return register.name == "f16x2" or (register.kind in "us" and wanted.lanes == 1)  # ptxas takes it for an integer


def immediate_fits(shape: str, wanted: Type) -> bool:
    """Whether an immediate is legal where an instruction works on `wanted`: ptxas converts between floats only."""
    if wanted.lanes > 1:
        return False
    if wanted.kind == "f":
        return shape != "#int" and wanted.name in ("f32", "f64")
    return shape == "#int" or (shape, wanted.name) in (("#f32", "b32"), ("#float", "b64"))
