"""The guides: pages of the documentation as Markdown, where they are installed or in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_PACKAGE = Path(__file__).parent
_PLACES = (_PACKAGE / "docs", _PACKAGE.parents[1] / "docs")  # as it is installed, and in the repository
_FOLDERS = ("", "course", "hopper", "lessons")
_HEADING = re.compile(r"^#{1,4} +(.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| ([^|]+) \| (.+) \|$", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\.md\)")
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class GuideSection(NamedTuple):
    """A part of a guide, from its heading to the next one."""

    guide: str
    heading: str
    text: str


def folder() -> Path | None:
    """Where they are; None if they were not installed."""
    return next((place for place in _PLACES if (place / "lessons").is_dir()), None)


def guides() -> dict[str, Path]:
    """The file of each guide, by its name: `memory-model`, `hopper/03-ring`."""
    place = folder()
    if place is None:
        return {}
    files = [file for name in _FOLDERS for file in sorted((place / name).glob("*.md"))]
    return {file.relative_to(place).with_suffix("").as_posix(): file for file in files if file.stem != "README"}


def title_of(file: Path) -> str:
    """The first heading of a guide."""
    return file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def search(words: str) -> list[GuideSection]:
    """The sections that have all words, those first whose headings have them, then those that have them most often."""
    wanted = [word.lower() for word in words.split()]
    found = []
    for section in (one for name, file in guides().items() for one in _sections(name, file)) if wanted else ():
        heading, text = section.heading.lower(), section.text.lower()
        if all(word in text for word in wanted):
            in_heading = sum(word in heading for word in wanted)
            often = sum(text.count(word) for word in wanted) / (len(text) + 400)
            found.append((-in_heading, -often, section))
    return [section for *_, section in sorted(found)]


def terms() -> dict[str, str]:
    """The definition of each term of the glossary, by its name in lower case; links are text."""
    file = guides().get("glossary")
    if file is None:
        return {}
    rows = _ROW.findall(file.read_text(encoding="utf-8"))
    return {
        name.strip("` ").lower(): _LINK.sub(_as_text, definition).strip()
        for names, definition in rows
        if names.strip() != "term"
        for name in names.split(",")
    }


def _as_text(link: re.Match[str]) -> str:
    return f"{link[1]} (`ptxlab docs {link[2]}`)"


def _sections(guide: str, file: Path) -> list[GuideSection]:
    text = file.read_text(encoding="utf-8")
    without_code = _CODE.sub(lambda code: " " * len(code[0]), text)  # a remark in it is not a heading
    starts = [(heading.start(), heading[1]) for heading in _HEADING.finditer(without_code)]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return [
        GuideSection(guide, heading, text[start:end].strip())
        for (start, heading), end in zip(starts, ends, strict=True)
    ]
