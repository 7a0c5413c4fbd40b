"""Programs of their own: what breaks a context of the GPU, or loads a large library, stays there."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(code: str) -> str:
    """The output of a Python program."""
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, cwd=ROOT,
                           env=os.environ | environment)  # fmt: skip
    assert shown.returncode == 0, shown.stderr[-3000:]
    return shown.stdout
