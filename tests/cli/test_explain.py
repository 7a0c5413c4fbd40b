"""`ptxlab explain` for rules, advisories and instructions; `ptxlab tour`."""

import pytest
from click.testing import CliRunner, Result

from ptxlab.check.rules import rules_by_code
from ptxlab.cli.group import ptxlab
from ptxlab.emulate.pages import pages as findings
from ptxlab.syntax.pages import PAGES
from ptxlab.toolchain import ADVISORIES


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(ptxlab, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("code", sorted({*rules_by_code(), *(advisory.code for advisory in ADVISORIES)}))
def test_each_code_has_a_page(code: str) -> None:
    result = run("explain", code)
    assert result.exit_code == 0
    assert len(result.stdout) > 80


def test_without_a_subject_the_rules_are_listed() -> None:
    result = run("explain")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines()]
    assert set(listed) == {*rules_by_code(), *PAGES, *findings(), *(advisory.code for advisory in ADVISORIES)}
    assert listed == sorted(listed)


def test_an_instruction() -> None:
    result = run("explain", "shl")
    assert result.exit_code == 0
    assert result.stdout.endswith("""
    shl.type d, a, b;
        .type = .b16, .b32, .b64
        since PTX 1.0 on sm_10 or later
""")


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
        ("operand-cuont", "there is no rule and no instruction `operand-cuont`; did you mean `operand-count`?"),
        ("shll", "there is no rule and no instruction `shll`; did you mean `shl`?"),
        ("shl.f32", "there is no rule and no instruction `shl.f32`: no form of `shl` has `.f32`"),
        ("", "there is no rule and no instruction ``"),
    ],
)
def test_an_unknown_subject_is_a_usage_error(subject: str, answer: str) -> None:
    result = run("explain", subject)
    assert result.exit_code == 2
    assert answer in result.stderr


def test_the_tour_shows_every_subcommand() -> None:
    result = run("tour")
    assert result.exit_code == 0
    shown = [line for line in result.stdout.splitlines() if line.startswith("$ ptxlab ")]
    assert {"check", "explain", "format", "run"} <= {line.split()[2] for line in shown}
    assert "no errors or warnings in saxpy.ptx" in result.stdout
    assert "no errors or warnings in typo.ptx" in result.stdout
    assert "error[unavailable-instruction]" in result.stdout
    assert "error[data-race]" in result.stdout.partition("$ ptxlab run sum.ptx")[2].partition("$ ptxlab")[0]
    right = result.stdout.partition("$ ptxlab run fixed.ptx")[2].partition("$ ptxlab")[0]
    assert "    2016\n" in right
    assert "no errors or warnings in fixed.ptx" in right
