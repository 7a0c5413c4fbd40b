"""Long results compared whole with what they were before, by a digest each: `BLESS=1 pytest FILE` writes these anew."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path


def compare(file: Path, found: Mapping[str, object]) -> None:
    """Assert that each result is what it was when the file was written; the names that differ are shown."""
    shown = {name: hashlib.sha256(str(result).encode()).hexdigest()[:16] for name, result in found.items()}
    if os.environ.get("BLESS"):
        file.write_text("".join(f"{digest} {name}\n" for name, digest in shown.items()), encoding="utf-8")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert shown == {line[17:]: line[:16] for line in lines}
