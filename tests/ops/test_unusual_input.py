"""Unusual arrays for every function: each call is refused in words, or accepted; a file has which are accepted.

`tests/gpu/test_unusual_input.py` computes them on a GPU. Here nothing is launched.
"""

from pathlib import Path

import pytest

from ptxlab.measure import Launch
from ptxlab.ops import calls, products
from tests.ops.unusual_input import unusual, usual
from tests.tools import compare_with_file

WORDS = ("`", "arrays are", "queries", "rows of the result", "quantize=")


def test_every_call_is_refused_in_words_or_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[Launch] = []
    for module in (calls, products):
        monkeypatch.setattr(module, "on_emulator", launched.extend)
    lines = []
    for name, one in usual().items():
        one.function(**one.arrays, **one.options)
        assert launched
        launched.clear()
        accepted: dict[str, list[str]] = {}
        for array, what, given in unusual(one):
            try:
                one.function(**given)
                accepted.setdefault(array, []).append(what)
            except (TypeError, ValueError) as refused:
                assert any(word in str(refused) for word in WORDS), refused  # noqa: PT017
        lines += [f"{name}, `{array}`: {'; '.join(each)}" for array, each in accepted.items()]
    compare_with_file(Path(__file__).with_name("accepted_input.txt"), lines)
