"""`ptxlab check --diff BASE`: what a change introduced, and that no program that a repository names runs."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.test_check import run
from tests.cli.test_gates import KERNEL

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
READ = "    add.u32 %r2, %r2, 1;\n"


def git(folder: Path, *arguments: str) -> None:
    variables = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    by = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *by, *arguments], cwd=folder, env=os.environ | variables, check=True, capture_output=True)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A kernel with three warnings, in a commit of the branch `main`."""
    file = tmp_path / "kernels" / "k.ptx"
    file.parent.mkdir()
    file.write_text(KERNEL)
    git(tmp_path, "init", "--quiet", ".")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    git(tmp_path, "branch", "--move", "main")
    return file


def introduced(path: Path, *options: str) -> list[tuple[str, int]]:
    result = run("check", path, "--diff", "main", "--format", "json", *options)
    found = [(one["code"], one["line"]) for one in json.loads(result.stdout)]
    assert result.exit_code == (1 if found else 0)
    return found


def test_what_was_there_is_not_reported(kernel: Path) -> None:
    assert introduced(kernel) == []
    kernel.write_text("// a line above\n" + KERNEL.replace("    mov.u32 %r1", "\n\n    mov.u32   %r1"))
    assert introduced(kernel) == []


def test_what_is_new_is(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("    ret;", READ + "    ret;"))
    (line,) = (at for at, text in enumerate(kernel.read_text().splitlines(), 1) if text == READ.rstrip("\n"))
    assert introduced(kernel) == [("unwritten-register", line)]
    assert introduced(kernel, "--ignore", "unwritten-register") == []


def test_a_finding_on_an_old_line_that_the_change_caused_is_new(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("    mov.u32 %r1, %tid.x;\n", ""))
    (line,) = (at for at, text in enumerate(kernel.read_text().splitlines(), 1) if "setp" in text)
    assert ("unwritten-register", line) in introduced(kernel)


def test_of_two_that_are_alike_the_added_one_is_new(kernel: Path) -> None:
    again = "    @%p1 bar.sync 0;\n"
    kernel.write_text(KERNEL.replace("    setp", again + "    setp"))
    (first, _) = (at for at, text in enumerate(kernel.read_text().splitlines(), 1) if text == again.rstrip("\n"))
    assert [line for code, line in introduced(kernel) if code == "divergent-barrier"] == [first]


def test_a_renamed_file_is_compared_with_what_it_was(kernel: Path) -> None:
    other = kernel.with_name("renamed.ptx")
    kernel.rename(other)
    assert introduced(kernel.parent) == []
    other.write_text(KERNEL.replace("    ret;", READ + "    ret;"))
    assert [code for code, _ in introduced(kernel.parent)] == ["unwritten-register"]
    copy = kernel.with_name("new.ptx")
    copy.write_text("// nothing of it was there\n" + KERNEL.replace("%r", "%q").replace("%p", "%w").replace("rd", "d"))
    assert len(introduced(copy)) == 3


def test_what_the_base_did_later_does_not_count(kernel: Path) -> None:
    root = kernel.parents[1]
    git(root, "checkout", "--quiet", "-b", "change")
    git(root, "checkout", "--quiet", "main")
    kernel.write_text(KERNEL.replace("    @%p1 bar.sync 0;\n", ""))
    git(root, "commit", "--quiet", "--all", "--message", "cured")
    git(root, "checkout", "--quiet", "change")
    assert introduced(kernel) == []


@pytest.mark.parametrize("base", ["nothing", "--output=x", "main:kernels", ""])
def test_a_base_that_does_not_exist(kernel: Path, base: str) -> None:
    result = run("check", kernel, "--diff", base)
    assert result.exit_code == 2
    assert f"`--diff {base}`" in result.stderr
    assert not Path("x").exists()


def test_outside_of_a_repository(tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(KERNEL)
    result = run("check", file, "--diff", "main")
    assert result.exit_code == 2
    assert "git says: not a git repository" in result.stderr


def test_no_program_of_a_strangers_repository_runs(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = kernel.parents[1]
    evil = root / "evil"
    evil.write_text(f"#!/bin/sh\necho $0 $* >> {root / 'ran'}\nexit 1\n")
    evil.chmod(0o755)
    shutil.copy(evil, root / "git")
    (root / ".gitattributes").write_text("*.ptx filter=evil diff=evil\n")
    settings = {
        "core.fsmonitor": evil, "core.sshCommand": evil, "core.pager": evil, "core.editor": evil, "core.askPass": evil,
        "core.hooksPath": root, "core.gitProxy": evil, "core.alternateRefsCommand": evil, "diff.external": evil,
        "filter.evil.clean": evil, "filter.evil.smudge": evil, "filter.evil.process": evil, "filter.evil.required": "1",
        "diff.evil.textconv": evil, "diff.evil.command": evil, "alias.ls-tree": f"!{evil}",
        "remote.origin.url": f"ext::{evil}", "remote.origin.promisor": "true", "protocol.ext.allow": "always",
        "extensions.partialClone": "origin", "remote.origin.uploadpack": evil, "credential.helper": evil,
    }  # fmt: skip
    git(root, "add", "kernels")
    for name, value in settings.items():
        git(root, "config", name, str(value))
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(evil, root / ".git" / "hooks" / hook)
    monkeypatch.setenv("PATH", f"{os.pathsep}.{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(root)
    kernel.write_text(KERNEL.replace("    ret;", READ + "    ret;"))
    assert [code for code, _ in introduced(kernel)] == ["unwritten-register"]
    # An object that is missing is fetched by git from what the repository names.
    for file in (root / ".git" / "objects").rglob("*"):
        if file.is_file() and subprocess.run(["/usr/bin/env", "git", "cat-file", "-t", file.parent.name + file.name],
                                             cwd=root, capture_output=True, text=True, check=False,
                                             env={"PATH": "/usr/bin:/bin"}).stdout.strip() == "blob":  # fmt: skip
            file.unlink()
    (root / "ran").unlink(missing_ok=True)
    result = run("check", kernel, "--diff", "main")
    assert result.exit_code == 2
    assert not (root / "ran").exists(), (root / "ran").read_text()
