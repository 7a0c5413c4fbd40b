"""Cubin to SASS: `disassemble` runs nvdisasm and brings back functions of instructions.

An object assembled with `-lineinfo` carries, beside the source lines of its `.loc`s, the line of the PTX text each
instruction comes from; `nvdisasm -gp` prints it. The code is the same with and without.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ptxlab.report import Diagnostic, PtxError, error
from ptxlab.toolchain.process import Outcome, run
from ptxlab.toolchain.tools import Tool, find

DEFAULT_TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class Control:
    """The control code of an instruction for the scheduler: cycles to stall, barriers to set and to wait for."""

    stall: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SassInstruction:
    """One machine instruction; `line` is that of the PTX text it comes from."""

    address: int
    text: str
    encoding: int
    line: int | None = None
    label: str | None = None

    @property
    def opcode(self) -> str:
        """The operation with its modifiers, without a guard."""
        return re.sub(r"^@!?U?P\w+\s+", "", self.text).split(" ")[0].rstrip(";")

    @property
    def control(self) -> Control:
        """The scheduling bits, 105 to 125 of the encoding on sm_70 and later."""
        bits = self.encoding >> 105
        write, read = bits >> 5 & 7, bits >> 8 & 7
        return Control(
            stall=bits & 15,
            yields=not bits >> 4 & 1,
            write_barrier=None if write == 7 else write,
            read_barrier=None if read == 7 else read,
            waits=tuple(index for index in range(6) if bits >> 11 + index & 1),
        )


@dataclass(frozen=True, slots=True)
class SassFunction:
    """The code of one function, without the padding after its end."""

    name: str
    instructions: tuple[SassInstruction, ...]
    target: str | None = None


_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_TARGET = re.compile(r"\s*\.target\s+(\w+)")
_LINE = re.compile(r"\s*//## File \"([^\"]*)\", line (\d+)")
_SYMBOL = re.compile(r"([\w$][^\s:]*):$")
_LABEL = re.compile(r"(\.L_x_\d+):")
_CODE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*/\* (0x[0-9a-f]{16}) \*/")
_SECOND_HALF = re.compile(r"\s*/\* (0x[0-9a-f]{16}) \*/")


def disassemble(cubin: bytes, *, tool: Tool | None = None, timeout: float = DEFAULT_TIMEOUT) -> list[SassFunction]:
    """The functions of a cubin; one that nvdisasm cannot read raises `PtxError`."""
    chosen = tool or find("nvdisasm")
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        (Path(folder) / "object").write_bytes(cubin)
        outcome = run([chosen.path, "-c", "-gp", "-hex", "object"], Path(folder), timeout)
    if outcome.status != 0:
        raise PtxError([_failure(outcome, chosen)])
    return read_listing(outcome.text)


def _failure(outcome: Outcome, tool: Tool) -> Diagnostic:
    """What nvdisasm said, or how it ended."""
    if outcome.timed_out:
        return error("nvdisasm-timeout", "nvdisasm did not end within its time limit", None)
    if outcome.signal_name:
        return error("nvdisasm-crash", f"nvdisasm {tool.version} was killed by {outcome.signal_name}", None)
    said = outcome.text.strip().splitlines()
    message = re.sub(r"^nvdisasm (?:fatal|error)\s*: ", "", said[0]) if said else f"status {outcome.status}"
    helps = ["use the nvdisasm of the same release as ptxas, or a newer one"]
    return error("nvdisasm-error", f"nvdisasm refused the object: {message}", None, notes=said[1:2], helps=helps)


def read_listing(listing: str) -> list[SassFunction]:
    """The functions of an nvdisasm listing made with `-c -gp -hex`."""
    functions: list[tuple[str, list[SassInstruction]]] = []
    line: int | None = None
    label: str | None = None
    pending: tuple[int, str, int] | None = None
    for row in listing.splitlines():
        section, location, marked, code = _SECTION.match(row), _LINE.match(row), _LABEL.match(row), _CODE.match(row)
        symbol = _SYMBOL.match(row)
        start = section or symbol
        if start:
            # A function that only one entry calls follows it in its section, as `$entry$function`.
            if not functions or functions[-1][0] != start[1]:
                functions.append((start[1], []))
            line, label = None, None
        elif location:
            line = int(location[2])
        elif marked:
            label = marked[1]
        elif code:
            pending = (int(code[1], 16), _clean(code[2]), int(code[3], 16))
        elif pending and functions and (half := _SECOND_HALF.match(row)):
            address, text, low = pending
            functions[-1][1].append(SassInstruction(address, text, int(half[1], 16) << 64 | low, line, label))
            pending, label = None, None
    stated = _TARGET.match(listing)
    target = stated[1] if stated else None
    return [SassFunction(name, _without_padding(instructions), target) for name, instructions in functions]


def _clean(text: str) -> str:
    """An instruction without nvdisasm's decoration: no semicolon, labels without quotes."""
    unquoted = re.sub(r"`\((\S+?)\)", r"\1", text).rstrip("; ")
    return re.sub(r"\s+", " ", unquoted).strip()


def _without_padding(instructions: list[SassInstruction]) -> tuple[SassInstruction, ...]:
    """`instructions` without the branch to itself and the NOPs that fill the section up."""
    end = len(instructions)
    while end and instructions[end - 1].text == "NOP":
        end -= 1
    if end and re.fullmatch(r"BRA (\S+)", instructions[end - 1].text):
        last = instructions[end - 1]
        if last.text == f"BRA {last.label}":
            end -= 1
    return tuple(instructions[:end])
