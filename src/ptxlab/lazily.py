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
