"""Every finding of a run has a page; the wrong example on it has that finding, the right one has none."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.emulate.explain.pages import pages
from ptxlab.emulate.host.services import SERVICES
from ptxlab.emulate.translate.refuse import is_emulated
from ptxlab.isa.table import forms

PAGES = pages()
EXAMPLES = [(code, which) for code, page in PAGES.items() for which in ("Wrong", "Right") if f"{which}:" in page]


def test_what_is_not_emulated_is_what_the_page_says() -> None:
    """What the page names is refused in some form; instructions that are refused in every form are named."""
    named = set(re.findall(r"`([a-z_][a-z0-9_.]*)`", PAGES["not-emulated"].partition("Wrong:")[0])) - set(SERVICES)
    refused = {f"{form.syntax.partition(' ')[0]}." for form in forms() if not is_emulated(form)}
    assert [name for name in named if not any(syntax.startswith(f"{name}.") for syntax in refused)] == []
    emulated = {form.name[0] for form in forms() if is_emulated(form)}
    assert {form.name[0] for form in forms()} - emulated <= named


def test_a_page_says_in_one_sentence_what_is_wrong() -> None:
    for code, page in PAGES.items():
        first = page.partition("\n\n")[0]
        assert first.endswith("."), code
        assert "\n" not in first, code


@pytest.mark.parametrize(("code", "which"), EXAMPLES)
def test_examples(code: str, which: str, tmp_path: Path) -> None:
    example = PAGES[code].partition(f"{which}:\n\n```ptx\n")[2].partition("```")[0]
    options = shlex.split(example.partition("\n")[0].removeprefix("// run: "))
    file = tmp_path / "example.ptx"
    file.write_text(example)
    result = CliRunner().invoke(command_line, ["run", str(file), *options, "--format", "json"])
    codes = {diagnostic["code"] for diagnostic in json.loads(result.stdout)["diagnostics"]}
    if which == "Wrong":  # some of it may be found without running, too
        codes -= {found.code for found in ptxlab.check(ptxlab.load(file))} - {code}
    assert codes == ({code} if which == "Wrong" else set()), result.stdout
    assert (result.exit_code != 0) == (which == "Wrong")
