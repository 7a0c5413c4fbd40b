"""`@function`: a Python function that is a device function. Calling it in a kernel writes a `call`.

It is written once a module for each set of compile-time arguments. Arguments and results go through parameter memory,
as PTX's calls do; several results are one structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ptxlab.author.elements import PointerType, StructType, memory_type
from ptxlab.author.fields import in_parameter, load, store
from ptxlab.author.kernel import end_body, head_lines, load_parameters
from ptxlab.author.lines import SourcePosition, here, refuse, refuse_parameter
from ptxlab.author.parameters import Parameter, RawType, check_constants, constants_key, read_parameters, return_types
from ptxlab.author.structures import check_given, lay_out
from ptxlab.author.trace import Trace, TracedModule, current, writing


class DeviceFunction:
    """A device function written in Python: calling it writes a `call`."""

    def __init__(self, function: Callable[..., object], position: SourcePosition) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self._position = position

    def __call__(self, *arguments: Any, **constants: Any) -> Any:
        trace = current(f"a call of `{self.function.__name__}`")
        parameters, known, returned = read_parameters(self.function, self._position)
        check_constants(self.function, known, constants, f"`{self.function.__name__}(..., {{}}=...)`")
        if len(arguments) != len(parameters):
            refuse(
                "operand-count",
                f"`{self.function.__name__}` takes {len(parameters)} arguments, {len(arguments)} given",
            )
        results = return_types(returned, self._position)
        key = (self.function, constants_key(constants))
        name = trace.program.functions.get(key)
        if name is None:
            name = trace.program.functions[key] = trace.program.unique(self.function.__name__)
            self._write(trace.program, name, parameters, results, constants)
        return _call(trace, name, parameters, results, arguments)

    def _write(
        self,
        program: TracedModule,
        name: str,
        parameters: list[Parameter],
        results: list[object],
        constants: dict[str, object],
    ) -> None:
        trace = Trace(program, name, "func", self.function.__code__)
        trace.names.update(parameter.name for parameter in parameters)
        trace.names.add("returned")
        with writing(trace):
            values = load_parameters(trace, parameters, self._position, of_kernel=False)
            given = self.function(*values, **constants)
            returned = list(given) if isinstance(given, tuple) else [] if given is None else [given]
            if len(returned) != len(results):
                refuse_parameter(
                    "illegal-return",
                    f"`{name}` returns {len(returned)} value{'s' * (len(returned) != 1)}, "
                    f"and its annotation says {len(results)}",
                    self.function,
                    "",
                    ["annotate what is returned: `-> f32`, `-> tuple[f32, u32]`"],
                )
            trace.position = self._position
            for wanted, value, offset in zip(results, returned, lay_out(results)[0], strict=True):
                check_given(f"what `{name}` returns", wanted, value)
                store(wanted, in_parameter("returned", offset), value)
            trace.position = None
            end_body(trace)
        result = f" ({_returned(results, 'returned')})" if results else ""
        head = head_lines(f".func{result} {name}", parameters)
        program.items.append("\n".join(["", *head, "{", *trace.body(), "}", ""]))


def _returned(results: list[Any], name: str) -> str:
    """The declaration of what is returned: one number, or several values as bytes."""
    if len(results) == 1 and not isinstance(results[0], StructType):
        return f".param .{memory_type(results[0])} {name}"
    _, size, align = lay_out(results)
    return f".param .align {align} .b8 {name}[{size}]"


def _call(
    trace: Trace, name: str, parameters: list[Parameter], results: list[object], arguments: Sequence[object]
) -> Any:
    """The arguments into parameter memory, the call, the results out of it."""
    passed = [_passed(parameter, argument) for parameter, argument in zip(parameters, arguments, strict=True)]
    trace.write("{")
    names = [f"argument_{number}" for number in range(len(parameters))]
    for chosen, parameter in zip(names, parameters, strict=True):
        trace.write(f"{replace(parameter, name=chosen).declaration};")
    if results:
        trace.write(f"{_returned(results, 'result')};")
    for chosen, parameter, value in zip(names, parameters, passed, strict=True):
        whole = isinstance(parameter.annotation, StructType)
        store(parameter.annotation if whole else parameter.passed, in_parameter(chosen), value)
    result = "(result), " if results else ""
    trace.write(f"call.uni {result}{name}, ({', '.join(names)});" if names else f"call.uni {result}{name};")
    pointers = [in_parameter("result", offset) for offset in lay_out(results)[0]]
    values = [load(wanted, pointer) for wanted, pointer in zip(results, pointers, strict=True)]
    trace.write("}")
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def _passed(parameter: Parameter, argument: Any) -> Any:
    """An argument as it is passed; a pointer must point where the function expects."""
    if not isinstance(parameter.annotation, RawType):
        check_given(f"`{parameter.name}`", parameter.annotation, argument)
    return argument.address if isinstance(parameter.annotation, PointerType) else argument


def function(function: Callable[..., object]) -> DeviceFunction:
    """Make a Python function a device function: called in a kernel, it is a `call`."""
    return DeviceFunction(function, here())
