"""Copies of the repository, each for a process that changes one place of the source and runs tests.

Machine code is a third of a minute of work for the runtime, and most of the time of a test for a kernel. A copy keeps
it by what it is made from: a change of what only checks, explains or records leaves both as they are, and one of the
runtime leaves kernels. What a copy makes is not optimized, a tenth of the work. For both a copy has a few lines more in
`native`, which is not among the packages that are changed.
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".venv",
    "build",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".pytest_cache",
    ".hypothesis",
)
MEMORY = 12 << 30

# Words in the environment take the place of the source that machine code is made from; LLVM IR is its own key.
CACHE = """

_path_of = _path


def sources(*packages: str) -> str:
    return ""


def _path(folder: Path, key: str) -> Path:
    kind = key.partition(" ")[0]
    if not key[:2].strip().isdigit():
        key += os.environ.get("MUTANTS_RUNTIME" if kind in ("runtime", "hasty") else "MUTANTS_KERNELS", "")
    return _path_of(folder, key)
"""
APART = """

def compile_at_once(texts: Sequence[tuple[str, int]]) -> list[bytes]:
    return [compile_kept(text, speed=0) for text, _ in texts]
"""
# The modules that kernels are made from, and the runtime; what each of them imports later is of the same packages.
LOADED = """
import json, sys
from importlib import import_module
from pkgutil import iter_modules
from ptxlab.emulate import translate
kernels = [one.name for one in iter_modules(translate.__path__) if one.name != "runtime_building"]
for name in NAMES: import_module(name)
print(json.dumps([module.__file__ for name, module in sys.modules.items() if name.startswith("ptxlab.")]))
"""


@dataclass
class Ended:
    """How a run of pytest ended: its status, None when it took too long, and how each test ended."""

    status: int | None
    tests: list[tuple[str, str, float]]
    cpu: float

    @property
    def is_passed(self) -> bool:
        return self.status in (0, 5)  # 5: all tests were left out

    @property
    def count(self) -> int:
        return sum(what == "started" for _, what, _ in self.tests)


@dataclass
class Tree:
    """A copy of the repository that one process changes and tests."""

    folder: Path
    scratch: Path

    @classmethod
    def copy(cls, scratch: Path, number: int) -> "Tree":
        """A new copy, with the machine code that an earlier one has made."""
        folder = scratch / f"tree{number}"
        for old in folder.iterdir() if folder.exists() else ():
            if old.is_dir() and old.name != ".pytest_cache":
                shutil.rmtree(old)
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True, dirs_exist_ok=True)
        for name, more in (("cache", CACHE), ("apart", APART)):
            with (folder / f"src/ptxlab/native/{name}.py").open("a") as file:
                file.write(more)
        return cls(folder, scratch)

    def test(
        self, files: list[str], *options: str, seconds: float, longest: float, changed: str = "", only: list[str] | None
    ) -> Ended:
        """Run pytest for at most so many seconds, and one test for `longest`; perhaps only these tests, in this order.

        `changed` is the file with the mutant.
        """
        said = self.scratch / f"{self.folder.name}.jsonl"
        said.unlink(missing_ok=True)
        others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != str(ROOT / "src")]
        path = os.pathsep.join(map(str, (self.folder / "src", self.folder, *filter(None, others))))
        environment = {**os.environ, "PYTHONPATH": path, "MUTANTS_FILE": str(said), "CUDA_VISIBLE_DEVICES": ""}
        environment["MUTANTS_SECONDS"] = str(longest)
        if only is not None:
            environment["MUTANTS_ONLY"] = str(self.scratch / f"{self.folder.name}.only")
            Path(environment["MUTANTS_ONLY"]).write_text("\n".join(only))
        environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"}
        environment |= self._kept(changed)
        plugins = ["-p", "_hypothesis_pytestplugin", "-p", "tests.mutants.watch", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", "-q", *plugins, *options, *files]
        # Where it is started with Ctrl-C ignored, too, and with less memory than the machine has for all of them.
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, start_new_session=True, preexec_fn=_limit,
            stdin=subprocess.DEVNULL, stdout=(self.scratch / f"{self.folder.name}.txt").open("w"),
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        _running.add(str(said))
        timer = threading.Timer(max(1.0, seconds), _kill, [str(said)])
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        is_late = not timer.is_alive()
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        _kill(str(said))  # what it has started
        _running.discard(str(said))
        lines = said.read_text().splitlines() if said.exists() else []
        tests = [tuple(json.loads(line)) for line in lines]
        return Ended(None if is_late else process.returncode, tests, used.ru_utime + used.ru_stime)

    def _kept(self, changed: str) -> dict[str, str]:
        """What says which machine code can be taken from the cache, and that the tests need not empty it."""
        folder = self.folder / ".pytest_cache" / "ptxlab"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = _digest(self.folder)
        (folder / "sources.txt").write_text(digest)
        made = {"MUTANTS_KERNELS": of_kernels(), "MUTANTS_RUNTIME": of_runtime()}
        return {name: digest if changed in files else _unchanged() for name, files in made.items()}


def share_cache(trees: list[Tree]) -> None:
    """What one process has compiled, or asked ptxas, need not be done by another."""
    caches = [tree.folder / ".pytest_cache" / "ptxlab" for tree in trees]
    for cache_ in caches:
        for file in cache_.iterdir() if cache_.exists() else ():
            for other in caches:
                if file.is_file() and not (other / file.name).exists():
                    other.mkdir(mode=0o700, parents=True, exist_ok=True)
                    shutil.copy2(file, other / file.name)


def _digest(folder: Path) -> str:
    """That of all source, as the tests make it."""
    digest = hashlib.sha256()
    for file in sorted((folder / "src").rglob("*.py")):
        digest.update(f"{file} ".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def _unchanged() -> str:
    return _digest(ROOT)


@cache
def of_kernels() -> set[str]:
    """The files that the machine code of kernels is made from."""
    packages = ("isa", "numbers", "ir", "syntax", "flow", "device", "emulate/abi", "emulate/translate")
    loaded = _loaded('["ptxlab.emulate.translate." + name for name in kernels]')
    return loaded | {
        str(file.relative_to(ROOT)) for name in packages for file in (ROOT / "src/ptxlab" / name).rglob("*.py")
    }


@cache
def of_runtime() -> set[str]:
    """The files that the runtime is made from."""
    return _loaded('["ptxlab.emulate.runtime.table", "ptxlab.emulate.translate.declarations"]') | {
        "src/ptxlab/emulate/translate/runtime_building.py"
    }


def _loaded(names: str) -> set[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", LOADED.replace("NAMES", names)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    return {str(Path(file).relative_to(ROOT)) for file in found}


_running: set[str] = set()  # the files of tests that run, which are in the environment of all of their processes


def stop(*_: object) -> None:
    """End all tests, and this process."""
    for file in list(_running):
        _kill(file)
    os._exit(1)


def _kill(file: str) -> None:
    """End the tests that write such a file, with all processes that they started."""
    wanted = f"MUTANTS_FILE={file}".encode()
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and wanted in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
