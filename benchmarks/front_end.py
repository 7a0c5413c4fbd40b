"""How fast PTX is read and checked, beside ptxas on the same files in the same run.

`make bench` runs it; `--evidence` also writes what it measured to evidence/front_end.json. For each file of the corpus
over 50 KB: the time of `parse` and `check` (the median of three, after a first that fills the tables) and that of
`ptxas -O3`, taken in turns, so that a busy machine slows both.
"""

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import ptxlab
from ptxlab.isa.targets import VERSIONS
from ptxlab.toolchain import Tool, find_assembler
from ptxlab.toolchain.tools import newest_version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.corpus import Case, files  # noqa: E402 - the corpus belongs to the tests

LEAST = 50_000


def check_seconds(text: str) -> float:
    start = time.perf_counter()
    ptxlab.check(ptxlab.parse(text))
    return time.perf_counter() - start


def assemble_seconds(tool: Tool, case: Case, path: Path) -> float:
    command = [str(tool.path), "-arch", case.target, "-O3", *case.assembler_flags, str(path), "-o", f"{path}.cubin"]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Row:
    """One file: the samples of both."""

    file: str
    size: int
    ptxas: str
    check_samples: list[float]
    ptxas_samples: list[float]

    @property
    def check_seconds(self) -> float:
        return statistics.median(self.check_samples)

    @property
    def ratio(self) -> float:
        return statistics.median(self.ptxas_samples) / self.check_seconds

    def __str__(self) -> str:
        speed = self.size / self.check_seconds / 1e6
        return f"{self.file:60} {self.size:>9} bytes  {speed:5.2f} MB/s  ptxas takes {self.ratio:5.1f} times as long"


def measure(case: Case, folder: Path) -> Row:
    """Both on one file, in turns."""
    text = case.text()
    path = folder / "case.ptx"
    path.write_text(text)
    tool = find_assembler(case.version)
    check_seconds(text)
    ours, theirs = [], []
    for _ in range(3):
        ours.append(check_seconds(text))
        theirs.append(assemble_seconds(tool, case, path))
    return Row(case.name, len(text), tool.version, ours, theirs)


def start_up(statement: str) -> float:
    """The median time of a fresh Python process, without that of an empty one."""

    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        return time.perf_counter() - start

    return statistics.median(run(statement) - run("pass") for _ in range(9))


def main(arguments: list[str]) -> int:
    # ptxas does not optimize debug builds.
    newest = newest_version(find_assembler(VERSIONS[-1])) or VERSIONS[-1]
    cases = [
        case for case in files() if len(case.text()) >= LEAST and "-G" not in case.flags and case.version <= newest
    ]
    if "--all" not in arguments:
        cases = cases[:: max(1, len(cases) // 24)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            row = measure(case, Path(folder))
            rows.append(row)
            print(row)
    total = sum(row.size for row in rows) / sum(row.check_seconds for row in rows) / 1e6
    imports = start_up("import ptxlab")
    help_ = start_up("import sys; sys.argv = ['ptxlab', '--help']; from ptxlab.cli import main; main()")
    print(f"all: {total:.2f} MB/s; import {1e3 * imports:.0f} ms, --help {1e3 * help_:.0f} ms over an empty Python")
    if "--evidence" in arguments:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        about = {"date": date.today().isoformat(), "commit": commit}
        about |= {"machine": platform.machine(), "python": platform.python_version()}
        summary = {"megabytes_per_second": total, "import_seconds": imports, "help_seconds": help_}
        path = ROOT / "evidence" / "front_end.json"
        path.write_text(
            json.dumps({"about": about, "summary": summary, "files": [asdict(row) for row in rows]}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
