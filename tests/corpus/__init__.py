"""Real PTX to try the tools on: `files()` lists it, each case says its target and loads its text.

`ptx/` holds what compilers produced from `cuda/` and `triton/` (see `make.py`), compressed, and `index.json`.
`handwritten/` holds the corners of the language that no compiler writes. ptxas accepts every one of them.
`snippets()` lists short modules, right and wrong, with ptxas's verdict on each.
"""

import importlib.util
import json
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """One PTX file, what made it, and how to assemble it."""

    name: str
    """Unique and readable: `scan.sm_80.G`, `handwritten/expressions`."""
    path: Path
    target: str
    """The value for ptxas's `-arch`."""
    producer: str
    """`nvcc 13.0.88`, `triton 3.9.0` or `hand`."""
    flags: tuple[str, ...] = ()
    """What the compiler was told."""
    assembler_flags: tuple[str, ...] = ()
    """What ptxas must be told besides the target, such as `-c` for a module with unresolved symbols."""

    def text(self) -> str:
        """Return the PTX, line ends untouched."""
        data = self.path.read_bytes()
        return (lzma.decompress(data) if self.path.suffix == ".xz" else data).decode()

    @property
    def version(self) -> tuple[int, int]:
        """The module's `.version`."""
        return version_of(self.text())


def version_of(text: str) -> tuple[int, int]:
    """Return the `.version` of a module's text."""
    match = re.search(r"\.version\s+(\d+)\.(\d+)", text)
    assert match, "no .version"
    return int(match[1]), int(match[2])


def files() -> list[Case]:
    """Return every case of the corpus, ordered by name."""
    return sorted([*produced(), *handwritten()], key=lambda case: case.name)


def produced() -> list[Case]:
    """Return the cases that compilers made."""
    entries = json.loads((ROOT / "ptx" / "index.json").read_text())
    return [
        Case(
            name=entry["name"],
            path=ROOT / "ptx" / f"{entry['name']}.ptx.xz",
            target=entry["target"],
            producer=entry["producer"],
            flags=tuple(entry["flags"]),
            assembler_flags=tuple(entry["assembler_flags"]),
        )
        for entry in entries
    ]


def handwritten() -> list[Case]:
    """Return the cases written by hand; `// ptxas: -arch sm_80 -c` in a file's first lines tells how to assemble it."""
    cases = []
    for path in sorted((ROOT / "handwritten").glob("*.ptx")):
        match = re.search(r"^// ptxas: -arch (\S+)(.*)$", path.read_text(), re.MULTILINE)
        assert match, f"{path.name} does not say how to assemble it"
        cases.append(
            Case(
                name=f"handwritten/{path.stem}",
                path=path,
                target=match[1],
                producer="hand",
                assembler_flags=tuple(match[2].split()),
            )
        )
    return cases


@dataclass(frozen=True)
class Snippet:
    """A short module, most of them wrong in one way, and what ptxas says of it."""

    text: str
    accepted: bool
    target: str = "sm_90"


def snippets() -> list[Snippet]:
    """Return the modules of `snippets.txt`."""
    found = []
    for line in (ROOT / "snippets.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        verdict, body = line.split(" ", 1)
        body = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), body)
        body = body.replace("\\n", "\n").replace("\\r", "\r")
        found.append(Snippet(f".version 8.3\n.target sm_90\n.address_size 64\n{body}\n", verdict == "accept"))
    return found


def assemblers() -> list[str]:
    """Return every ptxas at hand: those named in `PTXAS` (separated like PATH), the one on PATH, the PyPI wheel's."""
    found = [path for path in os.environ.get("PTXAS", "").split(os.pathsep) if path]
    if on_path := shutil.which("ptxas"):
        found.append(on_path)
    wheel = importlib.util.find_spec("nvidia")
    for root in wheel.submodule_search_locations or () if wheel else ():
        found += [str(path) for path in sorted(Path(root).glob("*/bin/ptxas"))]
    return list(dict.fromkeys(found))


def assemble(text: str, target: str, flags: tuple[str, ...], ptxas: str) -> str | None:
    """Assemble `text`; return None when ptxas accepts it, else what it says."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "module.ptx")
        source.write_bytes(text.encode())
        command = [ptxas, "-arch", target, *flags, "-o", str(Path(folder, "module.cubin")), str(source)]
        # ptxas 13.0 never returns when a line comment ends the file without an end of line.
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        except subprocess.TimeoutExpired:
            return "no answer in 300 seconds"
    if result.returncode == 0:
        return None
    return f"exit {result.returncode}: {result.stdout}{result.stderr}".replace(str(source), "module.ptx")


def is_too_new(complaint: str) -> bool:
    """Tell whether ptxas refused a module only because it is older than the module's `.version` or target."""
    return "Unsupported .version" in complaint or "is not defined for option 'gpu-name'" in complaint
