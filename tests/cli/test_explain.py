"""`ptxlab explain` for rules, advisories and instructions; `ptxlab tour`."""

import inspect
import io
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxlab import cli
from ptxlab.check.rules import rules_by_code
from ptxlab.cli.explain import fit
from ptxlab.cli.findings import has_color
from ptxlab.cli.group import SUBCOMMANDS, ptxlab
from ptxlab.cli.samples import SAMPLES
from ptxlab.explain import pages
from ptxlab.explain.words import explain_word, known_words
from ptxlab.toolchain.diagnosis import CODES as PTXAS_CODES


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(ptxlab, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@cache
def strings() -> tuple[set[str], set[str]]:
    """Strings of the source that can be codes: all of them, and those that are given to a diagnostic as its code."""
    files = Path(inspect.getfile(cli)).parents[1].rglob("*.py")
    text = "\n".join(file.read_text("utf-8") for file in files)
    return set(re.findall(r'"([a-z0-9-]+)"', text)), set(re.findall(r'\b(?:error|warning)\(\s*"([a-z0-9-]*)"', text))


def test_each_code_that_is_given_to_a_diagnostic_has_a_page() -> None:
    """Where the code is written there; `conftest` asserts the same of every diagnostic that any test gets."""
    _, codes = strings()
    assert len(codes) > 60
    assert codes - {""} - set(pages()) == set()


def test_each_page_is_of_a_code_of_the_source() -> None:
    words, _ = strings()
    assert set(pages()) - set(rules_by_code()) - words == set()


def test_each_code_that_ptxas_is_read_as_has_a_page() -> None:
    assert {code for code, _ in PTXAS_CODES} <= set(pages())


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("code", sorted(pages()))
def test_each_page_is_shown(code: str) -> None:
    result = run("explain", code)
    assert result.exit_code == 0
    assert len(result.stdout) > 30


def test_without_a_subject_the_rules_are_listed() -> None:
    result = run("explain")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines()]
    assert set(listed) == set(pages())
    assert listed == sorted(listed)


def test_an_instruction() -> None:
    result = run("explain", "shl")
    assert result.exit_code == 0
    assert result.stdout.endswith("""
    shl.type d, a, b;
        .type = .b16, .b32, .b64
        since PTX 1.0 on sm_10 or later
""")


def test_an_instruction_with_its_operands() -> None:
    assert run("explain", "shl.b32 %r1, %r2, 3;").stdout == run("explain", "shl.b32").stdout != ""


def test_modifiers_choose_among_the_forms() -> None:
    everything = run("explain", "mma").stdout
    some = run("explain", "mma.m16n8k16.bf16").stdout
    assert 0 < len(some) < len(everything)
    assert "m16n8k16" in some


def test_a_modifier_that_came_later_says_so() -> None:
    shown = run("explain", "bar.sync").stdout + run("explain", "fence.acq_rel.cluster").stdout
    assert ".cluster (since PTX 7.8 on sm_90 or later)" in shown


@pytest.mark.parametrize(
    ("subject", "answer"),
    [
        ("operand-cuont", "there is no rule, instruction or term `operand-cuont`; did you mean `operand-count`?"),
        ("shll", "there is no rule, instruction or term `shll`; did you mean `shl`?"),
        (
            "shl.f32",
            "there is no rule, instruction or term `shl.f32`: no form of `shl` has `.f32`; did you mean `.b32`?\n",
        ),
        ("mma.snyc", "no form of `mma` has `.snyc`; did you mean `.sync`?\n"),
        ("SHL", "there is no rule, instruction or term `SHL`; did you mean `shl`?\n"),
        ("DATA-RACE", "did you mean `data-race`?\n"),
        ("", "there is no rule, instruction or term ``"),
    ],
)
def test_an_unknown_subject_is_a_usage_error(subject: str, answer: str) -> None:
    result = run("explain", subject)
    assert result.exit_code == 2
    assert answer in result.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("%tid", "Position of the thread in its block"),
        ("%tid.y", "mov.u32 d, %tid.x;"),
        (".maxntid", "The most threads a block will be launched with."),
        (".reg", "A value that belongs to one thread."),
        (".param", "The arguments of a kernel"),
        ("proxy", "The path of an access to memory"),
        ("Shared  memory", "Memory in the SM"),
        ("predicates", "A register of one bit."),
        ("mbarrier", "A barrier in shared memory that counts arrivals"),
        ("core matrix", "Eight rows of 16 bytes"),
    ],
)
def test_a_word(word: str, said: str) -> None:
    result = run("explain", word)
    assert result.exit_code == 0
    assert said in " ".join(result.output.split())


def test_every_special_register_and_every_term_has_an_answer() -> None:
    words = list(known_words())
    assert len(words) > 150
    assert all(explain_word(word) for word in words)


def test_the_tour_shows_every_subcommand() -> None:
    result = run("tour")
    assert result.exit_code == 0
    shown = [line for line in result.stdout.splitlines() if line.startswith("$ ptxlab ")]
    needs_tools, servers = {"assemble", "exec", "prove", "sass"}, {"lsp", "mcp"}
    assert {*SUBCOMMANDS} - needs_tools - servers - {"tour"} <= {line.split()[2] for line in shown}
    assert "no errors or warnings in saxpy.ptx" in result.stdout
    assert "no errors or warnings in typo.ptx" in result.stdout
    assert "error[unavailable-instruction]" in result.stdout
    assert "error[data-race]" in result.stdout.partition("$ ptxlab run sum.ptx")[2].partition("$ ptxlab")[0]
    right = result.stdout.partition("$ ptxlab run fixed.ptx")[2].partition("$ ptxlab")[0]
    assert "    2016\n" in right
    assert "no errors or warnings in fixed.ptx" in right


@pytest.mark.parametrize("code", ["divergent-barrier", "not-emulated", "data-race", "lost-value"])
def test_a_page_fits_the_terminal(code: str) -> None:
    page = pages()[code]
    narrow = fit(page, 60)
    text, _, examples = narrow.partition("```")
    assert max(map(len, text.splitlines())) <= 60
    assert narrow.split() == page.split()
    assert examples == page.partition("```")[2]


def test_color_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert has_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_color(io.StringIO())


def test_the_files_of_the_tour_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    result = run("tour", "--write", str(folder))
    assert result.exit_code == 0
    assert {file.name for file in folder.iterdir()} == set(SAMPLES)
    assert f"wrote {folder / 'reverse.ptx'}\n" in result.stdout
    (folder / "sum.ptx").write_text("mine")
    again = run("tour", "--write", str(folder))
    assert (again.exit_code, (folder / "sum.ptx").read_text()) == (0, "mine")
    assert "sum.ptx is there and is not as it was; it stays" in again.stderr


def test_the_readme_shows_files_of_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert f"```ptx\n{SAMPLES['reverse.ptx']}```" in readme
    for name, text in SAMPLES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    report = run("check", "gemm.ptx").stdout
    assert f"$ ptxlab check gemm.ptx\n{report}```" in readme
