"""The part of a PTX text that its kernels use: without the functions and variables that no kernel reaches.

NVRTC writes every function and variable of the host, too, where it compiles these as device code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_DECLARED = re.compile(
    r"(?:\.(?:visible|weak|extern|common|unified|attribute\([^)]*\))\s+)*\.(?P<kind>entry|func|global|const|shared)\b"
)
_NAMED = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)|([\w$]+)\s*(?:\[[^\]]*\]\s*)*(?:=|;)")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")


def reached(text: str) -> str:
    """The text without the functions and variables that no kernel in it reaches.

    >>> reached(".version 9.0\\n.global .u32 x;\\n.global .u32 y;\\n.entry k()\\n{\\n ld.global.u32 %r1, [x];\\n}\\n")
    '.version 9.0\\n.global .u32 x;\\n.entry k()\\n{\\n ld.global.u32 %r1, [x];\\n}\\n'
    """
    pieces = list(_pieces(text))
    named: dict[str, list[int]] = {}
    found, kept = [], set()
    for at, piece in enumerate(pieces):
        declared = _DECLARED.match(piece)
        if declared is None:
            kept.add(at)
            continue
        if declared["kind"] == "entry":
            found += [at] if piece.rstrip().endswith("}") else []
            continue
        name = _NAMED.search(piece)
        if name:
            named.setdefault(name[1] or name[2], []).append(at)
    kept.update(found)
    while found:
        for word in set(_WORD.findall(pieces[found.pop()])) & named.keys():
            more = named.pop(word)
            kept.update(more)
            found += more
    return "".join(piece for at, piece in enumerate(pieces) if at in kept)


def _pieces(text: str) -> Iterator[str]:
    """The declarations and functions of a text, and whatever is between them."""
    piece: list[str] = []
    depth = 0
    for line in text.splitlines(keepends=True):
        starts = not depth and _DECLARED.match(line) is not None
        if piece and starts and not _DECLARED.match(piece[0]):
            yield "".join(piece)
            piece = []
        piece.append(line)
        depth += line.count("{") - line.count("}")  # inline PTX has blocks of its own, in any column
        if depth or not _DECLARED.match(piece[0]):
            continue
        is_function = re.search(r"\.(?:entry|func)\b", piece[0]) is not None
        if line.startswith((";", "}")) if is_function else line.rstrip().endswith(";"):
            yield "".join(piece)
            piece = []
    if piece:
        yield "".join(piece)
