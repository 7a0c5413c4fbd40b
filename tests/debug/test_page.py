"""docs/debug.md: its session is what is shown, and what editors may say in a launch request is what is read."""

import json
import os
import re
from pathlib import Path

from click.testing import CliRunner

from ptxlab.cli.group import ptxlab

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "debug.md"
PROMPT = "(ptxlab) "
MARK = "between_two_commands"


def session(kernel: str, shown: str, folder: Path) -> str:
    """A session as the page shows it: the command line, then each command with its answer."""
    first, *_ = shown.splitlines()
    commands = [line.removeprefix(PROMPT) for line in shown.splitlines() if line.startswith(PROMPT)]
    path = folder / "scale.ptx"
    path.write_text(kernel)
    words = first.removeprefix("$ ptxlab ").replace("scale.ptx", str(path)).split()
    typed = "\n".join(word for command in commands for word in (f"print {MARK}", command))
    said, *answers = CliRunner().invoke(ptxlab, words, input=typed).output.split(f"there is nothing called `{MARK}`")
    lines = [first, *said.splitlines()]
    for command, answer in zip(commands, answers, strict=True):
        lines += [PROMPT + command, *answer.partition("\n")[2].splitlines()]
    return "\n".join(lines) + "\n"


def test_the_session_is_what_is_shown(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (kernel,) = re.findall(r"```ptx\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    found = session(kernel, shown, tmp_path)
    if os.environ.get("BLESS"):
        PAGE.write_text(page.replace(shown, found), encoding="utf-8")
    assert found == shown


def test_the_extension_knows_what_a_launch_request_may_say() -> None:
    from ptxlab.cli.debug import REQUEST

    given = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))
    (debugger,) = given["contributes"]["debuggers"]
    assert set(debugger["configurationAttributes"]["launch"]["properties"]) == {*REQUEST, "stopOnEntry"}


def test_a_damaged_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ptxtrace"
    path.write_text("something else")
    result = CliRunner().invoke(ptxlab, ["debug", str(path)])
    assert result.exit_code == 2
    assert "is not a recorded launch of ptxlab" in result.output
