"""The words that ptxlab's text does not use, and what it says instead; `make check` runs this program.

It reads every text file that git tracks: names, comments, docstrings, messages and pages. `WORDS` is the list,
`ALLOWED` the uses that are right, each with its reason. The glossary beside this file has the terms that are used.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# What to say: regular expressions of what not to say. A space matches any white space, `_` and the mark of a comment.
WORDS: dict[str, str] = {
    "reports, says, indicates": "tell|tells|telling|told|untold",
    "is, is at, appears": "stand|stands|standing|stood|lies|lie in|lie at|lie on",
    "after, past": "behind",
    "no thread, any thread": "nobody|somebody|whoever",
    "the lane exchange buffer": "mail|mails|mailbox",
    "variants, baselines": "arm|arms|rival|rivals",
    "optimization steps": "rung|rungs|ladder|ladders",
    "is not a": r"(?<!there[\s_])(?:is|are|was|were|be) no(?! (?:longer|more|less|larger|smaller|later|earlier)\b)",
    "is not one, does not exist": r"(?<!there[\s_])(?:is|are) (?-i:none)",
    "livelock, no progress": "goes nowhere|going nowhere",
    "continue, make progress": "go on|goes on|going on|went on|gone on",
    "read, poll, inspect": "(?:look|looks|looked|looking) at",
    "happens-before": "knows of whom|who knows of|whom",
    "converge, synchronize; warp collective": "meeting|meetings",
    "violation, violates": "complain|complains|complaint|complaints|complained",
    "LLVM IR": "llvm's (?:text|language)",
    "boolean": "truth (?:value|values)",
    "SM": "multiprocessor|multiprocessors",
    "exits 0": "(?:leave|leaves|left) with (?:status )?[012]",
    "on some path": "on (?:some|every|all|no|one|another) (?:way|ways)",
    "safe fixes": "remedy|remedies|remedied",
    "K tile": "(?<!\\.)(?:strip|strips)(?!\\()",
    "semantics, what it means": "meaning|meanings",
    "asynchronous operation": "agent|agents",
    "start, issue": "beginnings",
    "must": "shall",
    "its own": "the own",
}


class Allowed(NamedTuple):
    """A use that is right: in files like `path`, where the line matches `text`."""

    path: str
    text: str
    reason: str


ALLOWED = (
    Allowed("*.py", r"\.tell\(", "the position of a file"),
    Allowed("*.py", '["`]arms["`]', "a key of the records in evidence/"),
    Allowed("*.py", '"multiprocessors"', "a key of the records in evidence/"),
    Allowed("tests/isa/name_tests.py", "strip", "a method of text"),
    Allowed("src/ptxlab/gpu/hardware.py", "MULTIPROCESSOR_COUNT", "an attribute of the driver"),
)

# Packages whose text still has words of the list, and how many. A number is lowered with each that goes, never raised.
UNFINISHED: dict[str, int] = {
    "src/ptxlab/emulate": 0,
    "src/ptxlab/native": 0,
}

SKIPPED = (
    "evidence/*",
    "tests/corpus/*",
    "tests/fuzz/found/*",
    "tests/emulate/kernels/ptx/*",
    "docs/words.py",
    "LICENSE",
)
SUFFIXES = {".py", ".pyi", ".md", ".toml", ".ptx", ".cu", ".litmus", ".css", ".js", ""}
SEPARATOR = r"(?:[\s_]|#|//)+"


class Found(NamedTuple):
    """One use of a word of the list."""

    path: str
    line: int
    text: str
    instead: str


def patterns() -> list[tuple[str, re.Pattern[str]]]:
    """What to say, and the expression that finds what not to say."""
    return [
        (instead, re.compile(rf"(?<![a-z])(?:{words.replace(' ', SEPARATOR)})(?![a-z])", re.IGNORECASE))
        for instead, words in WORDS.items()
    ]


def search(path: str, text: str) -> Iterator[Found]:
    """Every use of a word of the list in `text` that is not allowed in `path`."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)  # names like `WarpMail` are two words
    lines = text.split("\n")
    allowed = [re.compile(each.text) for each in ALLOWED if fnmatch(path, each.path)]
    for instead, pattern in patterns():
        for match in pattern.finditer(text):
            number = text.count("\n", 0, match.start())
            if not any(each.search(lines[number]) for each in allowed):
                yield Found(path, number + 1, " ".join(match.group().split()), instead)


def tracked() -> list[str]:
    """The text files that git tracks, or that will be."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    return [
        name
        for name in names
        if name and Path(name).suffix in SUFFIXES and not any(fnmatch(name, each) for each in SKIPPED)
    ]


def main() -> int:
    unfinished = Counter[str]()
    problems = []
    for name in tracked():
        if not (ROOT / name).is_file():
            continue
        package = next((each for each in UNFINISHED if name.startswith(f"{each}/")), None)
        for found in sorted(search(name, (ROOT / name).read_text())):
            if package is None:
                problems.append(f"{found.path}:{found.line}: `{found.text}`: say: {found.instead}")
            else:
                unfinished[package] += 1
    for package, expected in UNFINISHED.items():
        if unfinished[package] != expected:
            problems.append(f"{package}: {unfinished[package]} words of the list, {expected} in UNFINISHED")
    print("\n".join(problems) or "no word of the list")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
