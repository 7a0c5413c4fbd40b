"""What a launch costs in a program that `ptxlab run` runs, beside the same launch from Python on the emulator.

`python benchmarks/programs.py` prints a line for each case; `--evidence` also writes evidence/program_overhead.json.
All is measured in one process, in turns, by the processor time of it and of the program: a program with many launches
less the same with few, so that its start does not count. Managed memory is copied and compared around launches, so that
an access without a synchronize is found: of a kernel's first launches all of it, later as much as takes a small share.
"""

import argparse
import json
import platform
import resource
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import numpy

import ptxlab
from ptxlab.ir import Function
from ptxlab.measure.machine import commit
from ptxlab.programs.building import build
from ptxlab.programs.program import ProgramOptions, run_program

SOURCE = Path(__file__).resolve().parent / "kernels" / "overhead.cu"
EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "program_overhead.json"
FEW, TURNS = 6, 3
BAR = 1.1


@dataclass(frozen=True)
class Case:
    """A kernel of so many threads and rounds, on so much memory."""

    kind: str
    megabytes: float
    threads: int
    rounds: int
    launches: int


CASES = (
    Case("device", 0.25, 1 << 16, 8, 40),
    Case("device", 1, 1 << 16, 64, 20),
    Case("device", 4, 1 << 20, 16, 6),
    Case("device", 64, 1 << 18, 16, 16),
    Case("managed", 1, 1 << 16, 64, 20),
    Case("managed", 16, 1 << 18, 16, 16),
    Case("managed", 24, 1 << 18, 16, 16),
    Case("managed", 32, 1 << 20, 16, 6),
    Case("managed", 64, 1 << 20, 16, 6),
    Case("managed", 256, 1 << 20, 16, 6),
)


def processor_time() -> float:
    """Seconds of this process and of programs that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def of_program(program: Path, case: Case, launches: int) -> float:
    """Processor time of a program with so many launches."""
    given = (launches, case.threads, case.rounds, int(case.megabytes * 2**20), case.kind)
    started = processor_time()
    result = run_program([str(program), *map(str, given)], ProgramOptions())
    spent = processor_time() - started
    assert (result.status, result.launches["grow"].count) == (0, launches)
    assert not result.findings, result.findings
    return spent


def from_python(kernel: Function, case: Case, launches: int) -> float:
    """Processor time of so many launches from Python."""
    x = numpy.zeros(int(case.megabytes * 2**18), numpy.float32)
    started = processor_time()
    for _ in range(launches):
        kernel.launch(-(-case.threads // 256), 256, [x, case.threads, case.rounds], device="cpu")
    return processor_time() - started


def measure(case: Case, program: Path, kernel: Function) -> dict[str, object]:
    """The time of a launch by both, in turns, and how they compare."""
    from_python(kernel, case, 1)
    of_program(program, case, 1)
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(TURNS):
        few = of_program(program, case, FEW)
        plain.append(from_python(kernel, case, case.launches) / case.launches)
        ours.append((of_program(program, case, FEW + case.launches) - few) / case.launches)
    ratio = statistics.median(ours) / statistics.median(plain)
    return {
        **asdict(case), "program_ms": 1e3 * statistics.median(ours), "python_ms": 1e3 * statistics.median(plain),
        "ratio": round(ratio, 3), "ratios": [round(one / other, 3) for one, other in zip(ours, plain, strict=True)],
    }  # fmt: skip


def main() -> int:
    """Measure all cases; 1 if one is above the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evidence", action="store_true")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "overhead"
        assert not build(SOURCE, program, "sm_90", ["-O2"])
        kernel = ptxlab.cuda(SOURCE, "sm_90", ["-O2"])["grow"]
        for case in CASES:
            started = time.perf_counter()
            rows.append(measure(case, program, kernel))
            print(*(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
                    for name, value in rows[-1].items()), f"({time.perf_counter() - started:.0f} s)",
                  sep="  ", flush=True)  # fmt: skip
    if asked.evidence:
        about = {"date": date.today().isoformat(), "commit": commit(), "machine": platform.machine(),
                 "measured": "processor time of a launch, median of turns", "bar": BAR}  # fmt: skip
        EVIDENCE.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    return int(any(float(str(row["ratio"])) > BAR for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
