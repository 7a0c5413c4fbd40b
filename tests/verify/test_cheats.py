"""Known ways to cheat a harness are rejected, each by its name; their right twins are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlab import verify
from tests.verify.cheats import IN_PTX, IN_PYTHON, TASK

CHEATS = {**{name: (".ptx", *one) for name, one in IN_PTX.items()},
          **{name: (".py", *one) for name, one in IN_PYTHON.items()}}  # fmt: skip


MORE = ("kept by Python", "no kernel", "own stream", "exit")  # a process for each takes a second


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.bulk) if one in MORE else one for one in CHEATS])
def test_cheat(name: str, tmp_path: Path) -> None:
    suffix, code, cheat, twin = CHEATS[name]
    file = tmp_path / f"kernel{suffix}"
    file.write_text(cheat)
    found = verify(TASK, file, seed=1, symbolic=False, estimate=False)
    assert found.status == "rejected", str(found)
    assert code in found.codes, str(found)
    file.write_text(twin)
    found = verify(TASK, file, seed=1, symbolic=False, estimate=False)
    assert found.accepted, str(found)
