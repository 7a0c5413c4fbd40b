"""`ptxlab.explain` for every subject, and the same as JSON on the command line."""

import json

import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.explain import pages, summary_of


def as_json(*arguments: str) -> object:
    result = CliRunner().invoke(command_line, ["explain", *arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_code() -> None:
    page = ptxlab.explain("data-race")
    assert page.kind == "diagnostic"
    assert str(page) == repr(page) == pages()["data-race"]
    assert as_json("data-race") == page.as_dict()
    assert page.as_dict()["summary"].startswith("Two threads access the same bytes")


def test_an_opcode() -> None:
    page = ptxlab.explain("shl.b32 %r1, %r2, 3;")
    assert page.kind == "instruction"
    (form,) = page.as_dict()["forms"]
    assert form["syntax"] == "shl.type d, a, b;"
    assert list(form["modifiers"]["type"]) == ["b16", "b32", "b64"]
    assert as_json("shl.b32 %r1, %r2, 3;") == page.as_dict()


def test_a_number() -> None:
    assert ptxlab.explain(0x4000404000010040).form == "descriptor"


def test_what_is_unknown_says_what_was_meant() -> None:
    with pytest.raises(LookupError, match=r"did you mean `data-race`\?"):
        ptxlab.explain("data-rce")
    with pytest.raises(LookupError, match=r"no form of `mma` has `\.snyc`; did you mean `\.sync`\?"):
        ptxlab.explain("mma.snyc")


def test_how_a_number_is_meant_is_not_for_a_text() -> None:
    with pytest.raises(TypeError, match="are for numbers"):
        ptxlab.explain("data-race", target="sm_90a")  # type: ignore[call-overload]


def test_the_list_of_codes() -> None:
    assert as_json() == [{"code": code, "summary": summary_of(page)} for code, page in sorted(pages().items())]


def test_each_summary_is_one_sentence() -> None:
    long = {code: summary_of(page) for code, page in pages().items() if len(summary_of(page)) > 160}
    assert long == {}
