"""The lessons open in the page by their names: their wrong kernel, or the launch that is asked for."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxlab.cli import lessons
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.device.record import Record
from ptxlab.lab import Views

PAGES = lessons.pages()
WITHOUT_FINDINGS = (
    "lessons/11-timeline", "lessons/12-conversions", "hopper/02-swizzle", "course/13-equal", "course/14-verify",
)  # fmt: skip
DOCS = Path(__file__).parents[2] / "docs"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command_line, ["lab", *arguments])
    return result.output + result.stderr


def test_all_of_them_have_names() -> None:
    files = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("[lhc]*/[0-9]*.md")}
    assert set(PAGES) == files
    listed = run("--list")
    assert all(f"  {name} " in listed for name in [*PAGES, "mma_gemm", "tcgen05_gemm"])
    assert lessons.named(str(DOCS / "lessons" / "08-phases.md")) == PAGES["lessons/08-phases"]


@pytest.mark.parametrize("name", PAGES)
def test_each_page_says_how_it_opens(name: str) -> None:
    assert f"ptxlab lab {name}" in PAGES[name].path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lessons/08-phaes"], "there is no page `lessons/08-phaes`; did you mean `lessons/08-phases`?"),
        (["hopper/02-swizzle", "--arg", "u32=1"], "`hopper/02-swizzle` has its own arguments"),
        pytest.param(
            ["hopper/02-swizzle", "--variant", "x"],
            "has no launch `x`; it has right, wrong, wrong-2",
            marks=pytest.mark.bulk,
        ),
    ],
)
def test_what_is_not_there(arguments: list[str], says: str) -> None:
    assert says in run(*arguments)


@pytest.mark.bulk
@pytest.mark.parametrize("name", PAGES)
def test_each_page_opens(name: str) -> None:
    result = lessons.launch_of(PAGES[name], None, Record(limit=20_000_000))
    assert result.trace is not None
    info = Views(result.trace).get("run")
    assert info["steps"] > 0
    assert info["findings"] or name in WITHOUT_FINDINGS
    for finding in info["findings"]:
        assert finding["labels"]
        assert all("step" in access for access in finding["accesses"])
