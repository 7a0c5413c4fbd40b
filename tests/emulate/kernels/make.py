"""Regenerate the produced PTX in `ptx/` from the sources in `cuda/` and `triton/`.

    python tests/emulate/kernels/make.py            # everything
    python tests/emulate/kernels/make.py scans      # these sources

A CUDA source names its builds in lines `// make: sm_80 sm_90 -G`: one file for each target, with these flags. nvcc must
be on PATH. A Triton source names its kernels in lines `# make: name sm_80` and describes them in `BUILDS`, as in
`tests/corpus/make.py`; Triton must be importable by the Python that runs this, else those files stay as they are.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# The folder `triton/` beside this file must not be taken for the package.
sys.path[0] = str(ROOT.parents[2])

from tests.corpus.make import TRITON_SCRIPT, Build, check, compile_cuda, find_compilers, without_paths  # noqa: E402


def builds() -> list[Build]:
    """Return everything the sources ask for."""
    found = []
    for source in sorted([*(ROOT / "cuda").glob("*.cu"), *(ROOT / "triton").glob("*.py")]):
        for line in re.findall(r"^(?://|#) make: (.*)$", source.read_text(), re.MULTILINE):
            targets = [word for word in line.split() if word.startswith("sm_")]
            others = tuple(word for word in line.split() if not word.startswith("sm_"))
            for target in targets:
                if source.suffix == ".py":
                    found.append(Build(source, target, variant=others[0]))
                else:
                    found.append(Build(source, target, others))
    return found


def file_name(build: Build) -> str:
    """The produced file's name: `scans.sm_80.O0.ptx`, `softmax.sm_80.ptx` for a kernel of Triton."""
    tags = [flag.lstrip("-") for flag in build.flags if flag != "-Xcicc"]
    return ".".join([build.variant or build.source.stem, build.target, *tags, "ptx"])


def compile_triton(build: Build) -> str:
    """Have Triton compile one kernel; the first line says how much shared memory a launch must give."""
    script = TRITON_SCRIPT.replace(
        'print(triton.compile(source, target=GPUTarget("cuda", number, 32), options=options).asm["ptx"])',
        'compiled = triton.compile(source, target=GPUTarget("cuda", number, 32), options=options)\n'
        'print(f"// shared: {compiled.metadata.shared}")\nprint(compiled.asm["ptx"])',
    )
    assert script != TRITON_SCRIPT, "the script of tests/corpus/make.py has another last line"
    with tempfile.TemporaryDirectory(prefix="kernels-") as folder:
        environment = os.environ | {"TRITON_CACHE_DIR": str(Path(folder, "cache"))}
        command = [sys.executable, "-c", script, str(build.source), build.variant, build.target]
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"triton failed on {build.variant}:\n{result.stderr[-900:]}")
    installed = str(Path(importlib.util.find_spec("triton").origin).parent.parent)
    return without_paths(result.stdout, [str(ROOT), installed])


def produce(build: Build, compilers: dict[str, str]) -> str | None:
    """Make one file; return what went wrong, if anything."""
    try:
        if build.source.suffix == ".py":
            made_by, text = f"Triton {importlib.metadata.version('triton')}", compile_triton(build)
        else:
            text = compile_cuda(build, compilers, None)
            release = re.search(r"release [\d.]+, V([\d.]+)", text)
            made_by = " ".join([f"nvcc {release[1]}", *build.flags])
        check(build, text)
    except RuntimeError as error:
        return str(error)
    source = f"{build.source.parent.name}/{build.source.name}"
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    header = f"// Made by make.py from {source} with {made_by} for {build.target}; do not edit."
    (ROOT / "ptx" / file_name(build)).write_text("\n".join([header, *lines]) + "\n")
    return None


def main() -> int:
    """Read the names, produce, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="sources to compile, without ending (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    compilers = find_compilers([])
    can_triton = importlib.util.find_spec("triton") is not None
    wanted = [build for build in builds() if not options.names or build.source.stem in options.names]
    wanted = [build for build in wanted if (can_triton if build.source.suffix == ".py" else "nvcc" in compilers)]
    (ROOT / "ptx").mkdir(exist_ok=True)
    failures = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda build: produce(build, compilers), wanted)
        for build, failure in zip(wanted, outcomes, strict=True):
            print("FAILED" if failure else "made", file_name(build), flush=True)
            if failure:
                failures += 1
                print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
