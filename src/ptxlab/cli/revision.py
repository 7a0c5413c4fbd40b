"""Files as a commit has them, read by git: for findings that a change introduced.

The repository may be a stranger's, and its `.git/config` can name programs: hooks, filters, helpers of transports. Only
commands that read objects are used, none of which runs a filter, and git may use no transport and no hook.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import click

_FILES = ("100644", "100755")
_SUBMODULE = "160000"


@dataclass(frozen=True)
class Revision:
    """A commit of the repository that a folder is in."""

    root: Path
    commit: str
    folder: Path
    """Where files of it are written."""

    @classmethod
    def before(cls, base: str, place: Path, folder: Path) -> Revision:
        """The last commit that `base` and HEAD have in common, in the repository of a place: where a change started."""
        root = Path(os.fsdecode(_git(place, "rev-parse", "--show-toplevel")).rstrip("\n"))
        if base.startswith("-"):
            raise click.UsageError(f"`--diff {base}`: a branch, a tag or a commit is expected")
        unknown = f"`--diff {base}`: there is no such branch, tag or commit in `{root}`; in CI, fetch it first"
        _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}", problem=unknown)
        apart = f"`--diff {base}`: it has no commit in common with HEAD; in CI, fetch the whole history"
        found = _git(root, "merge-base", base, "HEAD", problem=apart)
        return cls(root, found.decode().strip(), folder)

    @cached_property
    def files(self) -> dict[str, tuple[str, str]]:
        """Mode and object of each file, by its path from the root."""
        found = {}
        for line in _git(self.root, "ls-tree", "-r", "-z", "--full-tree", self.commit).split(b"\0")[:-1]:
            about, _, name = line.partition(b"\t")
            mode, _, object = about.decode().split()
            found[os.fsdecode(name)] = (mode, object)
        return found

    def name_of(self, path: Path) -> str | None:
        """The path of a file from the root; None where it is outside of the repository."""
        # The folder is resolved, as git's root is; a file that is a symbolic link goes by its own name.
        place = path.absolute().parent.resolve() / path.name
        root = self.root.resolve()
        return place.relative_to(root).as_posix() if place.is_relative_to(root) else None

    def read(self, name: str) -> bytes | None:
        """What a file held; None where the commit does not have it."""
        mode, object = self.files.get(name, ("", ""))
        return _git(self.root, "cat-file", "blob", object) if mode in _FILES else None

    def gone(self, suffix: str) -> list[str]:
        """Files with this suffix that the commit has, and that are not there any more."""
        return [name for name in self.files if name.endswith(suffix) and not (self.root / name).exists()]

    def write(self, name: str) -> Path:
        """One file, in the folder."""
        return _write(self.folder, name, self.read(name) or b"")

    @cached_property
    def _tree(self) -> Path:
        """The folder with all files of the commit; submodules are those of the work tree."""
        folder = self.folder
        names = [name for name, (mode, _) in self.files.items() if mode in _FILES]
        asked = "".join(f"{self.files[name][1]}\n" for name in names).encode()
        answers = _git(self.root, "cat-file", "--batch", input=asked)
        for name in names:
            head, _, answers = answers.partition(b"\n")
            size = int(head.split()[2])
            _write(folder, name, answers[:size])
            answers = answers[size + 1 :]
        for name, (mode, _) in self.files.items():
            if mode == _SUBMODULE and (self.root / name).is_dir() and _is_below(name):
                place = folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(self.root / name, target_is_directory=True)
        return folder

    def write_with_headers(self, name: str) -> Path:
        """A file with all others of the commit around it, as CUDA C++ needs them."""
        return self._tree / name


def _write(folder: Path, name: str, data: bytes) -> Path:
    place = folder / name
    if _is_below(name):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return place


def _is_below(name: str) -> bool:
    """Whether a path of a tree leads to where it seems to: a tree can be made by hand."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _git(folder: Path, *arguments: str, input: bytes = b"", problem: str = "") -> bytes:
    """What git answers; a usage error where it refuses."""
    from ptxlab.toolchain.process import absolute_entries, on_path

    program = on_path("git")
    if program is None:
        raise click.UsageError("`--diff` needs git, and there is none on PATH")
    safe = ["core.fsmonitor=false", f"core.hooksPath={os.devnull}", "protocol.allow=never"]
    command = [program, *(word for one in safe for word in ("-c", one)), "--no-replace-objects", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
        "PATH": os.pathsep.join(absolute_entries("PATH")),
        "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0",
    }  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment, input=input, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise click.UsageError(problem or f"`--diff`: git says: {said or 'nothing'}")
    return done.stdout
