"""`ptxlab docs`: the guides in the terminal."""

from click.testing import CliRunner, Result

from ptxlab import guides
from ptxlab.cli.group import ptxlab


def run(*arguments: str) -> Result:
    return CliRunner().invoke(ptxlab, ["docs", *arguments])


def test_all_are_listed_with_their_titles() -> None:
    lines = run().stdout.splitlines()
    assert len(lines) == len(guides.guides()) > 40
    assert "memory-model                   The memory model" in lines


def test_one_is_shown_as_it_was_written() -> None:
    assert run("hopper/03-ring").stdout == guides.guides()["hopper/03-ring"].read_text(encoding="utf-8") + "\n"


def test_a_search_puts_headings_first_and_knows_code_from_headings() -> None:
    assert run("--search", "PROXY fence").stdout.startswith("lessons/04-proxy-fence: ")
    headings = [section.heading for section in guides.search("mbarrier")]
    assert headings
    assert not [heading for heading in headings if heading.startswith(("import", "the ", "--"))]


def test_what_is_not_there_is_said() -> None:
    assert "no section has all of `xyzzy`" in run("--search", "xyzzy").stderr
    misspelt = run("memory-modle")
    assert (misspelt.exit_code, "did you mean `memory-model`?" in misspelt.stderr) == (2, True)
