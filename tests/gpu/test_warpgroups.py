"""The program that compares wgmma with a GPU, tried with the emulator on both sides."""

import copy
import json
from argparse import Namespace
from pathlib import Path

import pytest

from tests.gpu import warpgroups


@pytest.mark.slow
def test_forms_agree_with_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = warpgroups.examine_all([0, 9], most=1, tiles=2, device="cpu", workers=1)
    head = {"options": {"most": 1, "tiles": 2}}
    kept = tmp_path / "warpgroups.json"
    kept.write_text(json.dumps({"head": head, "found": found}))
    options = Namespace(file=kept, workers=1, evidence=False)
    assert warpgroups.compare(options) == 0
    assert capsys.readouterr().out.startswith("2 forms, ")
    other = copy.deepcopy(found)
    other[1]["spellings"][0]["results"][1] ^= 1
    tallies = warpgroups.tallies_of(other, found)
    assert [tally.mismatches * 2 == tally.values for tally in tallies] == [False, True]
    assert tallies[1].shown == [f"{found[1]['spellings'][0]['opcode']}: tiles [1]"]


def test_every_form_and_size_is_drawn() -> None:
    drawn = [product for number in range(len(warpgroups.examined())) for product in warpgroups.products(number, 6)]
    assert len({product.n for product in drawn}) > 25
    assert {product.atype for product in drawn} == {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "b1"}
