"""The words that ptxlab's text does not use, and what it says instead; `make check` runs this program.

It reads every text file that git tracks: names, comments, docstrings, messages and pages. `WORDS` is the list,
`ALLOWED` the uses that are right, each with its reason. The glossary beside this file has the terms that are used.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# What to say, and a regular expression of what not to say. Case does not matter. A space matches any white space, `_`
# and the mark of a comment, so that a phrase is found across lines and in names.
WORDS: dict[str, str] = {
    "reports, says, indicates": "tell|tells|telling|told|untold",
    "is, is at, appears": "stand|stands|standing|stood|lie|lies",
    "after, past": "behind",
    "no thread, any thread": "nobody|somebody|whoever",
    "lane exchange buffer": "mail|mails|mailbox",
    "variants, baselines": "arm|arms|rival|rivals",
    "optimization steps": "rung|rungs|ladder|ladders",
    "is not a": r"(?<!there[\s_])(?:is|are|was|were|be) no(?! (?:longer|more|less|larger|smaller|later|earlier)\b)",
    "is not one, does not exist": r"(?<!there[\s_])(?:is|are) (?-i:none)",
    "livelock, no progress": "goes nowhere|going nowhere",
    "continue, make progress": "(?:go|goes|going|went|gone) on",
    "read, poll, inspect": "(?:look|looks|looked|looking) at",
    "happens-before": "who knows of|whom",
    "converge, synchronize, warp collective": "meeting|meetings",
    "violation, violates, reports": "complain|complains|complained|complaint|complaints",
    "LLVM IR": "llvm's (?:text|language)",
    "boolean": "truth (?:value|values)",
    "SM": "multiprocessor|multiprocessors",
    "exits 0": "(?:leave|leaves|left) with (?:status )?[012]",
    "on some path": "on (?:some|every|all|no|one|another) (?:way|ways)",
    "safe fixes": "remedy|remedies|remedied",
    "K tile": r"(?<!\.)(?:strip|strips)(?!\()",
    "semantics, what it means": "meaning|meanings",
    "asynchronous operation": "agent|agents",
    "start, issue": "beginnings|begun|began",
    "the threads that": "(?:those|all|ones|threads|lanes) who",
    "capacity, space": "finding room|room of|room to keep",
    "rotated right": "turned to the (?:right|left)",
    "must": "shall",
    "expected one of": r"there are \{(?:', '|' and ')\.join",
    "its own": "the own",
    "-ize": "|".join(
        stem + ending
        for stem in "initialis reinitialis uninitialis specialis optimis minimis quantis normalis synchronis".split()
        for ending in "e es ed er ers ing ation ations".split()
    ),
    "color": "colour|colours|coloured",
}


class Allowed(NamedTuple):
    """A use that is right: in files like `path`, on lines that match `text`."""

    path: str
    text: str
    reason: str


ALLOWED = (
    *(
        Allowed(path, "(?i)agents?", "programs that write kernels, through `ptxlab mcp`")
        for path in ("src/ptxlab/cli/*.py", "docs/*", "CHANGELOG.md", "README.md", "SECURITY.md", "dev.py")
    ),
    Allowed("*.py", '["`]arms["`]', "a key of the records in evidence/"),
    Allowed("*.py", '"multiprocessors"', "a key of the records in evidence/"),
    Allowed("src/ptxlab/frameworks/*", "(?i)multi_?processor", "names of torch, Triton and CUDA"),
    Allowed("tests/programs/*", "(?i)multi_?processor", "names of CUDA"),
    Allowed("*programs/*", '["`]strip["`]', "a tool that removes symbols"),
    Allowed("src/ptxlab/gpu/hardware.py", "MULTIPROCESSOR_COUNT", "an attribute of the driver"),
    Allowed("*", "(?:un|re)initialised-", "codes as they were spelled before, which are accepted"),
    Allowed("docs/build.py", "optimisation_text", "a file of evidence/"),
    Allowed("tests/emulate/kernels/*", "mail", "a name in kernels whose compiled PTX is committed"),
)

SKIPPED = (
    "evidence/*",  # written by programs
    "tests/corpus/*",  # written by others
    "tests/emulate/kernels/ptx/*",  # written by compilers
    "tests/fuzz/found/*",  # written by a fuzzer
    "docs/words.py",
    "LICENSE",
)
SUFFIXES = {"", ".cu", ".litmus", ".md", ".ptx", ".py", ".pyi", ".toml"}
SEPARATOR = r"(?:[\s_]|#|//)+"
PATTERNS = {
    instead: re.compile(rf"(?<![a-z])(?:{words.replace(' ', SEPARATOR)})(?![a-z])", re.IGNORECASE)
    for instead, words in WORDS.items()
}
# The patterns that a match may start with a word of: they are tried where that word is, which is rare, not everywhere.
STARTS: dict[str, list[str]] = {}
for instead, words in WORDS.items():
    for word in set(re.findall("[a-z]+", words)):
        STARTS.setdefault(word, []).append(instead)


class Found(NamedTuple):
    """One use of a word of the list."""

    path: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.text}`: say: {self.instead}"


def search(path: str, text: str) -> Iterator[Found]:
    """Every use of a word of the list in `text` that is not allowed in `path`."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)  # a name like `LaneMail` is two words
    lines = text.split("\n")
    allowed = [re.compile(each.text) for each in ALLOWED if fnmatch(path, each.path)]
    for word in re.finditer("[A-Za-z]+", text):
        for instead in STARTS.get(word.group().lower(), ()):
            match = PATTERNS[instead].match(text, word.start())
            number = text.count("\n", 0, word.start()) if match else 0
            if match and not any(each.search(lines[number]) for each in allowed):
                yield Found(path, number + 1, " ".join(match.group().split()), instead)


def tracked() -> list[str]:
    """The text files that git tracks, and new ones that it does not ignore."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [
        name
        for name in names
        if Path(name).suffix in SUFFIXES
        and not any(fnmatch(name, each) for each in SKIPPED)
        and (ROOT / name).is_file()
    ]


def main() -> int:
    """Print every use of a word of the list; the exit status is 1 if there is any."""
    found = [str(use) for name in tracked() for use in sorted(search(name, (ROOT / name).read_text(encoding="utf-8")))]
    print("\n".join(found) or "words: none of the list")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
