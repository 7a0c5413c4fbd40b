"""Names that were public once: the old one works, and says what it is called now."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

REMOVED = "0.3"
"""The release that no longer has what 0.1 renamed."""


def renamed(**names: str) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """A function some of whose keywords had other names, as `old="new"`; these are accepted with a warning."""

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        @wraps(function)
        def call(*args: Given.args, **named: Given.kwargs) -> Returned:
            __tracebackhide__ = True
            for old, new in names.items():
                if old in named:
                    if new in named:
                        raise TypeError(f"`{old}` is called `{new}` now, and both are given")
                    warnings.warn(f"`{old}=` is called `{new}=`; {REMOVED} has no `{old}=`", DeprecationWarning, 2)
                    named[new] = named.pop(old)
            return function(*args, **named)

        return call

    return decorate
