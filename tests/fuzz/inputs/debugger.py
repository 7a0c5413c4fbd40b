"""Messages to the debug adapter: each request gets an answer, whatever it says."""

import io
import json
import random
import tempfile
import zlib
from pathlib import Path
from typing import Any

from ptxlab.cli.debug import Session, opener
from ptxlab.debug.adapter import Adapter
from ptxlab.debug.protocol import ProtocolError, read_message
from tests.debug.kernels import EXCHANGE
from tests.fuzz.inputs.messages import changed, sent

PROGRAM = "PROGRAM"  # in place of the file of the kernel
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", {"clientID": "x", "linesStartAt1": True}),
    ("launch", {"program": PROGRAM, "grid": 1, "block": [64], "args": ["u32[64]=zeros"], "seed": 0, "limit": 100000}),
    ("setBreakpoints", {"source": {"path": PROGRAM}, "breakpoints": [{"line": 12, "condition": "%r1 == 3"}]}),
    ("setInstructionBreakpoints", {"breakpoints": [{"instructionReference": "3", "offset": 0}]}),
    ("setExceptionBreakpoints", {"filters": ["findings"]}),
    ("configurationDone", {}),
    ("threads", {}),
    ("stackTrace", {"threadId": 1, "startFrame": 0, "levels": 20}),
    ("scopes", {"frameId": 1}),
    ("variables", {"variablesReference": 1, "start": 0, "count": 10}),
    ("evaluate", {"expression": "%r1", "frameId": 1, "context": "watch"}),
    ("evaluate", {"expression": "s[3]", "frameId": 1, "context": "repl"}),
    ("dataBreakpointInfo", {"name": "%r1", "variablesReference": 1}),
    ("setDataBreakpoints", {"breakpoints": [{"dataId": "%r3", "accessType": "write"}]}),
    ("continue", {"threadId": 1}),
    ("next", {"threadId": 1, "granularity": "instruction"}),
    ("stepIn", {"threadId": 1}),
    ("stepOut", {"threadId": 1}),
    ("stepBack", {"threadId": 1}),
    ("reverseContinue", {"threadId": 1}),
    ("exceptionInfo", {"threadId": 1}),
    ("readMemory", {"memoryReference": "0", "offset": 0, "count": 16}),
    ("disassemble", {"memoryReference": "3", "instructionOffset": -2, "instructionCount": 5}),
    ("source", {"sourceReference": 1}),
    ("terminate", {}),
    ("disconnect", {}),
]  # fmt: skip
SESSION = [
    {"seq": number, "type": "request", "command": name, "arguments": given}
    for number, (name, given) in enumerate(REQUESTS, 1)
]


def make(choose: random.Random) -> bytes:
    return changed(SESSION, choose)


def examine(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(EXCHANGE)
        wire = sent(data.replace(PROGRAM.encode(), str(path).encode()), random.Random(zlib.crc32(data)))
        output = io.BytesIO()
        try:
            Adapter(opener(Session()), io.BytesIO(wire), output).serve()
        except ProtocolError:
            return
    output.seek(0)
    while (message := read_message(output)) is not None:
        json.dumps(message)
