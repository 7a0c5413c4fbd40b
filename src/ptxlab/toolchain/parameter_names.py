"""What the parameters of kernels are called in CUDA C++: in PTX a compiler calls them `_Z4copyPKfPf_param_0`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ptxlab.ir import Module
from ptxlab.ir.mangled import last_part, plain
from ptxlab.report import Source
from ptxlab.toolchain.host_code import Outline, name_of, plain_head

_GENERATED = re.compile(r".*_param_\d+")
_BUILT_IN = {"auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void"}
_QUALIFIERS = {"class", "const", "enum", "struct", "typename", "volatile", "alignas", "__align__"}
_QUALIFIERS |= {"__restrict__", "__restrict", "__grid_constant__"}


def name_parameters(module: Module, sources: Iterable[Source]) -> None:
    """Give the parameters of kernels the names that the source has, where it leaves no doubt."""
    texts = {source.text for source in sources if "__global__" in source.text}
    heads = [head for text in texts for head in Outline(text).kernel_heads()]
    for kernel in module.functions:
        if kernel.kind != "entry" or not all(_GENERATED.fullmatch(one.name) for one in kernel.parameters):
            continue
        called = last_part(plain(kernel.name)).partition("<")[0]
        found = {tuple(parameters_of(head)) for head in heads if name_of(head) == called}
        fitting = [names for names in found if len(names) == len(kernel.parameters)]
        if len(fitting) == 1:
            for parameter, name in zip(kernel.parameters, fitting[0], strict=True):
                parameter.called = name


def parameters_of(head: Sequence[str]) -> list[str | None]:
    """The names of the parameters of a function, given the words before its body; None for one without a name.

    >>> parameters_of("__global__ void k ( const T * __restrict__ a , int n = f ( 1 , 2 ) , float )".split())
    ['a', 'n', None]
    """
    words = plain_head(head)
    start = words.index(name_of(head) or "") + 1
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words[start:]:
        depth += _step(word)
        if depth <= 0:
            break
        if word == "," and depth == 1:
            parts.append([])
        else:
            parts[-1].append(word)
    parts[0] = parts[0][1:]  # without the parenthesis
    return [_declared_name(part) for part in parts] if parts != [[]] else []


def _declared_name(words: Sequence[str]) -> str | None:
    """The name in a declaration: of `T (*f)(int)` the one after the star, else the last word, after the type."""
    for at in range(len(words) - 3):
        if words[at] == "(" and words[at + 1] == "*" and words[at + 3] == ")":
            return words[at + 2]
    depth = 0
    found: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if word == "=" and not depth:
            break
        depth += _step(word)
        if word.isidentifier() and not depth and before != "::" and word not in _QUALIFIERS:
            found.append(word)
    return found[-1] if len(found) > 1 and found[-1] not in _BUILT_IN else None


def _step(word: str) -> int:
    """How much deeper in brackets it is after a word; three that close templates are one word."""
    return sum(one in "(<[{" for one in word) - sum(one in ")>]}" for one in word)
