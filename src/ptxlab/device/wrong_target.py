"""A module whose target a GPU cannot run, as a diagnostic: for a GPU that is there, and for one that is emulated."""

from __future__ import annotations

from ptxlab import ir
from ptxlab.report import Diagnostic, error


def wrong_target(module: ir.Module, name: str, target: str, instead: str) -> Diagnostic:
    """A module that the GPU of this name and target can't run; `instead` is what to do if the module is to stay."""
    wanted = module.target
    if wanted.endswith(("a", "f")):
        note = f"`{wanted}` has instructions of {'that chip' if wanted.endswith('a') else 'that family'} alone"
        help = f"write `.target {target}` if the module needs none of them"
    else:
        note = "a module runs on the GPU it names and on later ones"
        help = f"lower the target to `{target}`"
    return error(
        "wrong-target",
        f"a module for `{wanted}` can't run on {name}, which is `{target}`",
        module.span_of(module.header_spans.get("target")),
        notes=[note],
        helps=[f"{help}, or {instead}"],
    )
