"""CUDA C++ to PTX through NVRTC, by ctypes: no binding to install, the library of a wheel or a toolkit is enough."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from threading import Thread

from ptxlab.report import PtxError, error
from ptxlab.toolchain.standard_headers import standard_headers
from ptxlab.toolchain.tools import Tool, wheel_folders

_SUCCESS = 0
_COMPILATION = 6  # NVRTC_ERROR_COMPILATION: the log says; any other failure is ours or the library's
_NAME = 7  # NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID
# Options of nvcc about the host, the linker and ptxas, which NVRTC does not have.
_ALONE = re.compile(r"-O\w*|-g|-w|-L.+|-l(?!ineinfo).+|--?expt-relaxed-constexpr|--compiler-bindir=.+")
_LIBRARY = re.compile("-isystem|--system-include")
_WITH_VALUE = ("-Xcompiler", "--compiler-options", "-Xptxas", "-Xlinker", "-ccbin", "--compiler-bindir", "-L")


def compile_program(
    tool: Tool, source: str, name: str, options: Sequence[str], instantiate: Sequence[str], headers: Mapping[str, str]
) -> tuple[str | None, str]:
    """The PTX, if the source is right, and what NVRTC said; `headers` are texts that `#include` finds by these names.

    `instantiate` names kernels to make of templates.
    """
    library = _load(tool.path)
    program = ctypes.c_void_p()
    folders = include_folders(tool)
    known = {**standard_headers(tuple(folders)), **headers}
    names, texts = _strings(list(known)), _strings(list(known.values()))
    created = library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode("utf-8", "surrogateescape"), name.encode(), len(known), texts, names
    )
    _require(created, library, tool, "nvrtcCreateProgram")
    for kernel in instantiate:
        _require(library.nvrtcAddNameExpression(program, kernel.encode()), library, tool, "nvrtcAddNameExpression")
    arguments = [*(f"--include-path={folder}" for folder in folders), *_for_nvrtc(options)]
    status = _interruptible(library.nvrtcCompileProgram, program, len(arguments), _strings(arguments))
    try:
        log = _read(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program, library, tool)
        if status not in (_SUCCESS, _COMPILATION, _NAME) and "error" not in log:
            _require(status, library, tool, "nvrtcCompileProgram", log)
        if status != _SUCCESS:
            return None, log
        return _read(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program, library, tool), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _interruptible(compile: Callable[..., int], *arguments: object) -> int:
    """What a long call returns; Ctrl-C ends the wait for it. What it works on then stays in use, and is never freed."""
    done: Future[int] = Future()

    def call() -> None:
        done.set_result(compile(*arguments))

    Thread(target=call, daemon=True).start()
    return done.result()


def include_folders(tool: Tool) -> list[Path]:
    """The headers beside the library, CUDA's and CCCL's; CCCL may come in a wheel of its own."""
    roots = [tool.path.resolve().parent.parent, *wheel_folders()]
    cuda = next((root / "include" for root in roots if (root / "include").is_dir()), None)
    cccl = next((folder for root in roots if (folder := root / "include" / "cccl").is_dir()), None)
    return [folder for folder in (cuda, cccl) if folder is not None]


def _for_nvrtc(options: Sequence[str]) -> list[str]:
    """The options without those that only nvcc has; folders of libraries, for which NVRTC has no option, are last."""
    kept: list[str] = []
    libraries: list[str] = []
    words = iter(options)
    for option in words:
        if library := _LIBRARY.match(option):
            libraries.append(f"-I{option[library.end() :].removeprefix('=') or next(words, '')}")
        elif option in _WITH_VALUE:
            next(words, "")
        elif not _ALONE.fullmatch(option):
            kept.append(option)
    return kept + libraries


def _strings(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*[text.encode("utf-8", "surrogateescape") for text in texts])


def library_version(path: Path) -> str:
    """The version the library states."""
    library = _load(path)
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


@lru_cache(maxsize=8)
def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    text = ctypes.c_char_p
    texts = ctypes.POINTER(text)
    library.nvrtcCreateProgram.argtypes = [ctypes.POINTER(pointer), text, text, ctypes.c_int, texts, texts]
    library.nvrtcAddNameExpression.argtypes = [pointer, text]
    library.nvrtcCompileProgram.argtypes = [pointer, ctypes.c_int, texts]
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
