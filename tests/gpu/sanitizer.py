"""Who finds what: the emulator's detectors and NVIDIA's compute-sanitizer, on the same kernels.

    PYTHONPATH=src:. python3 -m tests.gpu.sanitizer collect build/sanitizer.json      # anywhere
    PYTHONPATH=src:. python3 -m tests.gpu.sanitizer run build/sanitizer.json          # on a machine with a GPU

`collect` runs the tests of the detectors and the files of `tests/cases`, and keeps every kernel, wrong or right, with
its arguments, its code for a GPU and what the emulator says of it; and with these all variants of the gallery, which
are right. ptxas leaves out loads whose value is not used, and with them the races of many a test, so values that are
loaded are stored to a word of the thread's own; the emulator must say the same of both. `run` launches each kernel
under every tool of compute-sanitizer, and without any, and writes evidence/sanitizer.json. Many kernels share a
process, which is started again after one that breaks its context or never ends; a report belongs to the kernel that it
names.
"""

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab.launch.contexts import context_of
from ptxlab.report import KernelError, PtxError

from .sanitizer_kernels import HARMLESS, collect, named, read_arguments, sizes_of

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
ALONE = "none"  # no tool: what the GPU itself says
ENDLESS = ("hang", "timeout", "barrier-divergence")
TOGETHER = 40  # kernels of one process that are expected to end
SOME = 3  # of those that may break it off
PATIENCE = 2  # seconds that a kernel may take
NO_PATIENCE = 1  # seconds that one may take of which the emulator says that it does not end
STARTING = 15  # seconds that a process may take
EACH = 2  # seconds more for each of its kernels


# Inside a process that compute-sanitizer watches.


def child(path: Path, numbers: Sequence[int]) -> None:
    """Launch kernels one after the other; end after one that leaves the GPU unusable."""
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    for number in numbers:
        case = cases[number]
        print(f"@@ {number} begins", flush=True)
        codes: list[str] = []
        try:
            module = ptxlab.parse(case["text"], name="k.ptx")
            context_of(module).findings = []  # the emulator has checked it
            with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
                file.write(zlib.decompress(base64.b64decode(case["cubin"])))
                file.flush()
                result = module[named(number)].launch(
                    args=read_arguments(case["args"]), **sizes_of(case), device="cuda", compile=file.name,
                    timeout=NO_PATIENCE if is_endless(case) else PATIENCE, on_error="collect",
                )  # fmt: skip
            codes = [found.code for found in result.diagnostics]
        except (PtxError, KernelError) as problem:
            codes = [f"refused: {problem.diagnostics[0].message}"]
        print(f"@@ {number} ends {json.dumps(codes)}", flush=True)
        if codes[:1] == ["timeout"]:
            os._exit(3)  # an orderly end would wait for the kernel
        if codes and not codes[0].startswith("refused"):
            return


# Outside.


def watch(path: Path, tool: str, numbers: Sequence[int], end: float) -> dict[int, dict[str, str]]:
    """What a tool says of some kernels, of as many as there is time for until `end`."""
    found: dict[int, dict[str, str]] = {}
    left = list(numbers)
    while left and time.perf_counter() < end:
        command = [sys.executable, "-m", "tests.gpu.sanitizer", "child", str(path), *map(str, left)]
        if tool != ALONE:
            command = ["compute-sanitizer", "--tool", tool, "--show-backtrace", "no", *command]
        started = time.perf_counter()
        output, is_ended = run_bounded(command, min(STARTING + EACH * len(left), end - started))
        taken = time.perf_counter()
        log.append({"tool": tool, "kernels": left, "seconds": round(taken - started, 1), "output": output})
        unended = "broken off" if is_ended else "timeout" if taken < end else None
        left = left[read_output(output, unended, left, found) :]
    return found


log: list[dict[str, Any]] = []
"""What every process printed."""


def run_bounded(command: Sequence[str], seconds: float) -> tuple[str, bool]:
    """The output of a program, and whether it ended in time; if not, it is stopped with all that it has started."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                          env=environment, start_new_session=True, errors="replace") as process:  # fmt: skip
        try:
            return process.communicate(timeout=seconds)[0], True
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return process.communicate()[0], False


def read_output(output: str, unended: str | None, numbers: Sequence[int], found: dict[int, dict[str, str]]) -> int:
    """Sort what was printed by kernel; how many of them are done with. `unended` is said of one without an end."""
    reports: dict[int, str] = {}
    for report in re.findall(r"^========= \S.*(?:\n=========  +.*)*", output, re.M):
        about = re.search(r"\bcase_(\d+)_k\b", report)
        if about is not None:
            reports.setdefault(int(about[1]), re.sub(r"^=+ ", "", report.splitlines()[0]))
    done = 0
    for number in numbers:
        if f"@@ {number} begins" not in output:
            break
        done += 1
        end = re.search(rf"@@ {number} ends (.*)", output)
        if end is None and unended is None:
            break
        codes = json.loads(end[1]) if end else [unended]
        if number in reports:
            found[number] = {"verdict": "found", "said": re.sub(r"case_\d+_k", "k", reports[number])}
        elif codes[:1] == ["timeout"]:
            found[number] = {"verdict": "hangs"}
        elif not codes:
            found[number] = {"verdict": "silent"}
        elif codes[0].startswith("refused"):
            found[number] = {"verdict": "refused", "said": codes[0].removeprefix("refused: ")}
        else:
            found[number] = {"verdict": "stops", "said": codes[0]}
    if not done and unended is not None:  # it did not even start: the end of its output says why
        found[numbers[0]] = {"verdict": "other", "said": output[-300:]}
    return max(done, 1)


def parts(cases: Sequence[dict[str, Any]]) -> list[list[int]]:
    """The kernels in groups: first those that end, then those that may break their context, then the endless."""
    alone, together, endless = [], [], []
    for number, case in enumerate(cases):
        codes = tuple(case["emulator"])
        home = together if codes in HARMLESS else endless if is_endless(case) else alone
        home.append(number)
    return [
        home[start : start + size]
        for home, size in ((together, TOGETHER), (alone, SOME), (endless, 1))
        for start in range(0, len(home), size)
    ]


def is_endless(case: dict[str, Any]) -> bool:
    """Whether the emulator says of a kernel that it does not end."""
    return not set(case["emulator"]).isdisjoint(ENDLESS)


def run(path: Path, output: Path, workers: int, seconds: float, keep_log: Path | None) -> None:
    """Watch every kernel under every tool, and keep what was said; what is not done in `seconds` is said not to be."""
    from ptxlab.gpu.hardware import driver_release, gpu
    from ptxlab.toolchain import find

    started = time.perf_counter()
    kept = json.loads(path.read_text(encoding="utf-8"))
    cases = kept["cases"]
    # Tools take turns, so that the endless kernels of all of them come last.
    asked = [(tool, group) for group in parts(cases) for tool in (ALONE, *TOOLS)]

    def answer(one: tuple[str, list[int]]) -> tuple[str, dict[int, dict[str, str]]]:
        return one[0], watch(path, *one, end=started + seconds)

    with ThreadPoolExecutor(workers) as pool:
        answers = list(pool.map(answer, asked))
    if keep_log is not None:
        keep_log.write_bytes(zlib.compress(json.dumps(log).encode()))
    said: dict[int, dict[str, dict[str, str]]] = {}
    for tool, found in answers:
        for number, verdict in found.items():
            said.setdefault(number, {})[tool] = verdict
    unknown = {"verdict": "not run", "said": f"{seconds:g} seconds were over"}
    rows = [
        {
            "test": case["test"],
            "emulator": case["emulator"],
            "tools": {tool: said.get(number, {}).get(tool, unknown) for tool in (ALONE, *TOOLS)},
        }
        for number, case in enumerate(cases)
    ]
    shown = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=False)
    head = {
        "command": "python -m tests.gpu.sanitizer",
        "gpu": gpu(0).name,
        "driver": driver_release(),
        "sanitizer": shown.stdout.strip().splitlines()[-1] if shown.stdout else None,
        "ptxas": find("ptxas").version,
        "commit": os.environ.get("PTXLAB_COMMIT") or kept["commit"],
        "date": date.today().isoformat(),
        "seconds": round(time.perf_counter() - started, 1),
        "excluded": kept["excluded"],
    }
    text = json.dumps(head, indent=1)[:-2] + ',\n "kernels": [\n'
    text += ",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    print(f"{len(rows)} kernels, {len(asked)} processes or more, {head['seconds']} s")
    for tool in (ALONE, *TOOLS):
        for wrong in (True, False):
            verdicts = [row["tools"][tool]["verdict"] for row in rows if bool(row["emulator"]) == wrong]
            counts = {name: verdicts.count(name) for name in sorted(set(verdicts))}
            print(f"{tool:10} {'wrong' if wrong else 'right'} {counts}")


def main() -> None:
    """`collect`, `run` or, inside of that, `child`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["collect", "run", "child"])
    parser.add_argument("cases", type=Path)
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--output", type=Path, default=ROOT / "evidence" / "sanitizer.json")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--target", default="sm_90", help="the GPU that `collect` compiles for")
    parser.add_argument("--seconds", type=float, default=3600, help="stop after that; what is missing is left out")
    parser.add_argument("--log", type=Path, help="keep all that was printed, compressed")
    options = parser.parse_args()
    if options.step == "collect":
        collect(options.cases, options.target)
    elif options.step == "child":
        child(options.cases, options.numbers)
    elif shutil.which("compute-sanitizer") is None:
        sys.exit("compute-sanitizer is not there: it comes with the CUDA toolkit")
    else:
        run(options.cases.resolve(), options.output, options.workers, options.seconds, options.log)


if __name__ == "__main__":
    main()
