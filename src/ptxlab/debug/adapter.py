"""A server of the Debug Adapter Protocol: what VS Code, Neovim and Emacs talk to.

Warps are its threads. A recorded launch is walked through, so that every request that moves has one that moves back.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from ptxlab.debug.absence import line_with_code, prologue_text
from ptxlab.debug.debugger import Debugger, Stop
from ptxlab.debug.objects import UnknownError
from ptxlab.debug.protocol import read_message, write_message
from ptxlab.debug.stepping import Kind, Unit
from ptxlab.debug.stops import FindingStop
from ptxlab.debug.terminal import Terminal
from ptxlab.debug.values import Scope
from ptxlab.debug.variables import Variables

Fields = dict[str, Any]
CAPABILITIES = (
    "supportsConfigurationDoneRequest supportsConditionalBreakpoints supportsHitConditionalBreakpoints "
    "supportsStepBack supportsEvaluateForHovers supportsSteppingGranularity supportsDataBreakpoints "
    "supportsReadMemoryRequest supportsDisassembleRequest supportsInstructionBreakpoints "
    "supportsExceptionInfoRequest supportsTerminateRequest supportsLogPoints supportsFunctionBreakpoints "
    "supportsValueFormattingOptions"
).split()
_MOST_INSTRUCTIONS = 100_000  # of an answer to `disassemble`
_REASONS = {"watchpoint": "data breakpoint", "finding": "exception", "end": "pause", "start": "pause"}


@dataclass
class Opened:
    """What a launch request gave: the debugger, the file of its PTX, and the text that the kernel printed."""

    debugger: Debugger
    path: Path | None = None
    output: str = ""
    owner: Any = None
    """What keeps the recording, if that is a temporary file."""


@dataclass
class Adapter:
    """One session with a client."""

    open: Callable[[Fields], Opened]
    """Runs or reads what a launch request asks for; raises `UnknownError` with what is wrong with it."""
    input: BinaryIO
    output: BinaryIO
    sequence: int = 0
    session: Opened | None = None
    variables: Variables | None = None
    stop: Stop | None = None
    """Where a request has moved to, which an event is to say."""
    last: Stop | None = None
    is_done: bool = False
    wants_entry: bool = True
    _numbers: dict[str, list[int]] = field(default_factory=dict)
    _frames: list[tuple[int, int]] = field(default_factory=list)
    """What numbers of frames mean: a thread, and a function of its stack."""

    def serve(self) -> None:
        """Answer requests until the client ends the session."""
        while not self.is_done:
            message = read_message(self.input)
            if message is None:
                return
            if message.get("type") == "request":
                self._answer(message)

    def _answer(self, request: Fields) -> None:
        name = str(request.get("command"))
        handler = getattr(self, f"on_{name}", None)
        body: Fields = {}
        problem = ""
        try:
            if handler is None:
                raise UnknownError(f"`{name}` is not supported")
            if self.session is None and name not in ("initialize", "launch", "attach", "disconnect", "terminate"):
                raise UnknownError("nothing is being debugged: `launch` comes first")
            arguments = request.get("arguments") or {}
            if not isinstance(arguments, dict):
                raise UnknownError("`arguments` is not an object")
            body = handler(arguments) or {}
        except (UnknownError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as wrong:
            problem = str(wrong.args[0] if wrong.args else wrong)
        answer: Fields = {"type": "response", "request_seq": request.get("seq", 0), "command": name}
        self._send({**answer, "success": not problem, "body": body, **({"message": problem} if problem else {})})
        if not problem:
            self._afterwards(name)

    def _send(self, message: Fields) -> None:
        self.sequence += 1
        write_message(self.output, {"seq": self.sequence, **message})

    def _event(self, name: str, **body: object) -> None:
        self._send({"type": "event", "event": name, "body": body})

    def _afterwards(self, name: str) -> None:
        """Events that follow an answer."""
        if name in ("launch", "attach"):
            self._event("initialized")
            if self.session is not None and self.session.output:
                self._event("output", category="stdout", output=self.session.output)
        elif name == "configurationDone":
            if self.wants_entry:
                self._stopped(Stop("goto", "entry", self.debugger.thread), "entry")
            else:
                self._moved(self.debugger.run(is_new=True))
        elif self.stop is not None:
            stop, self.stop = self.stop, None
            self._moved(stop)
        if name in ("disconnect", "terminate"):
            self._event("terminated")
            self.is_done = name == "disconnect"

    # The session.

    @property
    def debugger(self) -> Debugger:
        assert self.session is not None
        return self.session.debugger

    def on_initialize(self, given: Fields) -> Fields:
        filters = [{"filter": "findings", "label": "Races, hangs and other findings", "default": True}]
        return {**dict.fromkeys(CAPABILITIES, True), "exceptionBreakpointFilters": filters}

    def on_launch(self, given: Fields) -> None:
        self.session = self.open(given)
        self.variables = Variables(self.debugger)
        self.wants_entry = bool(given.get("stopOnEntry", True))

    on_attach = on_launch

    def on_configurationDone(self, given: Fields) -> None:  # noqa: N802 - names of the protocol
        pass

    def on_disconnect(self, given: Fields) -> None:
        pass

    def on_terminate(self, given: Fields) -> None:
        pass

    def on_setExceptionBreakpoints(self, given: Fields) -> None:  # noqa: N802
        self.debugger.stop_at_findings(is_wanted="findings" in given.get("filters", ()))

    # Breakpoints.

    def on_setBreakpoints(self, given: Fields) -> Fields:  # noqa: N802
        source = given.get("source", {})
        path = str(source.get("path") or source.get("name") or "")
        file = "" if self._is_ptx(source) else path
        return self._replace(f"lines of {path}", given.get("breakpoints", ()), lambda one: self._line(file, one))

    def _is_ptx(self, source: Fields) -> bool:
        assert self.session is not None
        if source.get("sourceReference"):
            return True
        if any(lines.has_file(str(source.get("path") or "")) for lines in self.debugger.launches.all_lines):
            return False  # what the PTX was compiled from, as a `.cu` file
        path = self.session.path
        return path is None or not source.get("path") or Path(str(source["path"])).absolute() == path.absolute()

    def _line(self, file: str, given: Fields) -> Fields:
        asked = int(given["line"])
        line, why = line_with_code(self.debugger.launches.all_lines if file else [self.debugger.lines], file, asked)
        made = self.debugger.break_at(file, line, message=str(given.get("logMessage") or ""), **_conditions(given))
        said = f"line {asked} has no code: {why}" if why else prologue_text(line) if made.line not in (0, line) else ""
        note = {"message": said} if said else {}
        return {"id": made.number, "verified": True, "line": made.line or line, **note}

    def on_setFunctionBreakpoints(self, given: Fields) -> Fields:  # noqa: N802
        def make(one: Fields) -> Fields:
            made = self.debugger.break_in(str(one["name"]).strip(), **_conditions(one))
            at = {"line": self.debugger.place(made.instructions[0]).line} if made.instructions else {}
            return {"id": made.number, "verified": True, **at}

        return self._replace("functions", given.get("breakpoints", ()), make)

    def on_setInstructionBreakpoints(self, given: Fields) -> Fields:  # noqa: N802
        def make(one: Fields) -> Fields:
            instruction = int(one["instructionReference"], 16) + int(one.get("offset") or 0)
            made = self.debugger.break_before([instruction], condition=str(one.get("condition") or ""))
            return {"id": made.number, "verified": True, "instructionReference": hex(instruction)}

        return self._replace("instructions", given.get("breakpoints", ()), make)

    def on_dataBreakpointInfo(self, given: Fields) -> Fields:  # noqa: N802
        name = str(given.get("name"))
        found = self.variables.expression(int(given.get("variablesReference") or 0), name) if self.variables else None
        if found is None:
            return {"dataId": None, "description": f"`{name}` cannot be watched"}
        return {"dataId": f"{self.debugger.thread} {found}", "description": found, "accessTypes": ["write"]}

    def on_setDataBreakpoints(self, given: Fields) -> Fields:  # noqa: N802
        def make(one: Fields) -> Fields:
            thread, _, name = str(one["dataId"]).partition(" ")
            self.debugger.thread = int(thread)
            return {"id": self.debugger.watch(name).number, "verified": True}

        kept = self.debugger.thread
        found = self._replace("data", given.get("breakpoints", ()), make)
        self.debugger.thread = kept
        return found

    def _replace(self, kind: str, given: Sequence[Fields], make: Callable[[Fields], Fields]) -> Fields:
        """Breakpoints of a kind instead of those that were there; what cannot be set says why."""
        for number in self._numbers.pop(kind, ()):
            self.debugger.stops.pop(number, None)
        found: list[Fields] = []
        for one in given:
            try:
                found.append(make(one))
            except (UnknownError, ValueError, KeyError) as wrong:
                found.append({"verified": False, "message": str(wrong.args[0] if wrong.args else wrong)})
        self._numbers[kind] = [one["id"] for one in found if "id" in one]
        return {"breakpoints": found}

    # Moving.

    def _move(self, given: Fields, kind: Kind, *, backwards: bool) -> None:
        unit: Unit = "instruction" if given.get("granularity") == "instruction" else "line"
        self.debugger.focus(self._thread_of(given))
        self.stop = self.debugger.step(kind, unit, backwards=backwards)

    def _thread_of(self, given: Fields) -> int:
        """The thread of a warp that is inspected: the one that was before, or its first."""
        warp = int(given.get("threadId", 0)) - 1
        warps = self.debugger.warps()
        if not 0 <= warp < len(warps):
            raise UnknownError(f"there is no warp {warp + 1}")
        lanes = self.debugger.lanes(warps[warp])
        return self.debugger.thread if self.debugger.thread in lanes else lanes[0]

    def on_next(self, given: Fields) -> None:
        self._move(given, "over", backwards=False)

    def on_stepIn(self, given: Fields) -> None:  # noqa: N802
        self._move(given, "in", backwards=False)

    def on_stepOut(self, given: Fields) -> None:  # noqa: N802
        self._move(given, "out", backwards=False)

    def on_stepBack(self, given: Fields) -> None:  # noqa: N802
        self._move(given, "over", backwards=True)

    def on_continue(self, given: Fields) -> Fields:
        self.debugger.focus(self._thread_of(given))
        self.stop = self.debugger.run()
        return {"allThreadsContinued": True}

    def on_reverseContinue(self, given: Fields) -> None:  # noqa: N802
        self.debugger.focus(self._thread_of(given))
        self.stop = self.debugger.run(backwards=True)

    def on_pause(self, given: Fields) -> None:
        self.stop = Stop("goto", "pause", self.debugger.thread)

    def _moved(self, stop: Stop) -> None:
        for text in self.debugger.said():
            self._event("output", category="console", output=f"{text}\n")
        self._stopped(stop, _REASONS.get(stop.reason, stop.reason))
        if stop.reason == "end" and self.debugger.position == self.debugger.trace.steps:
            self._event("output", category="console", output=f"{stop.description}; step back to see it again\n")

    def _stopped(self, stop: Stop, reason: str) -> None:
        assert self.variables is not None
        self.variables.forget()
        self._frames.clear()
        numbers = [stop.number] if stop.number is not None and stop.number > 0 else []
        warp = self.debugger.warps().index(self.debugger.lanes(stop.thread)[0])
        self._event("stopped", reason=reason, description=stop.description, text=stop.description, threadId=warp + 1,
                    allThreadsStopped=True, hitBreakpointIds=numbers)  # fmt: skip
        self.last = stop

    def on_exceptionInfo(self, given: Fields) -> Fields:  # noqa: N802
        last = self.last or Stop("goto", "", self.debugger.thread)
        found = self.debugger.stops.get(last.number or 0)
        text = str(found.diagnostic) if isinstance(found, FindingStop) else last.description
        return {"exceptionId": last.description, "description": text, "breakMode": "always"}

    # Looking.

    def on_threads(self, given: Fields) -> Fields:
        names = [self._warp_name(first) for first in self.debugger.warps()]
        return {"threads": [{"id": number, "name": name} for number, name in enumerate(names, 1)]}

    def _warp_name(self, first: int) -> str:
        scope = self.debugger.scope_of(first)
        return f"block ({','.join(map(str, scope.block_index))}) warp {scope.warp}"

    def on_stackTrace(self, given: Fields) -> Fields:  # noqa: N802
        debugger = self.debugger
        thread = self._thread_of(given)
        lane = debugger.scope_of(thread).lane
        stack = debugger.stack(thread)
        start, count = int(given.get("startFrame") or 0), int(given.get("levels") or len(stack))
        frames = [
            {
                "id": self._frame_number(thread, number),
                "name": f"{frame.place.function} · lane {lane}",
                "line": frame.place.line,
                "column": 1,
                "source": self._source(frame.place.file),
                "instructionPointerReference": hex(frame.instruction),
                "presentationHint": "normal" if frame.is_own else "subtle",  # editors open the first that is normal
            }
            for number, frame in [*enumerate(stack)][start : start + count]
        ]
        return {"stackFrames": frames, "totalFrames": len(stack)}

    def _frame_number(self, thread: int, frame: int) -> int:
        if (thread, frame) not in self._frames:
            self._frames.append((thread, frame))
        return self._frames.index((thread, frame)) + 1

    def _scope(self, given: Fields) -> Scope:
        """The function that a request is about; by default the innermost of the thread that is inspected."""
        number = int(given.get("frameId") or 0)
        if not 1 <= number <= len(self._frames):
            return self.debugger.scope
        return self.debugger.scope_of(*self._frames[number - 1])

    def _source(self, file: str) -> Fields:
        assert self.session is not None
        path = Path(file) if file else self.session.path
        if path is not None and path.exists():
            return {"name": path.name, "path": str(path.absolute())}
        return {"name": Path(self.debugger.trace.description["name"]).name, "sourceReference": 1}

    def on_source(self, given: Fields) -> Fields:
        return {"content": self.debugger.trace.description["text"], "mimeType": "text/x-ptx"}

    def on_scopes(self, given: Fields) -> Fields:
        assert self.variables is not None
        return {"scopes": self.variables.scopes(self._scope(given))}

    def on_variables(self, given: Fields) -> Fields:
        assert self.variables is not None
        start, count = int(given.get("start") or 0), int(given.get("count") or 0)
        self.variables.style = _style(given)
        found = self.variables.children(int(given["variablesReference"]))
        return {"variables": found[start : start + count if count else None]}

    def on_evaluate(self, given: Fields) -> Fields:
        """The value of an expression; in the console also what a command of the terminal says."""
        assert self.variables is not None
        expression = str(given.get("expression", "")).strip()
        if given.get("context") == "repl" and self._is_command(expression):
            return {"result": self._command(expression), "variablesReference": 0}
        found = self.variables.of(self._scope(given), expression, _style(given))
        found["result"] = found.pop("value")
        return found

    def _is_command(self, text: str) -> bool:
        """Whether a text is a command: one of a single word may be a variable, which is meant then."""
        word, _, rest = text.partition(" ")
        named = any(word.partition("/")[0] in one.names for one in self.terminal.commands)
        if not rest and named:
            try:
                self.debugger.scope.operand(text)
            except UnknownError:
                return True
        return named and bool(rest)

    def _command(self, text: str) -> str:
        """What the terminal says to a command; where it moves the debugger, or to another thread, an event follows."""
        debugger = self.debugger
        before = debugger.launch, debugger.position, debugger.thread
        said = "\n".join(self.terminal.answer(text))
        if (debugger.launch, debugger.position, debugger.thread) != before:
            self.stop = Stop("goto", debugger.name(debugger.thread), debugger.thread)
        return said

    @cached_property
    def terminal(self) -> Terminal:
        """What answers commands in the console."""
        return Terminal(self.debugger, self._text)

    def _text(self, file: str) -> list[str] | None:
        if not file:
            return str(self.debugger.trace.description["text"]).splitlines()
        path = Path(file)
        return path.read_text("utf-8", "replace").splitlines() if path.is_file() else None

    def on_readMemory(self, given: Fields) -> Fields:  # noqa: N802
        space, _, start = str(given["memoryReference"]).rpartition(":")
        at, count = int(start, 16) + int(given.get("offset") or 0), int(given["count"])
        scope = self.debugger.scope
        size = min(count, scope.size_at(space or "shared", at))
        data = scope.read(space or "shared", at, size) if size else b""
        return {"address": hex(at), "data": base64.b64encode(data).decode(), "unreadableBytes": count - len(data)}

    def on_disassemble(self, given: Fields) -> Fields:
        """The PTX around an instruction, and its SASS after it; an address is the number of an instruction."""
        program, lines = self.debugger.trace.program, self.debugger.lines
        start = int(str(given["memoryReference"]), 16) + int(given.get("instructionOffset") or 0)
        found: list[Fields] = []
        count = int(given["instructionCount"])
        if count > _MOST_INSTRUCTIONS:
            raise UnknownError(f"{count} instructions are asked for, {_MOST_INSTRUCTIONS} are the most at a time")
        for number in range(start, start + count):
            if not 0 <= number < len(program.instructions):
                found.append({"address": hex(max(number, 0)), "instruction": "(none)", "presentationHint": "invalid"})
                continue
            text = "  → ".join([program.text(number), *filter(None, ["; ".join(self.debugger.sass(number))])])
            found.append({"address": hex(number), "instruction": text, "line": lines.ptx[number].line,
                          "location": self._source("")})  # fmt: skip
        return {"instructions": found}


def _conditions(given: Fields) -> Fields:
    """The condition and the hit count of a breakpoint."""
    hits = str(given.get("hitCondition") or "1").strip(" >=")
    return {"condition": str(given.get("condition") or ""), "hit_count": int(hits) if hits.isdecimal() else 1}


def _style(given: Fields) -> str:
    form = given.get("format")
    return "x" if isinstance(form, dict) and form.get("hex") else ""
