"""Functions that are Python and machine code at once: `@native`, and `@external` for those that come from elsewhere.

Nothing is translated here: a decorated function stays the plain function that it is, and remembers that it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar, overload

from .types import Integer, PointerType, StructType, Type, TypeParameter, type_of

F = TypeVar("F", bound=Callable[..., object])


class Signature:
    """What machine code knows of a function: its symbol, parameters and result."""

    __slots__ = ("_instances", "_types", "arguments", "external", "function", "inline", "symbol")

    def __init__(
        self, function: Any, symbol: str, *, inline: bool, external: bool, arguments: Mapping[str, Type] | None = None
    ) -> None:
        self.arguments = arguments or {}  # the types of a generic function's parameters, by name
        self._instances: dict[tuple[Type, ...], Any] = {}
        self.function = function
        self.symbol = symbol
        self.inline = inline
        self.external = external
        self._types: tuple[tuple[tuple[str, Type], ...], Type | None] | None = None

    @property
    def parameters(self) -> tuple[tuple[str, Type], ...]:
        return self._resolved()[0]

    @property
    def result(self) -> Type | None:
        return self._resolved()[1]

    @property
    def is_generic(self) -> bool:
        """Whether a call has to say for which types it is."""
        return any(_parameters_in(type) for _, type in self.parameters)

    def instance(self, types: Sequence[Type | None]) -> Any:
        """The function for arguments of these types; a `TypeError` where they do not fit its parameters."""
        arguments: dict[str, Type] = {}
        for (name, pattern), type in zip(self.parameters, types, strict=True):
            if type is not None and not _matches(pattern, type, arguments):
                raise TypeError(f"`{name}` is {pattern}, and {type} is given")
        missing = {name for _, type in self.parameters for name in _parameters_in(type)} - arguments.keys()
        if missing:
            raise TypeError(f"no argument says what `{min(missing)}` is")
        key = tuple(arguments[name] for name in sorted(arguments))
        if key not in self._instances:
            self._instances[key] = self._made_for(arguments)
        return self._instances[key]

    def _made_for(self, arguments: dict[str, Type]) -> Any:
        plain = self.function
        function = FunctionType(plain.__code__, plain.__globals__, plain.__name__, None, plain.__closure__)
        function.__annotations__, function.__module__ = plain.__annotations__, plain.__module__
        function.__qualname__ = f"{plain.__qualname__}[{', '.join(_full_name(type) for type in arguments.values())}]"
        made = Signature(function, _symbol(function), inline=self.inline, external=False, arguments=arguments)
        function.__native__ = made  # type: ignore[attr-defined]
        return function

    def _resolved(self) -> tuple[tuple[tuple[str, Type], ...], Type | None]:
        """The types of the annotations, found when first asked for: they may name what is defined further down."""
        if self._types is None:
            names = namespace(self.function)
            annotations = self.function.__annotations__
            code = self.function.__code__
            parameters = []
            for name in code.co_varnames[: code.co_argcount]:
                found = type_of(annotations[name], names) if name in annotations else None
                if found is None:
                    raise TypeError(f"parameter `{name}` needs a type: `{name}: u32`")
                parameters.append((name, found))
            self._types = tuple(parameters), type_of(annotations.get("return"), names)
        return self._types


def namespace(function: Any) -> dict[str, Any]:
    """The names that a function sees from outside: those of its module, and of the functions around it."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # assigned later, as a function that calls itself is
            continue
    found = getattr(function, "__native__", None)
    if isinstance(found, Signature):
        names.update(found.arguments)
    return names


def _parameters_in(type: Type) -> set[str]:
    """The names of the type parameters that a type mentions."""
    if isinstance(type, TypeParameter):
        return {type.name}
    if isinstance(type, PointerType):
        return _parameters_in(type.element)
    if isinstance(type, StructType):
        return {name for argument in type.arguments.values() for name in _parameters_in(argument)}
    return set()


def _matches(pattern: Type, type: Type, found: dict[str, Type]) -> bool:
    """Whether a type has the form of a parameter's; `found` collects the types of its type parameters."""
    if isinstance(pattern, TypeParameter):
        return found.setdefault(pattern.name, type) is type
    if isinstance(pattern, PointerType) and _parameters_in(pattern):
        return _matches(pattern.element, type.element if isinstance(type, PointerType) else type, found)
    if isinstance(pattern, StructType) and isinstance(type, StructType) and pattern.owner is type.owner:
        pairs = zip(pattern.arguments.values(), type.arguments.values(), strict=True)
        return all(_matches(part, argument, found) for part, argument in pairs)
    return True


def _full_name(type: Type) -> str:
    """A name of a type that no other has: structures of two modules may have the same."""
    if isinstance(type, PointerType):
        return f"Pointer[{_full_name(type.element)}]"
    if isinstance(type, StructType):
        return f"{type.owner.__module__}.{type.name}"
    return type.name


_SYMBOLS: dict[str, Any] = {}


def _symbol(function: Any) -> str:
    """A readable name that no other native function has."""
    name = plain = f"{function.__module__}.{function.__qualname__}"
    count = 0
    while name in _SYMBOLS:
        count += 1
        name = f"{plain}.{count}"
    _SYMBOLS[name] = function
    return name


@overload
def native(function: F, /) -> F: ...
@overload
def native(*, inline: bool = False) -> Callable[[F], F]: ...
def native(function: Any = None, /, *, inline: bool = False) -> Any:
    """Let a function be translated to machine code; called from Python it stays Python. `inline` forces inlining."""

    def decorate(function: F) -> F:
        function.__native__ = Signature(function, _symbol(function), inline=inline, external=False)  # type: ignore[attr-defined]
        return function

    return decorate if function is None else decorate(function)


@overload
def external(function: F, /) -> F: ...
@overload
def external(*, symbol: str) -> Callable[[F], F]: ...
def external(function: Any = None, /, *, symbol: str | None = None) -> Any:
    """Declare a function of the C library or of other machine code, found by its name; Python runs the body."""

    def decorate(function: F) -> F:
        function.__native__ = Signature(function, symbol or function.__name__, inline=False, external=True)  # type: ignore[attr-defined]
        return function

    return decorate if function is None else decorate(function)


def signature(function: Any) -> Signature:
    """The signature of a function that is native or external."""
    found = getattr(function, "__native__", None)
    if not isinstance(found, Signature):
        raise TypeError(f"`{getattr(function, '__qualname__', function)}` is not native: put `@native` above it")
    return found


def passed(type: Type | None, external: bool) -> str:
    """A parameter's or result's type. The C library expects small integers extended; native functions do not."""
    if type is None:
        return "void"
    if not external or not isinstance(type, Integer) or type.bits >= 32:
        return type.llvm
    return f"{type.llvm} {'signext' if type.signed else 'zeroext'}"
