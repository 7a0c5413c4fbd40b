"""What a parameter can be, by its annotation: a number, a pointer, a structure, or left in parameter memory.

| annotation | in PTX | in the body |
|---|---|---|
| `f32`, `u32`, ... | `.param .f32 a` | a register, loaded at the start |
| `pointer[f32]` | `.param .u64 x` | a pointer into global memory |
| `pointer[Ray]` | the same | a pointer to structures: `rays[i].size` |
| `generic_pointer[f32]` | the same | a pointer that may point anywhere |
| `struct[24, 8]` | `.param .align 8 .b8 s[24]` | its address; `s.field(f32, 4)` loads from byte 4 |
| a subclass of `struct` | the same | `s.scale` loads the field `scale` |
| `param[u64]` | `.param .u64 x` | its address; nothing is loaded |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ptxlab.author.elements import PointerType, StructType, memory_type
from ptxlab.author.fields import in_parameter, load, load_pointer
from ptxlab.author.lines import SourcePosition, refuse, refuse_parameter
from ptxlab.author.pointers import Pointer, address_class, pointing
from ptxlab.author.structures import has_fields, is_number, structure_of
from ptxlab.author.values import Scalar


@dataclass(frozen=True, slots=True)
class RawType:
    """`param[u64]` in an annotation."""

    element: type[Scalar]
    attributes: str = ""


class param:  # noqa: N801 - used in annotations beside `f32`
    """`param[u64]`: a parameter that is not loaded; the name is its address, for `ptx.ld.param`.

    `param[u64, ".ptr .global .align 16"]` says where it points.
    """

    def __class_getitem__(cls, item: Any) -> RawType:
        return RawType(*item) if isinstance(item, tuple) else RawType(item)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel or device function."""

    name: str
    annotation: Any

    @property
    def declaration(self) -> str:
        """The declaration in the head of the function."""
        given = self.annotation
        if isinstance(given, StructType):
            return f".param .align {given.align} .b8 {self.name}[{given.size}]"
        if isinstance(given, RawType):
            return f".param .{given.element.type.name} {given.attributes}{' ' * bool(given.attributes)}{self.name}"
        # A half is declared as one, so that a launch knows to convert a number to it.
        return f".param .{'f16' if self.passed.type.name == 'f16' else memory_type(self.passed)} {self.name}"

    @property
    def passed(self) -> type[Scalar]:
        """The class of the number that is passed."""
        given = self.annotation
        if isinstance(given, PointerType):
            return address_class(given.space)
        if isinstance(given, RawType):
            return given.element
        assert not isinstance(given, StructType)
        cls: type[Scalar] = given
        return cls

    def load(self, of_kernel: bool) -> Any:
        """What the body gets: the value, loaded now."""
        given = self.annotation
        if isinstance(given, StructType):
            return load(given, in_parameter(self.name), in_place=True)
        if isinstance(given, RawType):
            return in_parameter(self.name)
        passed = Pointer(self.passed, "param", symbol=self.name)
        if isinstance(given, PointerType):
            return load_pointer(given, passed) if of_kernel else pointing(given.element, given.space, passed.load())
        return passed.load()


def read_parameters(
    function: Callable[..., object], position: SourcePosition
) -> tuple[list[Parameter], dict[str, inspect.Parameter], object]:
    """The parameters, the compile-time ones (keyword-only) by name, and what is returned."""
    annotations = _annotations(function)
    parameters, constants = [], {}
    for name, given in inspect.signature(function).parameters.items():
        if given.kind is inspect.Parameter.KEYWORD_ONLY:
            constants[name] = given
            continue
        annotation = structure_of(annotations.get(name), position)
        _check_parameter(function, given, annotation)
        parameters.append(Parameter(name, annotation))
    return parameters, constants, annotations.get("return")


def _check_parameter(function: Callable[..., object], given: inspect.Parameter, annotation: object) -> None:
    name, what = given.name, f"parameter `{given.name}` of `{function.__name__}`"
    if given.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        refuse_parameter(
            "missing-type", f"{what} is several arguments, and PTX has a fixed number of parameters", function, name
        )
    if not (isinstance(annotation, (PointerType, StructType, RawType)) or is_number(annotation)):
        said = f"is not of a PTX type: {getattr(annotation, '__name__', annotation)!s:.60}"
        helps = ["annotate it: `f32`, `pointer[f32]`, `struct[16, 8]`", "a compile-time argument follows `*`"]
        refuse_parameter("missing-type", f"{what} {said if annotation else 'has no type'}", function, name, helps)
    if given.default is not given.empty:
        helps = ["a compile-time argument, after `*`, may have one"]
        refuse_parameter("unused-default", f"{what} has a default, and PTX has none", function, name, helps)
    if not name.isascii():
        refuse_parameter("non-ascii-character", f"PTX is ASCII, and the name of {what} is not", function, name)


def check_constants(
    function: Callable[..., object], constants: Mapping[str, inspect.Parameter], given: Mapping[str, object], how: str
) -> None:
    """Refuse compile-time arguments that a function does not have, and without those that it needs."""
    refuse_unknown(function, constants, given)
    for name, parameter in constants.items():
        if name not in given and parameter.default is parameter.empty:
            message = f"`{function.__name__}` needs the compile-time argument `{name}`"
            refuse_parameter("missing-argument", message, function, name, [how.format(name)])


def refuse_unknown(function: Callable[..., object], constants: Collection[str], given: Mapping[str, object]) -> None:
    """Refuse compile-time arguments that a function does not have."""
    known = ", ".join(f"`{name}`" for name in constants) or "none"
    for name in given:
        if name not in constants:
            message = f"`{function.__name__}` has no compile-time argument `{name}`"
            refuse("unknown-argument", message, helps=[f"it has {known}"])


def constants_key(given: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """What distinguishes compile-time arguments: their text, of arrays that of all elements."""
    texts = {name: repr(value.tolist() if hasattr(value, "tolist") else value) for name, value in given.items()}
    return tuple(sorted(texts.items()))


def _annotations(function: Callable[..., object]) -> dict[str, object]:
    """Annotations with those that are text looked up, also among the names of the functions around."""
    names = dict(inspect.getclosurevars(function).nonlocals) if function.__closure__ else {}
    try:
        found: dict[str, Any] = inspect.get_annotations(function, eval_str=True, locals=names)
    except (NameError, SyntaxError) as problem:
        texts = inspect.get_annotations(function)
        name = next((name for name, text in texts.items() if isinstance(text, str) and _is_unknown(text, problem)), "")
        refuse_parameter(
            "missing-type",
            f"an annotation of `{function.__name__}` means nothing: {problem}",
            function,
            name,
            ["annotations that are text, as with `from __future__ import annotations`, name what the module has"],
        )
    return found


def _is_unknown(annotation: str, problem: Exception) -> bool:
    return (getattr(problem, "name", None) or annotation) in annotation


def return_types(annotation: object, position: SourcePosition) -> list[object]:
    """What a device function returns: numbers, and structures with fields."""
    if annotation is None or annotation is type(None):
        return []
    found = [structure_of(part, position) for part in getattr(annotation, "__args__", (annotation,))]
    for part in found:
        if not is_number(part) and not (isinstance(part, StructType) and has_fields(part)):
            refuse(
                "missing-type",
                f"a device function returns numbers and structures with fields, not {part!s:.40}",
                helps=["name the fields in a subclass of `struct`"],
                position=position,
            )
    return found
