"""`@kernel`: a Python function that is a kernel, and `@function`: one that is a device function.

The Python runs once, when the PTX is first asked for; each call in it writes one instruction. Keyword-only parameters
are compile-time arguments: `gemm.specialise(TILE=64)` is the kernel written with that value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ptxlab import ir
from ptxlab.author.emit import describe, emit
from ptxlab.author.lines import Place, here, in_python, refuse
from ptxlab.author.parameters import Parameter, read_parameters, return_types
from ptxlab.author.pointers import Pointer, PointerType, memory_type
from ptxlab.author.trace import Program, Trace, current, writing
from ptxlab.author.values import Value
from ptxlab.isa.directives import DIRECTIVES
from ptxlab.isa.targets import TARGETS, Version
from ptxlab.syntax import parse


class Kernel:
    """A kernel written in Python; `launch` runs it, `ptx` is its text."""

    def __init__(
        self,
        function: Callable[..., Any],
        target: str,
        version: Version | None,
        directives: dict[str, tuple[int, ...]],
        place: Place,
        constants: dict[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.target = target
        self.version = version
        self.directives = directives
        self.constants = constants or {}
        self.__doc__ = function.__doc__
        self._place = place
        self._specialised: dict[tuple[tuple[str, Any], ...], Kernel] = {}

    @property
    def name(self) -> str:
        """Its name in PTX: the function's, and after it the compile-time arguments that were given."""
        given = "".join(f"_{name}_{value}" for name, value in self.constants.items())
        return "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in self.function.__name__ + given)

    def specialise(self, **constants: Any) -> Kernel:
        """The kernel with other compile-time arguments."""
        chosen = self.constants | constants
        key = tuple(sorted(chosen.items(), key=lambda item: item[0]))
        found = self._specialised.get(key)
        if found is None:
            found = Kernel(self.function, self.target, self.version, self.directives, self._place, chosen)
            self._specialised[key] = found
        return found

    @cached_property
    def program(self) -> Program:
        """The module, written now."""
        program = Program(self.target, self.version)
        program.names.add(self.name)
        write_kernel(program, self)
        return program

    @property
    def ptx(self) -> str:
        """The PTX, with the line of Python that each instruction comes from."""
        return self.program.text()

    def __str__(self) -> str:
        return self.program.text(lines=False)

    def __repr__(self) -> str:
        return f"<kernel {self.name} for {self.target}>"

    @cached_property
    def module(self) -> ir.Module:
        """The program, as `ptxlab.parse` reads it."""
        return parse(self.ptx, f"{self.name}.ptx")

    @property
    def entry(self) -> ir.Function:
        """The kernel in its module."""
        return self.module[self.name]

    def launch(
        self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (), **how: Any
    ) -> Any:
        """Run it, as `ptxlab.ir.Function.launch` does; findings show the line of Python first."""
        try:
            result = self.entry.launch(grid, block, args, **how)
        except Exception as problem:
            if hasattr(problem, "diagnostics"):
                problem.diagnostics = in_python(self.module, problem.diagnostics)
            raise
        return replace(result, diagnostics=in_python(self.module, result.diagnostics))


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    target: str = "sm_80",
    version: str | Version | None = None,
    **directives: int | Sequence[int],
) -> Any:
    """Make a Python function a kernel.

    `version` is that of PTX; without it, the lowest that has every instruction used. Other keywords are directives:
    `maxntid=256`, `minnctapersm=2`, `reqntid=(16, 16)`.
    """
    place = here()
    if target not in TARGETS:
        refuse("unknown-target", f"there is no target `{target}`", helps=["`sm_80`, `sm_90a` and so on"], place=place)
    chosen = {name: numbers_of(name, value, place) for name, value in directives.items()}
    wanted = version_of(version, place)
    if function is not None:
        return Kernel(function, target, wanted, chosen, place)
    return lambda function: Kernel(function, target, wanted, chosen, place)


def version_of(version: str | Version | None, place: Place) -> Version | None:
    if not isinstance(version, str):
        return version
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        refuse("illegal-header", f"{version!r} is no version of PTX", helps=['write `version="8.0"`'], place=place)
    return int(major), int(minor)


def numbers_of(name: str, value: int | Sequence[int], place: Place) -> tuple[int, ...]:
    found = DIRECTIVES.get(name)
    if found is None or found.owner != "entry":
        known = ", ".join(f"`{name}`" for name, directive in DIRECTIVES.items() if directive.owner == "entry")
        refuse(
            "illegal-directive",
            f"there is no directive `.{name}` of a kernel",
            helps=[f"there are {known}"],
            place=place,
        )
    return () if value is True else (value,) if isinstance(value, int) else tuple(value)


def write_kernel(program: Program, kernel: Kernel) -> None:
    """Run the kernel's Python and append what it writes."""
    parameters, constants, _ = read_parameters(kernel.function, kernel._place)
    for name in kernel.constants:
        if name not in constants:
            known = ", ".join(f"`{name}`" for name in constants) or "none"
            refuse(
                "unknown-argument", f"`{kernel.name}` has no compile-time argument `{name}`", helps=[f"it has {known}"]
            )
    trace = Trace(program, kernel.name, "entry")
    trace.names.update(parameter.name for parameter in parameters)
    with writing(trace):
        values = _load(trace, parameters, kernel._place, of_kernel=True)
        result = kernel.function(*values, **kernel.constants)
        if result is not None:
            refuse("illegal-return", f"a kernel returns nothing, and `{kernel.name}` returns {describe(result)}",
                   helps=["store results to memory"], place=kernel._place)  # fmt: skip
        _end(trace)
    head = _head(f".visible .entry {kernel.name}", parameters)
    for name, numbers in kernel.directives.items():
        program.allows(DIRECTIVES[name].since)
        head.append(f".{name} {', '.join(map(str, numbers))}".rstrip())
    program.items.append("\n".join(["", *head, "{", *trace.body(), "}", ""]))


def _load(trace: Trace, parameters: list[Parameter], place: Place, of_kernel: bool) -> list[Any]:
    """All parameters in registers. The lines that do so come from the decorator."""
    trace.place = place
    values = [parameter.load(of_kernel) for parameter in parameters]
    trace.place = None
    return values


def _end(trace: Trace) -> None:
    """Close the function, with a `ret` where it can get to its end."""
    trace.close()
    last = len(trace.lines) - 1
    while last >= 0 and trace.lines[last].endswith(":") and trace.lines[last][:-1] not in trace.wanted:
        last -= 1  # a label that nobody goes to
    if last < 0 or trace.lines[last].strip() not in ("ret;", "exit;"):
        trace.lines.append("    ret;")


def _head(head: str, parameters: list[Parameter]) -> list[str]:
    if not parameters:
        return [head]
    lines = [f"    {parameter.declaration}" for parameter in parameters]
    return [head + "(", ",\n".join(lines), ")"]


class DeviceFunction:
    """A device function written in Python: calling it writes a `call`."""

    def __init__(self, function: Callable[..., Any], place: Place) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self._place = place

    def __call__(self, *arguments: Any, **constants: Any) -> Any:
        trace = current(f"a call of `{self.function.__name__}`")
        parameters, _, returned = read_parameters(self.function, self._place)
        if len(arguments) != len(parameters):
            refuse(
                "operand-count",
                f"`{self.function.__name__}` takes {len(parameters)} arguments, {len(arguments)} given",
            )
        results = return_types(returned)
        key = (self.function, tuple(sorted(constants.items(), key=lambda item: item[0])))
        name = trace.program.functions.get(key)
        if name is None:
            name = trace.program.functions[key] = trace.program.unique(self.function.__name__)
            self._write(trace.program, name, parameters, results, constants)
        return _call(trace, name, parameters, results, arguments)

    def _write(
        self,
        program: Program,
        name: str,
        parameters: list[Parameter],
        results: list[type[Value]],
        constants: dict[str, Any],
    ) -> None:
        trace = Trace(program, name, "func")
        trace.names.update(parameter.name for parameter in parameters)
        trace.names.add("returned")
        with writing(trace):
            values = _load(trace, parameters, self._place, of_kernel=False)
            given = self.function(*values, **constants)
            returned = list(given) if isinstance(given, tuple) else [] if given is None else [given]
            if len(returned) != len(results):
                refuse(
                    "illegal-return",
                    f"`{name}` returns {len(returned)} values, and its annotation says {len(results)}",
                    place=self._place,
                )
            trace.place = self._place
            for cls, value, offset in zip(results, returned, offsets(results), strict=True):
                Pointer(cls, "param", symbol="returned", offset=offset).store(value)
            trace.place = None
            _end(trace)
        result = f" ({_returned(results, 'returned')})" if results else ""
        head = _head(f".func{result} {name}", parameters)
        program.items.append("\n".join(["", *head, "{", *trace.body(), "}", ""]))


def offsets(results: list[type[Value]]) -> list[int]:
    """Where each of several results lies, as in a structure of C."""
    found, size = [], 0
    for cls in results:
        width = max(cls.type.width // 8, 1)
        size = -(-size // width) * width
        found.append(size)
        size += width
    return found


def _returned(results: list[type[Value]], name: str) -> str:
    """The declaration of what is returned: one value, or several as bytes."""
    if len(results) == 1:
        return f".param .{memory_type(results[0])} {name}"
    size = offsets(results)[-1] + results[-1].type.width // 8
    align = max(cls.type.width // 8 for cls in results)
    return f".param .align {align} .b8 {name}[{-(-size // align) * align}]"


def _call(
    trace: Trace, name: str, parameters: list[Parameter], results: list[type[Value]], arguments: Sequence[Any]
) -> Any:
    """The arguments into parameter memory, the call, the results out of it."""
    values: list[Value] = [cls.fresh(trace) for cls in results]
    passed = [_passed(parameter, argument) for parameter, argument in zip(parameters, arguments, strict=True)]
    trace.write("{")
    names = [f"argument_{number}" for number in range(len(parameters))]
    for chosen, parameter in zip(names, parameters, strict=True):
        trace.write(f"{replace(parameter, name=chosen).declaration};")
    if results:
        trace.write(f"{_returned(results, 'result')};")
    for chosen, parameter, value in zip(names, parameters, passed, strict=True):
        Pointer(parameter.passed, "param", symbol=chosen).store(value)
    result = "(result), " if results else ""
    trace.write(f"call.uni {result}{name}, ({', '.join(names)});" if names else f"call.uni {result}{name};")
    for value, offset in zip(values, offsets(results), strict=True):
        place = Pointer(type(value), "param", symbol="result", offset=offset)
        emit(f"ld.param.{memory_type(type(value))}", [place], out=value)
    trace.write("}")
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def _passed(parameter: Parameter, argument: Any) -> Any:
    """An argument as it is passed; a pointer must point where the function expects."""
    given = parameter.annotation
    if not isinstance(given, PointerType):
        return argument
    if not isinstance(argument, Pointer) or argument.space != given.space or argument.element is not given.element:
        wanted = f"pointer[{given.element.__name__}, {given.space or 'generic'}]"
        refuse("operand-type", f"`{parameter.name}` is {describe(argument)}, expected {wanted}")
    return argument.address


def function(function: Callable[..., Any]) -> DeviceFunction:
    """Make a Python function a device function: called in a kernel, it is a `call`."""
    return DeviceFunction(function, here())
