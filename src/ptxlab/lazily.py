"""Packages whose names load on first use: importing one costs next to nothing."""

from __future__ import annotations

import sys
from types import ModuleType


def load_lazily(package: str, homes: dict[str, str], modules: dict[str, str] | None = None) -> None:
    """Have a package's names load on first use: `homes` says which module has a name, `modules` which is it.

    A name stays what its module has, although a folder may have the same one: `ptxlab.check` is the function.
    """
    module = sys.modules[package]
    module.__class__ = _Lazy
    module.__dict__.update(_homes=homes, _modules=modules or {})
    if modules:
        sys.meta_path.append(_Finder({f"{package}.{name}": home for name, home in modules.items()}))  # type: ignore[arg-type]


class _Finder:
    """Has `import ptxlab.triton` find the module of that name, which is elsewhere."""

    def __init__(self, homes: dict[str, str]) -> None:
        self._homes = homes

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        """Where a module is that a statement imports; None for those that are in their place."""
        if name not in self._homes:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, _Elsewhere(self._homes[name]))  # type: ignore[arg-type]


class _Elsewhere:
    """Imports a module under another name, and leaves it as it is."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._spec: object = None

    def create_module(self, spec: object) -> ModuleType:
        from importlib import import_module

        module = import_module(self._home)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # type: ignore[assignment]


class _Lazy(ModuleType):
    _homes: dict[str, str]
    _modules: dict[str, str]

    def __getattr__(self, name: str) -> object:
        from importlib import import_module  # which takes longer to load than all of this

        if name in self._modules:
            return import_module(self._modules[name])
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self.__dict__[name] = getattr(import_module(self._homes[name]), name)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in self._homes and isinstance(value, ModuleType)):  # a folder of this name was imported
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes, *self._modules})
