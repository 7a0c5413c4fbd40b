"""What takes long is made by one process, which may have the lock from the one that started it."""

import subprocess
import sys
from pathlib import Path

import pytest

from ptxlab.native import cache

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no locks to inherit")


def test_one_process_makes_what_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path / "cache"))
    code = "from ptxlab.native.cache import make_claimed; input(); make_claimed('k', lambda: b'found')"
    with cache.claim("k") as lock:
        assert lock
        maker = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, pass_fds=lock)
    with cache.claim("k") as other:
        assert other is None, "the process that was started has the lock from its first instruction on"
    with cache.claim("another") as lock:
        assert lock
    maker.communicate(b"\n", timeout=60)
    assert cache.kept("k") == b"found"
    assert len(list((tmp_path / "cache").glob(".lock-*"))) == 1, "that of what was not made"


def test_a_process_that_was_killed_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path / "cache"))
    with cache.claim("k") as lock:
        assert lock
        maker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=lock)
    maker.kill()
    maker.communicate()
    with cache.claim("k") as lock:
        assert lock
