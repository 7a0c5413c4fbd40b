"""Checking and emulating need nothing that only POSIX has: both work without what Windows lacks of Python."""

import subprocess
import sys
from pathlib import Path

from tests.tools import header

# What Python does not have on Windows; SIGKILL and `geteuid` stay, which are used where `sys.platform` is POSIX.
DRIVER = """\
import os, signal, sys
for name in ("fork forkpty killpg getuid getgid sysconf set_blocking setsid getpgid sched_getaffinity mkfifo "
             "pread pwrite posix_spawn chown nice register_at_fork O_NOFOLLOW O_CLOEXEC O_NONBLOCK").split():
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM SIGHUP SIGPIPE SIGUSR1 SIGQUIT setitimer alarm pthread_sigmask pthread_kill ITIMER_REAL "
             "siginterrupt").split():
    if hasattr(signal, name):
        delattr(signal, name)
MISSING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline"}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ImportError(name)
for name in MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refuse())
from ptxlab.cli.group import ptxlab
for words in sys.argv[1:]:
    ptxlab.main(words.split(), standalone_mode=False)
"""
KERNEL = (
    header("8.0", "sm_80")
    + """\
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r;
    .reg .b64 %a;
    ld.param.u64 %a, [data];
    mov.u32 %r, %tid.x;
    mad.wide.u32 %a, %r, 4, %a;
    st.global.u32 [%a], %r;
    ret;
}
"""
)


def test_checking_and_running_need_no_call_that_only_posix_has(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(KERNEL)
    (tmp_path / "driver.py").write_text(DRIVER)
    commands = ["check k.ptx", "run k.ptx --block 32 --arg u32[32] --timeout 60", "explain data-race", "format k.ptx"]
    done = subprocess.run(
        [sys.executable, "driver.py", *commands], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "no errors or warnings in k.ptx" in done.stdout
    assert "from 0 to 31" in done.stdout
