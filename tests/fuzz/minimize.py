"""A program that shows a finding, made smaller: lines are left out as long as the same is found."""

import time

from tests.fuzz.workers import Worker

SECONDS = 120


def minimize(kind: str, seed: str, text: str, what: str, worker: Worker, seconds: float = SECONDS) -> str:
    """The fewest lines found within a time that still show `what`; programs with a known result stay as they are."""
    if what == "wrong result":
        return text
    until = time.perf_counter() + seconds
    lines = text.split("\n")
    size = len(lines) // 2
    while size and time.perf_counter() < until:
        at = 0
        while at < len(lines) and time.perf_counter() < until:
            fewer = lines[:at] + lines[at + size :]
            worker.ask(kind, seed, "\n".join(fewer))
            found = worker.answer()[1]
            if found is not None and found.what == what:
                lines = fewer
            else:
                at += size
        size //= 2
    return "\n".join(lines)
