"""Names of C++ as PTX has them, and as people write them: `_Z4gemmILi128EfEvPT0_j` and `gemm<128, float>`.

The C++ library that NumPy and LLVM are linked to takes them apart; where there is none, a name stays as it is.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterable
from functools import cache, lru_cache

_LIBRARIES = {"linux": "libstdc++.so.6", "darwin": "libc++.1.dylib"}
_OPEN, _CLOSE = "(<[{", ")>]}"
_PARAMETER = re.compile(r"_Z.*_(param_\d+)")
_WIDEST = 60  # CuTe's kernels have names of thousands of characters


def is_mangled(name: str) -> bool:
    """Whether a name is one that a compiler of C++ made."""
    return name.startswith("_Z")


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """The declaration that a name was made of, `void gemm<128, float>(float*, unsigned int)`; any other as it is."""
    library = _library()
    if library is None or not is_mangled(name):
        return name
    status = ctypes.c_int()
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        return ctypes.string_at(found).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(found))


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """What a name is called in C++, without the type it returns and its parameters.

    >>> plain("_ZN1a4gemmILi128EfEEvPT0_j")
    'a::gemm<128, float>'
    """
    declared = demangle(name)
    if declared == name:
        return name
    depth, end = 0, len(declared)
    if declared.endswith(")"):
        for end in range(len(declared) - 1, -1, -1):
            depth += (declared[end] in _CLOSE) - (declared[end] in _OPEN)
            if not depth:
                break
    head = re.sub(r"> (?=>)", ">", declared[:end])
    depth = start = 0
    for at, character in enumerate(head):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == " " and not depth:
            start = at + 1
    return head[start:]


def title(name: str) -> str:
    """What to call a function in a message: as in C++, and without its template arguments where these are long.

    Of a parameter, whose name in PTX begins with that of its kernel, the rest: `param_0`.
    """
    parameter = _PARAMETER.fullmatch(name)
    if parameter:
        return parameter[1]
    called = plain(name)
    return called if called == name or len(called) <= _WIDEST else f"{_without_arguments(called)}<...>"


def titles(names: Iterable[str]) -> list[str]:
    """What to call several functions, with their parameters where they differ in nothing else."""
    given = list(names)
    called = list(map(title, given))
    return [demangle(name) if called.count(one) > 1 else one for name, one in zip(given, called, strict=True)]


def matches(wanted: str, names: Iterable[str]) -> list[str]:
    """The names that someone means who writes `wanted`: `gemm`, `a::gemm`, `gemm<128,float>`; the closest ones only."""
    asked = _spaced(wanted)
    ways = (lambda name: name, _without_arguments, _last_part, lambda name: _last_part(_without_arguments(name)))
    mangled = [name for name in names if is_mangled(name)]
    for way in ways:
        found = [name for name in mangled if way(_spaced(plain(name))) == asked]
        if found:
            return found
    return []


def _spaced(name: str) -> str:
    """A name as it is compared: without spaces, and `128u`, as the library spells an unsigned argument, is `128`."""
    name = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
    return re.sub(r"\s*([<>,:*&()])\s*", r"\1", name.strip())


def _without_arguments(name: str) -> str:
    """`a::gemm` of `a::gemm<128,float>`."""
    return name[: _start_of_arguments(name)]


def _last_part(name: str) -> str:
    """`gemm<128,float>` of `a::gemm<128,float>`."""
    end = _start_of_arguments(name)
    return name[:end].rpartition("::")[2] + name[end:]


def _start_of_arguments(name: str) -> int:
    """Where the template arguments at the end of a name begin, or its length."""
    if not name.endswith(">"):
        return len(name)
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] in _CLOSE) - (name[at] in _OPEN)
        if not depth:
            return at
    return len(name)


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(_LIBRARIES.get(sys.platform, ""))
        library.__cxa_demangle.restype = ctypes.c_void_p
    except (AttributeError, OSError):  # Windows has none
        return None
    return library
