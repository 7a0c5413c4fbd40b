"""What a parameter can be, by its annotation: a number, a pointer, a structure, or left in parameter memory.

| annotation | in PTX | in the body |
|---|---|---|
| `f32`, `u32`, ... | `.param .f32 a` | a register, loaded at the start |
| `pointer[f32]` | `.param .u64 x` | a pointer into global memory |
| `generic_pointer[f32]` | the same | a pointer that may point anywhere |
| `struct[24, 8]` | `.param .align 8 .b8 s[24]` | its address; `s.field(f32, 4)` loads from byte 4 |
| a subclass of `struct` | the same | `s.scale` loads the field `scale` |
| `param[u64]` | `.param .u64 x` | its address; nothing is loaded |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ptxlab.author.emit import emit
from ptxlab.author.lines import Place, refuse
from ptxlab.author.pointers import Pointer, PointerType, address_class, memory_type
from ptxlab.author.values import Value, b8


@dataclass(frozen=True, slots=True)
class RawType:
    """`param[u64]` in an annotation."""

    element: type[Value]
    attributes: str = ""


class param:  # noqa: N801 - stands in annotations beside `f32`
    """`param[u64]`: a parameter that is not loaded; the name is its address, for `ptx.ld.param`.

    `param[u64, ".ptr .global .align 16"]` says where it points.
    """

    def __class_getitem__(cls, item: Any) -> RawType:
        return RawType(*item) if isinstance(item, tuple) else RawType(item)


@dataclass(frozen=True, slots=True)
class StructType:
    """A parameter of several bytes; `fields` are offset and annotation by name."""

    size: int
    align: int = 8
    fields: Mapping[str, tuple[int, Any]] = field(default_factory=dict)


class struct:  # noqa: N801 - stands in annotations beside `f32`
    """`struct[24, 8]` has 24 bytes, aligned to 8; a subclass names its fields, laid out as in C."""

    def __class_getitem__(cls, item: Any) -> StructType:
        size, align = item if isinstance(item, tuple) else (item, 8)
        return StructType(size, align)


def _layout(cls: type[struct]) -> StructType:
    fields: dict[str, tuple[int, Any]] = {}
    size, largest = 0, 1
    for name, annotation in inspect.get_annotations(cls, eval_str=True).items():
        width = 8 if isinstance(annotation, PointerType) else annotation.type.width // 8
        size = -(-size // width) * width
        fields[name] = (size, annotation)
        size, largest = size + width, max(largest, width)
    return StructType(-(-size // largest) * largest, largest, fields)


class Struct(Pointer):
    """A structure in parameter memory."""

    def __init__(self, name: str, type: StructType) -> None:
        super().__init__(b8, "param", symbol=name)
        self._type = type

    def field(self, cls: type[Value], offset: int) -> Any:
        """Load a number from that byte on."""
        return Pointer(cls, "param", symbol=self.symbol, offset=offset).load()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._type.fields:
            raise AttributeError(f"the structure has no field {name!r}; it has {', '.join(self._type.fields)}")
        offset, annotation = self._type.fields[name]
        if isinstance(annotation, PointerType):
            return load_pointer(annotation, Pointer(address_class(None), "param", symbol=self.symbol, offset=offset))
        return self.field(annotation, offset)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel or device function."""

    name: str
    annotation: Any

    @property
    def declaration(self) -> str:
        """As it stands in the head of the function."""
        given = self.annotation
        if isinstance(given, StructType):
            return f".param .align {given.align} .b8 {self.name}[{given.size}]"
        if isinstance(given, RawType):
            return f".param .{given.element.type.name} {given.attributes}{' ' * bool(given.attributes)}{self.name}"
        # A half is declared as one, so that a launch knows to convert a number to it.
        return f".param .{'f16' if self.passed.type.name == 'f16' else memory_type(self.passed)} {self.name}"

    @property
    def passed(self) -> type[Value]:
        """The class of the number that is passed."""
        given = self.annotation
        if isinstance(given, PointerType):
            return address_class(given.space)
        if isinstance(given, RawType):
            return given.element
        assert not isinstance(given, StructType)
        cls: type[Value] = given
        return cls

    def load(self, of_kernel: bool) -> Any:
        """What the body gets: the value, loaded now."""
        given = self.annotation
        if isinstance(given, StructType):
            return Struct(self.name, given)
        if isinstance(given, RawType):
            return Pointer(b8, "param", symbol=self.name)
        place = Pointer(self.passed, "param", symbol=self.name)
        if isinstance(given, PointerType):
            return load_pointer(given, place) if of_kernel else Pointer(given.element, given.space, place.load())
        return place.load()


def load_pointer(type: PointerType, place: Pointer) -> Pointer:
    """A pointer that the host passed: it is generic, and `cvta` makes it one into its space."""
    address = place.load()
    if type.space is not None:
        address = emit(f"cvta.to.{type.space}.u64", [address], out=address_class(type.space)())
    return Pointer(type.element, type.space, address)


def read_parameters(
    function: Callable[..., Any], place: Place
) -> tuple[list[Parameter], dict[str, inspect.Parameter], Any]:
    """The parameters, the compile-time ones (keyword-only) by name, and what is returned."""
    annotations = _annotations(function)
    parameters, constants = [], {}
    for name, given in inspect.signature(function).parameters.items():
        if given.kind is inspect.Parameter.KEYWORD_ONLY:
            constants[name] = given
            continue
        annotation = annotations.get(name)
        if isinstance(annotation, type) and issubclass(annotation, struct):
            annotation = _layout(annotation)
        if not _is_parameter(annotation) or given.kind is inspect.Parameter.VAR_POSITIONAL:
            refuse(
                "missing-type",
                f"parameter `{name}` of `{function.__name__}` "
                + ("has no type" if annotation is None else f"has no type of PTX: {annotation!r:.60}"),
                helps=[
                    "annotate it: `f32`, `pointer[f32]`, `struct[16, 8]`",
                    "a compile-time argument stands after `*`",
                ],
                place=place,
            )
        if not name.isascii():
            refuse("non-ascii-character", f"PTX is ASCII, and the name of the parameter `{name}` is not", place=place)
        parameters.append(Parameter(name, annotation))
    return parameters, constants, annotations.get("return")


def _is_parameter(annotation: Any) -> bool:
    if isinstance(annotation, (PointerType, StructType, RawType)):
        return True
    return isinstance(annotation, type) and issubclass(annotation, Value) and annotation.type.kind != "p"


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations with those that are text looked up, also among the names of the functions around."""
    names = dict(inspect.getclosurevars(function).nonlocals) if function.__closure__ else {}
    found: dict[str, Any] = inspect.get_annotations(function, eval_str=True, locals=names)
    return found


def return_types(annotation: Any) -> list[type[Value]]:
    """The classes of what a device function returns."""
    if annotation is None or annotation is type(None):
        return []
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return [annotation]
    return list(_tuple_types(annotation))


def _tuple_types(annotation: Any) -> Iterator[type[Value]]:
    for part in getattr(annotation, "__args__", ()):
        if not (isinstance(part, type) and issubclass(part, Value)):
            refuse("missing-type", f"a device function returns registers, not {part!r:.40}")
        yield part
