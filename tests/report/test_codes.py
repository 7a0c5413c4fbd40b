"""A code that was spelled otherwise is accepted as before, wherever a user names one."""

import pytest

import ptxlab
from ptxlab.device.options import chosen_detectors
from ptxlab.explain import page_of
from ptxlab.project.selection import is_among, wrong_word

RENAMED = [
    ("misaligned", "misaligned-access"),
    ("uninitialised-read", "uninitialized-read"),
    ("reinitialised-mbarrier", "reinitialized-mbarrier"),
]


@pytest.mark.parametrize(("old", "new"), RENAMED)
def test_the_old_spelling_is_accepted(old: str, new: str) -> None:
    assert page_of(old) == page_of(new) is not None
    assert ptxlab.explain(old).subject == new
    assert is_among(new, [old])
    assert wrong_word([old], is_ignored=True) is None


def test_a_detector_is_chosen_by_either_spelling() -> None:
    assert chosen_detectors("uninitialised-read") == chosen_detectors(["uninitialized-read"]) == {"uninitialized-read"}
    with pytest.raises(ValueError, match="uninitialised-reads"):
        chosen_detectors("uninitialised-reads")
