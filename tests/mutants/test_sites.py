"""Places to change are found where code runs, and each changes one thing."""

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import evidence
from tests.mutants.near import Tests
from tests.mutants.sites import sites


def mutants(folder: Path, text: str) -> list[str]:
    """The changed line of each mutant of a file with this text."""
    package = folder / "src/ptxlab/check"
    package.mkdir(parents=True)
    source = text.encode()
    (package / "file.py").write_bytes(source)
    found = sites(folder, ["check"])
    for site in found:
        ast.parse(site.apply(source))
    return [site.show(source)["after"] for site in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("a not in b", ["a in b"]),
        ("a is not None", ["a is None"]),
        ("a - b", ["a + b"]),
        ("a and b", ["a or b"]),
        ("x = not (a)", ["x =  (a)"]),
        ("x[3]", ["x[4]"]),
        ("x = True", ["x = False"]),
        ("a += b", ["a -= b"]),
        ("é = 'é'; a << b", ["é = 'é'; a >> b"]),
    ],
)
def test_each_operator_number_and_boolean_is_a_place(tmp_path: Path, line: str, expected: list[str]) -> None:
    assert mutants(tmp_path, line + "\n") == expected


@pytest.mark.parametrize(
    "text",
    [
        "'text' + a",
        "x: A | None",
        "Shape = A | B[str] | None",
        "def f(a: A | None) -> B | None: ...",
        "@given(frozen=True)\nclass A: ...",
        "assert a < b",
        "f'{a + b}'",
        "x: Literal[1, 2]",
    ],
)
def test_types_text_and_assertions_are_left_alone(tmp_path: Path, text: str) -> None:
    assert mutants(tmp_path, text + "\n") == []


def test_evidence_counts_mutants_that_change_what_the_program_does() -> None:
    outcomes = ["killed", "endless", "crashed", "survived", "survived", "no program", "passed the first tests"]
    records = [
        {"number": number, "file": "src/ptxlab/isa/a.py", "before": "a", "after": f"b{number}", "outcome": outcome}
        for number, outcome in enumerate(outcomes)
    ]
    judged = {"src/ptxlab/isa/a.py: a -> b3": "equivalent: the two are one"}
    found = evidence(records, judged)
    assert (found["mutants"], found["noticed"], found["equivalent"]) == (6, 3, 1)
    assert found["share_noticed"] == 0.6  # what is not judged to the end is not noticed
    assert [one["judged"] for one in found["survivors"]] == ["equivalent: the two are one", "not judged", "not judged"]


def test_tests_that_share_rare_words_with_a_function_are_near(tmp_path: Path) -> None:
    source = "def wait_for_copies(group):\n    return group < 3\n"
    package = tmp_path / "src/ptxlab/emulate"
    package.mkdir(parents=True)
    (package / "async_copies.py").write_text(source)
    texts = {"a.ptx": "cp.async.wait_group 1;", "copies.ptx": "copy group;", "b.ptx": "mma group;"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (site,) = (one for one in sites(tmp_path, ["emulate"]) if one.after == "<=")
    assert site.package == "emulate"
    assert Tests(tmp_path, [*texts]).order(site)[-1] == "b.ptx"
