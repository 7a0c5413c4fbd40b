"""The debugger in a terminal: commands as gdb has them, read line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ptxlab.debug.debugger import Debugger, Kind, Stop, Unit
from ptxlab.debug.lines import Place
from ptxlab.debug.matrices import matrices
from ptxlab.debug.values import UnknownError, shown

LISTED = 5  # lines around the one that a thread is at
Action = Callable[[str], Iterator[str]]


@dataclass(frozen=True)
class Command:
    """A command: its names, the first one in full, what follows it, and what it does."""

    names: tuple[str, ...]
    given: str
    help: str
    run: Action


class Terminal:
    """Commands for a debugger; each answers with lines of text."""

    def __init__(self, debugger: Debugger, source: Callable[[str], list[str] | None]) -> None:
        self.debugger = debugger
        self.source = source
        self.last = ""
        self.commands = [
            Command(("break", "b"), "[FILE:]LINE [if CONDITION]", "stop before a line", self._break),
            Command(("watch", "w"), "%REGISTER | c[3, 5] | shared.f32[8]", "stop where a value changes", self._watch),
            Command(("delete", "d"), "NUMBER", "remove a breakpoint or watchpoint", self._delete),
            Command(("breakpoints", "info"), "", "the breakpoints and watchpoints", self._stops),
            Command(("continue", "c"), "", "run to the next stop", lambda _: self._went(self.debugger.run())),
            Command(("reverse-continue", "rc"), "", "run backwards to the stop before",
                    lambda _: self._went(self.debugger.run(backwards=True))),
            *self._steps(),
            Command(("goto", "g"), "STEP", "go to a number of steps; from the end, if negative", self._goto),
            Command(("thread", "t"), "[BLOCK] THREAD", "inspect a thread, by its numbers", self._thread),
            Command(("warps",), "", "where each warp is", self._warps),
            Command(("where", "bt"), "", "the functions that the thread is in", self._where),
            Command(("list", "l"), "[LINE]", "the lines around", self._list),
            Command(("print", "p"), "EXPRESSION", "%r5 + 1, c[3, 5], tile[7], shared.f32[%rd4]", self._print),
            Command(("registers", "r"), "", "all registers of the thread", self._registers),
            Command(("lanes",), "%REGISTER", "a register in all lanes of the warp", self._lanes),
            Command(("matrix", "m"), "[OPERAND]", "fragments of the instruction as matrices: a, b, c, d", self._matrix),
            Command(("barriers",), "", "barriers and mbarriers, with arrivals and bytes", self._barriers),
            Command(("tmem",), "[LANE [COLUMN]]", "tensor memory of the block, as far as it is known", self._tmem),
            Command(("origin", "o"), "%REGISTER | c[3, 5]", "where a value comes from", self._origin),
            Command(("sass",), "", "the instructions around with their SASS", self._sass),
            Command(("ptx",), "", "show lines of the PTX, or again of the source", self._ptx),
            Command(("help", "h"), "", "this list", self._help),
        ]  # fmt: skip

    def _steps(self) -> Iterator[Command]:
        kinds: list[tuple[tuple[str, ...], str, Kind, Unit]] = [
            (("step", "s"), "a line, into calls", "in", "line"),
            (("next", "n"), "a line, over calls", "over", "line"),
            (("finish", "f"), "to the end of the function", "out", "line"),
            (("stepi", "si"), "an instruction", "in", "instruction"),
        ]
        for names, text, kind, unit in kinds:
            yield Command(names, "", f"run {text}", self._stepping(kind, unit, backwards=False))
            back = tuple(f"reverse-{name}" if len(name) > 2 else f"r{name}" for name in names)
            yield Command(back, "", f"run backwards {text}", self._stepping(kind, unit, backwards=True))

    def _stepping(self, kind: Kind, unit: Unit, *, backwards: bool) -> Action:
        return lambda _: self._went(self.debugger.step(kind, unit, backwards=backwards))

    def answer(self, line: str) -> Iterator[str]:
        """What a command says; an empty line repeats the one before."""
        line = line.strip() or self.last
        self.last = line
        word, _, rest = line.partition(" ")
        if not word:
            return
        found = [command for command in self.commands if word in command.names]
        found = found or [command for command in self.commands if command.names[0].startswith(word)]
        if len(found) != 1:
            several = f"means one of {', '.join(command.names[0] for command in found)}"
            yield f"`{word}` {several if found else 'is unknown; `help` lists all commands'}"
            return
        try:
            yield from found[0].run(rest.strip())
        except (UnknownError, ValueError, KeyError, IndexError) as wrong:
            yield str(wrong.args[0] if wrong.args else wrong)

    # Where it is.

    def here(self) -> Iterator[str]:
        """The thread, its line, and its next instruction."""
        debugger = self.debugger
        frames = debugger.stack()
        instruction = debugger.instruction(debugger.thread)
        yield f"{debugger.name(debugger.thread)}, after {debugger.position:,} of {debugger.trace.steps:,} steps"
        if instruction is None or not frames:
            yield f"  {debugger.ending(debugger.thread)}"
            return
        place = debugger.place(instruction)
        text = self._text(place.file, place.line) if place.file else debugger.trace.program.text(instruction)
        yield f"{place.line:>6}  {text}"
        if place.file:
            yield f"        {debugger.trace.program.text(instruction)}"

    def _text(self, file: str, line: int) -> str:
        lines = self.source(file)
        return lines[line - 1] if lines is not None and 1 <= line <= len(lines) else f"{file}:{line}"

    def _went(self, stop: Stop) -> Iterator[str]:
        if stop.reason != "step":
            yield stop.description
        yield from self.here()

    # Commands.

    def _break(self, given: str) -> Iterator[str]:
        found = re.fullmatch(r"(?:(.+):)?(\d+)(?:\s+if\s+(.+))?", given)
        if found is None:
            raise UnknownError(f"`{given}` is not like 12, kernel.cu:12 or 12 if %r1 > 3")
        file, line, condition = found[1] or "", int(found[2]), found[3] or ""
        instruction = self.debugger.instruction(self.debugger.thread)
        if not file and not self.debugger.in_ptx and instruction is not None:
            file = self.debugger.place(instruction).file
        made = self.debugger.break_at(file, line, condition=condition)
        yield f"breakpoint {made.number} at line {line}, reached {_times(len(made.hits.positions))}"

    def _watch(self, given: str) -> Iterator[str]:
        made = self.debugger.watch(given)
        yield f"watchpoint {made.number}: `{given}` changes {_times(len(made.hits.positions))}"

    def _delete(self, given: str) -> Iterator[str]:
        if not given.isdecimal() or int(given) not in self.debugger.stops:
            raise UnknownError(f"there is no breakpoint `{given}`")
        del self.debugger.stops[int(given)]
        yield from ()

    def _stops(self, given: str) -> Iterator[str]:
        for number, stop in self.debugger.stops.items():
            yield f"{number}: {stop.description}, {_times(len(stop.hits.positions))}"

    def _goto(self, given: str) -> Iterator[str]:
        if not re.fullmatch(r"-?\d+", given):
            raise UnknownError(f"`{given}` is not a number of steps")
        self.debugger.go_to(int(given))
        yield from self.here()

    def _thread(self, given: str) -> Iterator[str]:
        words = [int(word) for word in given.split()]
        if words:
            block = words[0] if len(words) > 1 else self.debugger.scope.block
            thread = self.debugger.trace.number_of(words[-1], block)
            if thread not in self.debugger.trace.columns.threads:
                raise UnknownError(f"thread {words[-1]} of block {block} is not recorded")
            self.debugger.thread = thread
        yield from self.here()

    def _warps(self, given: str) -> Iterator[str]:
        program = self.debugger.trace.program
        for first in self.debugger.warps():
            instruction = self.debugger.instruction(first)
            text = self.debugger.ending(first)
            if instruction is not None:
                text = f"{program.line(instruction):>6}  {program.text(instruction)}"
            yield f"{self.debugger.name(first):<32} {text}"

    def _where(self, given: str) -> Iterator[str]:
        for number, frame in enumerate(self.debugger.stack()):
            file = f"{frame.place.file}:" if frame.place.file else "line "
            yield f"{number}  {frame.place.function}  {file}{frame.place.line}"

    def _list(self, given: str) -> Iterator[str]:
        frames = self.debugger.stack()
        place = self.debugger.place(frames[0].instruction) if frames else Place("", 1)
        file, now = place.file, place.line
        lines = self.source(file)
        if lines is None:
            raise UnknownError(f"`{file}` cannot be read")
        middle = int(given) if given else now
        for number in range(max(1, middle - LISTED), min(len(lines), middle + LISTED) + 1):
            yield f"{'→' if number == now else ' '}{number:>5}  {lines[number - 1]}"

    def _print(self, given: str) -> Iterator[str]:
        yield shown(self.debugger.scope.evaluate(given))

    def _registers(self, given: str) -> Iterator[str]:
        for name, value in self.debugger.scope.registers().items():
            yield f"{name:<8} {shown(value)}"

    def _lanes(self, given: str) -> Iterator[str]:
        found = [(self.debugger.scope_of(thread).lane, shown(value))
                 for thread, value in self.debugger.across_lanes(given).items()]  # fmt: skip
        width = max((len(text) for _, text in found), default=0)
        each = 8 if width <= 8 else 4 if width <= 16 else 1
        for start in range(0, len(found), each):
            row = found[start : start + each]
            yield f"lane {row[0][0]:>2}: " + "  ".join(text.rjust(width) for _, text in row)

    def _matrix(self, given: str) -> Iterator[str]:
        found = [one for one in matrices(self.debugger) if given in ("", one.operand)]
        if not found:
            raise UnknownError("the next instruction does not hold a matrix" + (f" `{given}`" if given else ""))
        for one in found:
            yield one.title
            yield np.array2string(one.values, max_line_width=120, threshold=1024, floatmode="maxprec", precision=4)

    def _barriers(self, given: str) -> Iterator[str]:
        found = self.debugger.trace.barriers(step=self.debugger.position - 1)
        yield from map(str, found) if found else ["no barrier has been used"]

    def _tmem(self, given: str) -> Iterator[str]:
        words = self.debugger.tensor_memory()
        lane, column, *_ = (*map(int, given.split()), -1, -1)
        known = np.flatnonzero(~words.mask.all(axis=1)).tolist()
        if not known:
            raise UnknownError("no word of tensor memory is known here: none was stored, or is loaded later")
        for number in known if lane < 0 else [lane]:
            columns = np.flatnonzero(~words.mask[number])
            chosen = [at for at in columns.tolist() if column in (-1, at)]
            yield (
                f"lane {number:>3}, columns {chosen[0]} to {chosen[-1]}: "
                + np.array2string(
                    words[number, chosen].data, max_line_width=120, threshold=8 if lane < 0 else 512, precision=4
                )
                if chosen
                else f"lane {number:>3}: not known"
            )

    def _origin(self, given: str) -> Iterator[str]:
        yield from str(self.debugger.origin(given)).splitlines()

    def _sass(self, given: str) -> Iterator[str]:
        debugger, program = self.debugger, self.debugger.trace.program
        if debugger.machine_code.absence:
            raise UnknownError(f"there is no SASS: {debugger.machine_code.absence}")
        now = debugger.instruction(debugger.thread) or 0
        yield debugger.machine_code.target
        for number in range(max(0, now - LISTED), min(len(program.instructions), now + LISTED + 1)):
            yield f"{'→' if number == now else ' '}{program.line(number):>5}  {program.text(number)}"
            yield from (f"{'':>11}{text}" for text in debugger.sass(number))

    def _ptx(self, given: str) -> Iterator[str]:
        if not self.debugger.lines.has_sources:
            raise UnknownError("there are no lines but those of the PTX")
        self.debugger.in_ptx = not self.debugger.in_ptx
        yield from self.here()

    def _help(self, given: str) -> Iterator[str]:
        for command in self.commands:
            yield f"{', '.join(command.names):<22} {command.given:<38} {command.help}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
