"""The debugger in a terminal: commands as gdb and cuda-gdb have them, read line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from textwrap import wrap

from ptxlab.debug import inspection
from ptxlab.debug.absence import line_with_code, prologue_text
from ptxlab.debug.debugger import Debugger, Stop
from ptxlab.debug.focus import focus_on, focus_text, view
from ptxlab.debug.inspection import LISTED
from ptxlab.debug.lines import SourceLine
from ptxlab.debug.objects import UnknownError
from ptxlab.debug.stepping import Kind, Unit
from ptxlab.debug.stops import Breakpoint

Action = Callable[[str], Iterator[str]]
_WIDTH = 80


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
        self.displayed: list[str] = []
        inspect = {name: partial(function, debugger) for name, function in _INSPECTIONS.items()}
        self.commands = [
            Command(("break", "b"), "[FILE:]LINE|FUNCTION [if CONDITION]", "stop where a line is entered", self._break),
            Command(("tbreak", "tb"), "LINE [if CONDITION]", "the same, once", partial(self._break, is_once=True)),
            Command(("watch", "w"), "EXPRESSION | %REGISTER", "stop where a value changes", self._watch),
            Command(("delete", "d"), "[NUMBER]", "remove a breakpoint or watchpoint, or all", self._delete),
            Command(("continue", "c"), "", "run to the next stop", lambda _: self._went(self.debugger.run())),
            Command(("reverse-continue", "rc"), "", "run backwards to the stop before",
                    lambda _: self._went(self.debugger.run(backwards=True))),
            *self._steps(),
            Command(("goto", "g"), "STEP", "go to a number of steps; from the end, if negative", self._goto),
            Command(("cuda",), "[kernel N] [block (X,Y,Z)] [thread (X,Y,Z)] [warp N] [lane N]", "inspect a thread",
                    self._cuda),
            Command(("thread", "t"), "[BLOCK] THREAD", "inspect a thread, by its numbers", self._thread),
            Command(("lane",), "NUMBER", "inspect a lane of the warp", lambda given: self._cuda(f"lane {given}")),
            Command(("frame", "fr"), "[NUMBER]", "inspect a function of the stack", self._frame),
            Command(("up",), "", "inspect the caller", lambda _: self._frame(str(self.debugger.frame + 1))),
            Command(("down",), "", "inspect what it calls", lambda _: self._frame(str(self.debugger.frame - 1))),
            Command(("info", "i"), "locals|args|shared|registers|stack|breakpoints|barriers|cuda VIEW",
                    "views: kernels, blocks, warps, lanes, threads", self._info),
            Command(("warps",), "", "where each warp is", lambda _: view(self.debugger, "warps")),
            Command(("where", "bt", "backtrace"), "", "the functions that the thread is in",
                    lambda _: inspection.stack(self.debugger)),
            Command(("list", "l"), "[LINE]", "the lines around", self._list),
            Command(("print", "p"), "[/FORMAT] EXPRESSION",
                    "As[ty][k], *p, s.x, &A[3], sum + 1, %r5, shared.f32[8]; /x /d /u /o /t /f /c", inspect["print"]),
            Command(("display",), "[EXPRESSION]", "print it at every stop; without one, no longer", self._display),
            Command(("ptype", "whatis"), "EXPRESSION | TYPE", "the type of a value", inspect["ptype"]),
            Command(("registers", "r"), "", "all registers of the thread", inspect["registers"]),
            Command(("lanes",), "EXPRESSION | %REGISTER", "a value in all lanes of the warp", inspect["lanes"]),
            Command(("matrix", "m"), "[OPERAND]", "fragments of the instruction as matrices: a, b, c, d",
                    inspect["matrix"]),
            Command(("barriers",), "", "barriers and mbarriers, with arrivals and bytes", inspect["barriers"]),
            Command(("tmem",), "[LANE [COLUMN]]", "tensor memory of the block, as far as it is known", inspect["tmem"]),
            Command(("origin", "o"), "EXPRESSION | %REGISTER", "where a value comes from", inspect["origin"]),
            Command(("sass",), "", "the instructions around with their SASS", inspect["sass"]),
            Command(("ptx",), "", "show lines of the PTX, or again of the source", self._ptx),
            Command(("help", "h"), "[COMMAND]", "this list", self._help),
        ]  # fmt: skip

    def _steps(self) -> Iterator[Command]:
        kinds: list[tuple[tuple[str, ...], str, Kind, Unit]] = [
            (("step", "s"), "a line, into calls", "in", "line"),
            (("next", "n"), "a line, over calls", "over", "line"),
            (("finish", "f"), "to the end of the function", "out", "line"),
            (("stepi", "si"), "an instruction", "in", "instruction"),
        ]
        for names, text, kind, unit in kinds:
            yield Command(names, "[TIMES]", f"run {text}", self._stepping(kind, unit, backwards=False))
            back = tuple(f"reverse-{name}" if len(name) > 2 else f"r{name}" for name in names)
            yield Command(back, "[TIMES]", f"run backwards {text}", self._stepping(kind, unit, backwards=True))

    def _stepping(self, kind: Kind, unit: Unit, *, backwards: bool) -> Action:
        def step(given: str) -> Iterator[str]:
            if given and not given.isdecimal():
                raise UnknownError(f"`{given}` is not a number of times")
            for _ in range(int(given or 1)):
                stop = self.debugger.step(kind, unit, backwards=backwards)
                if stop.reason != "step":
                    break
            yield from self._went(stop)

        return step

    def command(self, word: str) -> list[Command]:
        """The commands that a word may mean."""
        found = [command for command in self.commands if word in command.names]
        return found or [command for command in self.commands if command.names[0].startswith(word)]

    def answer(self, line: str) -> Iterator[str]:
        """What a command says; an empty line repeats the one before."""
        line = line.strip() or self.last
        self.last = line
        word = re.match(r"[^\s/]*", line)
        if not line or word is None:
            return
        found = self.command(word[0]) if word[0] else []
        if len(found) != 1:
            several = f"means one of {', '.join(command.names[0] for command in found)}"
            yield f"`{line.split()[0]}` {several if found else 'is unknown; `help` lists all commands'}"
            return
        try:
            yield from found[0].run(line[word.end() :].strip())
        except (UnknownError, ValueError, KeyError, IndexError) as wrong:
            yield str(wrong.args[0] if wrong.args else wrong)

    # Where it is.

    def here(self) -> Iterator[str]:
        """The thread, its line, and its next instruction."""
        debugger = self.debugger
        frames = debugger.stack()
        instruction = debugger.instruction(debugger.thread)
        several = f"kernel {debugger.launch} " if len(debugger.launches) > 1 else ""
        steps = f"after {debugger.position:,} of {debugger.trace.steps:,} steps"
        yield f"{several}{debugger.name(debugger.thread)}, {steps}"
        if instruction is None or not frames:
            yield f"  {debugger.ending(debugger.thread)}"
            return
        place = debugger.here()
        assert place is not None
        if len(frames) > 1 and place.file:
            calls = [frame.place for frame in frames if frame.is_own and frame.place != place]
            yield f"{place.function}" + "".join(f", called from line {one.line}" for one in calls[:3])
        text = self._text(place.file, place.line) if place.file else debugger.trace.program.text(instruction)
        yield f"{place.line:>6}  {text}"
        if place.file:
            yield f"        {debugger.trace.program.text(instruction)}"
        for expression in self.displayed:
            yield f"{expression} = {inspection.value_text(debugger.scope, expression)}"

    def _text(self, file: str, line: int) -> str:
        lines = self.source(file)
        return lines[line - 1] if lines is not None and 1 <= line <= len(lines) else f"{inspection.near(file)}:{line}"

    def _went(self, stop: Stop) -> Iterator[str]:
        yield from self.debugger.said()
        if stop.reason != "step":
            yield stop.description
        yield from self.here()

    # Commands.

    def _break(self, given: str, *, is_once: bool = False) -> Iterator[str]:
        found = re.fullmatch(r"(?:(?:(.+):)?(\d+)|([A-Za-z_]\S*))(?:\s+if\s*(.+))?", given)
        if found is None:
            raise UnknownError(f"`{given}` is not like 12, kernel.cu:12, gemm or 12 if tx == 3")
        condition, moved = found[4] or "", ""
        if found[3]:
            made = self.debugger.break_in(found[3], condition=condition)
        else:
            file, line = found[1] or "", int(found[2])
            if not file and not self.debugger.in_ptx:
                file = self._file()
            line, why = line_with_code(self.debugger.launches.all_lines if file else [self.debugger.lines], file, line)
            made = self.debugger.break_at(file, line, condition=condition)
            moved = f": {why}" if why else f": {prologue_text(line)}" if made.line not in (0, line) else ""
        made.is_once = is_once
        if not made.instructions:
            yield f"breakpoint {made.number} is in other launches: `info cuda kernels` lists them{moved}"
            return
        at = self.debugger.place(made.instructions[0])
        several = " in this launch" if len(self.debugger.launches) > 1 else ""
        yield f"breakpoint {made.number} at line {made.line or at.line}, reached {_times(made.times)}{several}{moved}"

    def _file(self) -> str:
        """The source that a line without a file is of: where the thread is, or the kernel."""
        here = self.debugger.here()
        return next(
            iter(
                [
                    *([here.file] if here is not None else []),
                    *(place.file for places in self.debugger.lines.sources for place in places[-1:]),
                ]
            ),
            "",
        )

    def _watch(self, given: str) -> Iterator[str]:
        made = self.debugger.watch(given)
        yield f"watchpoint {made.number}: `{given}` changes {_times(made.times)}"

    def _delete(self, given: str) -> Iterator[str]:
        numbers = [number for number in self.debugger.stops if number > 0] if not given else [int(given)]
        for number in numbers:
            if number not in self.debugger.stops:
                raise UnknownError(f"there is no breakpoint `{given}`")
            del self.debugger.stops[number]
        yield from ()

    def _stops(self) -> Iterator[str]:
        for number, stop in self.debugger.stops.items():
            place, condition = "", ""
            if isinstance(stop, Breakpoint):
                at = (
                    self.debugger.place(stop.instructions[0]) if stop.instructions else SourceLine(stop.file, stop.line)
                )
                place = f" at {f'{inspection.near(at.file)}:' if at.file else 'line '}{stop.line or at.line}"
                condition = f" if {stop.condition}" if stop.condition else ""
            yield f"{number}: {stop.description}{place}{condition}, {_times(stop.times)}"
        if not self.debugger.stops:
            yield "no breakpoints and watchpoints"

    def _info(self, given: str) -> Iterator[str]:
        return inspection.info(self.debugger, given, self._stops)

    def _goto(self, given: str) -> Iterator[str]:
        if not re.fullmatch(r"-?\d+", given):
            raise UnknownError(f"`{given}` is not a number of steps")
        self.debugger.go_to(int(given))
        yield from self.here()

    def _cuda(self, given: str) -> Iterator[str]:
        focus_on(self.debugger, given)
        yield focus_text(self.debugger)
        yield from self.here()

    def _thread(self, given: str) -> Iterator[str]:
        words = given.replace("(", " ").replace(")", " ").split()
        if any(not word.isdecimal() for word in words):
            yield from self._cuda(f"thread {given}")
            return
        if words:
            block = int(words[0]) if len(words) > 1 else self.debugger.scope.block
            self.debugger.focus(self.debugger.trace.number_of(int(words[-1]), block))
        yield from self.here()

    def _frame(self, given: str) -> Iterator[str]:
        frames = self.debugger.stack()
        number = int(given) if given else self.debugger.frame
        if not 0 <= number < len(frames):
            raise UnknownError(f"there is no frame {number}: `where` lists them")
        self.debugger.frame = number
        place = frames[number].place
        yield f"#{number}  {inspection.frame_text(self.debugger, frames[number], number)}"
        if place.file:
            yield f"{place.line:>6}  {self._text(place.file, place.line)}"

    def _list(self, given: str) -> Iterator[str]:
        frames = self.debugger.stack()
        place = SourceLine("", 1)
        if frames:
            own = self.debugger.frame or next((at for at, frame in enumerate(frames) if frame.is_own), 0)
            place = frames[min(own, len(frames) - 1)].place
        lines = self.source(place.file)
        if lines is None:
            raise UnknownError(f"`{place.file}` cannot be read")
        middle = int(given) if given else place.line
        for number in range(max(1, middle - LISTED), min(len(lines), middle + LISTED) + 1):
            yield f"{'→' if number == place.line else ' '}{number:>5}  {lines[number - 1]}"

    def _display(self, given: str) -> Iterator[str]:
        if not given:
            self.displayed.clear()
            return
        value = self.debugger.scope.text(given)
        self.displayed.append(given)
        yield f"{given} = {value}"

    def _ptx(self, given: str) -> Iterator[str]:
        if not self.debugger.lines.has_sources:
            raise UnknownError("there are no lines but those of the PTX")
        self.debugger.in_ptx = not self.debugger.in_ptx
        yield from self.here()

    def _help(self, given: str) -> Iterator[str]:
        for command in self.command(given) if given else self.commands:
            head = f"{', '.join(command.names)} {command.given}".rstrip()
            if len(head) < 30:
                yield f"{head:<30} {command.help}"
                continue
            yield head
            yield from (f"{'':<30} {row}" for row in wrap(command.help, _WIDTH - 31))


_INSPECTIONS: dict[str, Callable[[Debugger, str], Iterator[str]]] = {
    "print": inspection.print_value, "ptype": inspection.print_type, "registers": inspection.registers,
    "lanes": inspection.lanes, "matrix": inspection.matrix, "barriers": inspection.barriers,
    "tmem": inspection.tensor_memory, "origin": inspection.origin, "sass": inspection.sass,
}  # fmt: skip


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
