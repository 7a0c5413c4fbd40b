"""A small client of the Debug Adapter Protocol, for tests: it sends requests and collects what comes back."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO

from ptxlab.cli.debug import Session, opener
from ptxlab.debug.adapter import Adapter
from ptxlab.debug.protocol import read_message, write_message

Fields = dict[str, Any]


class Client:
    """A client of an adapter at the other ends of two streams."""

    def __init__(self, received: BinaryIO, sent: BinaryIO) -> None:
        self.received, self.sent = received, sent
        self.events: list[Fields] = []
        self.sequence = 0
        self.count = 0  # of messages that came
        self.thread = 1
        self.adapter: Adapter | None = None
        """What is at the other ends, if that is in this process."""

    def ask(self, command: str, **arguments: Any) -> Fields:
        """The answer to a request; events before it are kept."""
        self.sequence += 1
        request = {"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}
        write_message(self.sent, request)
        while True:
            message = self._read()
            if message["type"] == "response":
                assert (message["request_seq"], message["command"]) == (self.sequence, command)
                return message
            self.events.append(message)

    def body(self, command: str, **arguments: Any) -> Fields:
        """The body of an answer that must be a success."""
        answer = self.ask(command, **arguments)
        assert answer["success"], answer
        found: Fields = answer["body"]
        return found

    def event(self, name: str) -> Fields:
        """The next event of a name."""
        while True:
            for number, event in enumerate(self.events):
                if event["event"] == name:
                    del self.events[: number + 1]
                    body: Fields = event["body"]
                    return body
            self.events.append(self._read())

    def _read(self) -> Fields:
        message = read_message(self.received)
        assert message is not None, "the adapter has ended"
        self.count += 1
        assert message["seq"] == self.count
        return message

    def launch(self, program: Path, **arguments: Any) -> None:
        """Start to debug a kernel with one array of 64 words."""
        given = {"grid": 1, "block": [64], "args": ["u32[64]=zeros"], **arguments}
        self.body("launch", program=str(program), **given)
        self.event("initialized")


@contextmanager
def client_in_thread() -> Iterator[Client]:
    """A client whose adapter runs in another thread of this process."""
    (requests, asks), (answers, reads) = os.pipe(), os.pipe()
    with os.fdopen(requests, "rb") as into, os.fdopen(reads, "wb") as out:
        adapter = Adapter(opener(Session()), into, out)
        server = Thread(target=adapter.serve)
        server.start()
        with os.fdopen(answers, "rb") as received, os.fdopen(asks, "wb") as sent:
            client = Client(received, sent)
            client.adapter = adapter
            try:
                yield client
            finally:
                client.body("disconnect")
                server.join(20)
        assert not server.is_alive()


@contextmanager
def client_of_process() -> Iterator[Client]:
    """A client of `ptxlab debug --dap`."""
    command = [sys.executable, "-m", "ptxlab", "debug", "--dap"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    client = Client(process.stdout, process.stdin)  # type: ignore[arg-type]
    yield client
    client.body("disconnect")
    process.communicate(timeout=20)
    assert process.returncode == 0
