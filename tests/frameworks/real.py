"""Real programs in Triton and Gluon on the emulator: is what they compute right, and is nothing found in them?

    python -m tests.frameworks.real --root FOLDER --evidence

`FOLDER` has the repositories, each in a folder of its name (`triton`, `Liger-Kernel`, …); none of their text is here.
`tutorials.py` and `projects.py` have one function for each program: it loads a file of a repository, calls what is in
it with small tensors, and compares with torch. `--evidence` writes evidence/frameworks.json.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.metadata
import json
import platform
import re
import sys
import time
import traceback
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
ROOT = Path(__file__).resolve().parents[2]
REPOSITORIES: dict[str, Path] = {}


_EXPECTED = ("right", "not for this target", "a bug of the program")


class NotForTargetError(Exception):
    """The program itself says that it is not for this target."""


@dataclass(frozen=True)
class Program:
    """A function that runs a program of a repository, and the targets that it is for."""

    name: str
    file: str
    run: Callable[[Any, str], None]
    targets: Sequence[str] = TARGETS
    finds: str = ""
    """The code of what is found because the program has a bug, which its function explains."""


PROGRAMS: dict[str, Program] = {}


def program(file: str, targets: Sequence[str] = TARGETS, finds: str = "") -> Callable[..., Any]:
    """Register a function of the module that a file of a repository becomes, and of the target."""

    def register(function: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
        found = Program(function.__name__, file, function, tuple(targets), finds)
        assert found.name not in PROGRAMS, found.name
        PROGRAMS[found.name] = found
        return function

    return register


def load(path: Path, package: str = "") -> types.ModuleType:
    """The definitions of a file: imports, functions, classes and assignments; what it runs besides is left out.

    A definition that cannot be made here, of a benchmark for example, is left out too.
    """
    module = types.ModuleType(package or f"real_{path.stem.replace('-', '_')}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r'import_module\("(\d\d-[\w-]+)"\)', text):  # tutorials use those before them
        if name not in sys.modules:
            load(path.with_name(f"{name}.py"), name)
    for node in ast.parse(text).body:
        is_try = isinstance(node, (ast.Try, ast.If)) and "__main__" not in ast.dump(node)
        if isinstance(node, (ast.Expr, ast.For, ast.With, ast.While)) or (isinstance(node, ast.If) and not is_try):
            continue
        try:
            exec(compile(ast.Module([node], []), str(path), "exec"), vars(module))
        except Exception as problem:
            module.__dict__.setdefault("left_out", []).append(repr(problem))
    return module


def imported(folder: Path, name: str) -> types.ModuleType:
    """A module of a package below a folder, without what the packages above it import for users of all of them."""
    sys.path.insert(0, str(folder))
    parts = name.split(".")
    for depth in range(1, min(len(parts), 3)):
        parent = ".".join(parts[:depth])
        bare = types.ModuleType(parent)
        bare.__version__ = "0"  # type: ignore[attr-defined]
        bare.__path__ = [str(folder.joinpath(*parts[:depth]))]
        sys.modules.setdefault(parent, bare)
    return importlib.import_module(name)


def run_here(program: str, target: str) -> dict[str, Any]:
    """One program for one target."""
    import torch

    import ptxlab
    from tests.frameworks import projects, tutorials  # noqa: F401 - they register

    chosen = PROGRAMS[program]
    row: dict[str, Any] = {"program": program, "file": chosen.file, "target": target}
    torch.manual_seed(0)
    started = time.perf_counter()
    session = None
    try:
        with ptxlab.triton.emulated(target) as session:
            repository, _, path = chosen.file.partition(":")
            folder, _, name = path.partition("::")
            there = REPOSITORIES[repository] / folder
            chosen.run(imported(there, name) if name else load(there), target)
        row["outcome"] = "right"
    except ptxlab.KernelError as problem:
        is_known = {one.code for one in problem.diagnostics} == {chosen.finds}
        row |= {"outcome": "a bug of the program" if is_known else "found", "problem": str(problem)[:2000]}
        row |= {"why": chosen.run.__doc__} if is_known else {}
    except NotForTargetError as problem:
        row |= {"outcome": "not for this target", "problem": str(problem)}
    except pytest.skip.Exception as problem:
        row |= {"outcome": "failed", "problem": f"the program skips this: {problem}"}
    except AssertionError as problem:
        row |= {"outcome": "wrong", "problem": f"{problem}\n{traceback.format_exc(limit=-3)}"[:2000]}
    except Exception as problem:
        row |= {"outcome": "failed", "problem": f"{type(problem).__name__}: {str(problem)[:700]}\n{_where()}"}
    if session is not None:
        row["launches"] = len(session.launches)
        row["instructions"] = sum(one.result.counters.get("instructions", 0) for one in session.launches)
        row["findings"] = sorted({f"{one.code}: {one.message}" for one in session.diagnostics})
    row["seconds"] = round(time.perf_counter() - started, 1)
    return row


def _where() -> str:
    return traceback.format_exc(limit=-4)[-1200:]


def main() -> int:
    """Run programs, each in a process of its own, and keep what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="the folder with the repositories")
    parser.add_argument("--only", default="", help="programs whose names contain one of these words")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--rows", type=Path, help="write what came of them to this file")
    parser.add_argument("--join", type=Path, nargs="*", default=[], help="such files, of which evidence is made too")
    parser.add_argument("--evidence", action="store_true", help="write evidence/frameworks.json")
    options = parser.parse_args()
    REPOSITORIES.update({folder.name: folder for folder in options.root.iterdir() if folder.is_dir()})
    import torch

    import ptxlab
    from ptxlab.emulate.translate.compile import runtime_code
    from tests.frameworks import projects, tutorials  # noqa: F401 - they register

    torch.set_num_threads(1)  # processes that are forked have one
    assert ptxlab.triton
    runtime_code()
    rows = [row for path in options.join for row in json.loads(path.read_text())]
    for one in PROGRAMS.values():
        if not any(word == f"={one.name}" or word in one.name for word in options.only.split(",")):
            continue
        for target in options.targets.split(","):
            rows.append(_run_apart(one.name, target, options.timeout))
            if options.rows:
                options.rows.write_text(json.dumps(rows))
    rows = list({(row["program"], row["target"]): row for row in rows}.values())
    if options.evidence:
        _keep(options.root, rows, len(options.join))
    return 0 if all(row["outcome"] in _EXPECTED for row in rows) else 1


def _run_apart(name: str, target: str, timeout: float) -> dict[str, Any]:
    """One program for one target, in a process of its own that has all packages already."""
    row: dict[str, Any] = {"program": name, "file": PROGRAMS[name].file, "target": target}
    if target not in PROGRAMS[name].targets:
        row["outcome"] = "not for this target"
    else:
        here, there = get_context("fork").Pipe(duplex=False)
        process = get_context("fork").Process(target=lambda: there.send(run_here(name, target)))
        process.start()
        there.close()
        try:
            row = here.recv() if here.poll(timeout) else row | {"outcome": "timeout", "problem": f"after {timeout} s"}
        except EOFError:
            process.join()
            row |= {"outcome": "crashed", "problem": f"exit status {process.exitcode}"}
        process.kill()
        process.join()
    print(name, target, row["outcome"], row.get("launches", ""), row.get("seconds", ""), *row.get("findings", []))
    if "problem" in row:
        print(row["problem"])
    sys.stdout.flush()
    return row


def _keep(root: Path, rows: list[dict[str, Any]], joined: int) -> None:
    """Write the evidence; `joined` is how many runs before this one its rows are from."""
    from ptxlab.measure.machine import commit

    outcomes = [row["outcome"] for row in rows]
    head = {
        "command": "python -m tests.frameworks.real --evidence",
        "commit": commit(),
        "date": str(date.today()),
        "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "packages": {name: importlib.metadata.version(name) for name in ("triton", "torch", "numpy")},
        "runs before this one": joined,
        "repositories": {name: _revision(REPOSITORIES[name]) for name in sorted({_repository(row) for row in rows})},
        "programs": len({row["program"] for row in rows}),
        "outcomes": {one: outcomes.count(one) for one in sorted(set(outcomes))},
        "findings in programs without a known bug": sum(
            len(row.get("findings", [])) for row in rows if row["outcome"] != "a bug of the program"
        ),
    }
    text = json.dumps(head, indent=1)
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows).replace(f"{root}/", "")
    (ROOT / "evidence" / "frameworks.json").write_text(f'{text[:-2]},\n "rows": [\n{lines}\n ]\n}}\n')


def _repository(row: dict[str, Any]) -> str:
    return str(row["file"]).partition(":")[0]


def _revision(path: Path) -> str:
    """The commit that a repository was taken from: in a file beside its text."""
    marked = path / ".revision"
    return marked.read_text().strip() if marked.is_file() else "unknown"


if __name__ == "__main__":
    from tests.frameworks.real import main as start  # the same module that programs register with

    sys.exit(start())
