"""What many tests need: tools that a machine may lack, files of expected output."""

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

import ptxlab
from ptxlab.isa.releases import RELEASES
from ptxlab.isa.targets import Version
from ptxlab.report import PtxError
from ptxlab.toolchain import Tool, assemble, find, find_assembler
from ptxlab.toolchain.header import stated_version
from ptxlab.toolchain.tools import find_all, newest_version


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
each_release = pytest.mark.parametrize("release", RELEASES)


@cache
def ptxas_of(release: str) -> Tool:
    """A ptxas of one of the releases that `check` follows; skips the test where there is none."""
    found = next((tool for tool in find_all("ptxas") if release_of(tool) == release), None)
    if found is None:
        pytest.skip(f"no ptxas {release} here: it is compared with those that are")
    return found


def release_of(tool: Tool) -> str | None:
    """The release of a ptxas, if it is one that `check` follows."""
    release = ".".join(tool.version.split(".")[:2])
    return release if release in RELEASES else None


def judging_release(text: str) -> str | None:
    """The release of the ptxas that `judge` asks about a text."""
    return release_of(find_assembler(stated_version(text)))


def is_accepted(text: str, release: str | None = None) -> bool:
    """Whether `check` finds no error in a text, with a release of ptxas or by the manual."""
    try:
        found = ptxlab.check(ptxlab.parse(text), ptxas=release)
    except PtxError:
        return False
    return all(one.level != "error" for one in found)


needs_nvdisasm = pytest.mark.skipif(
    not (is_there("ptxas") and is_there("nvdisasm")), reason="no ptxas or nvdisasm: install `ptxlab[toolchain]`"
)


def assembler_for(version: Version) -> Tool:
    """A ptxas that reads this version of PTX; skips the test where there is none."""
    tool = find_assembler(version)
    if (newest_version(tool) or version) < version:
        pytest.skip(f"no ptxas for PTX {version[0]}.{version[1]}: install `ptxlab[toolchain]`")
    return tool
