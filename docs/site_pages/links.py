"""Pages of the repository as pages of the site: their links lead to pages, pictures and source on it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(```.*?^```$)", re.DOTALL | re.MULTILINE)
# A link, or code, in which nothing is a link; a link's text may be code.
_LINK = re.compile(
    r"(`+)(?!`).*?(?<!`)\1(?!`)|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)"
)
PICTURES = (".svg", ".png")
LANGUAGES = {".py": "python", ".ptx": "ptx", ".cu": "cpp", ".json": "json", ".toml": "toml", ".js": "javascript"}
LONGEST = 200_000  # bytes of a source file that becomes a page


class Staging:
    """The folder that Sphinx reads: pages by name, what they show, and source files that they mention."""

    def __init__(self, folder: Path, pages: Mapping[str, str]) -> None:
        self.folder = folder
        self.pages = pages  # names on the site by path in the repository
        self.sources: set[str] = set()

    def write(self, name: str, text: str, origin: str = "docs/site_pages/index.md") -> None:
        """Write a page whose links are meant from `origin` in the repository."""
        path = self.folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = outside_code(text, lambda part: _LINK.sub(lambda link: self._linked(link, name, origin), part))
        path.write_text(text, encoding="utf-8")

    def write_sources(self) -> None:
        """A page for each source file that was mentioned."""
        for file in sorted(self.sources):
            code = (ROOT / file).read_text(encoding="utf-8").rstrip("\n") + "\n"
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
            language = LANGUAGES[PurePosixPath(file).suffix]
            text = f"---\norphan: true\n---\n# `{file}`\n\n{fence}{language}\n{code}{fence}\n"
            self.write(_source_page(file), text)

    def _linked(self, link: re.Match[str], page: str, origin: str) -> str:
        """One link, as it is on the site; its text alone where there is nothing to lead to."""
        if link[1]:
            return link[0]
        mark, text, target, fragment = link[2], link[3], link[4], link[5] or ""
        here = PurePosixPath(page).parent
        if target.startswith("site:"):
            return f"{mark}[{text}]({_relative(target.removeprefix('site:'), here)}{fragment})"
        if not target:
            return link[0]
        file = os.path.normpath(PurePosixPath(origin).parent / target)
        readme = f"{file}/README.md"
        if known := self.pages.get(file) or self.pages.get(readme):
            return f"{mark}[{text}]({_relative(f'{known}.md', here)}{fragment})"
        path = ROOT / file
        if path.suffix in PICTURES:
            copied = self.folder / "pictures" / file
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)
            return f"{mark}[{text}]({_relative(f'pictures/{file}', here)})"
        if path.suffix in LANGUAGES and path.is_file() and path.stat().st_size < LONGEST:
            self.sources.add(file)
            return f"[{text}]({_relative(f'{_source_page(file)}.md', here)})"
        return text if "`" in text else f"`{text}`" if "/" in text else text


def _source_page(file: str) -> str:
    return f"source/{file.replace('.', '_')}"


def _relative(target: str, folder: PurePosixPath) -> str:
    return os.path.relpath(target, folder)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with all that is not code changed."""
    parts = _FENCE.split(text)
    for at in range(0, len(parts), 2):
        parts[at] = change(parts[at])
    return "".join(parts)
