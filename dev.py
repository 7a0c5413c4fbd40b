"""What there is to run in this repository; needs a Python 3.11 or later and nothing else.

`python3 dev.py` lists it. Every task first makes the virtual environment `.venv` with ptxlab and its tools, once per
version of pyproject.toml.
"""

import hashlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
STAMP = ENVIRONMENT / ".installed"

# Without other plugins, and without `assert` of ptxlab itself being rewritten, as pytest does it for what has a plugin.
PYTEST = ["pytest", "-q", "-p", "_hypothesis_pytestplugin", "--workers", "auto", "--durations", "15"]
# What native code says before it stops a process is not captured.
CHECKED = [*PYTEST, "--checked", "--capture", "sys", "tests/cases", "tests/emulate"]
# The widget of notebooks and the tools of MCP need packages that are not installed here.
APART = ["--ignore", "src/ptxlab/lab/widget.py", "--ignore", "src/ptxlab/cli/agent_tools.py"]
# With the cache of the tests, so that the machine code that all of them use is made once, not by each process.
DOCTESTS = ["python", "-m", "pytest", "-q", "-p", "tests.conftest", "--doctest-modules", "src", *APART]
RUNTIME = ["python", "-c", "import tests.conftest; from ptxlab.emulate.translate.compile import runtime_code;"
           "runtime_code(), runtime_code(records=True)"]  # fmt: skip
DOCS = [DOCTESTS, ["python", "docs/build.py"]]
SITE = [
    ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", ".[docs]"],
    ["python", "docs/build.py", "--site"],
]
LINT = [["ruff", "format", "--check"], ["ruff", "check"], ["python", "docs/words.py"]]
# One after the other; those of a tuple run side by side.
Commands = list[list[str] | tuple[list[list[str]], ...]]
TASKS: dict[str, tuple[str, Commands]] = {
    "demo": ("a tour of what works", [["ptxlab", "tour"]]),
    "test": ("the tests that matter most, on all cores: under 2 minutes on two", [[*PYTEST, "--quick"]]),
    "check": (
        "format, lint, words, types, layers, all tests, docs: what must pass",
        [
            ([["mypy"]], [*LINT, ["lint-imports"], RUNTIME, *DOCS, PYTEST]),
        ],
    ),
    "bulk": (
        "all tests, kernels optimized, ptxas asked about every form, native code checked: what `check` has no time for",
        [[*PYTEST, "--bulk", "--optimized", "--ask-all"], CHECKED],
    ),
    "bench": (
        "how fast PTX is read and checked, beside ptxas, and how fast kernels run",
        [["python", "benchmarks/front_end.py"], ["python", "benchmarks/emulator.py"]],
    ),
    "docs": ("the reference in build/docs, and the examples in docstrings", DOCS),
    "site": ("the documentation as a site in build/site, by Sphinx", SITE),
}


def install() -> None:
    """Make the environment if it is missing or older than pyproject.toml."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    import tomllib  # since Python 3.11

    print("installing ptxlab and its tools into .venv", flush=True)
    subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    # What is imported is compiled then; all of it before takes as long as the installation itself.
    pip = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    run([*pip, "--upgrade", "pip"])  # the one that comes with Python 3.11 takes twice as long to choose versions
    pip += ["--only-binary", "z3-solver"]  # its newest releases are not for every machine, and take an hour to build
    # NVIDIA's packages need only each other: they are unpacked beside everything else.
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["toolchain"]
    run_side_by_side(([[*pip, *tools]], [[*pip, "--editable", ".[dev]"]]))
    STAMP.write_text(wanted)


def run(command: list[str]) -> None:
    """Run a program of the environment; end with its status if it fails."""
    status = start(command).wait()
    if status:
        sys.exit(status)


def start(command: list[str], output: int | None = None) -> subprocess.Popen[str]:
    """Start a program of the environment."""
    # Tests start Python hundreds of times: the bytecode of what is imported is kept, beside the environment.
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ENVIRONMENT / "bytecode")}
    bytecode["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment = {**os.environ, **bytecode, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}"}
    program = [PROGRAMS / command[0], *command[1:]]
    return subprocess.Popen(program, cwd=ROOT, env=environment, stdout=output, stderr=output and subprocess.STDOUT,
                            text=True)  # fmt: skip


def run_side_by_side(chains: tuple[list[list[str]], ...]) -> None:
    """Run chains of programs, each chain beside the others, until one fails, which ends all.

    The last chain shows what its programs say at once, the others when a program has ended.
    """
    running: dict[int, subprocess.Popen[str]] = {}
    with ThreadPoolExecutor(len(chains)) as pool:
        chosen = [(number, chain, running, None if chain is chains[-1] else subprocess.PIPE)
                  for number, chain in enumerate(chains)]  # fmt: skip
        for done in as_completed([pool.submit(run_chain, *given) for given in chosen]):
            status = done.result()
            if status:
                for program in running.values():
                    program.send_signal(signal.SIGINT)
                sys.exit(status)


def run_chain(
    number: int, chain: list[list[str]], running: dict[int, subprocess.Popen[str]], output: int | None
) -> int:
    """Run programs one after the other until one fails; the status of the last."""
    for command in chain:
        program = running[number] = start(command, output)
        said, _ = program.communicate()
        print(said or "", end="", flush=True)
        if program.returncode:
            return program.returncode
    return 0


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in TASKS:
        for name, (text, _) in TASKS.items():
            print(f"python3 dev.py {name:6} {text}")
        return 2 if arguments else 0
    install()
    for command in TASKS[arguments[0]][1]:
        if isinstance(command, tuple):
            run_side_by_side(command)
        else:
            run(command)
    return 0


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - it is run by whatever Python is there
        sys.exit("ptxlab needs Python 3.11 or later")
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
