"""The litmus tests of this folder on a GPU: every outcome that hardware shows must be one that the axioms allow.

    PYTHONPATH=src:. python3 -m tests.litmus.hardware --launches=40 --evidence

Each test runs in every placement; what was observed is printed, a line a test. The status is 1 if a forbidden outcome
was observed. `--evidence` writes evidence/litmus_gpu.json: how often each outcome was observed, in each placement.
"""

import argparse
import json
import platform
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab import gpu
from ptxlab.gpu.hardware import driver_release
from ptxlab.litmus import read
from ptxlab.litmus.report import report
from ptxlab.report import KernelError, PtxError
from tests.gpu.agreement import ROOT, commit

TESTS = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=10, help="in each placement, of 16384 instances each")
    parser.add_argument("--evidence", action="store_true")
    parser.add_argument("--commit", default="", help="what is run, where there is no git to ask")
    options = parser.parse_args()
    start = time.monotonic()
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    for path in sorted(TESTS.glob("*.litmus")):
        test = read(path.read_text(), path.name)
        try:
            made = report(test, device="cuda", launches=options.launches, every=True, seeds=0, bound=1)
        except (PtxError, KernelError) as failure:
            failed.append(path.name)
            print(f"{path.name}: {failure.diagnostics[0].message}", flush=True)
            continue
        forbidden = [one for one in made.outcomes() if one.observed and not one.allowed]
        allowed = [one for one in made.outcomes() if one.allowed]
        seen = sum(one.observed > 0 for one in allowed)
        runs = sum(one.runs for _, one in made.runs)
        said = f"{seen} of {len(allowed)} allowed outcomes in {runs} runs"
        print(f"{path.name}: {made.not_run or said}" + "".join(f"\n  FORBIDDEN {one}" for one in forbidden), flush=True)
        failed += [path.name] if forbidden else []
        rows.append(made.as_object())
    if options.evidence:
        device = gpu.gpu(0)
        head = {
            "command": "python -m tests.litmus.hardware",
            "options": {"launches": options.launches},
            "gpu": device.name,
            "target": device.target,
            "driver": driver_release(),
            "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "commit": options.commit or commit(),
            "date": date.today().isoformat(),
            "seconds": round(time.monotonic() - start, 1),
            "forbidden": failed,
            "tests": rows,
        }
        (ROOT / "evidence" / "litmus_gpu.json").write_text(json.dumps(head, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
