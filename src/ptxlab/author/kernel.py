"""`@kernel`: a Python function that is a kernel.

The Python runs once, when the PTX is first asked for; each call in it writes one instruction. Keyword-only parameters
are compile-time arguments: `gemm.specialize(TILE=64)` is the kernel written with that value.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, overload

from ptxlab import ir
from ptxlab.author.arguments import passed
from ptxlab.author.lines import SourcePosition, definition_of, head_span, here, raised_at, refuse, refuse_line
from ptxlab.author.operand import describe
from ptxlab.author.parameters import Parameter, check_constants, constants_key, read_parameters, refuse_unknown
from ptxlab.author.trace import Trace, TracedModule, writing
from ptxlab.ir.launchable import Launchable, launch
from ptxlab.ir.origin import at_origin
from ptxlab.isa.directives import DIRECTIVES
from ptxlab.isa.targets import TARGETS, Version
from ptxlab.report import Diagnostic, KernelError, Label, PtxError, error
from ptxlab.report.nearest import nearest
from ptxlab.timelines import Timeline

if TYPE_CHECKING:
    from ptxlab.ir.launchable import LaunchOptions, Result


class Kernel(Launchable):
    """A kernel written in Python; `launch` runs it, `ptx` is its text."""

    def __init__(
        self,
        function: Callable[..., object],
        target: str,
        version: Version | None,
        directives: dict[str, tuple[int, ...]],
        position: SourcePosition,
        constants: dict[str, object] | None = None,
    ) -> None:
        self.function = function
        self.target = target
        self.version = version
        self.directives = directives
        self.constants = constants or {}
        self.__doc__ = function.__doc__
        self._position = position
        self._specialized: dict[tuple[tuple[str, str], ...], Kernel] = {}

    @property
    def name(self) -> str:
        """Its name in PTX: the function's, and after it the compile-time arguments that were given."""
        texts = {name: getattr(value, "__name__", str(value)) for name, value in self.constants.items()}
        given = "".join(f"_{name}_{text:.40}" for name, text in texts.items())
        return "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in self.function.__name__ + given)

    def specialize(self, **constants: object) -> Kernel:
        """The kernel with other compile-time arguments."""
        refuse_unknown(self.function, inspect.getfullargspec(self.function).kwonlyargs, constants)
        chosen = self.constants | constants
        key = constants_key(chosen)
        found = self._specialized.get(key)
        if found is None:
            found = Kernel(self.function, self.target, self.version, self.directives, self._position, chosen)
            self._specialized[key] = found
        return found

    @cached_property
    def program(self) -> TracedModule:
        """The module, written now."""
        program = TracedModule(self.target, self.version, name=self.name)
        program.names.add(self.name)
        write_kernel(program, self)
        return program

    @property
    def ptx(self) -> str:
        """The PTX, with the Python line that each instruction comes from."""
        return self.program.text()

    def __str__(self) -> str:
        return self.program.text(lines=False)

    def __repr__(self) -> str:
        return f"<kernel {self.name} for {self.target}>"

    def _repr_html_(self) -> str:
        from ptxlab.report.notebook import findings_html

        try:
            return self.entry._repr_html_()
        except PtxError as wrong:
            return findings_html(wrong.diagnostics)

    @property
    def module(self) -> ir.Module:
        """The program, as `ptxlab.parse` reads it."""
        return self.program.module

    @property
    def entry(self) -> ir.Function:
        """The kernel in its module."""
        return self.module[self.name]

    def __getitem__(self, _: object) -> NoReturn:
        self()  # `kernel[grid](...)`, as Triton and Numba have it

    def __call__(self, *_: Any, **__: object) -> NoReturn:
        refuse(
            "kernel-call",
            f"`{self.name}` is a kernel, which the host launches",
            helps=[
                f"`{self.name}.launch(grid=..., block=..., args=[...])`",
                "what another kernel calls is a plain function, or one under `@function`",
            ],
        )

    def _launch(self, args: Sequence[object], options: LaunchOptions) -> Result:
        """Run it, as a kernel in PTX runs; findings show the Python line first."""
        entry = self.entry  # written now, and what is wrong with it is reported as it is
        try:
            result = launch(entry, self.passed_args(args), options)
        except Exception as problem:
            if hasattr(problem, "diagnostics"):
                problem.diagnostics = [
                    self._at_call(found, here()) for found in at_origin(self.module, problem.diagnostics)
                ]
            raise
        return replace(result, diagnostics=at_origin(self.module, result.diagnostics))

    def set(self, name: str, value: object, dtype: object = None) -> None:
        """Give a variable a value, as `ptxlab.ir.Module.set` does."""
        self.module.set(name, value, dtype)

    def get(self, name: str, dtype: object = None, device: str = "auto") -> Any:
        """A copy of a variable, as `ptxlab.ir.Module.get` gives it."""
        return self.module.get(name, dtype, device)

    def timeline(self, device: str = "auto") -> Timeline:
        """What its warps did in the last launch, as `ptx.timeline` recorded it; from where that was, or a device."""
        layout = self.program.timelines.get(self.name)
        if layout is None:
            raise ValueError(f"`{self.name}` records no timeline: start one by `ptx.timeline`")
        return layout.read(self.get(layout.variable, device=device).tobytes())

    @cached_property
    def _parameters(self) -> list[Parameter]:
        return read_parameters(self.function, self._position)[0]

    def passed_args(self, args: Sequence[object]) -> list[object]:
        """The arguments as the program takes them."""
        values = list(args)
        for number, (parameter, value) in enumerate(zip(self._parameters, args, strict=False)):
            try:
                values[number] = passed(parameter, value)
            except ValueError as problem:
                message = f"argument {number} of `{self.name}`: {problem}"
                span = head_span(self.function.__code__, parameter.name)
                raise KernelError([error("bad-argument", message, span, "the parameter is declared here")]) from None
        return values

    def _at_call(self, found: Diagnostic, call: SourcePosition) -> Diagnostic:
        """A finding about the arguments: it shows the call, and the parameter or the kernel in Python."""
        if found.code not in ("bad-argument", "bad-launch") or call.span is None:
            return found
        code, ptx = self.function.__code__, self.module.source
        labels = [
            label
            if label.span.source is not ptx
            else replace(label, span=head_span(code, label.span.text) or label.span)
            for label in found.labels
        ]
        return replace(found, labels=(Label(call.span), *labels))


@overload
def kernel(function: Callable[..., object], /) -> Kernel: ...


@overload
def kernel(
    *, target: str = "sm_80", version: str | Version | None = None, **directives: int | Sequence[int]
) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(
    function: Callable[..., object] | None = None,
    /,
    *,
    target: str = "sm_80",
    version: str | Version | None = None,
    **directives: int | Sequence[int],
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a Python function a kernel.

    `version` is that of PTX; without it, the lowest that has every instruction used. Other keywords are directives:
    `maxntid=256`, `minnctapersm=2`, `reqntid=(16, 16)`.
    """
    position = here()
    if target not in TARGETS:
        meant = nearest(str(target), TARGETS)
        helps = [f"did you mean `{meant}`?"] if meant else ["`sm_80`, `sm_90a` and so on"]
        refuse("unknown-target", f"there is no target `{target}`", helps=helps, position=position)
    chosen = {name: numbers_of(name, value, position) for name, value in directives.items()}
    wanted = version_of(version, position)

    def make(function: Callable[..., object]) -> Kernel:
        check_function(function, position)
        return Kernel(function, target, wanted, chosen, position)

    return make if function is None else make(function)


def check_function(function: object, position: SourcePosition) -> None:
    """Refuse what is not a function, and one whose Python a call does not run."""
    if not inspect.isfunction(function):
        refuse(
            "not-a-function",
            f"`kernel` is given {describe(function)}, expected a function",
            helps=['`@kernel` decorates a `def`; options have names: `@kernel(target="sm_90")`'],
            position=position,
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        refuse(
            "not-a-function",
            f"calling `{function.__name__}` runs none of its Python: it has a `yield` or is `async`",
            position=position,
        )


def version_of(version: str | Version | None, position: SourcePosition) -> Version | None:
    if not isinstance(version, str):
        return version
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        refuse(
            "illegal-header", f"{version!r} is not a version of PTX", helps=['write `version="8.0"`'], position=position
        )
    return int(major), int(minor)


def numbers_of(name: str, value: int | Sequence[int], position: SourcePosition) -> tuple[int, ...]:
    found = DIRECTIVES.get(name)
    if found is None or found.owner != "entry":
        known = ", ".join(f"`{name}`" for name, directive in DIRECTIVES.items() if directive.owner == "entry")
        refuse(
            "illegal-directive",
            f"there is no directive `.{name}` of a kernel",
            helps=[f"expected one of {known}"],
            position=position,
        )
    numbers = () if value is True else tuple(value) if isinstance(value, Sequence) else (value,)
    if not found.least <= len(numbers) <= found.most or not all(number in found.values for number in numbers):
        count = f"{found.least} to {found.most}" if found.least < found.most else f"{found.most}"
        refuse(
            "illegal-directive",
            f"`{name}=` is {value!r:.40}, expected {count} number{'s' * (count != '1')} from {found.values.start} on",
            position=position,
        )
    return numbers


def write_kernel(program: TracedModule, kernel: Kernel) -> None:
    """Run the kernel's Python and append what it writes."""
    parameters, constants, _ = read_parameters(kernel.function, kernel._position)
    check_constants(kernel.function, constants, kernel.constants, f"`{kernel.function.__name__}.specialize({{}}=...)`")
    trace = Trace(program, kernel.name, "entry", kernel.function.__code__)
    trace.names.update(parameter.name for parameter in parameters)
    with writing(trace):
        values = load_parameters(trace, parameters, kernel._position, of_kernel=True)
        try:
            result = kernel.function(*values, **kernel.constants)
        except RecursionError as problem:
            _refuse_recursion(kernel, problem)
        if result is not None:
            _refuse_return(kernel, result)
        end_body(trace)
    head = head_lines(f".visible .entry {kernel.name}", parameters)
    for name, numbers in kernel.directives.items():
        if not program.allows(DIRECTIVES[name].since):
            refuse(
                "unavailable-feature",
                f"`.{name}` needs {DIRECTIVES[name].since}",
                f"this kernel is for `{program.target}`",
                position=kernel._position,
            )
        head.append(f".{name} {', '.join(map(str, numbers))}".rstrip())
    program.items.append("\n".join(["", *head, "{", *trace.body(), "}", ""]))


def _refuse_recursion(kernel: Kernel, problem: RecursionError) -> NoReturn:
    refuse(
        "endless-kernel",
        f"Python functions call themselves without end while `{kernel.name}` is written",
        "called again and again",
        helps=["Python decides when they end; under `@function`, a call runs on the GPU, and a `ptx.when` ends it"],
        position=raised_at(problem),
    )


def _refuse_return(kernel: Kernel, result: object) -> NoReturn:
    code = kernel.function.__code__
    definition = definition_of(code)
    returns = [node for node in ast.walk(definition or ast.Pass()) if isinstance(node, ast.Return) and node.value]
    refuse_line(
        "illegal-return",
        f"a kernel returns nothing, and `{kernel.name}` returns {describe(result)}",
        code.co_filename,
        returns[0].lineno if returns else kernel._position.line,
        "",
        helps=["store results to memory"],
    )


def load_parameters(
    trace: Trace, parameters: list[Parameter], position: SourcePosition, of_kernel: bool
) -> list[object]:
    """All parameters in registers. The lines that do so come from the decorator."""
    trace.position = position
    values = [parameter.load(of_kernel) for parameter in parameters]
    trace.position = None
    return values


def end_body(trace: Trace) -> None:
    """Close the function, with a `ret` where it can get to its end."""
    trace.close()
    last = len(trace.lines) - 1
    while last >= 0 and trace.lines[last].endswith(":") and trace.lines[last][:-1] not in trace.wanted:
        last -= 1  # a label that is not a target
    if last < 0 or trace.lines[last].strip() not in ("ret;", "exit;"):
        trace.lines.append("    ret;")


def head_lines(head: str, parameters: list[Parameter]) -> list[str]:
    if not parameters:
        return [head]
    lines = [f"    {parameter.declaration}" for parameter in parameters]
    return [head + "(", ",\n".join(lines), ")"]
