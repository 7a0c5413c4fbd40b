"""What was probably meant."""

from collections.abc import Iterable

_CLOSE = 64  # of many words, those that are compared in detail


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant, if one is near enough.

    >>> nearest("adn", ["add", "sad", "and"])
    'and'
    >>> nearest("ad", ["sad", "and", "add"])
    'add'
    >>> nearest("2D", ["1d", "2d", "3d"])
    '2d'
    """
    from difflib import get_close_matches

    words = list(words)
    in_capitals = next((other for other in words if other.lower() == word.lower() and other != word), None)
    if in_capitals is not None:
        return in_capitals
    close = get_close_matches(word, words, n=_CLOSE)
    return min(close, key=lambda other: _rank(word, other), default=None)


def distance(a: str, b: str) -> int:
    """Letters to insert, leave out, replace, or exchange with the next one, to get from one word to another.

    >>> distance("golbal", "global"), distance("bar", "bra"), distance("ld", "st")
    (1, 1, 2)
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        further = [i]
        for j, y in enumerate(b, 1):
            steps = min(row[j] + 1, further[j - 1] + 1, row[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                steps = min(steps, before[j - 2] + 1)
            further.append(steps)
        before, row = row, further
    return row[-1]


def _rank(word: str, other: str) -> tuple[int, bool, int]:
    """Fewest changes first; then the same letters in another order, then a common beginning."""
    alike = next((at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), len(word))
    return distance(word, other), sorted(word) != sorted(other), -alike
