"""Native functions take few parameters: an operation with many is one record, passed by reference."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import ptxlab
from ptxlab.native.functions import Signature

MOST = 8


def native_functions() -> Iterator[tuple[str, Any]]:
    """The native functions of all modules that define some."""
    for found in pkgutil.walk_packages(ptxlab.__path__, "ptxlab."):
        if not found.name.startswith(("ptxlab.emulate", "ptxlab.isa", "ptxlab.native", "ptxlab.numbers")):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == found.name and isinstance(
                getattr(value, "__native__", None), Signature
            ):
                yield f"{found.name}.{name}", value


def test_native_functions_take_few_parameters() -> None:
    counts = {name: function.__code__.co_argcount for name, function in native_functions()}
    assert len(counts) > 400  # all of them were seen
    assert {name: count for name, count in counts.items() if count > MOST} == {}
