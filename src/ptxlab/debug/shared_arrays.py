"""Types of shared arrays by their declarations in the source, for debug information that leaves them out, as NVRTC's.

`__shared__ float tile[T][T];` says the type of an element. PTX says how many bytes there are, so extents that are not
numbers are found where there is only one that fits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from ptxlab.debug.expressions import KnownType, parse_type
from ptxlab.debug.types import CudaType, array_of

_DECLARATION = re.compile(
    r"__shared__\s+(?:(?:__align__|alignas)\s*\([^)]*\)\s*|static\s+|volatile\s+)*"
    r"(?P<type>[A-Za-z_][\w:]*(?:\s+[A-Za-z_][\w:]*)*)\s+(?P<rest>\w[^;]*);"
)
_ONE = re.compile(r"\s*(\w+)\s*((?:\[[^\]]*\]\s*)*)")


@lru_cache(maxsize=32)
def _declarations(file: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The shared variables that a file declares: the type of elements, and extents as they are written."""
    path = Path(file)
    if not path.is_file():
        return {}
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for declared in _DECLARATION.finditer(path.read_text("utf-8", "replace")):
        for part in re.split(r",(?![^\[]*\])", declared["rest"]):
            one = _ONE.fullmatch(part)
            if one is not None:
                found[one[1]] = declared["type"], tuple(re.findall(r"\[([^\]]*)\]", one[2]))
    return found


def declared_type(name: str, size: int, files: Iterable[str], known_type: KnownType) -> CudaType | None:
    """The type of a shared variable of so many bytes; None where no file declares it as one that fits."""
    for file in files:
        given = _declarations(file).get(name)
        element = parse_type(given[0], known_type) if given is not None else None
        if given is None or element is None or not element.size or size % element.size:
            continue
        shape = _shape(given[1], size // element.size) if given[1] else []
        if shape or (not given[1] and size == element.size):
            return array_of(element, shape)
    return None


def _shape(extents: Sequence[str], count: int) -> list[int | None]:
    """The extents of an array with so many elements, 0 if it is open."""
    if not count:
        return [None]
    numbers = [int(one) if one.strip().isdecimal() else None for one in extents]
    known = math.prod(one for one in numbers if one)
    unknown = {one.strip() for one, number in zip(extents, numbers, strict=True) if number is None}
    times = numbers.count(None)
    rest, left = divmod(count, known)
    each = round(rest ** (1 / times)) if times else 1
    if left or len(unknown) > 1 or each**times != rest:
        return [count]  # the elements are right, and their order
    return [each if number is None else number for number in numbers]
