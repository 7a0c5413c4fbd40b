"""`printf` of a kernel: what it prints, and what is wrong with its format or its arguments.

The CUDA programming guide lists the conversions that device code has; `%n` is not among them. Whatever is wrong, the
text is formatted as far as possible and nothing outside of the kernel's memory is read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from ptxlab.values import dataclass

MOST = 32  # arguments beside the format
_WIDTH = 1024  # characters of one conversion
_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|L|z|t|j)?(.?)", re.DOTALL)
_KINDS = "diouxXeEfFgGaAcsp"


class UnreadableError(Exception):
    """An argument or a string is not there; the text says why."""


@dataclass(frozen=True)
class Remark:
    """Something wrong with a call of `printf`: an error where memory is missing, else a warning."""

    level: str
    message: str


class Printf:
    """One call: `read` gives bytes of the argument buffer, `string` the text at an address."""

    def __init__(self, pattern: str, read: Callable[[int, int], bytes], string: Callable[[int], str]) -> None:
        self.pattern = pattern
        self.remarks: list[Remark] = []
        self.count = 0
        self._read, self._string = read, string
        self._offset = 0
        self.text = _CONVERSION.sub(self._convert, pattern)

    def _convert(self, match: re.Match[str]) -> str:
        kind = match[5]
        if match[0] == "%%":
            return "%"
        if kind not in _KINDS or not kind:
            # A `%` before a line break, a comma or the end does no harm: it is printed as it is.
            if kind.isalpha():
                self._remark("warning", f"`printf` has no conversion `{match[0]}`")
            return match[0]
        try:
            return self._converted(match)
        except UnreadableError as problem:
            self._remark("error", f"`{match[0]}` of `printf`: {problem}")
            return ""

    def _remark(self, level: str, message: str) -> None:
        """Note what is wrong, the first of each level: what follows most often has the same cause."""
        if all(remark.level != level for remark in self.remarks):
            self.remarks.append(Remark(level, message))

    def _converted(self, match: re.Match[str]) -> str:
        flags, width, precision, length, kind = match.groups()
        if width == "*":
            width = str(self._integer(4, signed=True))
        if precision == "*":
            asked = self._integer(4, signed=True)
            precision = str(asked) if asked >= 0 else None
        width, precision = _bounded(width), _bounded(precision or "0" if precision is not None else None)
        short = f"%{flags}{width or ''}"
        form = short + (f".{precision}" if precision is not None else "")
        if kind in "eEfFgG":
            return (form + kind) % self._float()
        if kind in "aA":
            text = re.sub(r"\.?0*p", "p", self._float().hex())
            return f"{short}s" % (text.upper() if kind == "A" else text)
        if kind == "s":
            return f"{form}s" % self._string(self._integer(8))
        if kind == "p":
            return f"{short}s" % hex(self._integer(8))
        if kind == "c":
            return f"{short}c" % (self._integer(4) & 255)
        signed = kind in "di"
        value = self._integer(8 if length in ("ll", "l", "z", "t", "j") else 4, signed)
        if length in ("h", "hh"):
            size = 2 if length == "h" else 1
            value = int.from_bytes(value.to_bytes(8, "little", signed=signed)[:size], "little", signed=signed)
        if not signed:
            form = form.replace("+", "").replace(" ", "")
        return str((form + ("d" if kind in "diu" else kind)) % value).replace("0o", "0")

    def _integer(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def _float(self) -> float:
        return float(struct.unpack("<d", self._take(8))[0])

    def _take(self, size: int) -> bytes:
        """The next argument: each is at a multiple of its size, floats are doubles."""
        self.count += 1
        if self.count > MOST:
            raise UnreadableError(f"it is argument {self.count}, and at most {MOST} are possible")
        offset = -(-self._offset // size) * size
        self._offset = offset + size
        try:
            return self._read(offset, size)
        except UnreadableError as problem:
            raise UnreadableError(f"argument {self.count} {problem}") from None


def _bounded(number: str | None) -> str | None:
    """A width or a precision, of which a kernel may ask for any."""
    return number if number is None else str(max(min(int(number), _WIDTH), -_WIDTH))
