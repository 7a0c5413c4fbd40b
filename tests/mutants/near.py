"""Which tests are about a place of the source: those that share its rare words.

The words of a place are those of its path and of the function around it; of a test, those of its file and its name. A
word counts the more, the fewer tests have it.
"""

import ast
import math
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.mutants.sites import Site

OF_THE_PATH = 3  # how often words of the path count, beside those of the function


class Tests:
    """The words of files of tests."""

    __test__ = False

    def __init__(self, root: Path, files: list[str]) -> None:
        self.root = root
        self.words = {file: frozenset(_words(f"{file} {(root / file).read_text(encoding='utf-8')}")) for file in files}
        counts = Counter(word for words in self.words.values() for word in words)
        self.weights = {word: math.log(len(files) / count) for word, count in counts.items()}
        self.norms = {
            file: 1 + math.hypot(*(self.weights[word] for word in words)) for file, words in self.words.items()
        }

    def order(self, site: Site) -> list[str]:
        """All files, the nearest first."""
        wanted = Counter(_function_words((self.root / site.file).read_text(encoding="utf-8"), site.line))
        for word in _words("/".join(Path(site.file).parts[3:])):
            wanted[word] += OF_THE_PATH

        def near(file: str) -> float:
            return sum(self.weights[word] ** 2 * wanted[word] for word in self.words[file] & wanted.keys())

        return sorted(self.words, key=lambda file: -near(file) / self.norms[file])


@cache
def _words(text: str) -> tuple[str, ...]:
    """Words of names and of prose, without case and plural."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    return tuple(word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", apart))


def _function_words(source: str, line: int) -> set[str]:
    """Words of the smallest function that has this line, or of the line itself."""
    around = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or line)
    ]
    lines = source.splitlines()
    if not around:
        return set(_words(lines[line - 1]))
    inner = max(around, key=lambda node: node.lineno)
    return set(_words("\n".join(lines[inner.lineno - 1 : inner.end_lineno])))
