"""PTX text to cubin: `assemble` runs ptxas and brings back the object, the diagnostics and what each function needs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxlab.report import Diagnostic, Source, error
from ptxlab.toolchain.architecture import architecture_for
from ptxlab.toolchain.diagnosis import INPUT, diagnose, diagnose_crash, diagnose_timeout, diagnose_unterminated_comment
from ptxlab.toolchain.header import stated_version
from ptxlab.toolchain.messages import read_messages
from ptxlab.toolchain.process import Outcome, run
from ptxlab.toolchain.resources import Resources, is_statistics, read_resources
from ptxlab.toolchain.tools import Tool, find_assembler

DEFAULT_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class Assembly:
    """The result of one run of ptxas; `cubin` is None when it made none, and a diagnostic says why."""

    cubin: bytes | None
    diagnostics: tuple[Diagnostic, ...]
    resources: tuple[Resources, ...]
    target: str | None
    tool: Tool


def assemble(
    text: str,
    target: str | None = None,
    name: str = "module.ptx",
    options: Sequence[str] = (),
    *,
    tool: Tool | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Assembly:
    """Assemble `text` for `target`, or for the target it states; `options` go to ptxas as they are.

    assembly = assemble(text, "sm_90a", "gemm.ptx", ["-lineinfo"])
    """
    source = Source(name, text)
    chosen = tool or find_assembler(stated_version(text))
    architecture = architecture_for(chosen, target, text)
    endless = diagnose_unterminated_comment(source)
    if endless:
        return Assembly(None, (endless,), (), architecture, chosen)
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        source_file, object_file = Path(folder) / INPUT, Path(folder) / "object"
        source_file.write_bytes(text.encode("utf-8", "surrogateescape"))
        chosen_target = ["-arch", architecture] if architecture else []
        command: list[str | Path] = [
            chosen.path,
            "-v",
            *chosen_target,
            *options,
            source_file.name,
            "-o",
            object_file.name,
        ]
        outcome = run(command, Path(folder), timeout)
        cubin = object_file.read_bytes() if outcome.status == 0 and object_file.exists() else None
    messages = read_messages(outcome.text)
    diagnostics = [diagnose(message, source, chosen) for message in messages if not is_statistics(message)]
    diagnostics += _bad_ending(outcome, diagnostics, source, chosen, timeout)
    if outcome.status == 0 and cubin is None:
        diagnostics.append(_no_object(chosen, options))
    return Assembly(cubin, tuple(diagnostics), tuple(read_resources(messages)), architecture, chosen)


def _no_object(tool: Tool, options: Sequence[str]) -> Diagnostic:
    """A ptxas that succeeds and writes no object: another program, or one with options to do something else."""
    helps = [f"leave out {', '.join(f'`{option}`' for option in options)}"] if options else []
    return error("ptxas-error", f"`{tool.path}` ended without an error and wrote no object", None, helps=helps)


def _bad_ending(
    outcome: Outcome, said: Sequence[Diagnostic], source: Source, tool: Tool, timeout: float
) -> list[Diagnostic]:
    """How ptxas ended, where its messages do not say."""
    if outcome.timed_out:
        return [diagnose_timeout(timeout, source, tool)]
    if outcome.signal_name:
        return [diagnose_crash(outcome, source, tool)]
    if outcome.status != 0 and not any(diagnostic.level == "error" for diagnostic in said):
        return [error("ptxas-error", f"ptxas ended with status {outcome.status} and no message", None)]
    return []
