"""What a layer needs of one above it, by name.

A program can be launched, a module has variables on a device, a result has a trace and a trace a page: what does that
is layers above. A layer never imports one above it; the package `ptxlab`, which is above all of them, says which module
answers to a name, and it is imported when it is first asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


def service(name: str) -> ModuleType:
    """The module that the package has for this name."""
    return import_module(sys.modules["ptxlab"].SERVICES[name])
