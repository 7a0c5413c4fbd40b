"""NVSHMEM's own examples, whole, on four PEs: `python -m tests.programs.nvshmem_examples FOLDER OUT.json [OPTIONS]`.

FOLDER is `examples` of NVSHMEM's repository, which is not part of this one. Each program runs on one machine and on
two, with several seeds. It passes if all PEs end with status 0 and what they print has the text of its own check; what
is found is counted by its line, of the program where the message names one.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxlab.programs.building import build
from ptxlab.programs.program import ProgramOptions, modules_of, run_program
from ptxlab.report import Diagnostic, render
from tests.node.strangers import printed_to

PES = 4


@dataclass(frozen=True)
class Example:
    """A program with its arguments; what each PE prints that is right, or what none prints but one that is not."""

    file: str
    expected: str = ""
    wrong: str = "error|failure"
    arguments: str = ""


EXAMPLES = [
    Example("hello.cpp", r"Hello from PE \d of 4"),
    Example("on-stream.cu", r"\[\d of 4\] run complete"),
    Example("collective-launch.cu", r"results on device \[(\d)\] is"),
    Example("dev-guide-ring.cu", r"(\d): received message (?!\1)\d"),
    Example("put-block.cu", r"\[\d of 4\] run complete"),
    Example("ring-bcast.cu"),
    Example("ring-reduce.cu", arguments="-b 1K -e 2K -c 2 -t 64 -n 1 -w 1 -m 256"),
    Example("thread-group.cu", r"\[\d of 4\] run complete"),
]


def shown(found: Diagnostic) -> str:
    """A finding by its code and the lines of the program that it names, or its message if it names none."""
    text = render([found], "full")
    lines = sorted({f"{Path(file).name}:{line}" for file, line in re.findall(r"([\w./-]+\.(?:cu|cpp)):(\d+)", text)})
    return f"{found.code} {', '.join(lines) or found.message}"


def run(example: Example, executable: Path, machines: int, seeds: list[int]) -> dict[str, Any]:
    """Run one program under several seeds; what came of it."""
    options = ProgramOptions(gpus=PES, machines=machines)
    modules = modules_of(executable, options)
    right, found = 0, Counter[str]()
    for seed in seeds:
        options = ProgramOptions(gpus=PES, machines=machines, launch={"seed": seed})
        with printed_to(said := io.StringIO()):
            result = run_program([str(executable), *example.arguments.split()], options, modules)
        printed = said.getvalue()
        is_right = not example.expected or len(re.findall(example.expected, printed)) == PES
        right += is_right and result.status == 0 and not re.search(example.wrong, printed)
        found.update({shown(one) for one in result.findings if one.level != "note"})
    return {"program": example.file, "machines": machines, "seeds": len(seeds), "right": right, "found": dict(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="programs; the rows of others are kept")
    asked = parser.parse_args()
    known = json.loads(asked.out.read_text())["rows"] if asked.out.is_file() else []
    rows = [row for row in known if not re.search(asked.only, row["program"])]
    with tempfile.TemporaryDirectory() as folder:
        for example in (one for one in EXAMPLES if re.search(asked.only, one.file)):
            executable = Path(folder) / Path(example.file).stem
            build(asked.folder / example.file, executable, None, [])
            for machines in (1, 2):
                rows.append(run(example, executable, machines, list(range(asked.seeds))))
                print(json.dumps(rows[-1]), flush=True)
    order = [example.file for example in EXAMPLES]
    rows.sort(key=lambda row: (order.index(row["program"]), row["machines"]))
    about = {"command": "python -m tests.programs.nvshmem_examples FOLDER OUT.json", "pes": PES, "rows": rows}
    asked.out.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
