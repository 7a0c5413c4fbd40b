"""The device's part of a `.cu` file through NVRTC, which compiles nothing else.

First without the functions of the host. Where that leaves out a kernel, because a function of the host says what its
template is made of, or where a header has functions of the host, all of it is compiled as device code: what cannot be
compiled so is left out, statement by statement, and of the PTX only the kernels and what they reach is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptxlab.ir.inlining import is_toolkit_header
from ptxlab.toolchain.compiler_messages import Message, messages, without
from ptxlab.toolchain.host_code import Item, Outline, blank, cuda_calls, launched
from ptxlab.toolchain.nvrtc import compile_program
from ptxlab.toolchain.reached import reached
from ptxlab.toolchain.tools import Tool

_TRIES = 12  # a log ends after a hundred errors, and one mistake hides others
_HOST = "ptxlab_host.h"
# Some headers of CUB do not include what says what the compiler is.
_OF_CCCL = """\
#if __has_include(<cuda/std/version>)
#include <cuda/std/version>
#endif
"""
# What every file that nvcc compiles has of `<math.h>` and `<sys/types.h>`, which it includes unasked.
_IMPLICIT = "ptxlab_implicit.h"
_OF_MATH_H = """\
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fffffff)
#define HUGE_VALF INFINITY
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
#endif
"""
# Host code as device code: `__host__` means nothing, and functions of CUDA that the host calls take anything.
_HOST_AS_DEVICE = ("-default-device", "-rdc=true", f"--pre-include={_HOST}")
_PRELUDE = """\
#undef __host__
#define __host__
template <class... Arguments> __device__ cudaError_t ptxlab_host(Arguments&&...) { return cudaError_t(); }
template <class... Arguments> __device__ const char* ptxlab_text(Arguments&&...) { return ""; }
static __device__ void *stdin, *stdout, *stderr;
enum { RAND_MAX = 2147483647, EXIT_SUCCESS = 0, EXIT_FAILURE = 1 };
namespace std {
struct ptxlab_stream {
  template <class T> __device__ const ptxlab_stream& operator<<(const T&) const { return *this; }
};
static __device__ ptxlab_stream cout, cerr, clog, endl, dec, fixed, flush, hex, left, right, scientific;
template <class T> __device__ int setw(T) { return 0; }
template <class T> __device__ int setfill(T) { return 0; }
template <class T> __device__ int setprecision(T) { return 0; }
}
"""
_OF_C = "abs atof atoi exit fflush fprintf getenv perror puts rand snprintf sprintf srand sscanf strcmp time".split()
# Functions that macros of libraries call, so that no text which is read here has their names.
_OFTEN_CALLED = """cudaDeviceSynchronize cudaFree cudaGetErrorName cudaGetErrorString cudaGetLastError cudaMalloc
cudaMemcpy cudaMemset cudaPeekAtLastError cudaStreamSynchronize""".split()
_FOR_DEVICES = {"cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion"}
_INSTANTIATED = re.compile(r"\bat line (\d+)(?: of (\S+))?")
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_FOLDER = re.compile(r"(?:-I|--include-path=)(.+)")


@dataclass(frozen=True, slots=True)
class DevicePart:
    """What is to be compiled, and how."""

    tool: Tool
    source: str
    name: str
    options: Sequence[str]
    instantiate: Sequence[str]

    def compile(
        self, source: str, instantiate: Sequence[str], headers: dict[str, str] | None = None, more: Sequence[str] = ()
    ) -> tuple[str | None, str]:
        """The PTX of a form of the source, and what NVRTC said."""
        options = [*self.options, f"--pre-include={_IMPLICIT}", *more]
        texts = {**(headers or {}), _IMPLICIT: _OF_MATH_H + (_OF_CCCL if "#include" in source else "")}
        return compile_program(self.tool, source, self.name, options, instantiate, texts)

    def headers(self) -> Iterator[Outline]:
        """The headers that the source itself includes, without those of the toolkit."""
        folders = [Path(self.name).parent, *(Path(found[1]) for found in map(_FOLDER.fullmatch, self.options) if found)]
        for name in dict.fromkeys(_INCLUDED.findall(self.source)):
            path = next((path for folder in folders if (path := folder / name).is_file()), None)
            if path is not None and not is_toolkit_header(str(path.absolute())):
                yield Outline(path.read_text("utf-8", "surrogateescape"))


def run_nvrtc(
    tool: Tool, source: str, name: str, options: Sequence[str], instantiate: Sequence[str]
) -> tuple[str | None, str]:
    """The PTX, if the source is right, and what NVRTC said of it; host code is left out."""
    program, outline = DevicePart(tool, source, name, options, instantiate), Outline(source)
    host = outline.host_functions()
    starts = [kernel for item in host for kernel in launched(source[item.start : item.end])]
    explicit = [kernel for kernel in starts if kernel.endswith(">") and kernel not in instantiate]
    device = blank(source, host)
    ptx, log = None, ""
    if not any(header.host_functions() for header in program.headers()):
        ptx, log = program.compile(device, [*instantiate, *explicit])
        if ptx is None and explicit:  # an argument may be a name of the function that launches
            ptx, log = program.compile(device, instantiate)
        if ptx is not None and (instantiate or not _missing(ptx, [*starts, *_mentioned(outline, host)])):
            return ptx, log
        if ptx is None and not any(_may_be_of_host(error, name, outline) for error in messages(log)):
            return ptx, log
    for text in [source] if ptx is not None else [source, device]:
        found, said = _Attempt(program, outline, text).run()
        if found is not None and (ptx is None or _kernels(found) > _kernels(ptx)):
            return found, said
        is_wrong = any(one.is_error and one.file == name and outline.is_device(one.line) for one in messages(said))
        if is_wrong:
            break
    if ptx is not None and not is_wrong:
        return ptx, log
    return None, without(log, lambda message: not message.is_error or message.file != name) or said


def _may_be_of_host(message: Message, name: str, outline: Outline) -> bool:
    """Whether an error is about host code, or about a header, which may have some."""
    return message.is_error and (message.file != name or bool(outline.host_part(message.line, is_own=True)))


def _mentioned(outline: Outline, host: Sequence[Item]) -> list[str]:
    """The kernels of a file that functions of the host name."""
    words = {word for item in host for word in re.findall(r"\w+", outline.text[item.start : item.end])}
    return [name for name in outline.kernels() if name in words]


def _kernels(ptx: str) -> set[str]:
    return set(re.findall(r"\.entry\s+([\w$]+)", ptx))


def _missing(ptx: str, names: Sequence[str]) -> bool:
    """Whether no kernel in some PTX has one of these names, whatever its template arguments."""
    kernels = _kernels(ptx)
    plain = {name.partition("<")[0].rpartition("::")[2] for name in names}
    return any(not any(kernel == name or f"{len(name)}{name}" in kernel for kernel in kernels) for name in plain)


@dataclass
class _Attempt:
    """A source whose host code is compiled as device code, with ever less of it until what is left compiles."""

    program: DevicePart
    outline: Outline
    text: str
    outlines: dict[str, Outline] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)  # headers without what cannot be compiled, by name
    left_out: set[tuple[str, int, int]] = field(default_factory=set)

    def run(self) -> tuple[str | None, str]:
        """The PTX of the kernels, and what NVRTC said of device code."""
        self.outlines[self.program.name] = self.outline
        prelude = _prelude([self.text, *(header.text for header in self.program.headers())], self.outline)
        for _ in range(_TRIES):
            headers = {**self.texts, _HOST: prelude}
            ptx, log = self.program.compile(self.text, self.program.instantiate, headers, _HOST_AS_DEVICE)
            if ptx is not None:
                return reached(ptx), without(log, self._is_of_host)
            errors = {(message.file, message.line): message for message in messages(log) if message.is_error}
            if not sum(map(self._leave_out, errors.values())):
                break
        return None, without(log, self._is_of_host)

    def _leave_out(self, message: Message) -> bool:
        """Leave out the host code that an error is about; whether there was any."""
        if message.file == self.program.name and self.outline.is_device(message.line):
            return False
        for file, line in _lines(message):
            outline = self._outline(file)
            if outline is None:
                continue
            whole = outline.host_part(line, is_own=file == self.program.name)
            heads = [part for item in whole for part in item.heads]
            for items in (heads, whole):
                if new := [item for item in items if (file, item.start, item.end) not in self.left_out]:
                    self.left_out.update((file, item.start, item.end) for item in new)
                    self._blank(file, new)
                    return True
        return False

    def _blank(self, file: str, items: Sequence[Item]) -> None:
        if file == self.program.name:
            self.text = blank(self.text, items)
            return
        spelled = [file] if file in self.texts else list(self._spellings(file))
        text = blank(self.texts.get(file, self.outlines[file].text), items)
        for name in spelled:
            self.texts[name] = text
            self.outlines[name] = self.outlines[file]

    def _outline(self, file: str) -> Outline | None:
        """What a file consists of; None of one that is not to be changed."""
        if file not in self.outlines:
            if is_toolkit_header(file) or not Path(file).is_file():
                return None
            self.outlines[file] = Outline(Path(file).read_text("utf-8", "surrogateescape"))
        return self.outlines[file]

    def _spellings(self, file: str) -> Iterator[str]:
        """How `#include` names a header: below a folder of headers, or as these texts do."""
        path = Path(file)
        for option in self.program.options:
            folder = _FOLDER.fullmatch(option)
            if folder and path.absolute().is_relative_to(Path(folder[1]).absolute()):
                yield str(path.absolute().relative_to(Path(folder[1]).absolute()))
        for text in (self.text, *(outline.text for outline in self.outlines.values())):
            for name in _INCLUDED.findall(text):
                if path.name == Path(name).name and file.endswith(name.replace("../", "").removeprefix("./")):
                    yield name

    def _is_of_host(self, message: Message) -> bool:
        """Whether a message is about host code, which was compiled as what it is not."""
        outline = self.outlines.get(message.file)
        if outline is None or message.file != self.program.name:
            return not message.is_error
        return outline.is_host(message.line)


def _lines(message: Message) -> Iterator[tuple[str, int]]:
    """Where an error is: at its own line, and at those that instantiate the templates around it."""
    yield message.file, message.line
    for row in message.rows:
        at = _INSTANTIATED.search(row)
        if at:
            yield (at[2] or message.file).strip('"'), int(at[1])


def _prelude(texts: Sequence[str], outline: Outline) -> str:
    """Declarations that host code needs to be compiled as device code."""
    own = outline.functions()
    called = sorted({*_OFTEN_CALLED, *(name for text in texts for name in cuda_calls(text))} - _FOR_DEVICES - own)
    library = [
        f"template <class... Arguments> __device__ int {name}(Arguments&&...) {{ return 0; }}\n"
        for name in _OF_C
        if name not in own
    ]
    rows = [
        f"#define {name}(...) {'ptxlab_text' if name.endswith(('String', 'Name')) else 'ptxlab_host'}(__VA_ARGS__)\n"
        for name in called
    ]
    return _PRELUDE + "".join([*library, *rows])
