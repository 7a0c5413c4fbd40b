"""The host's part of a `.cu` file, for NVRTC, which compiles device code only: its functions and what they launch.

A function that is neither `__global__` nor `__device__` runs on the host. NVRTC knows none of what such a function
calls, so those that it cannot compile are made blank, line by line, and the rest of the file stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<directive>\#(?:[^\n\\]|\\.)*)
    | (?P<text>R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
    | (?P<word>\w+) | (?P<mark><<<|>>>|::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DEVICE = {"__global__", "__device__", "constexpr", "consteval"}
_SCOPES = {"namespace", "extern"}
_TYPES = {"class", "struct", "union", "enum"}
_HOST_CALL = re.compile(r"<<<|\bmain\s*\(|\bcuda[A-Z]\w*\s*\(")
_LAUNCH = re.compile(r"([A-Za-z_][\w:]*(?:<[^;{}]*?>)?)\s*<<<")


@dataclass(frozen=True, slots=True)
class HostFunction:
    """From where to where a function of the host is, and on which lines."""

    start: int
    end: int
    first_line: int
    last_line: int


def host_functions(text: str) -> list[HostFunction]:
    """The functions at namespace level that no word of CUDA makes device code."""
    found = []
    for start, end, head in _definitions(text):
        is_function = ")" in head and not _TYPES & set(head[:1]) and "operator" not in head
        if is_function and "=" not in head and not _DEVICE & set(head):
            first = text.count("\n", 0, start) + 1
            found.append(HostFunction(start, end, first, first + text.count("\n", start, end)))
    return found


def blank(text: str, functions: Sequence[HostFunction]) -> str:
    """The text with nothing but line ends in place of these functions."""
    for function in functions:
        inside = text[function.start : function.end]
        text = text[: function.start] + re.sub(r"[^\n]", " ", inside) + text[function.end :]
    return text


def calls_host(text: str) -> bool:
    """Whether code launches a kernel, calls the CUDA runtime, or is the main function."""
    return _HOST_CALL.search(text) is not None


def launched(text: str) -> list[str]:
    """The kernels with template arguments that some code launches: `gemm<128, float>`."""
    return list(dict.fromkeys(name for name in _LAUNCH.findall(text) if name.endswith(">")))


def _definitions(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """What has a body at namespace level: where it starts and ends, and the words before the body."""
    head: list[str] = []
    start = depth = opened = 0
    for token in _TOKEN.finditer(text):
        if token["space"] or token["directive"]:
            continue
        word = token[0]
        if depth:
            depth += (word == "{") - (word == "}")
            if not depth:
                yield start, token.end(), head
                head = []
        elif word == "{" and _SCOPES & set(head) and ")" not in head:
            head, opened = [], opened + 1
        elif word == "{":
            depth = 1
        elif word == ";" or (word == "}" and opened):
            head, opened = [], opened - (word == "}")
        else:
            start = start if head else token.start()
            head.append(word)
