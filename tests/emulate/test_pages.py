"""Every finding of a run has a page; the wrong example on it has that finding, the right one has none."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import ptxlab.emulate
from ptxlab.cli.explain import pages as explained
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.emulate.pages import pages

PAGES = pages()
EXAMPLES = [(code, which) for code, page in PAGES.items() for which in ("Wrong", "Right") if f"{which}:" in page]
SOURCES = sorted(Path(ptxlab.emulate.__file__).parent.rglob("*.py"))


def test_every_code_has_a_page() -> None:
    calls = re.compile(r"\b(?:error|warning|told|problem)\(\s*\"([a-z]+(?:-[a-z]+)*)\"")
    codes = {code for path in SOURCES for code in calls.findall(path.read_text())}
    assert len(codes) >= 12
    assert codes <= set(PAGES)
    assert set(PAGES) <= set(explained())


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
    assert codes == ({code} if which == "Wrong" else set()), result.stdout
    assert (result.exit_code != 0) == (which == "Wrong")
