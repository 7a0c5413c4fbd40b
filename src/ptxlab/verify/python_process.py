"""A submission in Python, in a process of its own, with limits on time, memory and what it may say.

The process gets shapes and types, and no data; it answers with PTX and launches, as JSON, which is read as such:
nothing in it is run here. What is done to that process by the submission stays there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from ptxlab.device.array_types import DTYPES
from ptxlab.native.children import start_python
from ptxlab.values import Json
from ptxlab.verify.submission import SubmissionError

LARGEST = 64 << 20  # bytes of an answer
_KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "LANG", "PTXLAB_NVCC", "PTXLAB_NVRTC", "PTXLAB_PTXAS")


class PythonProcess:
    """The process, and what it was asked."""

    def __init__(self, path: Path, convention: str, seconds: float, memory: float) -> None:
        self.path, self.seconds, self.end = path, seconds, time.monotonic() + seconds
        self.folder = tempfile.TemporaryDirectory(prefix="ptxlab-verify-", ignore_cleanup_errors=True)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment = {**kept, "HOME": self.folder.name, "TMPDIR": self.folder.name,
                       "TRITON_CACHE_DIR": f"{self.folder.name}/triton", "PTXLAB_CACHE": f"{self.folder.name}/cache",
                       "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        limits = json.dumps({"memory": int(memory * (1 << 30)), "seconds": int(seconds) + 1})
        self.process = start_python("ptxlab.verify.capture", limits, convention, str(path.resolve()),
                                    stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.folder.name,
                                    env=environment, start_new_session=True)  # fmt: skip
        self.rest = b""

    def ask(self, request: dict[str, object]) -> Json:
        """What it launches; `SubmissionError` if it fails, says too much, or takes too long."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            said = json.loads(self._line())
        except (BrokenPipeError, UnicodeDecodeError, json.JSONDecodeError, RecursionError):
            raise SubmissionError("python-failed", f"{self.path.name}: its process ended without an answer") from None
        if not isinstance(said, dict):
            raise SubmissionError("python-failed", f"{self.path.name}: its process gave no answer")
        if "error" in said:
            raise SubmissionError(str(said.get("code", "python-failed"))[:40], str(said["error"])[:2000])
        return _checked(said)

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        file = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            left = self.end - time.monotonic()
            if left <= 0 or not select.select([file], [], [], left)[0]:
                raise SubmissionError("out-of-time", f"{self.path.name}: its Python took more than {self.seconds:g} s")
            part = os.read(file, 1 << 20)
            if not part:
                raise BrokenPipeError
            self.rest += part
            if len(self.rest) > LARGEST:
                raise SubmissionError("too-large", f"{self.path.name}: an answer of more than {LARGEST:,} bytes")
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def close(self) -> None:
        """End it, and all that it started in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.process.wait()
        self.folder.cleanup()


_CALL = {"text": str, "name": str, "entry": str, "grid": list, "block": list, "args": list, "shared": int,
         "cooperative": bool}  # fmt: skip


def _checked(said: dict[str, object]) -> Json:
    """An answer of the right form: the submission may have written it."""
    if not _is_answer(said):
        raise SubmissionError("python-failed", "its process gave an answer of another form")
    return said


def _is_answer(said: dict[str, object]) -> bool:
    calls, spaces = said.get("calls"), said.get("workspaces")
    if not isinstance(calls, list) or not isinstance(spaces, dict) or not isinstance(said.get("patched", []), list):
        return False
    outputs = said.get("outputs", {})
    if not isinstance(outputs, dict) or not all(
        isinstance(one, dict) and one.get("array") in spaces and isinstance(one.get("offset"), int)
        and isinstance(one.get("strides"), list) and all(isinstance(step, int) for step in one["strides"])
        for one in outputs.values()
    ):  # fmt: skip
        return False
    return all(map(_is_call, calls)) and all(map(_is_workspace, spaces.values()))


def _is_call(call: object) -> bool:
    if not isinstance(call, dict) or not all(isinstance(call.get(key), type) for key, type in _CALL.items()):
        return False
    extents = [*call["grid"], *call["block"], *(call.get("cluster") or [])]
    return all(isinstance(one, int) for one in extents) and all(isinstance(one, dict) for one in call["args"])


def _is_workspace(space: Any) -> bool:
    is_right = isinstance(space, dict) and isinstance(space.get("shape"), list) and isinstance(space.get("data"), str)
    return is_right and space.get("type") in DTYPES and all(isinstance(one, int) for one in space["shape"])
