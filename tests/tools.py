"""What many tests need: tools that a machine may lack, files of expected output."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from ptxlab.isa.targets import Version
from ptxlab.report import PtxError
from ptxlab.toolchain import Tool, assemble, find, find_assembler
from ptxlab.toolchain.tools import newest_version


def is_there(name: str) -> bool:
    """Whether a tool can be had."""
    try:
        find(name)
    except PtxError:
        return False
    return True


def header(version: str, target: str) -> str:
    """How a module begins."""
    return f".version {version}\n.target {target}\n.address_size 64\n"


def ptxas_reports(ptx: str, target: str = "sm_90a") -> list[str]:
    """Registers that ptxas spills, and what it has to say, as it has of `wgmma` that it serializes."""
    assembly = assemble(ptx, target)
    spilled = [one for one in assembly.resources if one.spill_stores or one.spill_loads]
    return [*map(str, spilled), *map(str, assembly.diagnostics)]


BLESS = bool(os.environ.get("BLESS"))
"""Whether files of expected output are written anew from what is found, instead of compared with it."""


def compare_with_file(path: Path, lines: Iterable[str]) -> None:
    """Assert that these are the lines of a file; with BLESS=1, write them there."""
    found = list(lines)
    if BLESS:
        path.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    assert found == path.read_text(encoding="utf-8").splitlines(), f"BLESS=1 writes {path.name} anew"


needs_ptxas = pytest.mark.skipif(not is_there("ptxas"), reason="no ptxas: install `ptxlab[toolchain]`")
FOLLOWED = "13.0."  # the ptxas that `check` agrees with: later ones refuse more nonsense


def is_followed() -> bool:
    """Whether the ptxas here is of the version whose verdicts `check` follows."""
    return is_there("ptxas") and find("ptxas").version.startswith(FOLLOWED)


needs_followed_ptxas = pytest.mark.skipif(
    not is_followed(), reason=f"needs ptxas {FOLLOWED}x, whose verdicts `check` follows"
)
needs_nvdisasm = pytest.mark.skipif(
    not (is_there("ptxas") and is_there("nvdisasm")), reason="no ptxas or nvdisasm: install `ptxlab[toolchain]`"
)


def assembler_for(version: Version) -> Tool:
    """A ptxas that reads this version of PTX; skips the test where there is none."""
    tool = find_assembler(version)
    if (newest_version(tool) or version) < version:
        pytest.skip(f"no ptxas for PTX {version[0]}.{version[1]}: install `ptxlab[toolchain]`")
    return tool
