"""What the tests of the toolchain share: the real tools, or a reason to skip; tools that misbehave on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ptxlab.report import PtxError
from ptxlab.toolchain import Tool, find
from ptxlab.toolchain.tools import Name


def _tool_or_skip(name: Name) -> Tool:
    try:
        return find(name)
    except PtxError as missing:
        pytest.skip(missing.diagnostics[0].message)


@pytest.fixture
def ptxas() -> Tool:
    """The ptxas that is found first."""
    return _tool_or_skip("ptxas")


@pytest.fixture
def nvdisasm() -> Tool:
    """The nvdisasm that is found first."""
    return _tool_or_skip("nvdisasm")


@pytest.fixture
def nvrtc() -> Tool:
    """The NVRTC that is found first."""
    return _tool_or_skip("nvrtc")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def fake_ptxas(tmp_path: Path) -> Callable[[str], Tool]:
    """Make a ptxas of a line of shell; asked for its version or help it answers as the real one does."""

    def make(script: str) -> Tool:
        path = tmp_path / "bin" / "ptxas"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            "#!/bin/sh\n"
            'case "$1" in\n'
            '--version) echo "Cuda compilation tools, release 1.2, V1.2.3"; exit 0;;\n'
            "--list-version) echo 8.0; exit 0;;\n"
            "--help) echo \"'sm_80'\"; exit 0;;\n"
            f"esac\n{script}\n"
        )
        path.chmod(0o755)
        return find("ptxas", path)

    return make


KERNEL = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    add.u32 %r2, %r1, 7;
    st.global.u32 [%rd1], %r2;
    ret;
}
"""


@pytest.fixture
def kernel() -> str:
    """A small kernel that every target takes."""
    return KERNEL
