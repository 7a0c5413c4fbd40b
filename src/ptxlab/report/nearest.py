"""What was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant, if one is near enough."""
    found = get_close_matches(word, list(words), n=1)
    return found[0] if found else None
