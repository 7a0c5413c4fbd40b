"""Small runs of the fuzzer, always the same; and that it finds what it should."""

import os
import signal
from pathlib import Path

import pytest

from tests.fuzz import examine as examining
from tests.fuzz import loop, workers
from tests.fuzz.__main__ import main
from tests.fuzz.examine import HAS_PTXAS, Finding, examine
from tests.fuzz.minimize import minimize
from tests.fuzz.programs import KINDS, Program, make
from tests.fuzz.workers import Worker
from tests.tools import header

FIXED = Path(__file__).parent / "found"


@pytest.mark.bulk(one_in=2)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_every_kind(kind: str) -> None:
    for number in range(2):
        program = make(kind, f"0.{number}")
        found = examine(program)
        assert found is None, f"{found.what}: {found.text}\n{program.text}"


@pytest.mark.parametrize("path", sorted(FIXED.glob("*.ptx")), ids=lambda path: path.stem)
def test_what_was_found_once(path: Path) -> None:
    """Programs that once ended in a traceback, a wrong verdict or worse."""
    legality = HAS_PTXAS and path.stem != "constants-of-eight-gigabytes"  # ptxas would write zeros to all of them
    found = examine(Program("found", path.stem, path.read_text()), legality)
    assert found is None, f"{found.what}: {found.text}"


HEADER = header("8.6", "sm_90")


def test_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADER + ".visible .entry k() { ret; }\n"
    assert examine(Program("", "", text)) is None
    assert examine(Program("", "", text, lambda: "other bytes")) == Finding("wrong result", "other bytes")
    monkeypatch.setattr(examining, "_read", lambda text: 1 / 0)
    found = examine(Program("", "", text))
    assert found is not None
    assert (found.what, "ZeroDivisionError" in found.text) == ("traceback", True)


class Stub(Worker):
    """A worker that finds something wherever the text has a word."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.question = ()

    def ask(self, *question: str) -> None:
        self.question = question

    def answer(self) -> tuple[str, Finding | None]:
        text = self.question[2]
        return text, Finding("traceback", "") if self.word in text else None

    def stop(self) -> None:
        pass


def test_what_is_found_becomes_small() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    assert minimize("wild", "0", text, "traceback", Stub("line 42")) == "line 42"
    assert minimize("wild", "0", text, "wrong result", Stub("line 42")) == text


def test_a_process_that_dies_or_hangs_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    try:
        worker.ask("calls", "0", HEADER)
        pid = worker._process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSEGV)
        text, found = worker.answer()
        assert (text, found.what if found else "") == (HEADER, "abort")
        monkeypatch.setattr(workers, "PATIENCE", 0.01)
        worker.ask("calls", "0", HEADER)
        _, found = worker.answer()
        assert found is not None
        assert found.what == "hang"
    finally:
        worker.stop()


def test_what_is_found_is_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loop, "ready", lambda workers: workers)
    options = loop.options_of(["--minutes", "0", "--keep", str(tmp_path)], "", KINDS)
    worker = Stub("line 1")
    worker.ask("wild", "0.1", "line 1")
    assert loop.fuzz(options, iter(()), [worker], lambda worker, *found: found[2].encode(), ".txt") == 1
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("traceback-wild-0.1.txt", "line 1")]
    assert "1 examined {'wild': 1}, 1 findings {'wild: traceback': 1}\n" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0.01", "--seed", "0", "--kinds", "table", "--keep", str(tmp_path)]) == 0
    assert "seed 0: 1 examined {'table': 1}, 0 findings {}" in capsys.readouterr().out
