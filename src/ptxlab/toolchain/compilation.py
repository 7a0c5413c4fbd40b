"""CUDA C++ as a module: a `.cu` file through nvcc, text through NVRTC; the other one where that is missing.

`cuda` gives a module, `compile_cuda` PTX and all that the compiler said.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from ptxlab import ir
from ptxlab.ir.inlining import is_toolkit_header
from ptxlab.ir.origin import at_origin
from ptxlab.report import Diagnostic, PtxError, Source, error, render
from ptxlab.syntax import read, read_text
from ptxlab.toolchain.asm_lines import with_asm_lines
from ptxlab.toolchain.compiler_messages import read_log
from ptxlab.toolchain.device_part import run_nvrtc
from ptxlab.toolchain.nvcc import has_host_compiler, run_nvcc
from ptxlab.toolchain.parameter_names import name_parameters
from ptxlab.toolchain.source_files import named_folders, read_source
from ptxlab.toolchain.standard_headers import FOR_HOST
from ptxlab.toolchain.tools import Tool, can_find, find

DEFAULT_TARGET = "sm_80"
DEBUG_INFO, _LINES = {"-G", "--device-debug"}, {"-lineinfo", "--generate-line-info"}


@dataclass(frozen=True, slots=True)
class Compilation:
    """PTX text, or None where the source is wrong, and what the compiler said."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]
    tool: Tool


def compile_cuda(
    source: str | Path,
    target: str = DEFAULT_TARGET,
    options: Sequence[str] = (),
    name: str | None = None,
    *,
    instantiate: Sequence[str] = (),
    tool: Tool | None = None,
) -> Compilation:
    """Compile CUDA C++, text or a file, to PTX for `target`; `options` are those of nvcc.

    compilation = compile_cuda('extern "C" __global__ void k() { asm("exit;"); }', "sm_90a")

    `instantiate` names kernels that are made of templates: `["gemm<128, float>"]`.
    """
    text = Source(name or (str(source) if isinstance(source, Path) else "kernel.cu"), _text(source))
    chosen = tool or choose(isinstance(source, Path), options)
    if "\0" in text.text:
        return Compilation(None, (error("cuda-error", "the source holds a NUL character", None),), chosen)
    if not DEBUG_INFO.isdisjoint(options):  # which has lines, too, and nvcc warns of both
        options = [option for option in options if option not in _LINES]
    given = [*_architecture(target, options), *options]
    if chosen.name == "nvcc":
        ptx, log, called = run_nvcc(chosen, source, text.name, given, instantiate)
        if ptx is None and tool is None and _lacks_host_library(log) and can_find("nvrtc"):
            chosen = find("nvrtc")
    if chosen.name == "nvrtc":
        called = text.name
        ptx, log = run_nvrtc(chosen, text.text, called, given, instantiate)
    if ptx is not None:
        ptx = with_asm_lines(ptx, lambda file: text.text if file == called else _text_of(file))
    found = read_log(log, text, [called], instantiate)
    if ptx is None and not any(one.level == "error" for one in found):
        said = log.strip().split("\n")[0] or "it said nothing"
        found.append(error("cuda-error", f"{chosen.name} failed: {said}", None, notes=[str(chosen)]))
    return Compilation(ptx, tuple(found), chosen)


def _text_of(file: str) -> str | None:
    """The text of a header of the user's, which may have inline PTX."""
    path = Path(file)
    return path.read_text("utf-8", "replace") if path.is_file() and not is_toolkit_header(file) else None


def _lacks_host_library(log: str) -> bool:
    """Whether nvcc stopped at a header of another library for the host, which NVRTC does without."""
    missing = re.search(r"fatal error: (\S+): No such file", log)
    return missing is not None and missing[1] in FOR_HOST


def choose(is_file: bool, options: Sequence[str] = ()) -> Tool:
    """The compiler: nvcc for a file, where it finds a compiler for the host, and NVRTC for text; else the other."""
    has_nvcc = can_find("nvcc") and has_host_compiler(options)
    if has_nvcc and (is_file or not can_find("nvrtc")):
        return find("nvcc")
    if not can_find("nvrtc"):
        raise PtxError([_no_compiler()])
    return find("nvrtc")


def _no_compiler() -> Diagnostic:
    note = "searched for NVRTC and nvcc in the variables `PTXLAB_NVRTC` and `PTXLAB_NVCC`, on PATH and in wheels"
    if can_find("nvcc"):
        note = "there is an nvcc, but it needs g++ or clang++, and there is no NVRTC, which needs neither"
    helps = ["run `pip install 'ptxlab[toolchain]'`, or put the `bin` folder of a CUDA toolkit on PATH"]
    return error("missing-tool", "no compiler of CUDA C++ was found", None, notes=[note], helps=helps)


def cuda(
    source: str | Path,
    target: str = DEFAULT_TARGET,
    options: Sequence[str] = (),
    *,
    name: str | None = None,
    instantiate: Sequence[str] = (),
) -> ir.Module:
    """The module that a compiler makes of CUDA C++; findings name the line of `source` that they come from.

    >>> text = '__global__ void k(int* p) { asm("mov.u32 %0, %%laneid;" : "=r"(*p)); }'
    >>> kernel = ptxlab.cuda(text)["k"]  # doctest: +SKIP
    >>> kernel = ptxlab.cuda(Path("gemm.cu"), "sm_90a", ["-Iinclude"])["gemm"]  # doctest: +SKIP

    A path is compiled by nvcc where there is one, with host code and all headers; text, or a file where there is no
    nvcc, by NVRTC, which leaves host code out. `instantiate=["gemm<128, float>"]` makes a kernel of a template. Wrong
    source raises `PtxError`.
    """
    compilation = compile_cuda(source, target, ["-lineinfo", *options], name, instantiate=instantiate)
    if compilation.text is None:
        raise PtxError(compilation.diagnostics)
    if compilation.diagnostics:
        warnings.warn(render(compilation.diagnostics), stacklevel=2)
    called = name or (str(source) if isinstance(source, Path) else "kernel.cu")
    module, faults = read(compilation.text, str(PurePath(called).with_suffix(".ptx")))
    trace(module, Source(called, _text(source)), named_folders(options))
    if faults:  # in inline PTX of the source, which the compiler takes as it is
        raise PtxError(at_origin(module, faults))
    return module


def trace(module: ir.Module, source: Source, folders: Sequence[Path] = ()) -> None:
    """Have findings about a module that was compiled from a source name its lines, or those of headers.

    Those are beside the source or in `folders`.
    """
    own, around = PurePath(source.name).name, [Path(source.name).resolve().parent, *folders]
    files = [item.name for item in module.items if isinstance(item, ir.File)]
    module.origins = {file: source for file in files if PurePath(file).name == own}
    for file in files:
        if file not in module.origins and (header := read_source(file, around)) is not None:
            module.origins[file] = header
    name_parameters(module, {source.name: source for source in (source, *module.origins.values())}.values())


def _text(source: str | Path) -> str:
    return read_text(source) if isinstance(source, Path) else source


def _architecture(target: str, options: Sequence[str]) -> list[str]:
    """The virtual architecture of `target`, so that the compiler writes PTX only."""
    if any(option.startswith(("--gpu-architecture", "-arch", "-gencode", "--generate-code")) for option in options):
        return []
    return [f"--gpu-architecture={re.sub('^sm_', 'compute_', target)}"]
