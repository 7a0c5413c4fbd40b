"""The CUDA runtime that programs are given: C, compiled once by the system's compiler, under the names they ask for.

What a program needs of NVIDIA's libraries and the runtime does not have becomes a function that says so when it is
called.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from ptxlab.native.cache import cached
from ptxlab.node.nvshmem import state
from ptxlab.programs.elf import Elf
from ptxlab.report import PtxError, error
from ptxlab.toolchain.nvcc import headers_of_wheels
from ptxlab.toolchain.process import on_path, run
from ptxlab.toolchain.tools import find

_SOURCES = Path(__file__).parent / "runtime"
PRELOADED, _CALLS, _DRIVER_CALLS = "libptxlab_cuda.so", "libcuda_calls.so", "libcuda_driver_calls.so"
NVSHMEM = "libptxlab_nvshmem.so"  # NVSHMEM's host functions
_OPTIONS = ("-std=gnu11", "-O1", "-g", "-fPIC", "-fvisibility=hidden", "-Wno-deprecated-declarations")
_NVSHMEM_OPTIONS = ("-shared", "-Xcompiler", "-fPIC", "-std=c++17", "-O1", "-lineinfo", "-cudart", "none",
                    "-gencode=arch=compute_75,code=compute_75", f"-l:{PRELOADED}")  # fmt: skip
_COMPILERS = ("cc", "gcc", "clang")
_NVIDIA = re.compile(r"lib(cu|nv|npp|nccl)\w*\.so[.\d]*$")
_CALL = re.compile(r"_*(nvshmem|cu[A-Z]|cuda|cublas|curand|cufft|cusparse|cusolver|cudnn|nvrtc|nvjpeg|npp|nccl)\w*$")
_DRIVER_CALL = re.compile(r"cu[A-Z]\w*$")


def make_library(folder: Path, needed: Sequence[Elf]) -> Path:
    """Write the runtime to a folder, under each name by which these files ask for it, and stubs for what it lacks."""
    data = runtime()
    library = folder / PRELOADED
    library.write_bytes(data)
    have = {symbol.name for symbol in Elf(data).symbols if symbol.is_defined}
    if any(NVSHMEM in file.libraries for file in needed):
        (folder / NVSHMEM).write_bytes(nvshmem())
        have |= {symbol.name for symbol in Elf(nvshmem()).symbols if symbol.is_defined}
    for file in needed:
        lacking = sorted({name for name in file.undefined if _CALL.match(name)} - have)
        aliases = {name: name[:-5] for name in lacking if name.endswith(("_ptsz", "_ptds")) and name[:-5] in have}
        for name in file.libraries:
            if _NVIDIA.match(name) and not (folder / name).exists():
                _write_stubs(folder, name, [one for one in lacking if one not in aliases], aliases, file.versions(name))
    return library


def write_driver(folder: Path) -> list[str]:
    """Options with which a program is linked in place of the driver's library; without calls of it, it needs none."""
    calls = sorted({one.name for one in Elf(runtime()).symbols if one.is_defined and _DRIVER_CALL.match(one.name)})
    (folder / _DRIVER_CALLS).write_bytes(cached(f"driver {calls}", lambda: _placeholders(_DRIVER_CALLS, calls)))
    (folder / "libcuda.so").write_text(f"INPUT(AS_NEEDED(-l:{_DRIVER_CALLS}))\n", "utf-8")  # a script of the linker
    return [f"-L{folder}", "-lcuda"]


def write_placeholders(folder: Path, log: str) -> list[str]:
    """Options with which a program is linked where NVIDIA's libraries are not: what for is in the log of its linker.

    The functions do nothing: when the program runs, `make_library` gives it others.
    """
    undefined = {name for name in re.findall(r"undefined reference to [`']?(\w+)", log) if _CALL.match(name)}
    is_linked = (folder / NVSHMEM).exists()
    calls = sorted(name for name in undefined if is_linked or not name.startswith("nvshmem"))
    missing = {name for name in re.findall(r"cannot find -l(\w+)", log) if _NVIDIA.match(f"lib{name}.so")}
    names = {f"lib{name}.so": f"lib{name}.so" for name in missing}
    if calls and not (folder / _CALLS).exists():
        names[_CALLS] = str(folder / _CALLS)
    if len(calls) < len(undefined):
        return write_nvshmem(folder)
    for name in names:
        (folder / name).write_bytes(_placeholders(name, calls if name == _CALLS else []))
    return [f"-L{folder}", *(["-Xlinker", "--no-as-needed", names[_CALLS]] if _CALLS in names else [])] if names else []


def write_nvshmem(folder: Path) -> list[str]:
    """Options with which a program is linked that calls NVSHMEM's host functions."""
    (folder / NVSHMEM).write_bytes(nvshmem())
    (folder / PRELOADED).write_bytes(runtime())
    return [str(folder / NVSHMEM), f"-Xlinker=-rpath-link,{folder}"]


def _placeholders(name: str, calls: Iterable[str]) -> bytes:
    """A library of that name, with functions that do nothing."""
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        source, made = Path(folder) / "calls.c", Path(folder) / name
        source.write_text("".join(f"void {one}(void) {{}}\n" for one in calls), "utf-8")
        run([compiler(), "-shared", "-fPIC", source, "-o", made, f"-Wl,-soname,{name}"], Path(folder))
        return made.read_bytes()


def runtime() -> bytes:
    """The library, compiled on this machine now or before."""
    include = headers()
    sources = sorted(_SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256()
    for part in (*sources, include / "cuda_runtime_api.h", include / "driver_types.h"):
        digest.update(part.read_bytes())
    key = f"programs {include} {digest.hexdigest()} {_OPTIONS}"
    return cached(key, lambda: _compile(include, [one for one in sources if one.suffix == ".c"]))


def nvshmem() -> bytes:
    """NVSHMEM's host functions, compiled by nvcc on this machine now or before."""
    folders = [_SOURCES.parent / "nvshmem", state.FOLDER, state.FOLDER / "include"]
    sources = sorted(path for folder in folders for path in folder.iterdir() if path.suffix in (".cu", ".cpp", ".h"))
    found = state.headers()
    digest = hashlib.sha256()
    for part in (*sources, *([] if found is None else [found / "non_abi" / "nvshmem_version.h"])):
        digest.update(part.read_bytes())
    return cached(f"nvshmem {found} {digest.hexdigest()} {_NVSHMEM_OPTIONS}", lambda: _compile_nvshmem(folders[0]))


def _compile_nvshmem(sources: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        made = Path(folder) / NVSHMEM
        (Path(folder) / PRELOADED).write_bytes(runtime())
        command: list[str | Path] = [
            find("nvcc").path, *_NVSHMEM_OPTIONS, "-I", state.FOLDER, *state.options(), *headers_of_wheels(),
            sources / "kernels.cu", sources / "host.cpp", f"-Xlinker=-soname,{NVSHMEM}", "-o", made, f"-L{folder}",
        ]  # fmt: skip
        outcome = run(command, Path(folder), temporary=Path(folder))
        if outcome.status or not made.is_file():
            helps = ["pip install nvidia-nvshmem-cu13"] if state.headers() is None else []
            message = "NVSHMEM's host functions could not be compiled"
            raise PtxError([error("missing-tool", message, None, notes=outcome.text.strip().split("\n")[:4],
                                  helps=helps)])  # fmt: skip
        return made.read_bytes()


@cache
def headers() -> Path:
    """The folder of CUDA's headers, as nvcc says it."""
    nvcc = find("nvcc")
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        said = run([nvcc.path, "--dryrun", "-x", "cu", "-c", os.devnull], Path(folder)).text
    found = [Path(name).resolve() for name in re.findall(r'^#\$ INCLUDES="-I([^"]+)"', said, re.MULTILINE)]
    if not found or not (found[0] / "cuda_runtime_api.h").is_file():
        notes = [f"asked {nvcc}"]
        raise PtxError([error("missing-tool", "the headers of the CUDA runtime were not found", None, notes=notes)])
    return found[0]


def compiler() -> str:
    """The C compiler of the system."""
    found = next(filter(None, map(on_path, _COMPILERS)), None)
    if found is None:
        helps = ["install gcc or clang"]
        raise PtxError([error("missing-tool", "no C compiler was found, which running programs needs", None,
                              helps=helps)])  # fmt: skip
    return found


def _compile(include: Path, sources: Sequence[Path], options: Sequence[str] = ()) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        made = Path(folder) / "made.so"
        command: list[str | Path] = [
            compiler(),
            "-shared",
            *_OPTIONS,
            f"-I{include}",
            *sources,
            *options,
            "-o",
            made,
            "-ldl",
            "-lpthread",
            "-lm",
        ]
        outcome = run(command, Path(folder))
        if outcome.status or not made.is_file():
            said = outcome.text.strip().split("\n")
            raise PtxError([error("missing-tool", "the CUDA runtime for programs could not be compiled", None,
                                  notes=said[:4])])  # fmt: skip
        return made.read_bytes()


def _write_stubs(
    folder: Path, name: str, lacking: Sequence[str], aliases: dict[str, str], versions: Sequence[str]
) -> None:
    """A library of that name, with the functions that are lacking; what the runtime has is preloaded."""
    lines = ["extern void ptxlab_unsupported(const char*);"]
    lines += [f'void {one}(void) {{ ptxlab_unsupported("{one}"); }}' for one in lacking]
    jump = "jmp {}@PLT" if platform.machine() == "x86_64" else "b {}"
    lines += [f'asm(".globl {one}\\n.type {one},%function\\n{one}: {jump.format(to)}");' for one, to in aliases.items()]
    source = folder / f"{name}.c"
    source.write_text("\n".join(lines) + "\n", "utf-8")
    script = folder / f"{name}.map"
    script.write_text("".join(f"{version} {{ global: *; }};\n" for version in versions) or "{ global: *; };\n", "utf-8")
    command: list[str | Path] = [compiler(), "-shared", "-fPIC", "-w", source, "-o", folder / name]
    command += [f"-Wl,-soname,{name}", f"-Wl,--version-script={script}", folder / PRELOADED]
    outcome = run(command, folder)
    if outcome.status:
        raise PtxError([error("missing-tool", f"a library in place of `{name}` could not be made", None,
                              notes=outcome.text.strip().split("\n")[:3])])  # fmt: skip
