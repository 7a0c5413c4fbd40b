"""A kernel from its statements alone, for tests of what goes wrong when it runs."""

from collections.abc import Callable, Sequence
from typing import Any

import ptxlab
from ptxlab import ir
from ptxlab.device.result import Result
from tests.tools import header

HEAD = header("8.0", "sm_80")
REGISTERS = """    .reg .b32 %r<10>;
    .reg .b64 %rd<10>;
    .reg .f32 %f<10>;
    .reg .pred %p<10>;
"""


def kernel(body: str, parameters: str = "", before: str = "") -> ir.Function:
    """The kernel `k` of these statements, one a line."""
    lines = "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())
    declared = ", ".join(f".param {parameter.strip()}" for parameter in parameters.split(",") if parameter)
    text = f"{HEAD}{before}.visible .entry k({declared})\n{{\n{REGISTERS}{lines}\n}}\n"
    return ptxlab.parse(text, name="k.ptx")["k"]


def launch(
    body: str,
    parameters: str = "",
    args: Sequence[Any] = (),
    *,
    before: str = "",
    grid: Any = 1,
    block: Any = 1,
    **how: Any,
) -> Result:
    """Run it; findings are collected unless `how` says otherwise."""
    result: Result = kernel(body, parameters, before).launch(
        grid, block, args, **{"device": "cpu", "timeout": 20} | how
    )
    return result


def problem(body: str, *given: Any, **how: Any) -> ptxlab.Diagnostic:
    """The one thing that is wrong with a launch."""
    try:
        result = launch(body, *given, **how, on_error="collect")
    except ptxlab.KernelError as problem:
        (found,) = problem.diagnostics
        return found
    (found,) = result.diagnostics
    return found


def findings(body: str, *given: Any, **how: Any) -> list[ptxlab.Diagnostic]:
    """What is found when it runs."""
    return launch(body, *given, **how, on_error="collect").diagnostics


def silent(
    run: Callable[..., Sequence[ptxlab.Diagnostic]], *given: Any, seeds: Sequence[int] = (0,), **how: Any
) -> None:
    """Assert that `run` finds nothing, with each of these seeds."""
    for seed in seeds:
        found = run(*given, **{"seed": seed} | how)
        assert not found, f"seed {seed}:\n{ptxlab.report.render(found)}"


def line_of(found: ptxlab.Diagnostic) -> str:
    """The text of the line of a finding."""
    assert found.line is not None
    return found.labels[0].span.source.text.splitlines()[found.line - 1].strip()
