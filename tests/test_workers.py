"""Tests that several processes share are reported as those of one."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
TESTS = """
import os
import warnings

import pytest


@pytest.fixture(scope="module")
def opened():
    yield os.getpid()
    with open(f"closed-{os.getpid()}", "w"):
        pass


@pytest.mark.parametrize("number", range(40))
def test_a_process(opened, number):
    assert opened == os.getpid() != {first}
    print("said by", number)
    assert number != 7, "seven"
    if number == 20:
        os.kill(os.getpid(), 9)
    if number == 30:
        pytest.skip("thirty")
    if number == 31:
        warnings.warn("thirty-one", UserWarning)


def test_after(tmp_path):
    (tmp_path / "file").touch()
"""


def test_what_processes_report(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=":")
    pytester.makeconftest("import os\n\npytest_plugins = ['tests.workers']\nos.environ['FIRST'] = str(os.getpid())")
    pytester.makepyfile(TESTS.replace("{first}", "int(os.environ['FIRST'])"))
    ran = pytester.runpytest_subprocess("-rA", "--workers", "3", "-p", "no:cacheprovider")
    ran.assert_outcomes(passed=38, failed=2, skipped=1, warnings=1)
    shown = ran.stdout.str()
    for line in ("AssertionError: seven", "said by 7", "the process of this test ended with signal 9", "thirty-one"):
        assert f"{line}\n" in shown
    assert all(shown.count(f"said by {number}\n") == 1 for number in range(40) if number not in (20, 30))
    assert 2 <= len([*pytester.path.glob("closed-*")]) <= 3


def test_the_first_failure_ends_all(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("pytest_plugins = ['tests.workers']")
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(90))\ndef test(n): assert n < 0")
    ran = pytester.runpytest_subprocess("-x", "--workers", "2", "-p", "no:cacheprovider")
    assert ran.parseoutcomes()["failed"] <= 3
