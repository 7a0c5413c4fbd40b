"""Where NVIDIA's tools are: an explicit path, an environment variable, PATH, a PyPI wheel, in this order.

`find("ptxas")` answers with the first one; `find_assembler((9, 4))` prefers one that accepts the version of the module.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from ptxlab.report import PtxError, error
from ptxlab.toolchain.process import on_path, run

Name = Literal["ptxas", "nvdisasm", "nvrtc", "nvcc"]
Version = tuple[int, int]

_WHEELS: dict[Name, str] = {
    "ptxas": "nvidia-cuda-nvcc",
    "nvcc": "nvidia-cuda-nvcc",
    "nvdisasm": "nvidia-cuda-nvdisasm",
    "nvrtc": "nvidia-cuda-nvrtc",
}
_VERSION_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that was found: where, what version, by which route, and why not an earlier one."""

    name: Name
    path: Path
    version: str
    origin: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version} from {self.origin} ({self.path})"


def find(name: Name, option: str | Path | None = None) -> Tool:
    """The first `name` there is; a missing one raises `PtxError` with what to install."""
    for path, origin in _candidates(name, option):
        return _tool(name, path, origin)
    raise PtxError(
        [
            error(
                "missing-tool",
                f"`{name}` was not found",
                None,
                notes=[f"searched the variable `{_variable(name)}`, PATH and the wheel `{_WHEELS[name]}`"],
                helps=["run `pip install 'ptxlab[toolchain]'`, or put the `bin` folder of a CUDA toolkit on PATH"],
            )
        ]
    )


def find_all(name: Name) -> list[Tool]:
    """Every `name` there is, best first."""
    return [_tool(name, path, origin) for path, origin in _candidates(name, None)]


def wheel_folders() -> list[Path]:
    """The folders of NVIDIA's wheels, newest first: `nvidia/cu13`, before CUDA 13 `nvidia/cuda_nvcc`."""
    package = importlib.util.find_spec("nvidia")
    locations = () if package is None else package.submodule_search_locations or ()
    return [folder for location in locations for folder in sorted(Path(location).glob("cu*"), key=_age)]


def can_find(*names: Name) -> bool:
    """Whether these tools are all there."""
    return all(next(_candidates(name, None), None) is not None for name in names)


def find_assembler(version: Version | None, option: str | Path | None = None) -> Tool:
    """The ptxas for a module of this PTX version: the first found, or the first that is new enough for it."""
    first = find("ptxas", option)
    if version is None or option is not None or _accepts(first, version):
        return first
    for path, origin in _candidates("ptxas", option):
        other = _tool("ptxas", path, origin)
        if _accepts(other, version):
            newest = newest_version(first)
            wanted = f"{version[0]}.{version[1]}"
            limit = f"{newest[0]}.{newest[1]}" if newest else "less"
            return replace(
                other, reason=f"ptxas {first.version} from {first.origin} accepts PTX up to {limit}, not {wanted}"
            )
    return first


@lru_cache(maxsize=64)
def newest_version(tool: Tool) -> Version | None:
    """The newest PTX version this ptxas accepts; None where it is too old to say."""
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        outcome = run([tool.path, "--list-version"], Path(folder), _VERSION_SECONDS)
    found = [(int(major), int(minor)) for major, minor in re.findall(r"^(\d+)\.(\d+)$", outcome.text, re.MULTILINE)]
    return max(found, default=None)


def _accepts(tool: Tool, version: Version) -> bool:
    newest = newest_version(tool)
    return newest is None or version <= newest


def _variable(name: Name) -> str:
    return f"PTXLAB_{name.upper()}"


def _candidates(name: Name, option: str | Path | None) -> Iterator[tuple[Path, str]]:
    """Every path at which the tool is, best first; an explicit one that does not exist is an error."""
    variable = _variable(name)
    for chosen, origin in ((option, "the option"), (os.environ.get(variable), f"`{variable}`")):
        if not chosen:
            continue
        path = on_path(str(chosen)) or chosen
        if not Path(path).is_file():
            raise PtxError([error("missing-tool", f"{origin} names `{chosen}`, which is not a file", None)])
        if chosen != option and not Path(path).is_absolute():
            raise PtxError([error("missing-tool", f"{origin} names `{chosen}`, which is not an absolute path", None)])
        yield Path(path).absolute(), origin
    found = _library_beside_nvcc() if name == "nvrtc" else on_path(name)
    if found:
        yield Path(found), "PATH"
    in_wheel = _in_wheel(name)
    if in_wheel:
        yield in_wheel, f"the wheel {_WHEELS[name]}"


def _library_beside_nvcc() -> Path | None:
    """NVRTC of the toolkit whose nvcc is on PATH."""
    nvcc = on_path("nvcc")
    if nvcc is None:
        return None
    root = Path(nvcc).resolve().parent.parent
    return next((found for folder in ("lib64", "lib", "bin") for found in _libraries(root / folder)), None)


def _libraries(folder: Path) -> list[Path]:
    pattern = "nvrtc64_*_0.dll" if sys.platform == "win32" else "libnvrtc.so*"
    found = [path for path in folder.glob(pattern) if ".alt." not in path.name]
    return sorted(found, key=lambda path: len(path.name))


def _in_wheel(name: Name) -> Path | None:
    """The tool inside NVIDIA's wheels."""
    for folder in wheel_folders():
        if name == "nvrtc":
            found = _libraries(folder / "lib") or _libraries(folder / "bin" / "x86_64")
        else:
            suffix = ".exe" if sys.platform == "win32" else ""
            found = [path for path in (folder / "bin" / f"{name}{suffix}",) if path.is_file()]
        if found:
            return found[0]
    return None


def _age(folder: Path) -> tuple[int, str]:
    """Sorts `cu14` before `cu13`, and both before the folders of older wheels."""
    release = re.fullmatch(r"cu(\d+)", folder.name)
    return (-int(release[1]) if release else 0, folder.name)


def _tool(name: Name, path: Path, origin: str) -> Tool:
    return Tool(name, path, _version(name, path, path.stat().st_mtime_ns), origin)


@lru_cache(maxsize=64)
def _version(name: Name, path: Path, changed: int) -> str:
    """The version a tool states; `changed` makes a replaced file a new question."""
    if name == "nvrtc":
        from ptxlab.toolchain.nvrtc import library_version

        return library_version(path)
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        outcome = run([path, "--version"], Path(folder), _VERSION_SECONDS)
    stated = re.search(r"\bV(\d+(?:\.\d+)+)", outcome.text)
    return stated[1] if stated else "unknown"
