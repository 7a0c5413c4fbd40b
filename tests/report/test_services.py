"""The formats that services read: SARIF and the workflow commands of GitHub."""

import json
from collections.abc import Iterator
from importlib.metadata import distributions
from typing import Any

import pytest

from ptxlab import explain, render
from ptxlab.report import Diagnostic, Edit, Help, Label, Source, Span, error, warning

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


# What OASIS' schema of SARIF 2.1.0 has of the objects that are written here: their properties, with `!` those that are
# required, and the object that each is, or a type. No object has other properties.
SCHEMA: dict[str, dict[str, str | type]] = {
    "log": {"$schema": str, "version!": str, "runs!": "[run"},
    "run": {"tool!": "tool", "columnKind": str, "results": "[result"},
    "tool": {"driver!": "driver"},
    "driver": {"name!": str, "version": str, "semanticVersion": str, "informationUri": str, "rules": "[rule"},
    "rule": {"id!": str, "name": str, "shortDescription": "message", "fullDescription": "message", "help": "message",
             "helpUri": str},
    "message": {"text!": str, "markdown": str},
    "fingerprints": {"ptxlab/v1": str},
    "result": {"ruleId": str, "ruleIndex": int, "level": str, "message!": "message", "locations": "[location",
               "relatedLocations": "[location", "fixes": "[fix", "partialFingerprints": "fingerprints"},
    "location": {"physicalLocation": "place", "message": "message"},
    "place": {"artifactLocation!": "artifact", "region": "region"},
    "artifact": {"uri": str},
    "region": {"startLine": int, "startColumn": int, "endLine": int, "endColumn": int},
    "fix": {"description": "message", "artifactChanges!": "[change"},
    "change": {"artifactLocation!": "artifact", "replacements!": "[replacement"},
    "replacement": {"deletedRegion!": "region", "insertedContent": "message"},
}  # fmt: skip


def violations(value: Any, kind: str | type, path: str = "log") -> Iterator[str]:
    if isinstance(kind, type):
        if type(value) is not kind or value == "" or (kind is int and value < 0):
            yield f"{path} is {value!r}"
    elif kind.startswith("["):
        for number, one in enumerate(value):
            yield from violations(one, kind[1:], f"{path}[{number}]")
    else:
        properties = {name.rstrip("!"): inner for name, inner in SCHEMA[kind].items()}
        yield from (f"{path} lacks {name}" for name in SCHEMA[kind] if name.endswith("!") and name[:-1] not in value)
        yield from (f"{path} has {name}" for name in value.keys() - properties.keys())
        for name in value.keys() & properties.keys():
            yield from violations(value[name], properties[name], f"{path}.{name}")


KNOWN = [error("data-race", "first", ADD), warning("unreachable-code", "second", RET)]


@pytest.mark.parametrize("found", [FOUND, FOUND[:1], FOUND[2:], [], KNOWN])
def test_sarif_is_as_its_schema_says(found: list[Diagnostic]) -> None:
    log = json.loads(render(found, "sarif"))
    assert list(violations(log, "log")) == []
    (run,) = log["runs"]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    assert all(one["level"] in ("none", "note", "warning", "error") for one in run["results"])
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in run["results"])
    assert len(set(rules)) == len(rules)


def test_rules_of_sarif_have_their_pages() -> None:
    race, code = json.loads(render(KNOWN, "sarif"))["runs"][0]["tool"]["driver"]["rules"]
    assert race["shortDescription"]["text"].startswith("Two threads access the same bytes")
    assert race["help"]["markdown"] == race["help"]["text"] == str(explain("data-race"))
    if not [*distributions(name="ptxlab")]:
        pytest.skip("ptxlab is not installed here, and its metadata name the site")
    assert race["helpUri"].startswith("https://")
    assert race["helpUri"].endswith("/diagnostics/data-race.html")
    assert (race["name"], code["id"]) == ("DataRace", "unreachable-code")


def test_a_finding_that_moves_keeps_its_fingerprint() -> None:
    def marks(*diagnostics: Diagnostic) -> list[str]:
        results = json.loads(render(diagnostics, "sarif"))["runs"][0]["results"]
        return [one["partialFingerprints"]["ptxlab/v1"] for one in results]

    below = Source(SOURCE.name, "\n\n" + SOURCE.text.replace("add", "  add"))
    moved = error("data-race", "another text", Span(below, 4, 11))
    assert marks(KNOWN[0]) == marks(moved)
    assert len(set(marks(*KNOWN, KNOWN[0]))) == 3


def test_sarif_of_nothing_is_a_run_without_results() -> None:
    assert json.loads(render([], "sarif"))["runs"][0]["results"] == []


def test_github_is_one_command_each() -> None:
    assert render(FOUND, "github").splitlines() == [
        "::error file=dir/a b.ptx,line=1,endLine=1,col=1,endColumn=8,title=one::100 %25 wrong%0Ahelp: fix",
        "::warning file=dir/a b.ptx,line=1,endLine=2,title=two::second%0Anote: a fact",
        "::warning title=one::no source",
    ]
