"""The page of each rule: its wrong example is found by that rule and no other, its right example is silent."""

import re
from inspect import getsource
from pathlib import Path

import pytest

import ptxlab
from ptxlab.check.rules import RULES, rules_by_code
from ptxlab.report import render
from ptxlab.toolchain import accepted, judge
from tests.golden import compare_one

from ...tools import each_release, is_accepted, ptxas_of

EXAMPLE = re.compile(r"^(Wrong|Right):\n+```ptx\n(.*?)```", re.MULTILINE | re.DOTALL)


def examples(code: str) -> dict[str, str]:
    page = rules_by_code()[code].__doc__ or ""
    return {kind.lower(): text for kind, text in EXAMPLE.findall(page)}


CODES = [name.replace("_", "-") for name in RULES]


@pytest.mark.parametrize("code", CODES)
def test_the_wrong_example_is_found(code: str) -> None:
    found = ptxlab.check(ptxlab.parse(examples(code)["wrong"], name="wrong.ptx"))
    assert {diagnostic.code for diagnostic in found} == {code}
    assert all(diagnostic.line for diagnostic in found)
    compare_one(Path(__file__).with_name("pages.txt"), code, render(found))


@pytest.mark.parametrize("code", CODES)
def test_the_right_example_is_silent(code: str) -> None:
    assert ptxlab.check(ptxlab.parse(examples(code)["right"], name="right.ptx")) == []


@pytest.mark.bulk(one_in=2)
@each_release
@pytest.mark.parametrize("code", CODES)
def test_ptxas_agrees_on_what_is_an_error(code: str, release: str) -> None:
    wrong, right = examples(code)["wrong"], examples(code)["right"]
    assert accepted(judge(wrong, tool=ptxas_of(release))) == is_accepted(wrong, release)
    assert accepted(judge(right, tool=ptxas_of(release)))


def test_pages_say_in_one_line_what_is_wrong() -> None:
    for code, rule in rules_by_code().items():
        first = (rule.__doc__ or "").split("\n")[0]
        assert first.endswith("."), code
        assert len(first) <= 120, code


def test_a_rule_imports_no_other_rule() -> None:
    for code, rule in rules_by_code().items():
        assert not re.search(r"^from (\.\w|\. |\.\.rules|ptxlab\.check\.rules)", getsource(rule), re.MULTILINE), code
