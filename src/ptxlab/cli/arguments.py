"""Arguments of a kernel on the command line, in `// run:` lines and in launch configurations of editors.

    2.0  f32=2.0  f16[64,64]=random  u32[256]=@counts.npy     a number, an array
    null                                                      a null pointer
    map:f16[128,256]=random,box=64x64,swizzle=128B            a tensor map
    (f32[64]=ones, 64, 0.5)                                   a structure, by its fields
    x:f32[64]=ones  then  =x  or  =x,at=32  or  map:=x,…      an array with a name, and the same array again

`parse_argument` reads one, `make_arguments` gives what a launch takes. What a variable is set to is written in the same
way, after its name: `parse_setting` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import click

from ptxlab.cli.composed_arguments import (
    AGAIN,
    NULL,
    OPTIONS,
    STRUCTURE,
    Again,
    Null,
    Options,
    Structure,
    check_options,
    compose_map,
)
from ptxlab.cli.plain_arguments import NUMBER, TYPES, Argument, Known

if TYPE_CHECKING:
    from ptxlab.ir import Function

SAME = "same"  # the last array before
_SIGNED = {f"i{bits}": f"s{bits}" for bits in (8, 16, 32, 64)}  # as LLVM, Triton and Rust name them
_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?)")
_NAMED = re.compile(r"(?:(?!map:|im2col:)(?P<name>[A-Za-z_]\w*):)?(?:(?P<map>map|im2col):)?(?P<rest>.*)", re.DOTALL)
_PLAIN = re.compile(r"(?P<type>\w+)(?:(?P<shape>\[[^\]]*\])?=(?P<value>.*)|(?P<zeros>\[[^\]]*\]))", re.DOTALL)
_OFFSET = re.compile(r"\s*(\d{1,9})\s*:(.*)", re.DOTALL)
_OPTION = re.compile(r",(?=[a-z]\w*=)")  # between an array and options, not between values
_ALL_OPTIONS = "|".join(dict.fromkeys(name for names in OPTIONS.values() for name in names))
_STARTS = re.compile(rf"(?!(?:{_ALL_OPTIONS})=)(?:[A-Za-z_]\w*[\[=:]|[=({{])|(?:{'|'.join((*TYPES, *_SIGNED))})$")
_FORMS = "`2.0`, `f32=2.0`, `f32[1024]=random`, `map:f16[64,64]=random,box=8x64`, `(64, 0.5)` or `null`"


def parse_argument(text: str, option: str = "--arg") -> Argument:
    """`f16[64,64]=random` as an argument, `f16[64,64]` as one of zeros; what is wrong with it is a usage error."""
    if option == "--set":
        return _parse_plain(text, text, option)
    if text.startswith(("(", "{")):
        return _parse_structure(text, option)
    if text == NULL:
        return Null(text, NULL, None, "", option)
    if text == SAME:
        return Again(text, AGAIN, None, "", option)
    if _NUMBER.fullmatch(text):
        return Argument(text, NUMBER, None, text, option)
    found = _NAMED.fullmatch(text)
    assert found is not None
    name, map, rest = found["name"] or "", found["map"], found["rest"]
    if not map and not rest.startswith("="):
        return _named(_parse_plain(text, rest, option), name)
    array, *words = _OPTION.split(rest)
    how = tuple((key, value) for key, _, value in (word.partition("=") for word in words))
    if map:
        inner = _parse_again(text, array, (), option) if array.startswith("=") else _parse_plain(text, array, option)
        return compose_map(text, map, _named(inner, name), how, option)
    return _named(_parse_again(text, rest if not how else array, how, option), name)


def make_arguments(arguments: Sequence[Argument], seed: Sequence[int]) -> list[object]:
    """What a launch takes; random data are each argument's own."""
    known: Known = {}
    return [argument.make((*seed, number), known) for number, argument in enumerate(arguments)]


def arguments_for(kernel: Function, given: Sequence[Argument]) -> list[Argument]:
    """The arguments as the parameters of a kernel take them; a launch refuses those without one."""
    known = [one.for_parameter(parameter) for one, parameter in zip(given, kernel.parameters, strict=False)]
    return [*known, *given[len(known) :]]


def parse_setting(text: str) -> tuple[str, Argument]:
    """`filter=f32[5]=1,2,3,4,5` as the name of a variable and its value."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"`{text}` is not like `filter=f32[5]=1,2,3,4,5`", param_hint="--set")
    return name, parse_argument(value, "--set")


def split_arguments(text: str) -> list[str]:
    """Arguments with commas between them, `u32[4]=1,2,3,4,f32=0.5`: a comma before a value or an option is not one."""
    found: list[str] = []
    for piece in _split(text, ","):
        if found and not (_STARTS.match(piece) or piece in (SAME, NULL)):
            found[-1] += f",{piece}"
        else:
            found.append(piece)
    return found


def _parse_plain(text: str, value: str, option: str) -> Argument:
    """A number or an array; `text` is the whole argument, for messages."""
    found = _PLAIN.fullmatch(value)
    if found is None:
        forms = "`f32=2.0` or `f32[1024]=random`" if option == "--set" else _FORMS
        raise click.BadParameter(f"`{text}` is not like {forms}", param_hint=option)
    type, shape = _SIGNED.get(found["type"], found["type"]), found["shape"] or found["zeros"]
    argument = Argument(text, type, None, "zeros" if found["zeros"] else found["value"], option)
    if type not in TYPES and not (type == "bytes" and shape is None):
        raise argument.problem(f"there is no type `{type}`, but {', '.join((*TYPES, 'bytes'))}")
    if shape is None:
        return argument
    extents = [extent.strip() for extent in shape[1:-1].split(",")]
    if extents == [""] and argument.value.startswith("@"):
        return replace(argument, shape=())
    if not all(re.fullmatch(r"[0-9]{1,15}", extent) for extent in extents) or prod(map(int, extents)) >= 1 << 59:
        raise argument.problem(f"`{shape}` is not a shape such as `[64,64]`")
    return replace(argument, shape=tuple([int(extent) for extent in extents]))


def _parse_again(text: str, value: str, how: Options, option: str) -> Again:
    """`=x`, the array that is named x."""
    found = Again(text, AGAIN, None, value[1:], option, how=how)
    if not re.fullmatch(r"[A-Za-z_]\w*", found.value):
        raise found.problem("expected the name of an array after `=`, such as `=x` after `x:f32[64]=zeros`")
    check_options(found, AGAIN, how)
    return found


def _named(argument: Argument, name: str) -> Argument:
    if name and argument.shape is None:
        raise argument.problem(f"only an array has a name: `{name}:f32[64]=zeros`")
    return replace(argument, name=name)


def _parse_structure(text: str, option: str) -> Structure:
    """`(256, 128, 0.5)`, the fields of a structure, `{0: 256, 8: 0.5}` those at offsets, or `()`."""
    made = Structure(text, STRUCTURE, None, "", option)
    if text.strip()[-1] != {"(": ")", "{": "}"}[text[0]]:
        raise made.problem(f"expected `{')' if text[0] == '(' else '}'}` at the end of the structure")
    inside = text.strip()[1:-1]
    semicolons = _split(inside, ";")
    words = semicolons if len(semicolons) > 1 else _split(inside, ",")
    if not words[-1].strip():
        words.pop()
    if len(semicolons) == 1 and any(map(_is_list, words, words[1:])):
        raise made.problem("values of an array, or fields? Separate the fields by `;`")
    offsets = []
    if text.startswith("{"):
        found = [_OFFSET.fullmatch(word) for word in words]
        if not all(found):
            raise made.problem("expected the offset of each field, such as `{0: 2.0, 8: 64}`")
        offsets, words = [int(one[1]) for one in found if one], [one[2] for one in found if one]
    fields = [_parse_field(made, word.strip(), option) for word in words]
    return replace(made, fields=tuple(fields), offsets=tuple(offsets))


def _parse_field(structure: Structure, text: str, option: str) -> Argument:
    try:
        return parse_argument(text, option)
    except click.BadParameter as wrong:
        text = f"{wrong.message}; fields that have commas themselves are separated by `;`"
        raise structure.problem(text if "," in structure.text else wrong.message) from None


def _is_list(word: str, after: str) -> bool:
    """Whether a number after an array with a number could be the second of its values."""
    array, _, value = word.rpartition("]=")
    return bool(array and _NUMBER.fullmatch(value.strip()) and _NUMBER.fullmatch(after.strip()))


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that are outside of brackets."""
    found, depth = [""], 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if sign == separator and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return found
