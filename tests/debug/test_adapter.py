"""The Debug Adapter Protocol: what an editor asks for."""

import base64
import io
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxlab.debug.protocol import ProtocolError, read_message
from ptxlab.toolchain import compilation
from ptxlab.toolchain.tools import can_find
from tests.golden import compare_one

from .client import Client, client_in_thread, client_of_process
from .kernels import CALL, COUNT, DOUBLE, EXCHANGE, LOAD, RACE

CONFORMANCE = Path(__file__).with_name("conformance.js")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "k.ptx"
    path.write_text(EXCHANGE)
    return path


@pytest.fixture
def client() -> Iterator[Client]:
    with client_in_thread() as found:
        assert found.body("initialize", adapterID="ptxlab")["supportsStepBack"]
        yield found


def lines(client: Client, thread: int) -> list[int]:
    return [frame["line"] for frame in client.body("stackTrace", threadId=thread)["stackFrames"]]


def variables(client: Client, scope: str) -> dict[str, str]:
    frame = client.body("stackTrace", threadId=client.thread)["stackFrames"][0]["id"]
    scopes = {one["name"]: one["variablesReference"] for one in client.body("scopes", frameId=frame)["scopes"]}
    found = client.body("variables", variablesReference=scopes[scope])["variables"]
    return {one["name"]: one["value"] for one in found}


def test_a_session(client: Client, program: Path) -> None:
    client.launch(program)
    source = {"path": str(program)}
    found = client.body("setBreakpoints", source=source, breakpoints=[{"line": COUNT}, {"line": 900}])["breakpoints"]
    assert [one["verified"] for one in found] == [True, False]
    client.body("configurationDone")
    assert client.event("stopped")["reason"] == "entry"
    assert [one["name"] for one in client.body("threads")["threads"]] == [
        "block (0,0,0) warp 0",
        "block (0,0,0) warp 1",
    ]
    client.body("continue", threadId=1)
    stopped = client.event("stopped")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [found[0]["id"]])
    client.thread = stopped["threadId"]
    assert lines(client, client.thread) == [COUNT]
    registers = variables(client, "Registers")
    assert registers["%r4"] == "0"
    assert variables(client, "Arguments")["c"].startswith("{0, 0, ")
    assert variables(client, "Shared memory")["s"].startswith("{0, 1, 2, 3, ")
    assert "complete 1 times" in variables(client, "Barriers")["0"]
    assert client.body("evaluate", expression="%r4 + 1")["result"] == "1"
    client.body("next", threadId=client.thread)
    assert client.event("stopped")["reason"] == "step"
    assert lines(client, client.thread) == [COUNT + 1]
    client.body("stepBack", threadId=client.thread)
    client.event("stopped")
    assert lines(client, client.thread) == [COUNT]
    client.body("stepBack", threadId=client.thread, granularity="instruction")
    client.event("stopped")
    assert lines(client, client.thread) == [DOUBLE]
    client.body("reverseContinue", threadId=client.thread)
    assert client.event("stopped")["description"] == "start of the recording"


def test_conditions_and_data_breakpoints(client: Client, program: Path) -> None:
    client.launch(program)
    given = [{"line": LOAD, "condition": "%tid.x == 40"}]
    client.body("setBreakpoints", source={"path": str(program)}, breakpoints=given)
    client.body("configurationDone")
    client.event("stopped")
    client.body("continue", threadId=1)
    client.thread = client.event("stopped")["threadId"]
    assert client.body("evaluate", expression="%tid.x")["result"] == "40"
    watched = client.body("dataBreakpointInfo", name="%r4")["dataId"]
    client.body("setDataBreakpoints", breakpoints=[{"dataId": watched}])
    client.body("continue", threadId=client.thread)
    assert client.event("stopped")["reason"] == "data breakpoint"
    assert client.body("evaluate", expression="%r4")["result"] == "0"


CUDA = """\
__device__ __forceinline__ unsigned twice(unsigned v) {
  return v * 2;
}
extern "C" __global__ void k(unsigned* c) {
  unsigned v = c[threadIdx.x];
  c[threadIdx.x] = twice(v) + 1;
}
"""


@pytest.mark.skipif(not can_find("nvrtc"), reason="no NVRTC")
def test_breakpoints_in_a_file_of_cuda(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "has_host_compiler", lambda options: False)
    program = tmp_path / "k.cu"
    program.write_text(CUDA)
    client.launch(program)
    found = client.body("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": 6}])["breakpoints"]
    assert [(one["verified"], one["line"]) for one in found] == [(True, 6)]
    client.body("configurationDone")
    client.event("stopped")
    client.body("continue", threadId=1)
    stopped = client.event("stopped")
    assert (stopped["reason"], stopped["threadId"]) == ("breakpoint", 1)
    assert lines(client, 1) == [6]  # in front of the function that is inlined there
    client.body("stepIn", threadId=1)
    client.event("stopped")
    assert lines(client, 1) == [2, 6]
    client.body("stepOut", threadId=1)
    client.event("stopped")
    assert lines(client, 1) == [6]


def test_memory_and_instructions(client: Client, program: Path) -> None:
    client.launch(program, stopOnEntry=False)
    client.body("configurationDone")
    client.event("stopped")
    data = client.body("readMemory", memoryReference="shared:0x0", offset=8, count=4)["data"]
    assert base64.b64decode(data) == (2).to_bytes(4, "little")
    client.thread = 1
    array = client.body("evaluate", expression="c")["memoryReference"]
    for reference, offset, expected in [
        ("shared:0x0", 252, 4),
        ("shared:0x0", -4, 0),
        (array, 252, 4),
        (array, 256, 0),
    ]:
        found = client.body("readMemory", memoryReference=reference, offset=offset, count=1024)
        assert (len(base64.b64decode(found["data"])), found["unreadableBytes"]) == (expected, 1024 - expected)
    found = client.body("disassemble", memoryReference="0x1", instructionOffset=-2, instructionCount=3)["instructions"]
    shown = [one["instruction"].split("  → ") for one in found]
    assert [parts[0] for parts in shown] == ["(none)", "ld.param.u64 %rd1, [c]", "mov.u32 %r1, %tid.x"]
    if can_find("ptxas", "nvdisasm"):
        assert shown[2][1].startswith("S2R R")  # the SASS of the line


def test_a_race_is_an_exception(client: Client, tmp_path: Path) -> None:
    program = tmp_path / "race.ptx"
    program.write_text(RACE)
    client.launch(program, stopOnEntry=False)
    client.body("configurationDone")
    stopped = client.event("stopped")
    assert stopped["reason"] == "exception"
    assert "error[data-race]" in client.body("exceptionInfo", threadId=stopped["threadId"])["description"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"program": "nowhere/k.ptx"}, "there is no file"),
        ({"program": "damaged.ptxtrace"}, "is not a recorded launch"),
        ({"block": "many"}, "expected whole numbers"),
        ({"args": ["u99=1"]}, "u99"),
        ({"entry": "other"}, "there is no kernel `other`"),
        ({}, None),
    ],
)
def test_a_launch_that_cannot_be(client: Client, program: Path, given: dict[str, Any], message: str | None) -> None:
    (program.parent / "damaged.ptxtrace").write_text("something else")
    whole = {
        "block": 64,
        "args": ["u32[64]=zeros"],
        **given,
        "program": str(program.parent / given.get("program", program)),
    }
    answer = client.ask("launch", **whole)
    assert answer["success"] is (message is None)
    assert message is None or message in answer["message"]


@pytest.mark.slow
def test_a_process_serves_its_streams(program: Path) -> None:
    with client_of_process() as client:
        client.body("initialize")
        client.launch(program)
        client.body("configurationDone")
        assert client.event("stopped")["reason"] == "entry"


def test_requests_out_of_order(client: Client) -> None:
    assert "`launch` comes first" in client.ask("continue", threadId=1)["message"]
    assert "not supported" in client.ask("restartFrame")["message"]


@pytest.mark.slow
def test_conformance() -> None:
    """The client library of VS Code: its checks of breakpoints, stepping and ends, where node has it."""
    node = shutil.which("node")
    known = node and subprocess.run([node, "-e", "require('@vscode/debugadapter-testsupport')"], capture_output=True)
    if not known or known.returncode:
        pytest.skip("needs node and the package @vscode/debugadapter-testsupport (on NODE_PATH)")
    found = subprocess.run([str(node), str(CONFORMANCE), sys.executable], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "passed" in found.stdout


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "a message has the header b'POST / HTTP/1.1'"),
        (b"Content-Length: 9999999999\r\n\r\n", "a message has the length b'9999999999'"),
        (b"Content-Length: 2\r\n\r\n[]", "a message is not an object"),
        (b"Content-Length: 90000\r\n\r\n" + b"[" * 90000, "a message is not JSON"),
    ],
)
def test_what_is_not_a_message_ends_the_session(sent: bytes, says: str) -> None:
    """A page in a browser can send a request to a port of this machine; it is not a client."""
    with pytest.raises(ProtocolError, match=re.escape(says)):
        read_message(io.BytesIO(sent))


class Requests:
    """Requests of an editor at random, of what a kernel has."""

    def __init__(self, client: Client, program: Path, seed: int) -> None:
        self.client, self.program, self.random = client, program, random.Random(seed)
        self.seen: dict[str, list[Any]] = {"frame": [0], "variables": [0], "data": ["0 %r1"], "memory": ["shared:0x0"]}
        self.registers = sorted(set(re.findall(r"%[a-z]+\d*\b(?!\.)", program.read_text())))
        self.lines = len(program.read_text().splitlines())

    def expression(self) -> str:
        choose, number = self.random.choice, self.random.randrange(40)
        one = choose(self.registers)
        return choose(
            [one, f"{one} + {number}", "c", f"c[{number}]", f"shared.u32[{number}]", "%tid.x == 40", "", "no"]
        )

    def command(self) -> str:
        one = self.expression()
        return self.random.choice(["s 3", "rs", "where", "warps", f"print {one}", f"print/x {one}", "list", "n", one])

    def condition(self) -> dict[str, Any]:
        choose = self.random.choice
        return choose([{}, {}, {"condition": self.expression()}, {"hitCondition": choose(["2", "> 3", "% 5", "x"])}])

    def request(self) -> tuple[str, dict[str, Any]]:
        choose, seen = self.random.choice, self.seen
        line, number = self.random.randrange(1, self.lines), self.random.randrange(60)
        thread = {"threadId": choose([1, 2, self.client.thread, self.client.thread, 9][: 5 - (number < 50)])}
        points = [{"line": self.random.randrange(1, self.lines), **self.condition()} for _ in range(number % 3)]
        return choose(
            [
                ("setBreakpoints", {"source": {"path": str(self.program)}, "breakpoints": points}),
                ("setFunctionBreakpoints", {"breakpoints": [{"name": choose(["k", "missing"]), **self.condition()}]}),
                ("setInstructionBreakpoints", {"breakpoints": [
                    {"instructionReference": hex(number % 9), "offset": choose([0, 1, 3]), **self.condition()}]}),
                ("dataBreakpointInfo", {"name": self.expression()}),
                ("dataBreakpointInfo", {"name": self.expression(), "variablesReference": choose(seen["variables"])}),
                ("setDataBreakpoints", {"breakpoints": [{"dataId": choose(seen["data"]), **self.condition()}]}),
                ("setExceptionBreakpoints", {"filters": choose([[], ["findings"]])}),
                *[(choose(["next", "stepIn", "stepOut", "stepBack"]), {
                    **thread, **choose([{}, {"granularity": "instruction"}])})] * 3,
                (choose(["continue", "reverseContinue"]), thread),
                ("threads", {}), ("exceptionInfo", thread), ("stackTrace", thread),
                ("stackTrace", thread | {"startFrame": number % 2, "levels": 1 + number % 3}),
                ("scopes", {"frameId": choose(seen["frame"])}),
                ("variables", {"variablesReference": choose(seen["variables"]), "start": number % 5, "count": 7}),
                ("variables", {"variablesReference": choose(seen["variables"])}),
                *[("evaluate", {"expression": self.expression(), "context": choose(["watch", "hover", "repl"]),
                                "frameId": choose(seen["frame"]), "format": {"hex": number % 2 == 0}})] * 2,
                ("evaluate", {"expression": self.command(), "context": "repl"}),
                ("readMemory", {"memoryReference": choose(seen["memory"]), "offset": number, "count": 1 + line % 9}),
                ("disassemble", {"memoryReference": hex(number % 9), "instructionOffset": line % 5 - 2,
                                 "instructionCount": 4}),
            ]
        )  # fmt: skip

    def ask(self) -> list[Any]:
        """What comes of a request; what it names can be asked for later."""
        command, given = self.request()
        answer = self.client.ask(command, **given)
        events, self.client.events = self.client.events, []
        if any(one["event"] == "stopped" for one in events):
            self.seen |= {"frame": [0], "variables": [0]}
        for found in _inside([answer.get("body"), events]):
            for name, key in (("frame", "id"), ("variables", "variablesReference"), ("data", "dataId"),
                              ("memory", "memoryReference")):  # fmt: skip
                if found.get(key) and (name != "frame" or "column" in found):
                    self.seen[name].append(found[key])
            self.client.thread = found.get("threadId", self.client.thread)
        return [command, given, events, answer["success"], answer.get("message"), answer.get("body")]


def _inside(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a message."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _inside(one)


@pytest.mark.parametrize("name", ["exchange", "call", "race"])
def test_random_requests(client: Client, tmp_path: Path, name: str) -> None:
    text = {"exchange": EXCHANGE, "call": CALL, "race": RACE}[name]
    program = tmp_path / "k.ptx"
    program.write_text(text)
    client.launch(program)
    client.body("configurationDone")
    client.event("stopped")
    requests = Requests(client, program, 3)
    said = json.dumps([requests.ask() for _ in range(160)]).replace(str(program), "k.ptx")
    # Instructions have their SASS beside them where there is a disassembler.
    compare_one(Path(__file__).with_suffix(".txt"), name, re.sub(r" *\\u2192 [^\"]*", "", said))
