"""Programs of others, each built by its own makefile or by one command, and run on the emulator with its own check.

    python -m tests.programs.strangers ROOT [--only NAME] [--output evidence/programs.json]
    python -m tests.programs.strangers ROOT --several [--only NAME] [--output evidence/programs_several.json]
    python -m tests.programs.strangers ROOT --drawn LIST [--only NAME] [--output evidence/programs_drawn.json]

ROOT has the folders `cuda-samples`, `llm.c`, `hecbench`, `polybench`, `rodinia` and `texts`, for `--several` also
`multi-gpu-programming-models` and `Learn-CUDA-Programming`: the repositories, which are not part of this one. A
program passes if what it prints has the text of its own check and it ends with its own status; a finding must be one
that was judged right, in `strangers_list.py`.

LIST says, for the programs of `drawn.json` (or of another order, `--order tests/programs/drawn_second.json`), how each
is built and run, and what it prints if all is well, or what it `lacks`; it is not part of this repository, as it builds
programs of others. Those that lack something, and those that are too long, are counted and named.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ptxlab.toolchain import find
from tests.programs.strangers_list import JUDGED, LEFT_OUT, PROGRAMS, SEVERAL, Stranger

_TIMEOUT = 300  # of processor time in any process, since other programs may run beside
_LONGEST = 4 * _TIMEOUT
_STOPPED = ("out-of-bounds", "not-emulated")


def command_of(one: Stranger) -> list[str]:
    """The command line of ptxlab that runs a program."""
    start, options = [sys.executable, "-m", "ptxlab"], ["--format", "json", *shlex.split(one.options)]
    if one.build:
        return [*start, "exec", *options, "--build", one.build, *shlex.split(one.command)]
    file, *arguments = shlex.split(one.command)
    return [*start, "run", file, *options, "--nvcc", one.nvcc, "--", *arguments]


def run(one: Stranger, root: Path, is_drawn: bool = False) -> dict[str, Any]:
    """Build and run one program; what came of it."""
    row: dict[str, Any] = {"program": one.name}
    if one.lacks:
        return {**row, "passed": False, "lacks": one.lacks}
    if is_drawn:
        row |= {"built_by": "its own makefile" if "make" in one.build else "one command", "machine": platform.machine()}
    else:
        row |= {"build": one.build or f"nvcc {one.nvcc}".strip()}
    row |= {"command": one.command} | ({"options": one.options} if one.options else {})
    started, spent = time.monotonic(), _spent()
    try:
        asked = subprocess.run(
            command_of(one), cwd=root / one.folder, capture_output=True, text=True, errors="replace", timeout=_LONGEST,
            env=os.environ | one.environment(root), stdin=subprocess.DEVNULL, check=False, preexec_fn=_limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {**row, "passed": False, "problem": f"did not end within {_LONGEST} s"}
    row["seconds"] = round(time.monotonic() - started, 1)
    row |= {"cpu_seconds": round(_spent() - spent, 1)} if not is_drawn else {}
    if asked.returncode == -signal.SIGXCPU:
        return {**row, "passed": False, "problem": f"took more than {_TIMEOUT} s of processor time"}
    try:
        report = json.loads(asked.stdout[asked.stdout.index('{\n  "status"') :])
    except ValueError:
        return {**row, "passed": False, "problem": _end_of(asked.stdout + asked.stderr, root)}
    row["status"] = report["status"]
    row["launches"] = sum(kernel["launches"] for kernel in report["kernels"].values())
    row |= {"skipped_launches": report["skipped_launches"]} if report["skipped_launches"] else {}
    row["kernel_seconds"] = round(sum(kernel["seconds"] for kernel in report["kernels"].values()), 2)
    said = asked.stderr + asked.stdout[: asked.stdout.index('{\n  "status"')]
    row["check"] = one.expected
    row["passed"] = bool(re.search(one.expected, said)) and report["status"] == 0
    row["findings"], row["not_judged"] = [], []
    for found in (
        report["diagnostics"]["diagnostics"] if isinstance(report["diagnostics"], dict) else report["diagnostics"]
    ):
        if found["level"] == "note":
            continue
        text = spell(found)
        why = next((why for part, why in JUDGED.get(known_as(one.name), {}).items() if part in text), None)
        row["findings"].append(text + (f" [{why}]" if why else ""))
        row["not_judged"] += [] if why else [text]
    if any(text.startswith(_STOPPED) for text in row["findings"]):
        row["passed"] = False  # a kernel was stopped, which the program may not notice
    if not row["passed"]:
        row["problem"] = _end_of(said, root)
    return row


def _spent() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _end_of(said: str, root: Path) -> str:
    """The last of what a program said, with its files as the list has them: not where they are on this machine."""
    return said.replace(f"{root.resolve()}/", "").strip()[-600:]


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_TIMEOUT, _TIMEOUT + 10))


def known_as(name: str) -> str:
    """The name under which findings of a program were judged: that of the list, for one that was drawn."""
    for suite, pattern in (("hecbench", r"zjin-lcf\+HeCBench/src/([^/]+)-cuda/.*"),
                           ("polybench", r"sgrauerg\+polybenchGpu/CUDA/([^/]+)/.*")):  # fmt: skip
        if drawn := re.fullmatch(pattern, name):
            return f"{suite}/{drawn[1]}"
    return name


def spell(found: dict[str, Any]) -> str:
    """`data-race kernel.cu:12: unsynchronized: ...`"""
    where = f"{found.get('file') or ''}:{found.get('line') or ''}".strip(":")
    return f"{found['code']} {where}: {found['message']}"


def main() -> None:
    """Run the programs that are asked for, and say how many pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--drawn", type=Path)
    parser.add_argument("--several", action="store_true", help="programs with several streams or GPUs")
    parser.add_argument(
        "--order", type=Path, default=Path(__file__).with_name("drawn.json"), help="the list's own order"
    )
    parser.add_argument("--missing", action="store_true", help="only those that the output does not have")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    known = json.loads(asked.output.read_text())["rows"] if asked.missing and asked.output.is_file() else []
    names = {row["program"] for row in known if row["passed"]}
    programs = SEVERAL if asked.several else PROGRAMS
    if asked.drawn is not None:
        programs = [Stranger(**one) for one in json.loads(asked.drawn.read_text())]
    for one in programs:
        if re.search(asked.only, one.name) and one.name not in names:
            rows.append(run(one, asked.root.absolute(), asked.drawn is not None))
            print(json.dumps(rows[-1]), flush=True)
            if asked.output:
                order = None if asked.drawn is None else json.loads(asked.order.read_text())
                _write(asked.output, rows[-1:], asked.root, programs, order)
    passed = sum(row["passed"] and not row["not_judged"] for row in rows)
    print(f"{passed} of {sum('lacks' not in row for row in rows)} pass their own checks")


def _commit(folder: Path) -> str:
    """The commit of a repository, where a file beside it says so."""
    beside = folder.with_name(f"{folder.name}.commit")
    return beside.read_text().strip() if beside.is_file() else ""


def _write(
    output: Path, rows: list[dict[str, Any]], root: Path, programs: list[Stranger], drawn: dict[str, Any] | None
) -> None:
    """Replace the rows of these programs, and keep the others."""
    before = json.loads(output.read_text())["rows"] if output.is_file() else []
    found = {row["program"]: row for row in (*before, *rows)}
    kept = [found[one.name] for one in programs if one.name in found]
    ran = [row for row in kept if "lacks" not in row]
    listed = "--several " if programs is SEVERAL else "--drawn LIST " if drawn is not None else ""
    given = f"{listed}--output evidence/{output.name}"
    about: dict[str, Any] = {
        "command": f"python -m tests.programs.strangers ROOT {given}",
        "machine": platform.machine() if drawn is None else "as a row says",
        "nvcc": find("nvcc").version,
    }
    if drawn is not None:
        about |= {"seed": drawn["seed"], "repositories": drawn["commits"]}
    else:
        folders = sorted({one.folder.split("/")[0] for one in programs})
        about |= {"repositories": {name: _commit(root / name) for name in folders}}
    about["passed"] = sum(row["passed"] and not row.get("not_judged") for row in ran)
    about["programs"] = len(ran)
    missing = [one.name for one in programs if one.name not in found]
    if drawn:
        about |= {"lacking": len(kept) - len(ran), "not_run": missing}
    elif programs is PROGRAMS:
        about |= {"left_out": LEFT_OUT}
    output.write_text(json.dumps({**about, "rows": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
