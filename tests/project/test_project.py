"""`[tool.ptxlab]` of pyproject.toml: what it may have, what is refused, and which file is meant."""

from pathlib import Path

import pytest

from ptxlab.project import Project, ProjectError
from ptxlab.project.paths import matches
from ptxlab.project.selection import Selection, is_selected


def project(folder: Path, text: str) -> Project:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.ptxlab]\n{text}\n")
    return Project.of(folder / "k.ptx")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('ignroe = ["data-race"]', "there is no key `ignroe`; did you mean `ignore`?"),
        ("zzz = 1", "there is no key `zzz`; it may have `target`, `cuda-options`, `select`, `ignore`"),
        ('ignore = "data-race"', '`ignore` is a list of texts: ["unreachable-code"]'),
        ('ignore = ["data-rce"]', "`ignore`: there is no code `data-rce`; did you mean `data-race`?"),
        ('select = ["zzz-*"]', "`select`: no code is like `zzz-*`"),
        ('ignore = ["missing-semicolon"]', "`missing-semicolon` can't be ignored: it says why something was not"),
        ('fail-on = "note"', '`fail-on` is "error" or "warning", not \'note\''),
        ('target = "sm_90b"', "there is no target `sm_90b`; did you mean `sm_90`?"),
        ("target = 90", "there is no target `90`"),
        ('per-file-ignores = ["a"]', "`per-file-ignores` is a table"),
        ('per-file-ignores = {"a" = ["zzz"]}', "`per-file-ignores`: there is no code `zzz`"),
        ("exclude = [1]", '`exclude` is a list of texts: ["build/*"]'),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ProjectError) as refused:
        project(tmp_path, text)
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"`{tmp_path / 'pyproject.toml'}`: `[tool.ptxlab]`: ")


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ptxlab")
    with pytest.raises(ProjectError, match="can't be read"):
        Project.of(tmp_path / "k.ptx")


def test_the_nearest_file_that_has_the_table_is_meant(tmp_path: Path) -> None:
    project(tmp_path, 'target = "sm_80"')
    project(tmp_path / "a", 'target = "sm_90a"')
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "pyproject.toml").write_text('[tool.other]\nx = "y"\n')
    targets = [Project.of(tmp_path / place / "k.ptx").target for place in ("", "a", "a/deeper", "b")]
    assert targets == ["sm_80", "sm_90a", "sm_90a", "sm_80"]


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    assert project(tmp_path, 'fail-on = "error"').fail_on == "error"
    assert project(tmp_path, 'fail-on = "warning"').fail_on == "warning"


@pytest.mark.parametrize(
    ("pattern", "meant", "not_meant"),
    [
        ("*.ptx", ["k.ptx", "a/b/k.ptx"], ["k.cu"]),
        ("vendor", ["vendor/k.ptx", "a/vendor/b/k.ptx"], ["vendored/k.ptx"]),
        ("vendor/", ["vendor/k.ptx"], ["vendors"]),
        ("/vendor", ["vendor/k.ptx"], ["a/vendor/k.ptx"]),
        ("a/*.ptx", ["a/k.ptx"], ["a/b/k.ptx", "b/a/k.ptx"]),
        ("a/**/*.ptx", ["a/k.ptx", "a/b/c/k.ptx"], ["b/k.ptx"]),
        ("a/**", ["a/k.ptx", "a/b/k.ptx"], ["ab/k.ptx"]),
        ("**/gen/*", ["gen/k.ptx", "a/gen/k.ptx"], ["gen.ptx"]),
        ("k?.ptx", ["k1.ptx"], ["k.ptx", "k/.ptx"]),
        ("a.ptx", ["a.ptx"], ["axptx"]),
        ("[a](b)+", ["[a](b)+"], ["ab"]),
    ],
)
def test_patterns_of_files(pattern: str, meant: list[str], not_meant: list[str]) -> None:
    folder = Path("/project")
    assert [name for name in [*meant, *not_meant] if matches(folder / name, [pattern], folder)] == meant


def test_the_command_line_is_applied_after_the_configuration() -> None:
    configured = Selection(ignore=("unreachable-code",))
    assert not is_selected("unreachable-code", [configured])
    assert not is_selected("unreachable-code", [configured, Selection(ignore=("data-race",))])
    assert is_selected("unreachable-code", [configured, Selection(select=("unreachable-*",))])
    assert not is_selected("data-race", [Selection(select=("data-race",)), Selection(select=("hang",))])
    assert not is_selected("data-race", [Selection(select=("data-race",), ignore=("data-*",))])
