"""Regenerate the produced PTX in `ptx/` from the sources in `cuda/` and `triton/`.

    python tests/corpus/make.py                 # everything
    python tests/corpus/make.py gemm matmul     # these sources
    python tests/corpus/make.py --missing       # what is not there yet

A CUDA source names its builds in lines `// make: sm_80 sm_90a -lineinfo`: one file for each target, with these flags.
A word like `nvcc-13.4` asks for that release of nvcc, to be named with `--nvcc`; the others take the one on PATH.
A line `// headers: cutlass` says that the source needs `--cutlass`, the folder that holds CUTLASS's headers.
Headers that lie elsewhere, as libcudacxx does in the PyPI wheels, are found through the variable CPATH.

A Triton source has lines `# make: name sm_80 sm_90a` and a table `BUILDS` that gives for each name the kernel, its
arguments (a string is a type, `i32:16` one divisible by 16, anything else a compile-time constant) and the options.
Triton must be importable by the Python that runs this; PyTorch is not needed.

A file is written only after a ptxas accepted it; `PTXAS` may name newer ones, for PTX newer than that on PATH knows.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# The folder `triton/` beside this file must not be taken for the package.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from corpus import ROOT, assemble, assemblers, is_too_new, version_of  # noqa: E402

OUTPUT = ROOT / "ptx"
NEUTRAL = "/corpus"


@dataclass(frozen=True)
class Build:
    """One file to produce."""

    source: Path
    target: str
    flags: tuple[str, ...] = ()
    assembler_flags: tuple[str, ...] = ()
    variant: str = ""
    compiler: str = "nvcc"

    @property
    def name(self) -> str:
        """The produced file's name without its ending: `scan.sm_80.G`."""
        tags = [re.sub(r"=true|=|--default-|^-+", "", flag) for flag in self.flags]
        compiler = [self.compiler] if self.compiler != "nvcc" else []
        return ".".join([self.source.stem, *filter(None, [self.variant]), self.target, *compiler, *tags])


def builds() -> Iterator[Build]:
    """Yield everything the sources ask for."""
    for source in sorted([*(ROOT / "cuda").glob("*.cu"), *(ROOT / "triton").glob("*.py")]):
        for line in re.findall(r"^(?://|#) make: (.*)$", source.read_text(), re.MULTILINE):
            targets = [word for word in line.split() if word.startswith("sm_")]
            compiler = next((word for word in line.split() if word.startswith("nvcc-")), "nvcc")
            others = [word for word in line.split() if not word.startswith("sm_") and word != compiler]
            for target in targets:
                if source.suffix == ".py":
                    yield Build(source, target, variant=others[0])
                    continue
                # A relocatable module may leave symbols undefined; without -c ptxas wants to link it.
                linking = ("-c",) if "-rdc=true" in others else ()
                yield Build(source, target, tuple(others), linking, compiler=compiler)


def compile_cuda(build: Build, compilers: dict[str, str], cutlass: Path | None) -> str:
    """Run nvcc in a folder of its own and return the PTX, without that folder's name."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        shutil.copy(build.source, folder)
        for header in (ROOT / "cuda").glob("*.cuh"):
            shutil.copy(header, folder)
        include = [f"-I{cutlass}"] if cutlass and needs_cutlass(build.source) else []
        command = [compilers[build.compiler], "-ptx", "-w", "-arch", build.target, *build.flags, *include]
        command += [build.source.name, "-o", "out.ptx"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"nvcc failed on {build.name}:\n{(result.stderr + result.stdout)[:3000]}")
        folders = [os.path.realpath(folder), folder, *([str(cutlass)] if include else [])]
        if build.compiler != "nvcc":
            folders.append(str(Path(compilers[build.compiler]).parent.parent))
        return without_paths(Path(folder, "out.ptx").read_text(), folders)


def needs_cutlass(source: Path) -> bool:
    """Tell whether a CUDA source includes CUTLASS."""
    return "// headers: cutlass" in source.read_text()


def without_paths(text: str, folders: list[str]) -> str:
    """Replace the names of `folders` by a neutral one, in strings and in the bytes of debug information.

    Debug information refers to its own bytes by offset, so the length stays.
    """
    tokens = list(BYTE.finditer(text))
    data = bytes(int(token[0]) for token in tokens)
    for folder in folders:
        neutral = NEUTRAL.ljust(len(folder), "/")
        assert len(neutral) == len(folder), f"{folder} is too short a name"
        data = data.replace(folder.encode(), neutral.encode())
    pieces, at = [], 0
    for token, byte in zip(tokens, data, strict=True):
        pieces += [text[at : token.start()], str(byte)]
        at = token.end()
    text = "".join(pieces) + text[at:]
    for folder in folders:
        text = text.replace(folder, NEUTRAL.ljust(len(folder), "/"))
    return text


# One number of a `.b8` directive, which may list several, inside a debug section.
BYTE = re.compile(r"(?:(?<=^\.b8 )|(?<=,))\d{1,3}(?=,|\s)", re.MULTILINE)


TRITON_SCRIPT = """
import importlib.util, sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

path, name, target = sys.argv[1:]
spec = importlib.util.spec_from_file_location("kernels", path)
module = sys.modules["kernels"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel, arguments, options = module.BUILDS[name]
signature, constants, attributes = {}, {}, {}
for position, (argument, value) in enumerate(arguments.items()):
    if not isinstance(value, str):
        signature[argument], constants[argument] = "constexpr", value
        continue
    signature[argument], _, divisor = value.partition(":")
    if divisor or value.startswith("*"):
        attributes[(position,)] = [["tt.divisibility", 16]]
source_type = getattr(module, "Source", ASTSource)
source = source_type(kernel, signature, constants, attributes)
number = int(target.rstrip("a").removeprefix("sm_"))
print(triton.compile(source, target=GPUTarget("cuda", number, 32), options=options).asm["ptx"])
"""


def compile_triton(build: Build) -> str:
    """Have Triton compile one kernel in a process of its own and return the PTX."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        source = shutil.copy(build.source, folder)
        environment = os.environ | {"TRITON_CACHE_DIR": str(Path(folder, "cache"))}
        command = [sys.executable, "-c", TRITON_SCRIPT, source, build.variant, build.target]
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"triton failed on {build.name}:\n{result.stderr[-700:]}")
        # Triton's own functions have lines of their own.
        installed = str(Path(importlib.util.find_spec("triton").origin).parent.parent)
        return without_paths(result.stdout, [os.path.realpath(folder), folder, installed])


def check(build: Build, text: str) -> None:
    """Raise unless some ptxas at hand accepts `text`, or when a path of the machine that made it shows."""
    data = bytes(int(token[0]) for token in BYTE.finditer(text))
    for folder in ("/tmp/", "/home/", "/opt/", f"{Path.home()}/", f"{Path.cwd()}/"):
        if folder in text or folder.encode() in data:
            raise RuntimeError(f"{build.name} names a path under {folder}")
    complaints = []
    for ptxas in assemblers():
        complaint = assemble(text, build.target, build.assembler_flags, ptxas)
        if complaint is None:
            return
        complaints.append(complaint)
        if not is_too_new(complaint):
            break
    raise RuntimeError(f"{build.name} is refused: {' / '.join(complaints) or 'no ptxas found'}"[:3000])


def produce(build: Build, compilers: dict[str, str], cutlass: Path | None) -> str | None:
    """Make one file; return what went wrong, if anything."""
    try:
        text = compile_cuda(build, compilers, cutlass) if build.source.suffix == ".cu" else compile_triton(build)
        check(build, text)
    except RuntimeError as error:
        return str(error)
    data = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    (OUTPUT / f"{build.name}.ptx.xz").write_bytes(data)
    return None


def write_index(wanted: list[Build], made: set[str]) -> None:
    """Describe every produced file in `index.json` and delete those that no source asks for."""
    index = OUTPUT / "index.json"
    old = {entry["name"]: entry for entry in json.loads(index.read_text())} if index.exists() else {}
    entries = []
    for build in sorted(wanted, key=lambda build: build.name):
        path = OUTPUT / f"{build.name}.ptx.xz"
        if not path.exists():
            continue
        if build.name in old and build.name not in made:
            entries.append(old[build.name])
            continue
        text = lzma.decompress(path.read_bytes()).decode()
        entries.append(
            {
                "name": build.name,
                "source": str(build.source.relative_to(ROOT)),
                "producer": producer(text),
                "target": build.target,
                "flags": list(build.flags),
                "assembler_flags": list(build.assembler_flags),
                "version": "{}.{}".format(*version_of(text)),
                "bytes": len(text.encode()),
            }
        )
    index.write_text("[\n" + ",\n".join(map(json.dumps, entries)) + "\n]\n")
    kept = {f"{entry['name']}.ptx.xz" for entry in entries}
    for path in OUTPUT.glob("*.ptx.xz"):
        if path.name not in kept:
            path.unlink()
    total = sum(entry["bytes"] for entry in entries)
    packed = sum((OUTPUT / name).stat().st_size for name in kept)
    print(f"{len(entries)} files, {total / 1e6:.1f} MB of PTX, {packed / 1e6:.2f} MB compressed")


def producer(text: str) -> str:
    """Say which compiler wrote `text`."""
    if match := re.search(r"release [\d.]+, V([\d.]+)", text):
        return f"nvcc {match[1]}"
    return "triton " + importlib.metadata.version("triton")


def find_compilers(named: list[str]) -> dict[str, str]:
    """Map `nvcc` to the one on PATH and `nvcc-13.4` to the one of that release, as far as they are there."""
    on_path = shutil.which("nvcc")
    found = {"nvcc": on_path} if on_path else {}
    for path in [*named, *found.values()]:
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        if match := re.search(r"release ([\d.]+)", version):
            found.setdefault(f"nvcc-{match[1]}", path)
    return found


def can_make(build: Build, compilers: dict[str, str], cutlass: Path | None) -> bool:
    """Tell whether what this build needs is installed."""
    if build.source.suffix == ".py":
        return importlib.util.find_spec("triton") is not None
    return build.compiler in compilers and (cutlass is not None or not needs_cutlass(build.source))


def main() -> int:
    """Read the options, produce, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="sources to compile, without ending (default: all)")
    parser.add_argument("--missing", action="store_true", help="only what has not been produced yet")
    parser.add_argument(
        "--nvcc", action="append", default=[], help="one more nvcc, for the builds that name its release"
    )
    parser.add_argument("--cutlass", type=Path, help="CUTLASS's include folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()

    compilers = find_compilers(options.nvcc)
    everything = list(builds())
    names = [build.name for build in everything]
    assert len(names) == len(set(names)), "two builds have one name"
    wanted = [build for build in everything if not options.names or build.source.stem in options.names]
    if options.missing:
        wanted = [build for build in wanted if not (OUTPUT / f"{build.name}.ptx.xz").exists()]
    skipped = [build for build in wanted if not can_make(build, compilers, options.cutlass)]
    for build in skipped:
        print("skipped", build.name, "(nvcc, Triton or CUTLASS is not there)")
    wanted = [build for build in wanted if build not in skipped]

    OUTPUT.mkdir(exist_ok=True)
    made = set()
    with ThreadPoolExecutor(options.jobs) as pool:
        for build, failure in zip(
            wanted, pool.map(lambda build: produce(build, compilers, options.cutlass), wanted), strict=True
        ):
            print("FAILED" if failure else "made", build.name, flush=True)
            if failure:
                print(failure, file=sys.stderr)
            else:
                made.add(build.name)
    write_index(everything, made)
    return 0 if len(made) == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
