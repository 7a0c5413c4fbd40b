"""CUDA C++ to PTX through NVRTC, by ctypes: no binding to install, the library of a wheel or a toolkit is enough.

`cuda` gives a module, `compile_cuda` text and all that NVRTC said.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from ptxlab import ir
from ptxlab.ir.origin import at_origin
from ptxlab.report import Diagnostic, PtxError, Source, Span, error, render, warning
from ptxlab.syntax import read
from ptxlab.toolchain.tools import Tool, find

DEFAULT_TARGET = "sm_80"
_SUCCESS = 0
_COMPILATION = 6  # NVRTC_ERROR_COMPILATION: the log says; any other failure is ours or the library's


@dataclass(frozen=True, slots=True)
class Compilation:
    """PTX text, or None where the source is wrong, and what NVRTC said."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]
    tool: Tool


def compile_cuda(
    source: str,
    target: str = DEFAULT_TARGET,
    options: Sequence[str] = (),
    name: str = "kernel.cu",
    *,
    tool: Tool | None = None,
) -> Compilation:
    """Compile CUDA C++ to PTX for `target`; `options` go to NVRTC as they are.

    compilation = compile_cuda('extern "C" __global__ void k() { asm("exit;"); }', "sm_90a")
    """
    chosen = tool or find("nvrtc")
    library = _load(chosen.path)
    program = ctypes.c_void_p()
    text = Source(name, source)
    if "\0" in source:
        return Compilation(None, (error("nvrtc-error", "the source holds a NUL character", None),), chosen)
    created = library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode("utf-8", "surrogateescape"), name.encode(), 0, None, None
    )
    _require(created, library, chosen, "nvrtcCreateProgram")
    try:
        arguments = [*_default_options(chosen, target, options), *options]
        array = (ctypes.c_char_p * len(arguments))(*[argument.encode() for argument in arguments])
        status = library.nvrtcCompileProgram(program, len(arguments), array)
        log = _read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program, library, chosen)
        diagnostics = read_log(log, text)
        if status not in (_SUCCESS, _COMPILATION) and not any(found.level == "error" for found in diagnostics):
            _require(status, library, chosen, "nvrtcCompileProgram", log)
        ptx = None
        if status == _SUCCESS:
            ptx = _read(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program, library, chosen)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    return Compilation(ptx, tuple(diagnostics), chosen)


def cuda(
    source: str, target: str = DEFAULT_TARGET, options: Sequence[str] = (), *, name: str = "kernel.cu"
) -> ir.Module:
    """The module that NVRTC makes of CUDA C++; findings name the line of `source` that they come from.

    kernel = ptxlab.cuda('extern "C" __global__ void k(int* p) { asm("mov.u32 %0, %%laneid;" : "=r"(*p)); }')["k"]

    Without `extern "C"` a kernel has the name that C++ gives it. Wrong source raises `PtxError`.
    """
    compilation = compile_cuda(source, target, ["-lineinfo", *options], name)
    if compilation.text is None:
        raise PtxError(compilation.diagnostics)
    if compilation.diagnostics:
        warnings.warn(render(compilation.diagnostics), stacklevel=2)
    module, faults = read(compilation.text, str(PurePath(name).with_suffix(".ptx")))
    trace(module, Source(name, source))
    if faults:  # in inline PTX of the source, which NVRTC takes as it is
        raise PtxError(at_origin(module, faults))
    return module


def trace(module: ir.Module, source: Source) -> None:
    """Have findings about a module that was compiled from a source name its lines."""
    last = PurePath(source.name).name
    files = [item.name for item in module.items if isinstance(item, ir.File)]
    module.origins = {file: source for file in files if PurePath(file).name == last}


def library_version(path: Path) -> str:
    """The version the library states."""
    library = _load(path)
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


_ENTRY = re.compile(
    r"(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<level>(?:catastrophic )?error|warning|remark)(?: #(?P<number>[\w-]+))?: "
)


def read_log(log: str, source: Source) -> list[Diagnostic]:
    """The messages of a log, on the source where they name it; its own echo of the line gives the column.

    Warnings about NVIDIA's own headers are left out: they are not the user's.
    """
    found = []
    starts = list(_ENTRY.finditer(log))
    ends = [start.start() for start in starts[1:]] + [len(log)]
    for start, end in zip(starts, ends, strict=False):
        if not start["level"].endswith("error") and _is_of_toolkit(Path(start["file"])):
            continue
        message, *rows = log[start.end() : end].split("\n")
        # A long message continues in the next rows; then come the echoed line, the caret below it, and an empty row.
        caret = next((index for index, row in enumerate(rows) if row.strip() == "^"), None)
        notes = [row.strip() for row in rows[: caret - 1 if caret else 0] if row.strip()]
        span = None
        if start["file"] == source.name:
            span = _span(source, int(start["line"]), rows, caret)
        else:
            notes.insert(0, f"in `{start['file']}`, line {start['line']}")
        say = error if start["level"].endswith("error") else warning
        code = "cuda-error" if say is error else "cuda-warning"
        found.append(say(code, _sentence(message), span, notes=notes[:2]))
    if not starts and "error" in log:
        found.append(error("nvrtc-error", _sentence(log.strip().split("\n")[0]), None))
    return found


def _is_of_toolkit(header: Path) -> bool:
    """Whether a header is one of the CUDA toolkit, or of a wheel of it."""
    return any((folder / "cuda_runtime_api.h").is_file() for folder in header.parents[:-1])


def _span(source: Source, line: int, rows: Sequence[str], caret: int | None) -> Span | None:
    """The word above the caret, or the whole line."""
    if not 1 <= line <= source.line_count:
        return None
    start, end = source.line_bounds(line)
    code = source.text[start:end]
    if caret:
        echoed = rows[caret - 1]
        column = rows[caret].index("^") - (len(echoed) - len(echoed.lstrip())) + len(code) - len(code.lstrip())
        word = re.compile(r"\w+|\S").match(code, column) if echoed.strip() == code.strip() else None
        if word:
            return Span(source, start + word.start(), start + word.end())
    stripped = code.strip()
    first = start + len(code) - len(code.lstrip())
    return Span(source, first, first + len(stripped))


def _default_options(tool: Tool, target: str, options: Sequence[str]) -> list[str]:
    """The virtual architecture of `target`, so that NVRTC writes PTX only, and the headers beside the library."""
    chosen = []
    if not any(option.startswith(("--gpu-architecture", "-arch")) for option in options):
        chosen.append(f"--gpu-architecture={re.sub('^sm_', 'compute_', target)}")
    include = tool.path.resolve().parent.parent / "include"
    return [*chosen, f"--include-path={include}"] if include.is_dir() else chosen


@lru_cache(maxsize=8)
def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    text = ctypes.c_char_p
    library.nvrtcCreateProgram.argtypes = [ctypes.POINTER(pointer), text, text, ctypes.c_int, pointer, pointer]
    library.nvrtcCompileProgram.argtypes = [pointer, ctypes.c_int, ctypes.POINTER(text)]
    library.nvrtcDestroyProgram.argtypes = [ctypes.POINTER(pointer)]
    for name in ("ProgramLog", "PTX"):
        getattr(library, f"nvrtcGet{name}Size").argtypes = [pointer, ctypes.POINTER(size)]
        getattr(library, f"nvrtcGet{name}").argtypes = [pointer, text]
    library.nvrtcGetErrorString.restype = text
    return library


def _read(
    measure: Callable[..., int], read: Callable[..., int], program: ctypes.c_void_p, library: ctypes.CDLL, tool: Tool
) -> str:
    """A text of NVRTC: its size with the closing NUL, then its characters."""
    size = ctypes.c_size_t()
    _require(measure(program, ctypes.byref(size)), library, tool, "the size of a text")
    buffer = ctypes.create_string_buffer(size.value)
    _require(read(program, buffer), library, tool, "a text")
    return buffer.value.decode("utf-8", "replace")


def _require(status: int, library: ctypes.CDLL, tool: Tool, what: str, log: str = "") -> None:
    if status == _SUCCESS:
        return
    reason = library.nvrtcGetErrorString(status).decode()
    notes = [line for line in (log.strip().split("\n")[0], str(tool)) if line]
    raise PtxError([error("nvrtc-error", f"NVRTC failed: {reason} ({what})", None, notes=notes)])


def _sentence(text: str) -> str:
    """A message in our form: quoted code in backticks.

    >>> _sentence('identifier "x" is undefined')
    'identifier `x` is undefined'
    """
    return re.sub(r'"([^"]*)"', r"`\1`", text.strip().rstrip("."))
