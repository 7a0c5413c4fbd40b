"""Kernels in Python with parts of their text replaced: what a page changes is what its reader sees.

    wrong = edited(specialized, ("reads=4 * shape.groups", "reads=4"))
    wrong.specialize("f16", shape)

The modules beside it that it imports from are copied with it, so that a change may be in any of them. Findings name the
lines of the changed text.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Iterator
from types import ModuleType

from ptxlab.learn.exercise import LearnError


def edited(module: ModuleType, *changes: tuple[str, str]) -> ModuleType:
    """A copy of a module, and of its neighbours, in which one part after the other is replaced, where it is first."""
    texts = {name: inspect.getsource(sys.modules[name]) for name in dict.fromkeys(_neighbours(module))}
    for old, new in changes:
        name = next((name for name, text in reversed(texts.items()) if old in text), None)
        if name is None:
            raise LearnError(f"there is no `{old}` in {', '.join(map(_file, reversed(texts)))}")
        texts[name] = texts[name].replace(old, new, 1)
    copies: dict[str, ModuleType] = {}
    for name, text in texts.items():
        copies[name] = _executed(name, text, copies)
    return copies[module.__name__]


def _executed(name: str, text: str, copies: dict[str, ModuleType]) -> ModuleType:
    """The module of a text, with what it imports from neighbours as their copies have it."""
    file, made = _file(name), ModuleType(name)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), made.__dict__)
    for attribute, value in vars(made).items():
        origin = copies.get(getattr(value, "__module__", ""))
        if origin is not None and hasattr(origin, attribute):
            setattr(made, attribute, getattr(origin, attribute))
    return made


def _neighbours(module: ModuleType) -> Iterator[str]:
    """The modules of its folder that it imports from, each after what it imports itself, and the module."""
    origins = dict.fromkeys(getattr(value, "__module__", "") for value in vars(module).values())
    for name in origins:
        if name.rpartition(".")[0] == module.__package__ and name != module.__name__:
            yield from _neighbours(sys.modules[name])
    yield module.__name__


def _file(name: str) -> str:
    return f"{name.rpartition('.')[2]}.py"
