"""Processes beside this one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxlab.native import children

GROUP = Path("/proc/self/autogroup")


@pytest.mark.skipif(not GROUP.exists(), reason="needs a Linux that shares a machine between sessions")
@pytest.mark.parametrize("own", [True, False])
def test_what_yields_has_its_own_session_yield_and_no_other(own: bool) -> None:
    """A session that is older than such sharing, as of a service, has an empty file and keeps it."""
    shown = f"print(open({str(GROUP)!r}).read().split(maxsplit=1)[1:])"
    program = f"{shown}; from ptxlab.native.children import yield_to_others; yield_to_others(); {shown}"
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, start_new_session=own, capture_output=True, text=True, check=True).stdout
    before, after = found.splitlines()
    assert after == (str(["nice 19\n"]) if own else before)


@pytest.mark.skipif(not GROUP.exists(), reason="needs a Linux that shares a machine between sessions")
def test_what_may_not_change_that_works_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose /proc is read-only, or with /proc files that belong to another user."""
    asked: list[str] = []

    def refuse(path: Path, text: str) -> None:
        asked.append(f"{path} {text}")
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    monkeypatch.setattr(os, "nice", lambda _: 19)
    monkeypatch.setattr(Path, "write_text", refuse)
    children.yield_to_others()
    assert asked == [f"{GROUP} 19"]
