"""What a measurement needs of a machine, and what is kept about it."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from ptxlab import gpu
from ptxlab.gpu.hardware import driver_release
from ptxlab.report import Diagnostic, KernelError, error
from ptxlab.toolchain.process import on_path
from ptxlab.toolchain.tools import find_assembler


def require_torch() -> Any:
    """The module torch, with a GPU that both it and ptxlab can use; where there is none, a message says what to do."""
    problem = gpu.absence()
    if problem is not None:
        raise KernelError([problem])
    try:
        torch = import_module("torch")
    except ImportError:
        raise KernelError([_missing("torch is not installed")]) from None
    if not torch.cuda.is_available():
        raise KernelError([_missing("the torch that is installed is built without CUDA")])
    return torch


def _missing(what: str) -> Diagnostic:
    return error(
        "no-torch",
        f"kernels are measured against torch, and {what}",
        None,
        helps=["install a torch for CUDA: pip install torch"],
    )


def describe(torch: ModuleType) -> dict[str, object]:
    """Hardware and versions."""
    first = gpu.gpu(0)
    return {
        "gpu": first.name,
        "target": first.target,
        "multiprocessors": first.sm_count,
        "driver": driver_release(),
        "cuda": ".".join(map(str, first.cuda)),
        "ptxas": find_assembler(None).version,
        "torch": torch.__version__,
        "triton": _version("triton"),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str:
    """The commit of the repository that ptxlab runs from; empty where that is an installed package.

    The variable `PTXLAB_COMMIT` names it where the files were copied without their history.
    """
    named = os.environ.get("PTXLAB_COMMIT")
    if named:
        return named
    git = on_path("git")
    if git is None:
        return ""
    asked = subprocess.run(
        [git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return asked.stdout.strip() if asked.returncode == 0 else ""
