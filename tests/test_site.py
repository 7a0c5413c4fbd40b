"""The site of the documentation: its pages are all there, and lead to each other; Sphinx has no warnings."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pygments.token import Comment, Error, Keyword, Name, Number, Operator

from ptxlab.cli.group import SUBCOMMANDS
from ptxlab.cli.samples import SAXPY
from ptxlab.explain import pages
from ptxlab.highlighting import PtxLexer
from ptxlab.isa.table import forms
from tests.test_docs import DOCS, LINK, without_code

ROOT = DOCS.parent


@pytest.fixture(scope="module")
def make() -> ModuleType:
    sys.path.insert(0, str(DOCS))
    from site_pages import make

    return make


@pytest.fixture(scope="module")
def staged(make: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that Sphinx reads."""
    import build

    folder = tmp_path_factory.mktemp("pages")
    make.write_pages(build, folder)
    return folder


def test_every_code_has_its_page(staged: Path) -> None:
    assert {file.stem for file in (staged / "diagnostics").iterdir()} == {*pages(), "index"}
    assert pages()["hang"] in (staged / "diagnostics" / "hang.md").read_text("utf-8")


def test_every_instruction_and_command_is_there(staged: Path) -> None:
    text = "".join(file.read_text("utf-8") for file in (staged / "instructions").iterdir())
    assert {".".join(form.name) for form in forms()} == set(re.findall(r"^## `(.*)`$", text, re.MULTILINE))
    commands = (staged / "commands.md").read_text("utf-8")
    assert re.findall(r"^## `ptxlab (.*)`$", commands, re.MULTILINE) == list(SUBCOMMANDS)


def test_links_between_pages_lead_somewhere(staged: Path) -> None:
    links = [
        (page, link)
        for page in staged.rglob("*.md")
        if "source" not in page.parts
        for link in LINK.findall(without_code(page.read_text("utf-8")))
    ]
    assert len(links) > 500
    assert [(str(page), link) for page, link in links if not (page.parent / link).exists()] == []
    assert "](guides/ci.md)" in (staged / "changes.md").read_text("utf-8")
    assert "](../changes.md)" in (staged / "guides/versioning.md").read_text("utf-8")
    assert "](../source/src/ptxlab/kernels/wgmma_gemm/kernel_py.md)" in (staged / "gallery/wgmma_gemm.md").read_text()


def test_code_is_not_a_link(make: ModuleType, tmp_path: Path) -> None:
    staging = make.Staging(tmp_path, {"docs/lab.md": "guides/lab"})
    staging.write(
        "a/b", "`x[0](z)` [lab `x`](../lab.md#a)\n\n```\n[lab](../lab.md)\n```\n[no](../nothing/)", "docs/a/b.md"
    )
    assert (tmp_path / "a/b.md").read_text() == (
        "`x[0](z)` [lab `x`](../guides/lab.md#a)\n\n```\n[lab](../lab.md)\n```\nno"
    )


@pytest.mark.bulk
def test_sphinx_has_no_warnings(make: ModuleType, staged: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("no Sphinx: install `ptxlab[docs]`")
    from sphinx.cmd.build import build_main

    assert build_main(["-b", "html", "-c", str(make.HERE), "-W", "-q", str(staged), str(tmp_path)]) == 0
    assert {file.stem for file in (tmp_path / "diagnostics").iterdir()} == {*pages(), "index"}
    landing = (tmp_path / "index.html").read_text("utf-8")
    assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?:", landing) == []


def test_ptx_is_colored() -> None:
    text = "x: // a\n@!%p1 add.rn.f32 %f1, 0f3F800000; fence.proxy.async::generic; setp.eq.u32 %p|%q, %tid.x, 1;"
    found = [(kind, value) for kind, value in PtxLexer().get_tokens(text) if value.strip()]
    assert found[:9] == [
        (Name.Label, "x"), (found[1][0], ":"), (Comment.Single, "// a"), (Operator.Word, "@!"), (Name.Variable, "%p1"),
        (Name.Function.Magic, "add"), (Name.Attribute, ".rn"), (Keyword.Type, ".f32"), (Name.Variable, "%f1"),
    ]  # fmt: skip
    assert (Number.Hex, "0f3F800000") in found
    assert (Name.Attribute, ".async::generic") in found
    assert (Name.Builtin, "%tid") in found
    assert Error not in {kind for text in (SAXPY, *pages().values()) for kind, _ in PtxLexer().get_tokens(text)}
