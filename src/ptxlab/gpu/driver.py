"""The CUDA driver: loaded when first needed, each call checked, absence explained.

`call("cuMemAlloc", 16)` gives what the driver gives, or raises `DriverError` with its own name for what went wrong.
`current(number)` makes a GPU's primary context, which torch, CuPy and JAX use too, the one that calls go to.

A kernel that goes wrong on a GPU (a wrong address, `trap`) breaks more than itself: from then on the driver answers
every call of the process with the same error. Neither a reset of the context nor a new one helps (measured on an H200
with driver 580), so `broken` remembers it, and later calls report it.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from ptxlab.report import Diagnostic, KernelError, error

ELSEWHERE = '`device="cpu"`, or `ptxlab run --device cpu`, runs a kernel on this machine, without a GPU'


class DriverError(Exception):
    """A call of the driver failed; `name` is the driver's, such as `CUDA_ERROR_ILLEGAL_ADDRESS`."""

    def __init__(self, name: str, call: str) -> None:
        self.name = name
        self.call = call
        super().__init__(f"{call}: {name}")


def call(name: str, *arguments: object) -> Any:
    """What a function of the driver returns beside its status."""
    status, *results = getattr(bindings(), name)(*arguments)
    if int(status):
        raise DriverError(status.name, name)
    return results[0] if len(results) == 1 else tuple(results)


def bindings() -> ModuleType:
    """`cuda.bindings.driver`, initialized; raises `KernelError` where no GPU can be had."""
    found = _open()
    if isinstance(found, Diagnostic):
        raise KernelError([found])
    return found


def absence() -> Diagnostic | None:
    """Why there is no GPU, or None where there is one."""
    found = _open()
    return found if isinstance(found, Diagnostic) else None


@cache
def _open() -> Diagnostic | Diagnostic | ModuleType:
    """The driver, or why there is none."""
    try:
        driver = import_module("cuda.bindings.driver")
    except ImportError as missing:
        return no_gpu(f"the package `cuda-bindings` can't be imported: {missing}", "run `pip install 'ptxlab[cuda]'`")
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as missing:
        reason = f"the CUDA driver can't be loaded: {str(missing).lower()}"
        return no_gpu(reason, "install NVIDIA's driver; `nvidia-smi` shows whether it works")
    return explain_initialization(status.name) if int(status) else driver


_INITIALIZATION = {
    "CUDA_ERROR_NO_DEVICE": ("the CUDA driver sees none",
                             "check `nvidia-smi` and the variable `CUDA_VISIBLE_DEVICES`"),
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": ("the driver's library and its kernel module have different versions",
                                          "restart the machine after the update of the driver"),
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": ("a library for forward compatibility is used on a GPU without it",
                                                  "remove `cuda-compat` from LD_LIBRARY_PATH"),
    "CUDA_ERROR_SYSTEM_NOT_READY": ("the GPUs of this machine are not ready",
                                    "start NVIDIA's fabric manager"),
}  # fmt: skip


def explain_initialization(name: str) -> Diagnostic:
    """Why the driver, though it is there, has no GPU for us."""
    return no_gpu(*_INITIALIZATION.get(name, (f"the CUDA driver says {name}", "see whether `nvidia-smi` works")))


def no_gpu(reason: str, help: str) -> Diagnostic:
    """There is no GPU, for this reason."""
    return error("no-gpu", "there is no GPU to run on", None, notes=[reason], helps=[help, ELSEWHERE])


_contexts: dict[int, int] = {}
_broken: list[str] = []
_lock = threading.Lock()


def broken() -> str | None:
    """Why the driver does nothing more in this process, or None."""
    return _broken[0] if _broken else None


def mark_broken(reason: str) -> None:
    """Remember that the driver does nothing more."""
    _broken.append(reason)


class current:  # noqa: N801 - it reads as a verb's object: `with current(0):`
    """Calls inside go to this GPU; afterwards to where they went before."""

    __slots__ = ("number", "pushed")

    def __init__(self, number: int) -> None:
        self.number = number
        self.pushed = False

    def __enter__(self) -> None:
        context = _contexts.get(self.number) or _context(self.number)
        if int(call("cuCtxGetCurrent")) != context:
            call("cuCtxPushCurrent", context)
            self.pushed = True

    def __exit__(self, *problem: object) -> None:
        if self.pushed:
            bindings().cuCtxPopCurrent()


def _context(number: int) -> int:
    """The primary context of a GPU, kept as long as the process lives."""
    with _lock:
        if number not in _contexts:
            _contexts[number] = int(call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", number)))
    return _contexts[number]
