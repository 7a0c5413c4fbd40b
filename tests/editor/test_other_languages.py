"""The language server on CUDA C++ and on kernels in Python: findings on the lines of the file that is open."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools import is_there

pytest.importorskip("pygls", reason="the language server needs `pip install 'ptxlab[editor]'`")

from ptxlab.editor import server
from tests.editor.test_server import Client, Editor

pytestmark = pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning")

CUDA = """\
#include "width.h"
__global__ void rotate(unsigned* x) {
    unsigned y = x[threadIdx.x];
    asm volatile("shf.l.wrap.b32 %0, %0, %0, 7;\\n\\t"
                 "add.u32 %0, %0, 7;" : "+r"(y));
    x[threadIdx.x] = y + WIDTH;
}
int main() { return 0; }
"""

PYTHON = """\
from ptxlab.author import f32, kernel, pointer, ptx, u32

print("it is executed")


@kernel(target="sm_80")
def scale(x: pointer[f32], n: u32):
    i = ptx.tid.x
    with ptx.when(i < n):
        ptx.bar.sync(0)
    ptx.bar.sync(0)
    x[i] = x[i] * 2.0


@kernel(target="sm_80")
def tiled(x: pointer[f32], *, tile: int):
    x[tile] = 1.0
"""


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_PAUSE", 0.02)
        editor = Editor(python=True)
        yield editor
        editor.close()


def shown(found: list[dict[str, Any]]) -> list[tuple[str | None, int, str]]:
    """Code, line from 1 and message of each."""
    return [(one.get("code"), one["range"]["start"]["line"] + 1, one["message"].split("\n")[0]) for one in found]


@pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")
def test_inline_ptx_of_cuda(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "width.h").write_text("#define WIDTH 7\n")
    path = tmp_path / "rotate.cu"  # which was not saved: the text of the editor counts
    client = Client(editor, CUDA, path)
    assert shown(client.findings()) == []
    wrong = CUDA.replace("add.u32 %0", "ad.u32 %0").replace("shf.l.wrap.b32", "shf.l.wrap.b23")
    client.change({"text": wrong})
    assert [(code, line) for code, line, _ in shown(client.findings())] == [
        ("illegal-modifier", 4), ("unknown-instruction", 5),
    ]  # fmt: skip
    client.change({"text": CUDA.replace("unsigned y", "unsinged y")})
    ((code, line, message), *_) = shown(client.findings())
    assert (code, line) == ("cuda-error", 3)
    assert "unsinged" in message
    assert client.ask("hover", "ro|tate") is None  # of PTX alone
    assert client.ask("completion", "ro|tate") is None


def test_kernels_in_python(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(PYTHON)
    client = Client(editor, PYTHON, path)
    ((code, line, _),) = shown(client.findings())
    assert (code, line) == ("divergent-barrier", 10)
    right = PYTHON.replace("        ptx.bar.sync(0)\n", "        x[i] = 0.0\n")
    client.change({"text": right})
    path.write_text(right)
    editor.notify("textDocument/didSave", {"textDocument": {"uri": client.uri}})
    assert client.findings() == []
    wrong = right.replace("ptx.when(i < n)", "ptx.when(i < m)").replace("x[tile]", "x[tail]")
    client.change({"text": wrong})
    path.write_text(wrong)
    editor.notify("textDocument/didSave", {"textDocument": {"uri": client.uri}})
    assert shown(client.findings()) == [
        ("python-error", 9, "kernels were not checked: NameError: name 'm' is not defined")
    ]


@pytest.mark.parametrize("python", [False, True])
def test_python_is_executed_only_where_that_is_asked_for(tmp_path: Path, python: bool) -> None:
    path, text = tmp_path / "kernels.py", "from pathlib import Path\nPath('executed').touch()\n"
    path.write_text(text)
    editor = Editor(python=python)
    nowhere = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    assert Client(editor, text, path).ask("codeAction", range=nowhere, context={"diagnostics": []}) == []
    editor.close()
    assert (tmp_path / "executed").exists() is python
