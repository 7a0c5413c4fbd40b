"""Messages to the language server: it continues to answer, and none of its own code fails."""

import asyncio
import io
import json
import logging
import os
import random
import threading
import zlib
from typing import Any

from ptxlab.debug.protocol import ProtocolError, read_message
from tests.debug.kernels import EXCHANGE
from tests.fuzz.inputs.messages import changed, sent

try:
    from pygls.exceptions import JsonRpcException
except ImportError:
    missing = "pygls"
PATIENCE = 30  # seconds for all answers
URI = "file:///k.ptx"
_AT = {"textDocument": {"uri": URI}, "position": {"line": 10, "character": 6}}
_RANGE = {"start": {"line": 9, "character": 0}, "end": {"line": 12, "character": 3}}
CALLS: list[tuple[str, Any]] = [
    ("initialize", {"processId": None, "rootUri": None, "capabilities": {"general": {"positionEncodings": ["utf-16"]}},
                    "initializationOptions": {"target": "sm_90a"}}),
    ("initialized", {}),
    ("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "ptx", "version": 1, "text": EXCHANGE}}),
    ("textDocument/hover", _AT),
    ("textDocument/completion", {**_AT, "context": {"triggerKind": 2, "triggerCharacter": "."}}),
    ("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2},
                                "contentChanges": [{"range": _RANGE, "text": "  mov.u32 %r1, 0;\n"}]}),
    ("textDocument/definition", _AT),
    ("textDocument/references", {**_AT, "context": {"includeDeclaration": True}}),
    ("textDocument/documentHighlight", _AT),
    ("textDocument/prepareRename", _AT),
    ("textDocument/rename", {**_AT, "newName": "%other"}),
    ("textDocument/documentSymbol", {"textDocument": {"uri": URI}}),
    ("textDocument/formatting", {"textDocument": {"uri": URI}, "options": {"tabSize": 4, "insertSpaces": True}}),
    ("textDocument/codeAction", {"textDocument": {"uri": URI}, "range": _RANGE, "context": {"diagnostics": []}}),
    ("textDocument/didClose", {"textDocument": {"uri": URI}}),
]  # fmt: skip
_SILENT = ("initialized", "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose")
SESSION = [
    {"jsonrpc": "2.0", "method": name, "params": given, **({} if name in _SILENT else {"id": number})}
    for number, (name, given) in enumerate(CALLS, 1)
]


def make(choose: random.Random) -> bytes:
    return changed(SESSION, choose)


class _Failures(logging.Handler):
    """Exceptions of ptxlab's own code that pygls has logged."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        trace = problem.__traceback__ if problem else None
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        is_own = trace is not None and "ptxlab" in trace.tb_frame.f_code.co_filename
        if problem is not None and is_own and not isinstance(problem, JsonRpcException | asyncio.CancelledError):
            self.found.append(problem)


def examine(data: bytes) -> None:
    from ptxlab.editor import server

    server._PAUSE = 0.0
    wire = sent(data, random.Random(zlib.crc32(data)))
    failures = _Failures()
    logging.getLogger("pygls").addHandler(failures)
    (reading, to_server), (from_server, writing) = os.pipe(), os.pipe()
    answers = io.BytesIO()

    def collect() -> None:
        with os.fdopen(from_server, "rb") as received:
            answers.write(received.read())

    with os.fdopen(reading, "rb") as into, os.fdopen(writing, "wb") as out:
        threads = [threading.Thread(target=server.serve, args=(into, out), daemon=True),
                   threading.Thread(target=collect, daemon=True)]  # fmt: skip
        for thread in threads:
            thread.start()
        with os.fdopen(to_server, "wb") as sending:
            sending.write(wire)
        threads[0].join(PATIENCE)
        assert not threads[0].is_alive(), "the server does not end with its input"
    threads[1].join(PATIENCE)
    logging.getLogger("pygls").removeHandler(failures)
    if failures.found:
        raise failures.found[0]
    answers.seek(0)
    try:
        while (message := read_message(answers)) is not None:
            json.dumps(message)
    except ProtocolError as wrong:
        raise AssertionError(f"an answer: {wrong}") from None
