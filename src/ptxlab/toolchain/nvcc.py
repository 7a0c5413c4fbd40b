"""A `.cu` file to PTX through nvcc: all of C++ and its headers, host code too; needs a compiler for the host."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxlab.report import Diagnostic, PtxError, error
from ptxlab.toolchain.compiler_messages import INSTANTIATING
from ptxlab.toolchain.process import on_path, run
from ptxlab.toolchain.tools import Tool, wheel_folders

SHELL_CHARACTERS = frozenset('$`"' if os.name == "nt" else '$`"\\')  # nvcc puts what it is given into "…" for a shell
_HOST_COMPILERS = ("cl",) if os.name == "nt" else ("g++", "c++", "clang++")


def has_host_compiler(options: Sequence[str]) -> bool:
    """Whether nvcc, given these options, finds the compiler that it uses for the host."""
    named = any(option.startswith(("-ccbin", "--compiler-bindir")) for option in options) or "NVCC_CCBIN" in os.environ
    return named or any(map(on_path, _HOST_COMPILERS))


_OF_PTXAS = re.compile(r"^ptxas [^\n]*\b(error|fatal) *: [^\n]*\n?", re.MULTILINE)


def run_nvcc(
    tool: Tool, source: str | Path, name: str, options: Sequence[str], instantiate: Sequence[str]
) -> tuple[str | None, str, str]:
    """The PTX, if the source is right; what nvcc said; and what it calls the source.

    It runs in the current directory, which the paths among `options` are relative to. A source in a file or folder
    whose name a shell would run as a command is refused.
    """
    whole = str(Path(source if isinstance(source, Path) else name).absolute())
    refuse_unsafe_name(whole)
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        place = Path(folder)
        beside = Path(name).absolute().parent
        if isinstance(source, Path):
            file = source.absolute()
        else:
            file = place / Path(name).name
            file.write_text(source, "utf-8", "surrogateescape")
        compiled = _keeping(file, instantiate, place) if instantiate else file
        output = place / "output.ptx"
        folders = [*_wheel_headers(tool), f"-I{beside}", *headers_of_wheels()]
        command: list[str | Path] = [tool.path, "-ptx", *options, *folders, "-x", "cu", compiled, "-o", output]
        outcome = run(command, Path.cwd(), temporary=place)
        # From sm_90 on nvcc has ptxas read what it has written: inline PTX that is wrong is for our own readers, as
        # on other targets, who name its line in the source.
        log, refusals = _OF_PTXAS.subn("", outcome.text)
        is_written = (outcome.status == 0 or refusals) and output.is_file()
        text = output.read_text("utf-8", "replace") if is_written else None
    return text, log if is_written else outcome.text, str(file)


def refuse_unsafe_name(path: str) -> None:
    """Refuse a name that nvcc would pass to a shell as commands."""
    if SHELL_CHARACTERS & {*path}:
        raise PtxError([_unsafe_name(path)])


def _unsafe_name(path: str) -> Diagnostic:
    character = next(one for one in path if one in SHELL_CHARACTERS)
    return error(
        "cuda-error",
        f"nvcc is not given the name `{path}`: it has a `{character}`",
        None,
        notes=["nvcc passes names to a shell, which would run parts of this one as commands"],
        helps=["rename the file or its folder"],
    )


def _keeping(file: Path, instantiate: Sequence[str], folder: Path) -> Path:
    """A file that has nvcc make these kernels of the templates in another: the host takes their addresses."""
    kept = ", ".join(f"(const void*)&{name}" for name in instantiate)
    wrapper = folder / INSTANTIATING[0]
    wrapper.write_text(f'#include "{file}"\nconst void* ptxlab_instantiated[] = {{{kept}}};\n', "utf-8")
    return wrapper


def _wheel_headers(tool: Tool) -> list[str]:
    """Where CCCL is that came in a wheel, which the nvcc of another wheel does not search."""
    folder = tool.path.resolve().parent.parent / "include" / "cccl"
    return [f"-I{folder}"] if folder.is_dir() else []


def headers_of_wheels() -> list[str]:
    """Options for headers of libraries that came in wheels, as `nvidia-curand`, which the nvcc of a toolkit lacks."""
    folders = [folder / "include" for folder in wheel_folders()]
    return [part for folder in folders if folder.is_dir() for part in ("-isystem", str(folder))]
