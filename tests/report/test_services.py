"""The formats that services read: SARIF and the workflow commands of GitHub."""

import json

from ptxlab.report import Edit, Help, Label, Source, Span, error, render, warning

SOURCE = Source("dir/a b.ptx", "add.u32\nret;\n")
ADD, RET = Span(SOURCE, 0, 7), Span(SOURCE, 8, 11)
FOUND = [
    error("one", "100 % wrong", ADD, "here", others=[Label(RET, "there")], helps=[Help("fix", (Edit(RET, "exit"),))]),
    warning("two", "second", Span(SOURCE, 3, 10), notes=["a fact"]),
    warning("one", "no source", None),
]


def test_sarif() -> None:
    log = json.loads(render(FOUND, "sarif"))
    (run,) = log["runs"]
    first, second, third = run["results"]
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "ptxlab")
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["one", "two"]
    assert [(one["ruleId"], one["ruleIndex"], one["level"]) for one in run["results"]] == [
        ("one", 0, "error"),
        ("two", 1, "warning"),
        ("one", 0, "warning"),
    ]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "dir/a%20b.ptx"}
    assert place["region"] == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 8}
    assert first["relatedLocations"][0]["message"] == {"text": "there"}
    replacement = first["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert (replacement["deletedRegion"]["startLine"], replacement["insertedContent"]) == (2, {"text": "exit"})
    assert second["message"] == {"text": "second\nnote: a fact"}
    assert third["locations"] == []


def test_sarif_of_nothing_is_a_run_without_results() -> None:
    assert json.loads(render([], "sarif"))["runs"][0]["results"] == []


def test_github_is_one_command_each() -> None:
    assert render(FOUND, "github").splitlines() == [
        "::error file=dir/a b.ptx,line=1,endLine=1,col=1,endColumn=8,title=one::100 %25 wrong%0Ahelp: fix",
        "::warning file=dir/a b.ptx,line=1,endLine=2,title=two::second%0Anote: a fact",
        "::warning title=one::no source",
    ]
