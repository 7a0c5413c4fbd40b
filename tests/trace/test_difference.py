"""Where two recorded launches differ first."""

from pathlib import Path

from .recorded import SUMS, record


def test_two_equal_launches_do_not_differ(tmp_path: Path) -> None:
    one, other = record(tmp_path / "one.ptxtrace"), record(tmp_path / "other.ptxtrace", seed=3)
    assert one.diff(other) is None


def test_a_changed_constant_is_found(tmp_path: Path) -> None:
    one = record(tmp_path / "one.ptxtrace")
    other = record(tmp_path / "other.ptxtrace", SUMS.replace("%r3, 7;", "%r3, 8;"))
    found = one.diff(other)
    assert found is not None
    assert (found.line, found.values) == (21, {"%r3": (7, 8)})
    assert str(found).splitlines()[0] == "the launches differ first in `%r3`"


def test_a_changed_path_is_found_at_its_branch(tmp_path: Path) -> None:
    one = record(tmp_path / "one.ptxtrace")
    other = record(tmp_path / "other.ptxtrace", SUMS.replace("setp.lt.u32 %p1", "setp.le.u32 %p1"))
    found = one.diff(other)
    assert found is not None
    assert (found.line, found.values) == (23, {"%p1": (False, True)})
    other = record(tmp_path / "other.ptxtrace", SUMS.replace("@%p2 add", "@!%p2 add"))
    found = one.diff(other)
    assert found is not None
    assert found.line == 32


def test_an_instruction_more_is_found(tmp_path: Path) -> None:
    one = record(tmp_path / "one.ptxtrace")
    other = record(tmp_path / "other.ptxtrace", SUMS.replace("bar.sync 0;", "bar.sync 0;\n    add.u32 %r3, %r3, 1;"))
    found = one.diff(other)
    assert found is not None
    assert (found.line, found.other and found.other.line) == (30, 30)


def test_the_guard_to_blame_is_that_before_the_branch(tmp_path: Path) -> None:
    text = SUMS.replace("%p2", "%p1")  # after the loop, its guard is overwritten
    right = record(tmp_path / "right.ptxtrace", text)
    wrong = record(tmp_path / "wrong.ptxtrace", text.replace("setp.lt.u32 %p1", "setp.le.u32 %p1"))
    assert wrong.origin(wrong.address("b", 0)).blame(right).line == 23
