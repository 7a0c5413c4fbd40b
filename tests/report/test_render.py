"""The concise and json renderings, summaries, and exceptions that carry diagnostics."""

import json
import pickle

import pytest

from ptxlab.report import (
    Diagnostic,
    Edit,
    Format,
    Help,
    KernelError,
    Label,
    PtxError,
    Source,
    Span,
    error,
    render,
    summary,
    warning,
)

SOURCE = Source("a.ptx", "add.u32\nret;\n")
ADD, RET = Span(SOURCE, 0, 7), Span(SOURCE, 8, 11)


def test_concise_is_one_line_each() -> None:
    found = [error("one", "first", RET, "label"), warning("two", "second", None)]
    assert render(found, "concise") == "a.ptx:2:1: error[one]: first\nwarning[two]: second\n"


def test_json_is_stable() -> None:
    found = error(
        "missing-semicolon",
        "expected `;`",
        ADD,
        "after this",
        others=[Label(RET)],
        notes=["a fact"],
        helps=["think", Help("insert `;`", (Edit(Span(SOURCE, 7, 7), ";"),))],
    )
    add = {"file": "a.ptx", "line": 1, "column": 1, "end_line": 1, "end_column": 8}
    ret = {"file": "a.ptx", "line": 2, "column": 1, "end_line": 2, "end_column": 4}
    end = {"file": "a.ptx", "line": 1, "column": 8, "end_line": 1, "end_column": 8}
    expected = [
        {
            "level": "error",
            "code": "missing-semicolon",
            "message": "expected `;`",
            **add,
            "labels": [{"text": "after this", **add}, {"text": "", **ret}],
            "notes": ["a fact"],
            "helps": [
                {"text": "think", "edits": []},
                {"text": "insert `;`", "edits": [{"replacement": ";", **end}]},
            ],
        }
    ]
    assert render([found], "json") == json.dumps(expected, indent=2) + "\n"


def test_json_without_a_label_has_no_place() -> None:
    (found,) = json.loads(render([error("code", "message", None)], "json"))
    assert (found["file"], found["line"], found["labels"]) == (None, None, [])


@pytest.mark.parametrize(("format", "expected"), [("full", ""), ("concise", ""), ("json", "[]\n")])
def test_nothing_found(format: Format, expected: str) -> None:
    assert render([], format) == expected


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="one of full, concise, json, sarif, github, not 'xml'"):
        render([], "xml")  # type: ignore[arg-type]


def test_summary_counts_each_level() -> None:
    one, two = error("code", "message", None), warning("code", "message", None)
    assert summary([one, two, one], "gemm.ptx") == "2 errors, 1 warning in gemm.ptx"
    assert summary([two, two], "gemm.ptx") == "2 warnings in gemm.ptx"
    assert summary([Diagnostic("note", "code", "message")], "gemm.ptx") == "1 note in gemm.ptx"


def test_a_diagnostic_knows_its_place() -> None:
    found = error("code", "message", RET, others=[Label(ADD)])
    assert (found.file, found.line, found.column) == ("a.ptx", 2, 1)
    nowhere = error("code", "message", None)
    assert (nowhere.file, nowhere.line, nowhere.column) == (None, None, None)


@pytest.mark.parametrize("kind", [PtxError, KernelError])
def test_an_exception_reads_as_its_diagnostics(kind: type[PtxError]) -> None:
    raised = kind([error("code", "message", RET)])
    assert str(raised) == "error[code]: message\n --> a.ptx:2:1\n  |\n2 | ret;\n  | ^^^"
    assert pickle.loads(pickle.dumps(raised)).diagnostics == raised.diagnostics


def test_a_diagnostic_prints_as_people_read_it() -> None:
    source = Source("k.ptx", "ret;\nexit\n")
    found = error("missing-semicolon", "expected `;` after `exit`", Span(source, 5, 9), "here")
    assert str(found) == render([found]).rstrip("\n")
    assert repr(found) == "<error[missing-semicolon] at k.ptx:2:1: expected `;` after `exit`>"
    assert repr(error("no-gpu", "there is no GPU", None)) == "<error[no-gpu]: there is no GPU>"
