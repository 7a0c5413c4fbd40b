"""`ptxlab learn`, `ptxlab.learn` and the chapters."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxlab import learn
from ptxlab.cli.group import ptxlab

DOCS = Path(__file__).parents[2] / "docs"
README = (DOCS / "course" / "README.md").read_text(encoding="utf-8")


def call(*words: str) -> Result:
    return CliRunner().invoke(ptxlab, ["learn", *words])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_learner_finishes_a_chapter(folder: Path) -> None:
    assert "Begin with `ptxlab learn start 1`." in call().output
    assert call("start", "1").exit_code == 0
    files = sorted((folder / "ptx-course").glob("*/*.ptx"))
    assert [file.name for file in files] == ["1-number.ptx", "2-rows.ptx", "3-lanes.ptx"]
    first = call("check")
    assert first.exit_code == 1
    assert "all blocks write the same elements" in " ".join(first.output.split())
    assert "hint 1 of 3" in call("hint").output
    assert "hint 2 of 3" in call("hint").output
    for file in files:
        file.write_text(call("solution").output)
        checked = call("check")
        assert checked.exit_code == 0, checked.output
        assert "3 launches, no findings" in checked.output
    assert "ptxlab learn start 2" in checked.output
    listed = call().output
    assert "3 done in `ptx-course`" in listed
    assert re.search(r"^ +1 +3/3 +course/01-mental-model", listed, re.MULTILINE)


def test_work_is_kept_until_it_is_asked_for_anew(folder: Path) -> None:
    call("start", "2", "mine")
    file = folder / "mine" / "02-first-kernel" / "1-double.ptx"
    file.write_text("// mine\n")
    call("start", "first-kernel", "mine")
    assert file.read_text() == "// mine\n"
    broken = call("check", str(file))
    assert broken.exit_code == 1
    assert "the file is not valid PTX yet" in broken.output
    call("start", "2", "mine", "--again")
    assert file.read_text() == learn.start("double")


def test_what_does_not_exist_is_said(folder: Path) -> None:
    assert "there is no chapter 99" in call("start", "99").output
    assert "did you mean `first-kernel`?" in call("start", "frist-kernel").output
    assert "there is no course in this folder" in call("check").output
    call("start", "1")
    other = folder / "ptx-course" / "other.ptx"
    other.write_text("")
    assert "is not the file of an exercise" in call("check", str(other)).output
    assert call("check", str(folder / "none.ptx")).exit_code == 2
    with pytest.raises(learn.LearnError, match="did you mean `double`"):
        learn.check("doubel", "")


def test_a_file_from_elsewhere_is_checked(folder: Path) -> None:
    file = folder / "kernel.ptx"
    file.write_text(learn.solution("double"))
    assert call("check", str(file), "--exercise", "double").exit_code == 0


def test_a_teacher_adds_an_exercise_as_one_file(folder: Path) -> None:
    """The one of the page."""
    (text,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "EXERCISE" in block]
    (folder / "negate.py").write_text(text)
    assert call("start", "negate.py").exit_code == 0
    assert "y is x, not negated" in call("check").output
    file = folder / "ptx-course" / "negate.ptx"
    mended = learn.changed(
        file.read_text(), ("    st.global", "    sub.f32 %value, 0f00000000, %value;\n    st.global")
    )
    file.write_text(mended)
    assert "no thread executes `neg`: this exercise is about `neg`" in call("check").output
    file.write_text(call("solution").output)
    assert call("check").exit_code == 0


def test_an_exercise_has_a_short_name_of_its_own() -> None:
    names = [one.path.stem.partition("-")[2] for chapter in learn.chapters() for one in chapter.exercises]
    assert sorted(names) == sorted(set(names))


def test_every_page_lists_its_exercises() -> None:
    for chapter in learn.chapters():
        page = (DOCS / f"{chapter.guide}.md").read_text(encoding="utf-8")
        if "\n## Exercises\n" in page:
            listed = re.findall(r"^\d\. \*\*(.+?)\.\*\*", page, re.MULTILINE)
            titles = [one.exercise.title for one in chapter.exercises]
            assert [title.lower() for title in listed] == [title.lower() for title in titles]
            name = chapter.number if chapter.guide.startswith("course/") else chapter.guide
            assert f"`ptxlab learn start {name}`" in page
        else:
            assert f"`ptxlab learn start {chapter.guide}`" in page


def test_an_exercise_in_python_is_executed_where_it_was_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("start", "12")
    file = folder / "ptx-course" / "12-python" / "1-branch.py"
    assert "Python needs `%p1` now" in call("check").output
    file.write_text("raise ValueError('mine')\n")
    assert "line 1 of the file can't be executed: ValueError: mine" in call("check").output
    file.write_text("n = 1\n")
    assert "`@kernel` above `def square(...)`" in call("check").output
    file.write_text(call("solution").output)
    assert call("check").exit_code == 0
    shutil.copytree(folder / "ptx-course", folder / "strangers")
    planted = folder / "strangers" / "12-python" / "1-branch.py"
    planted.write_text("from pathlib import Path\nPath('ran').touch()\n")
    refused = call("check", str(planted))
    assert "was not started from here" in refused.output
    assert not (folder / "ran").exists()


def test_a_kernel_of_another_name_and_one_with_other_parameters() -> None:
    text = learn.solution("double")
    assert learn.check("double", text.replace("double", "mine")).is_right
    other = learn.check(
        "double", text.replace(", .param .u32 n)", ")").replace("ld.param.u32 %n, [n];", "mov.u32 %n, 9;")
    )
    assert other.verdict.code == "no-kernel"
    assert "launched with 3 arguments: `x`, `y`, `n`" in str(other)


def test_a_notebook_shows_findings() -> None:
    report = learn.check("guard", learn.start("guard"))
    html = report._repr_html_()
    assert "out-of-bounds" in html
    assert "Which threads does your guard let through?" in html


def test_the_lab_shows_the_launch_that_went_wrong(folder: Path) -> None:
    call("start", "6")
    shown = call("lab", "--html", "page.html")
    assert shown.exit_code == 0
    assert "reverse" in shown.output
    assert (folder / "page.html").is_file()
    (folder / "ptx-course" / "06-shared-memory" / "1-reverse.ptx").write_text("// nothing")
    assert "there is no launch to show yet" in call("lab", "--html", "page.html").output
