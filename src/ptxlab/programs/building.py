"""A `.cu` file as an executable, by nvcc: with PTX, which the emulator runs, and with lines of host and device."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from ptxlab.check import check
from ptxlab.ir.origin import at_origin
from ptxlab.node.nvshmem import state
from ptxlab.programs.library import write_driver, write_nvshmem, write_placeholders
from ptxlab.programs.lines import code_of_line
from ptxlab.report import Diagnostic, PtxError, Source, error
from ptxlab.syntax import read, read_text
from ptxlab.toolchain.compilation import compile_cuda, trace
from ptxlab.toolchain.compiler_messages import read_log
from ptxlab.toolchain.nvcc import has_host_compiler, headers_of_wheels, refuse_unsafe_name
from ptxlab.toolchain.process import run
from ptxlab.toolchain.tools import find

DEFAULT_TARGET = "sm_90"
_MAIN = re.compile(r"\b(?:int|auto|void|signed)\s+(?:\w+\s+)?main\s*\(")
_IGNORED = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|\"(?:\\.|[^\"\\\n])*\"")
_UNDEFINED = re.compile(r"(?:(?P<place>/[^\n:]*:\d+): )?undefined reference to [`'](?P<name>[^'\n]+)'")
_NVSHMEM = re.compile(r"^\s*#\s*include\s*[<\"][^>\"\n]*nvshmem", re.MULTILINE)
_SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")
_ARCHITECTURE = ("--gpu-architecture", "-arch", "-gencode", "--generate-code", "--gpu-code", "-code")


def has_main(path: Path) -> bool:
    """Whether a file of C++ is a whole program."""
    text = _IGNORED.sub(lambda found: " " if found[0].startswith("/") else '"C"' * (found[0] == '"C"'), read_text(path))
    return _MAIN.search(text) is not None


def build(path: Path, program: Path, target: str | None, options: Sequence[str]) -> list[Diagnostic]:
    """Compile and link a file; what nvcc warns of. Raises `PtxError` where it is wrong."""
    if not has_host_compiler(options):
        helps = ["install g++, which nvcc compiles host code with"]
        raise PtxError([error("missing-tool", "no C++ compiler was found", None, helps=helps)])
    refuse_unsafe_name(str(path.absolute()))
    if "\n" in path.name:
        helps = ["rename it"]
        raise PtxError(
            [error("cuda-error", "nvcc does not compile a file with a line break in its name", None, helps=helps)]
        )
    nvcc = find("nvcc")
    number = (target or DEFAULT_TARGET).removeprefix("sm_")
    architecture = [f"-gencode=arch=compute_{number},code=compute_{number}"]
    if any(option.startswith(_ARCHITECTURE) for option in options):
        architecture = []
    command: list[str | Path] = [nvcc.path, "-g", "-lineinfo", *architecture, "-I", path.absolute().parent]
    command += [*options, *state.options(), *headers_of_wheels(), path.absolute(), "-o", program]
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        command += write_driver(Path(folder))
        if _NVSHMEM.search(read_text(path)):
            command += write_nvshmem(Path(folder))
        outcome = run(command, Path.cwd(), temporary=program.parent)
        while outcome.status and (linked := write_placeholders(Path(folder), outcome.text)):
            command += linked
            outcome = run(command, Path.cwd(), temporary=program.parent)
    source = Source(str(path), read_text(path))
    found = read_log(outcome.text, source, [str(path.absolute())], ())
    if outcome.status and not any(one.level == "error" for one in found):
        found += _undefined(outcome.text, source, path, options)
    if outcome.status and not any(one.level == "error" for one in found):
        found += _wrong_assembly(path, target or DEFAULT_TARGET, options)
    if outcome.status and not any(one.level == "error" for one in found):
        said = [line for line in outcome.text.strip().split("\n") if line][:4] or ["it said nothing"]
        found.append(error("cuda-error", "nvcc could not build the program", None, notes=said))
    if outcome.status:
        raise PtxError(found)
    return found


def _wrong_assembly(path: Path, target: str, options: Sequence[str]) -> list[Diagnostic]:
    """What is wrong with PTX that the source has inline, which nvcc hands to ptxas as it is."""
    text = compile_cuda(path, target, ["-lineinfo", *options]).text
    if text is None:
        return []
    module, faults = read(text, f"{path.stem}.ptx")
    trace(module, Source(str(path), read_text(path)))
    return [one for one in at_origin(module, faults) or check(module) if one.level == "error"]


def _undefined(log: str, source: Source, path: Path, options: Sequence[str]) -> list[Diagnostic]:
    """What the linker did not find, each once, where the source uses it; files beside it may define it."""
    found = {one["name"]: one["place"] or "" for one in reversed([*_UNDEFINED.finditer(log)])}
    names = {re.split(r"[(<\[]", name)[0].split("::")[-1] for name in found}
    words = shlex.quote(" ".join([*options, *(_defining(names, path) or ["OTHER.cu", "-lLIBRARY"])]))
    helps = [f"name what defines it: `ptxlab run {path} --nvcc {words}`"]
    said = []
    for name, place in reversed(found.items()):
        file, _, line = place.rpartition(":")
        span = code_of_line(source, int(line)) if file == str(path.absolute()) else None
        said.append(error("cuda-error", f"`{name}` is not defined in this file", span, helps=helps))
    return said


def _defining(names: Iterable[str], path: Path) -> list[str]:
    """Files beside a program that have functions of these names, and no `main()`."""
    words = "|".join(map(re.escape, names))
    function = re.compile(rf"\b(?:{words})\s*\([^;{{]*\)\s*{{")
    beside = [one for one in sorted(path.parent.iterdir()) if one.suffix in _SOURCES and one.is_file() and one != path]
    return [str(one) for one in beside if function.search(read_text(one)) and not has_main(one)]
