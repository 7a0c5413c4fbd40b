"""What nvcc and NVRTC say, as diagnostics on the source: both are the same compiler, nvcc's preprocessor is another."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxlab.ir.inlining import is_toolkit_header
from ptxlab.report import Diagnostic, Source, Span, error, warning
from ptxlab.toolchain.missing_headers import help_for_missing

INSTANTIATING = ("ptxlab_instantiate.cu", "__nv_name_map")  # files that nvcc, through us, and NVRTC make of templates
_NOTES = 2  # lines of a long message that are shown
# `k.cu(7): error: ...` of the compiler, `k.cu:7:10: fatal error: ...` of the preprocessor, `nvcc fatal   : ...`.
_LEVEL = r"(?:catastrophic |fatal )?error|warning|remark"
_ENTRY = re.compile(
    rf"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<level>{_LEVEL})(?: #(?P<number>[\w-]+))?: "
    rf"|^(?P<file2>[^\n:]+):(?P<line2>\d+):\d+: (?P<level2>{_LEVEL}): ",
    re.MULTILINE,
)
_FATAL = re.compile(r"^(?:nvcc fatal *: |nvrtc: error: )(?P<text>.*)$", re.MULTILINE)
_REPEATED, _INSTANCE = "detected during", re.compile(r"detected during\b.*?\[with ([^\]]*)\]", re.DOTALL)
_END = re.compile(r"^(?:Remark: |\d+ errors? detected |compilation terminated)", re.MULTILINE)


_OF_NAME = "invalid multibyte character sequence"  # in the compiler's own files: of a source's name in another encoding
_MISSING_AFTER = re.compile(r'expected an? ";"')
_PARALLELISM = "a whole program may: `ptxlab run FILE --nvcc -rdc=true`; launch the inner kernel by itself otherwise"
_TEXTURES = "CUDA 12 took texture references away; make a texture object by `cudaCreateTextureObject`"
_CONTEXT = "CUDA 13 takes parameters of the context before its flags: `cuCtxCreate(&context, nullptr, flags, device)`"
_RELAXED, _NOT_THERE = "--expt-relaxed-constexpr", "is undefined in device code"
_HELPS = {
    "requires --extended-lambda nvcc flag": "give nvcc that option: `ptxlab run FILE --nvcc --extended-lambda`",
    _RELAXED: f"give nvcc that option: `ptxlab run FILE --nvcc {_RELAXED}`",
    'with parameter of type "CUctxCreateParams *"': _CONTEXT,
    'identifier "cuCtxCreate_v2" is undefined': _CONTEXT,
    "texture is not a template": _TEXTURES,
    'identifier "cudaBindTexture': _TEXTURES,
    "kernel launch from __device__ or __global__ functions requires": _PARALLELISM,
    "device-side kernel launch could not be processed": _PARALLELISM,
    "nvToolsExt.h: No such file": "CUDA 13 has `nvtx3/nvToolsExt.h` instead; `pip install nvidia-nvtx` has it too",
} | {
    f"{header}: No such file": f"`pip install nvidia-{name}` has it, as a whole CUDA toolkit has"
    for header, name in {
        "cublas_v2.h": "cublas", "cublasLt.h": "cublas", "curand.h": "curand", "curand_kernel.h": "curand",
        "cufft.h": "cufft", "cusparse.h": "cusparse", "cusolverDn.h": "cusolver",
    }.items()
} | {
    f'class "cudaDeviceProp" has no member "{member}"':
        f"CUDA 13 took it away; `cudaDeviceGetAttribute(&value, cudaDevAttr{attribute}, device)` gives it"
    for member, attribute in {
        "clockRate": "ClockRate", "memoryClockRate": "MemoryClockRate", "deviceOverlap": "GpuOverlap",
        "kernelExecTimeoutEnabled": "KernelExecTimeout", "computeMode": "ComputeMode",
        "singleToDoublePrecisionPerfRatio": "SingleToDoublePrecisionPerfRatio",
    }.items()
} | {
    f'identifier "{name}" is undefined': f"CUDA took it away; use `{instead}`"
    for name, instead in {
        "cudaThreadSynchronize": "cudaDeviceSynchronize()", "cudaThreadExit": "cudaDeviceReset()",
        "__any": "__any_sync(0xffffffff, ...)", "__all": "__all_sync(0xffffffff, ...)",
        "__ballot": "__ballot_sync(0xffffffff, ...)",
    }.items()
} | {
    f'identifier "__shfl{way}" is undefined': f"CUDA took it away; use `__shfl{way}_sync(0xffffffff, ...)`"
    for way in ("", "_up", "_down", "_xor")
} | {
    f'namespace "thrust" has no member class "{base}_function"': "CUDA 13 took it away; leave the base class out"
    for base in ("unary", "binary")
} | {
    'no suitable constructor exists to convert from "int" to "cudaMemLocation"':
        "CUDA 13 takes a location: `{cudaMemLocationTypeDevice, device}`, or `{cudaMemLocationTypeHost, 0}`; "
        "`cudaMemPrefetchAsync` has flags, 0, after it",
}  # fmt: skip
# By two parts of a message and the line that it echoes, where calls are named as the headers of CUDA 13 replace them.
_HELPS_OF_LINES = {
    ("too few arguments", "cuCtxCreate_v4("): _CONTEXT,
    (
        "does not name a type",
        "__global__",
    ): "nvcc compiles kernels in files that end in `.cu`, or with `--nvcc '-x cu'`",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its level, the file and line it is about, its text, and the rows under it."""

    is_error: bool
    file: str
    line: int
    text: str
    rows: Sequence[str]
    whole: str = ""


def read_log(log: str, source: Source, names: Sequence[str] = (), instantiated: Sequence[str] = ()) -> list[Diagnostic]:
    """The messages of a log, on the source where they name it; its own echo of the line gives the column.

    `names` are what the compiler calls the source. Warnings about NVIDIA's own headers are left out: they are not the
    user's. What a template says for each of its instances is said once, with how many these are.
    """
    found: list[Diagnostic] = []
    own = {source.name, *names}
    for message, *others in _by_template(messages(log)):
        is_of_name = _OF_NAME in message.text and message.file not in own
        if not message.is_error and (is_of_name or is_toolkit_header(message.file)):
            continue
        # A long message continues in the next rows; then come the echoed line, the caret below it, and an empty row.
        caret = next((index for index, row in enumerate(message.rows) if row.strip() == "^"), None)
        notes = [row.strip() for row in message.rows[: caret - 1 if caret else 0] if row.strip()]
        span = None
        if Path(message.file).name in INSTANTIATING:
            if found and found[-1].level == "error":  # NVRTC says again that there was an error
                continue
            notes = [f"in the kernels to instantiate: {', '.join(f'`{name}`' for name in instantiated)}"]
        elif message.file in own:
            span = _span(source, message.line, message.rows, caret)
        else:
            notes.insert(0, f"in `{near(message.file)}`, line {message.line}")
        if span is not None and _MISSING_AFTER.match(message.text):
            span = _end_of_code_before(span)
        say = error if message.is_error else warning
        code = "cuda-error" if message.is_error else "cuda-warning"
        helps = [help for words, help in _HELPS.items() if words in message.text]
        helps += [
            help for (words, line), help in _HELPS_OF_LINES.items() if words in message.text and line in message.whole
        ]
        if not helps and (missing := help_for_missing(message.text, message.file)):
            helps.append(missing)
        notes = notes[:_NOTES]
        if others:
            given = _INSTANCE.search(message.whole)
            first = f", the first of them with {' '.join(given[1].split())}" if given else ""
            of = "calls and instances" if _RELAXED in message.text else "instances of the template"
            notes.append(f"in {len(others) + 1} {of}{first}")
        found.append(say(code, _sentence(message.text), span, notes=notes, helps=helps))
    fatal = _FATAL.search(log)
    if not found and fatal:
        found.append(error("cuda-error", _sentence(fatal["text"]), None))
    return found


def _by_template(said: Iterable[Message]) -> list[list[Message]]:
    """The messages; those of instances of a template, or of calls in one line, together, whatever they name."""
    found: dict[Hashable, list[Message]] = {}
    for number, message in enumerate(said):
        text = re.sub(r'"[^"]*"', "", message.text)
        caret = next((row for row in message.rows if row.strip() == "^"), "")
        key = (message.is_error, message.file, message.line, text, caret)
        is_repeated = _REPEATED in message.whole or _RELAXED in text
        found.setdefault(key if is_repeated else number, []).append(message)
    refused = {(first.file, first.line) for first, *_ in found.values() if _RELAXED in first.text}
    return [
        group
        for group in found.values()
        if _NOT_THERE not in group[0].text or (group[0].file, group[0].line) not in refused  # its consequence
    ]


def messages(log: str) -> Iterator[Message]:
    """The messages of a log, in its order."""
    starts = list(_ENTRY.finditer(log))
    ends = [start.start() for start in starts[1:]] + [len(log)]
    for start, end in zip(starts, ends, strict=False):
        closing = _END.search(log, start.end(), end)
        text, *rows = log[start.end() : closing.start() if closing else end].split("\n")
        level, file, line = (start[name] or start[f"{name}2"] for name in ("level", "file", "line"))
        yield Message(level.endswith("error"), file, int(line), text, rows, log[start.start() : end])


def without(log: str, is_dropped: Callable[[Message], bool]) -> str:
    """A log without some of its messages."""
    return "".join(message.whole for message in messages(log) if not is_dropped(message))


def near(file: str) -> str:
    """A path as seen from here, where it is below."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _span(source: Source, line: int, rows: Sequence[str], caret: int | None) -> Span | None:
    """The word above the caret, or the whole line."""
    if not 1 <= line <= source.line_count:
        return None
    start, end = source.line_bounds(line)
    code = source.text[start:end]
    if caret:
        word = _marked(code, rows[caret - 1], rows[caret].index("^"))
        if word:
            return Span(source, start + word.start(), start + word.end())
    stripped = code.strip()
    first = start + len(code) - len(code.lstrip())
    return Span(source, first, first + len(stripped))


def _end_of_code_before(span: Span) -> Span:
    """The last character of code before a place, where what is missing belongs; comments are not code."""
    code = re.sub(
        r"//[^\n]*|/\*.*?\*/", lambda comment: " " * len(comment[0]), span.source.text[: span.start], flags=re.S
    )
    end = len(code.rstrip())
    return Span(span.source, end - 1, end) if end else span


def _marked(code: str, echoed: str, column: int) -> re.Match[str] | None:
    """The word of a line that a caret is under; nvcc echoes lines after its preprocessor, which changes some words."""
    word = re.compile(r"\w+|\S")
    if echoed.strip() == code.strip():
        return word.match(code, column - _margin(echoed) + _margin(code))
    shown = word.match(echoed, column)
    same = [found for found in word.finditer(code) if shown and found[0] == shown[0]]
    return same[0] if len(same) == 1 else None


def _margin(text: str) -> int:
    return len(text) - len(text.lstrip())


def _sentence(text: str) -> str:
    """A message in our form: quoted code in backticks.

    >>> _sentence('identifier "x" is undefined')
    'identifier `x` is undefined'
    """
    return re.sub(r'"([^"]*)"', r"`\1`", text.strip().rstrip("."))
