"""Small runs of the fuzzer of inputs, always the same; what it found once; and that it finds what it should."""

from pathlib import Path

import pytest

from tests.fuzz.inputs import KINDS, projects
from tests.fuzz.inputs.__main__ import main
from tests.fuzz.inputs.workers import examine, lacking, make

FOUND = Path(__file__).parent / "found_inputs"
COUNTS = {"traces": 3, "editor": 2, "debugger": 3, "tensor_maps": 3, "run_lines": 3}  # 40 of others


def is_missing(kind: str) -> str:
    return f"no {lacking(kind)}" if lacking(kind) else ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_every_kind(kind: str) -> None:
    if is_missing(kind):
        pytest.skip(is_missing(kind))
    for number in range(COUNTS.get(kind, 40)):
        found = examine(kind, make(kind, f"0.{number}"))
        assert found is None, f"{kind} 0.{number}: {found.what}: {found.text}"


@pytest.mark.core
@pytest.mark.parametrize("path", sorted(FOUND.iterdir()), ids=lambda path: path.name)
def test_what_was_found_once(path: Path) -> None:
    """Inputs that once ended in a traceback or worse; the kind is the start of the name."""
    kind = next(kind for kind in KINDS if path.name.startswith(kind.replace("_", "-")))
    if is_missing(kind):
        pytest.skip(is_missing(kind))
    found = examine(kind, path.read_bytes())
    assert found is None, f"{found.what}: {found.text}"


def test_an_input_is_always_the_same() -> None:
    assert make("projects", "0.1") == make("projects", "0.1") != make("projects", "0.2")


def test_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "examine", lambda data: 1 / 0)
    found = examine("projects", b"")
    assert found is not None
    assert (found.what, "ZeroDivisionError" in found.text) == ("traceback", True)


@pytest.mark.bulk
@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0.001", "--seed", "0", "--kinds", "projects", "--keep", str(tmp_path)]) == 0
    assert "0 findings {}" in capsys.readouterr().out


@pytest.mark.bulk
def test_minutes_of_all_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "2", "--seed", "0", "--keep", str(tmp_path)]) == 0, capsys.readouterr().out
