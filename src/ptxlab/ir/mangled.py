"""Names of C++ as PTX has them, and as people write them: `_Z4gemmILi128EfEvPT0_j` and `gemm<128, float>`.

The C++ library that NumPy and LLVM are linked to takes them apart; where there is none, a name stays as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

_LIBRARIES = {"linux": "libstdc++.so.6", "darwin": "libc++.1.dylib"}
_OPEN, _CLOSE = "(<[{", ")>]}"
_PARAMETER = re.compile(r"_Z.*_(param_\d+)")
ELLIPSIS = "..."  # any text, in a name that someone writes
LAMBDA = "a lambda"
_INTERNAL = re.compile(r"_INTERNAL_\w+::|\(anonymous namespace\)::")  # around what only one file can use
_WIDEST = 60  # CuTe's kernels have names of thousands of characters


def is_mangled(name: str) -> bool:
    """Whether a name is one that a compiler of C++ made."""
    return name.startswith("_Z")


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """The declaration that a name was made of, `void gemm<128, float>(float*, unsigned int)`; any other as it is."""
    if not is_mangled(name):
        return name
    library = _library()
    if library is None:
        return name
    import ctypes  # few names are mangled

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
    declared = re.sub(r"( const| volatile| &&?)+$", "", demangle(name))
    if declared == name:
        return _read_names(name)
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


def _read_names(mangled: str) -> str:
    """The names at the beginning of a mangled one that the library does not take apart, as of some enumerators.

    >>> _read_names("_ZN1a4gemmIXtl1bEEvv")
    'a::gemm<...>'
    """
    rest, found = mangled.removeprefix("_Z").removeprefix("N"), []
    while is_mangled(mangled) and (length := re.match(r"[1-9]\d*", rest)):
        end = length.end() + int(length[0])
        found.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(found) + (f"<{ELLIPSIS}>" if rest.startswith("I") else "") if found else mangled


def title(name: str) -> str:
    """What to call a function in a message: as in C++, and without its template arguments where these are long.

    Of a parameter, whose name in PTX begins with that of its kernel, the rest: `param_0`. Of a variable of a function
    its own name.

    >>> title("_Z4copyPKfPf_param_0"), title("_ZZ4copyPKfPfE4tile"), title("_ZZ4ringE4tile")
    ('param_0', 'tile', 'tile')
    """
    parameter = _PARAMETER.fullmatch(name)
    if parameter:
        return parameter[1]
    called = plain(name)
    if name.startswith("_ZZ") and (own := called.rpartition("::")[2]).isidentifier():  # a variable of a function
        called = own
    return called if called == name or len(called) <= _WIDEST else f"{_without_arguments(called)}<...>"


def function_title(name: str) -> str:
    """What to call a function among those that call each other: the last part of its name; a lambda has none.

    >>> function_title("_ZN4mine4TileIfE3getEi"), function_title("_ZZ4gemmvENKUliE_clEi")
    ('get', 'a lambda')
    """
    called = _INTERNAL.sub("", plain(name))
    if "{lambda" in called:
        return LAMBDA
    own = last_part(called)
    return own if len(own) <= _WIDEST // 2 else _without_arguments(own)


def titles(names: Iterable[str]) -> list[str]:
    """What to call several functions: where some have the same title, with a part that differs.

    That is a template argument, `gemm<..., float, ...>`, or where they differ in nothing else, their parameters.
    """
    given = list(names)
    called = list(map(title, given))
    return [_apart(name, given) if called.count(one) > 1 else one for name, one in zip(given, called, strict=True)]


def _apart(name: str, names: Sequence[str]) -> str:
    """A short pattern that only this one of some names fits: of a template argument, or what differs; or what it is."""
    called = plain(name)
    others = [plain(other) for other in names if other != name]
    for part in (*sorted(_arguments(called), key=len), *_differences(called, others)):
        for pattern in (f"<{part}, {ELLIPSIS}>", f"<{ELLIPSIS}, {part}, {ELLIPSIS}>", f"<{ELLIPSIS}{part}{ELLIPSIS}>"):
            whole = _without_arguments(called) + pattern
            own, *rest = (_fits(_spaced(whole), _spaced(one)) for one in (called, *others))
            if own and not any(rest) and len(whole) <= _WIDEST + len(_without_arguments(called)):
                return whole
    return demangle(name)


def _differences(name: str, others: Sequence[str]) -> Iterator[str]:
    """Parts of a name around the first character in which it differs from each of some others, ever longer."""
    for other in others:
        at = next((at for at, pair in enumerate(zip(name, other, strict=False)) if pair[0] != pair[1]), 0)
        start = max((found.start() for found in re.finditer(r"\w[\w:]*", name[:at])), default=0)
        for end in re.finditer(r"\w+|[^\w\s]", name[at:]):
            yield name[start : at + end.end()]
            if at + end.end() - start > _WIDEST:
                break


def _arguments(name: str) -> list[str]:
    """The template arguments of a name.

    >>> _arguments("a::gemm<128, tuple<int, int>>")
    ['128', 'tuple<int, int>']
    """
    found, depth = [""], 0
    for character in name[_start_of_arguments(name) + 1 : -1]:
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [part.strip() for part in found if part]


def matches(wanted: str, names: Iterable[str]) -> list[str]:
    """The names that someone means who writes `wanted`: `gemm`, `a::gemm`, `gemm<128,float>`; the closest ones only.

    There `...` is any text: `gemm<..., float, ...>`.
    """
    asked = _spaced(wanted)
    if ELLIPSIS in asked:
        return [name for name in names if is_mangled(name) and _fits(asked, _spaced(plain(name)))]
    ways = (lambda name: name, _without_arguments, last_part, lambda name: last_part(_without_arguments(name)))
    mangled = [name for name in names if is_mangled(name)]
    for way in ways:
        found = [name for name in mangled if way(_spaced(plain(name))) == asked]
        if found:
            return found
    return []


def _fits(pattern: str, name: str) -> bool:
    """Whether a name, or its last part, is one that a pattern means, where `...` is any text."""
    wanted = re.compile(".*".join(map(re.escape, pattern.split(ELLIPSIS))))
    return any(wanted.fullmatch(one) for one in (name, last_part(name)))


def _spaced(name: str) -> str:
    """A name as it is compared: without spaces, and `128u`, as the library spells an unsigned argument, is `128`."""
    name = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", name)
    return re.sub(r"\s*([<>,:*&()])\s*", r"\1", name.strip())


def _without_arguments(name: str) -> str:
    """`a::gemm` of `a::gemm<128,float>`."""
    return name[: _start_of_arguments(name)]


def last_part(name: str) -> str:
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
    import ctypes

    try:
        library = ctypes.CDLL(_LIBRARIES.get(sys.platform, ""))
        library.__cxa_demangle.restype = ctypes.c_void_p
    except (AttributeError, OSError):  # Windows has none
        return None
    return library
