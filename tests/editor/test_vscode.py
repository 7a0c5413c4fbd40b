"""The extension for VS Code, run by Node.js with the parts of the editor's API that it uses."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "editors" / "vscode"
TEXT = ".version 8.0\n.target sm_80\n.entry k() {\n  .reg .u32 %r<2>;\n  mov.u23 %r1, 0;\n  ret;\n}\n"


def test_the_files_that_it_names_are_there() -> None:
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    (language,), (grammar,) = package["contributes"]["languages"], package["contributes"]["grammars"]
    for name in (package["main"], language["configuration"], grammar["path"]):
        assert (FOLDER / name).is_file()
    assert json.loads((FOLDER / grammar["path"]).read_text(encoding="utf-8"))["scopeName"] == grammar["scopeName"]


@pytest.mark.skipif(find_spec("pygls") is None, reason="the language server needs `pip install 'ptxlab[editor]'`")
@pytest.mark.skipif(shutil.which("node") is None or sys.platform == "win32", reason="needs Node.js and a shell")
def test_what_a_user_sees(tmp_path: Path) -> None:
    command = tmp_path / "ptxlab"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ptxlab "$@"\n')
    command.chmod(0o755)
    program = ["node", HERE / "vscode.js", FOLDER / "client.js", command, TEXT.replace("\n", r"\n")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "found": [["illegal-modifier", 0, 4]],
        "hover": "Copy a register, constant, special register or address; "
        "a vector on one side packs or unpacks the other.",
        "renamed": [[3, "%x"], [4, "%x"]],
        "symbols": ["k"],
        "fixes": [["did you mean `.u32`?", ".u32"]],
        "words": True,
    }
