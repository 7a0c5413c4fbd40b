"""Who finds what: the emulator's detectors and NVIDIA's compute-sanitizer, on the same kernels.

    PYTHONPATH=src:. python3 -m tests.gpu.sanitizer collect build/sanitizer.json      # anywhere
    PYTHONPATH=src:. python3 -m tests.gpu.sanitizer run build/sanitizer.json          # on a machine with a GPU

`collect` runs the tests of the detectors and keeps every kernel they launch, wrong or right, with its arguments and
what the emulator says of it. `run` launches each of them under every tool of compute-sanitizer, and without any, and
writes evidence/sanitizer.json. Many kernels share a process, which is started again behind one that breaks its context
or never ends; a report belongs to the kernel that it names.
"""

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.report import KernelError, PtxError

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("pages", "races", "hangs", "copy_order", "release_acquire", "misuse")
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
ALONE = "none"  # no tool: what the GPU itself says
ENDLESS = ("hang", "timeout", "barrier-divergence")
HARMLESS = ((), ("data-race",), ("uninitialised-read",))  # what lets a kernel end, most of the time
TOGETHER = 24  # kernels of one process that are expected to end
PATIENCE = 3  # seconds that a kernel may take
STARTING = 30  # seconds that a process may take


# The kernels.


def collect(path: Path) -> None:
    """Run the tests of the detectors and keep the kernels that they launch."""
    import pytest

    from ptxlab import launch as door

    cases: dict[str, dict[str, Any]] = {}
    emulate = door.emulate

    class Names:
        test = ""

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
            self.test = item.nodeid.rpartition("/")[2]
            return (yield)

    names = Names()

    def keep(module: Any, kernel: Any, **how: Any) -> Any:
        args = [write_argument(value, how["args"][:number]) for number, value in enumerate(how["args"])]
        result = emulate(module, kernel, **{**how, "on_error": "collect"})
        found = sorted({diagnostic.code for diagnostic in result.diagnostics})
        sizes = {name: how[name] for name in ("grid", "block", "shared")}
        case = {"text": module.source.text, "entry": kernel.name, **sizes, "args": args}
        if how["blocks"] is None and how["detectors"]:
            cases.setdefault(json.dumps(case), {"test": names.test, **case, "emulator": found})
        if how["on_error"] == "raise" and any(diagnostic.level == "error" for diagnostic in result.diagnostics):
            raise KernelError(result.diagnostics)
        return result

    door.emulate = keep
    files = [f"tests/emulate/test_{name}.py" for name in TESTS]
    status = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *files], plugins=[names])
    assert status == 0, "the tests must pass: they say which kernels are wrong"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"commit": commit(), "cases": list(cases.values())}, indent=1), encoding="utf-8")
    print(f"{len(cases)} kernels, {sum(bool(case['emulator']) for case in cases.values())} of them wrong")


def write_argument(value: Any, before: Sequence[Any]) -> Any:
    """An argument as JSON; an array that was given before is named by its place."""
    for place, other in enumerate(before):
        if other is value and isinstance(value, np.ndarray):
            return {"same": place}
    if isinstance(value, np.ndarray):
        packed = base64.b64encode(zlib.compress(value.tobytes())).decode()
        return {"type": value.dtype.str, "shape": value.shape, "data": packed}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    return value.item() if hasattr(value, "item") else value


def read_arguments(written: Sequence[Any]) -> list[Any]:
    """The arguments again."""
    values: list[Any] = []
    for one in written:
        if not isinstance(one, dict):
            values.append(one)
        elif "same" in one:
            values.append(values[one["same"]])
        elif "bytes" in one:
            values.append(bytes.fromhex(one["bytes"]))
        else:
            data = zlib.decompress(base64.b64decode(one["data"]))
            values.append(np.frombuffer(bytearray(data), one["type"]).reshape(one["shape"]))
    return values


def named(number: int) -> str:
    """What a kernel is called, so that a report tells which it is about."""
    return f"case_{number}_k"


# Inside a process that compute-sanitizer watches.


def child(path: Path, numbers: Sequence[int]) -> None:
    """Launch kernels one after the other; end behind one that leaves the GPU unusable."""
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    for number in numbers:
        case = cases[number]
        print(f"@@ {number} begins", flush=True)
        text = re.sub(rf"(\.entry\s+){re.escape(case['entry'])}\b", rf"\g<1>{named(number)}", case["text"])
        codes: list[str] = []
        try:
            result = ptxlab.parse(text, name="k.ptx")[named(number)].launch(
                case["grid"], case["block"], read_arguments(case["args"]), shared=case["shared"], device="cuda",
                timeout=PATIENCE, on_error="collect",
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


def watch(path: Path, tool: str, numbers: Sequence[int]) -> dict[int, dict[str, str]]:
    """What a tool says of some kernels."""
    found: dict[int, dict[str, str]] = {}
    left = list(numbers)
    while left:
        command = [sys.executable, "-m", "tests.gpu.sanitizer", "child", str(path), *map(str, left)]
        if tool != ALONE:
            command = ["compute-sanitizer", "--tool", tool, "--show-backtrace", "no", *command]
        output, is_ended = run_bounded(command, STARTING)
        log.append({"tool": tool, "kernels": left, "output": output})
        left = left[read_output(output, is_ended, left, found) :]
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


def read_output(output: str, is_ended: bool, numbers: Sequence[int], found: dict[int, dict[str, str]]) -> int:
    """Sort what was printed by kernel; how many of them are done with."""
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
        codes = json.loads(end[1]) if end else ["timeout"] if not is_ended else ["broken off"]
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
    if not done:  # it did not even begin: the end of what was said tells why
        found[numbers[0]] = {"verdict": "other", "said": output[-300:]}
    return max(done, 1)


def parts(cases: Sequence[dict[str, Any]]) -> list[list[int]]:
    """The kernels in groups: first those that end badly, a process each, then those that end, then the endless."""
    alone, together, endless = [], [], []
    for number, case in enumerate(cases):
        codes = tuple(case["emulator"])
        home = together if codes in HARMLESS else endless if set(codes) & set(ENDLESS) else alone
        home.append(number)
    groups = [together[start : start + TOGETHER] for start in range(0, len(together), TOGETHER)]
    return [*groups, *([number] for number in (*alone, *endless))]


def run(path: Path, output: Path, workers: int, seconds: float, keep_log: Path | None) -> None:
    """Watch every kernel under every tool, and keep what was said; what is not begun in `seconds` is left out."""
    from ptxlab.gpu.hardware import driver_release, gpu
    from ptxlab.toolchain import find

    started = time.perf_counter()
    kept = json.loads(path.read_text(encoding="utf-8"))
    cases = kept["cases"]
    # Tools take turns, so that the endless kernels of all of them come last.
    asked = [(tool, group) for group in parts(cases) for tool in (ALONE, *TOOLS)]

    def answer(one: tuple[str, list[int]]) -> tuple[str, dict[int, dict[str, str]]]:
        return one[0], watch(path, *one) if time.perf_counter() - started < seconds else {}

    with ThreadPoolExecutor(workers) as pool:
        answers = list(pool.map(answer, asked))
    if keep_log is not None:
        keep_log.write_bytes(zlib.compress(json.dumps(log).encode()))
    said: dict[int, dict[str, dict[str, str]]] = {}
    for tool, found in answers:
        for number, verdict in found.items():
            said.setdefault(number, {})[tool] = verdict
    rows = [
        {"test": cases[number]["test"], "emulator": cases[number]["emulator"], "tools": said[number]}
        for number in sorted(said)
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
    }
    text = json.dumps(head, indent=1)[:-2] + ',\n "kernels": [\n'
    text += ",\n".join("  " + json.dumps(row) for row in rows) + "\n ]\n}\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    print(f"{len(rows)} kernels, {len(asked)} processes or more, {head['seconds']} s")
    for tool in (ALONE, *TOOLS):
        for wrong in (True, False):
            verdicts = [
                row["tools"].get(tool, {"verdict": "not run"})["verdict"]
                for row in rows
                if bool(row["emulator"]) == wrong
            ]
            counts = {name: verdicts.count(name) for name in sorted(set(verdicts))}
            print(f"{tool:10} {'wrong' if wrong else 'right'} {counts}")


def commit() -> str:
    """The commit that is checked out."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=True)
    return asked.stdout.strip()


def main() -> None:
    """`collect`, `run` or, inside of that, `child`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["collect", "run", "child"])
    parser.add_argument("cases", type=Path)
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--output", type=Path, default=ROOT / "evidence" / "sanitizer.json")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=3600, help="begin nothing more after that")
    parser.add_argument("--log", type=Path, help="keep all that was printed, compressed")
    options = parser.parse_args()
    if options.step == "collect":
        collect(options.cases)
    elif options.step == "child":
        child(options.cases, options.numbers)
    elif shutil.which("compute-sanitizer") is None:
        sys.exit("compute-sanitizer is not there: it comes with the CUDA toolkit")
    else:
        run(options.cases.resolve(), options.output, options.workers, options.seconds, options.log)


if __name__ == "__main__":
    main()
