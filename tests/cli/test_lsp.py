"""`ptxlab lsp` where its package is missing; tests/editor has the server itself."""

import sys

import pytest
from click.testing import CliRunner

from ptxlab.cli.group import ptxlab


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("ptxlab.editor")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ["pygls", *(name for name in sys.modules if name.startswith("pygls."))]:
        monkeypatch.setitem(sys.modules, name, None)
    result = CliRunner().invoke(ptxlab, ["lsp"])
    assert (result.exit_code, result.output) == (
        2,
        "error[missing-package]: `pygls` is not installed; run `pip install 'ptxlab[editor]'`\n",
    )
