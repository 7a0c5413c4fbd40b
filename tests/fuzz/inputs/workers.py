"""Processes that examine inputs; their bytes travel as text, a character each."""

import random
import resource
import time
import traceback
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from tests.fuzz.examine import Finding
from tests.fuzz.workers import Worker

MOST_SECONDS = 60
MOST_MEMORY = 12 << 30  # bytes of addresses, most of which are reserved and never used


def module_of(kind: str) -> Any:
    return import_module(f"tests.fuzz.inputs.{kind}")


def lacking(kind: str) -> str | None:
    """The package that a kind needs and this machine does not have."""
    try:
        found: str | None = getattr(module_of(kind), "missing", None)
    except ModuleNotFoundError as absent:
        return absent.name
    return found


def make(kind: str, seed: str) -> bytes:
    """The input of a kind and a seed."""
    data: bytes = module_of(kind).make(random.Random(f"{kind} {seed}"))
    return data


def examine(kind: str, data: bytes) -> Finding | None:
    """What is wrong with how ptxlab deals with an input."""
    started = time.perf_counter()
    try:
        module_of(kind).examine(data)
    except BaseException:
        return Finding("traceback", traceback.format_exc())
    taken = time.perf_counter() - started
    return Finding("slow", f"{taken:.0f} seconds") if taken > MOST_SECONDS else None


def _serve(connection: Connection) -> None:
    from ptxlab.emulate.translate import effort

    effort.HIGHEST = 0  # each kernel runs for a moment
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    while True:
        kind, seed = connection.recv()
        try:
            data = make(kind, seed)
        except Exception:  # a fault of the fuzzer, to be seen too
            connection.send(("", Finding("no input", traceback.format_exc())))
        else:
            connection.send((data.decode("latin-1"), examine(kind, data)))


class InputWorker(Worker):
    """A process and the input that it is working on."""

    serve = staticmethod(_serve)

    def text_of(self, kind: str, seed: str) -> str:
        return make(kind, seed).decode("latin-1")
