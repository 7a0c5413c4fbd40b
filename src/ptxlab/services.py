"""What a layer needs of one above it, by name.

A program can be launched, a module has variables on a device, a result has a trace and a trace a page: what does that
is layers above. A layer never imports one above it; the package `ptxlab`, which is above all of them, registers here
which module answers to a name, and it is imported when it is first asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in the package: `typing` takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

_modules: dict[str, str] = {}


def register(**modules: str) -> None:
    """Say which module answers to each name."""
    _modules.update(modules)


def service(name: str) -> Any:
    """The module that was registered by this name."""
    from importlib import import_module

    return import_module(_modules[name])
