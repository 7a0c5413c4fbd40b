"""The functions of the runtime as the code of a kernel declares and calls them, kept on disk.

To import the runtime, only to know the types of what a kernel calls, takes longer than to translate a small kernel.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ptxlab.emulate.translate.compile import sources_of_code
from ptxlab.native.cache import cached


class RuntimeFunction(NamedTuple):
    """A function of the runtime: its symbol, the line that declares it, and types of LLVM."""

    symbol: str
    text: str
    parameters: tuple[str, ...]
    result: str | None


@cache
def _declarations() -> dict[str, RuntimeFunction]:
    known = json.loads(cached(f"declarations {sources_of_code()}", _made))
    return {name: RuntimeFunction(symbol, text, tuple(types), result) for name, (symbol, text, types, result) in known}


def _made() -> bytes:
    from ptxlab.emulate.runtime.table import COLLECTIVES, RUNTIME
    from ptxlab.native.functions import signature

    collectives = {signature(function).symbol: function for function in COLLECTIVES}
    return json.dumps([(name, _declared(function)) for name, function in (RUNTIME | collectives).items()]).encode()


def _declared(function: Callable[..., object]) -> RuntimeFunction:
    from ptxlab.native.functions import signature
    from ptxlab.native.translate import declaration_text

    known = signature(function)
    result = None if known.result is None else known.result.llvm
    return RuntimeFunction(
        known.symbol, declaration_text(function), tuple(one.llvm for _, one in known.parameters), result
    )


def runtime_function(name: str) -> RuntimeFunction:
    """A function of the runtime that kernels may call."""
    return _declarations()[name]


def is_in_runtime(symbol: str) -> bool:
    """Whether a warp collective is in the runtime, and not part of each kernel that has it."""
    return symbol in _declarations()
