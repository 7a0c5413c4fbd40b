"""Processes that examine programs: one that dies or does not answer is a finding, and another takes its place."""

import multiprocessing
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from tests.fuzz.examine import Finding

PATIENCE = 150  # seconds without an answer
_CONTEXT = multiprocessing.get_context("spawn")


def _serve(connection: Connection) -> None:
    from tests.fuzz.examine import examine
    from tests.fuzz.programs import Program, make

    while True:
        asked = connection.recv()
        try:
            program = Program(asked[0], asked[1], asked[2]) if len(asked) > 2 else make(*asked)
        except Exception:  # a fault of the fuzzer, to be seen too
            connection.send(("", Finding("no program", traceback.format_exc())))
        else:
            connection.send((program.text, examine(program)))


class Worker:
    """A process and the question it is working on."""

    serve = staticmethod(_serve)

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.connection, other = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=self.serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        self.question: tuple[str, ...] = ()

    def ask(self, *question: str) -> None:
        """Give it a kind and a seed, or these and a text."""
        self.question = question
        self.connection.send(question)

    def answer(self) -> tuple[str, Finding | None]:
        """The text of the program, and what was found; a process that died or hangs is replaced."""
        try:
            if self.connection.poll(PATIENCE):
                text, found = self.connection.recv()
                return text, found
            what = "hang"
        except (EOFError, ConnectionError):
            what = "abort"
        self._process.kill()
        self._process.join()
        status = self._process.exitcode
        question = self.question
        self._start()
        text = question[2] if len(question) > 2 else self.text_of(*question[:2])
        return text, Finding(what, f"{what}: the process of it ended with status {status}")

    def text_of(self, kind: str, seed: str) -> str:
        """What was examined, made again."""
        from tests.fuzz.programs import make

        return make(kind, seed).text

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


AnyWorker = TypeVar("AnyWorker", bound=Worker)


def ready(workers: Sequence[AnyWorker]) -> list[AnyWorker]:
    """Those that have an answer, or whose process has ended; all that wait, when none has for long."""
    busy: list[Any] = [worker.connection for worker in workers if worker.question]
    found = wait(busy, PATIENCE)
    return [worker for worker in workers if worker.connection in found] or [one for one in workers if one.question]
