"""What is drawn, whatever it is: it prints as text, and is SVG in a notebook and in files."""

from __future__ import annotations

from pathlib import Path


class Drawing:
    """Something with `text()` and `svg()`."""

    __slots__ = ()

    def text(self) -> str:
        """As a terminal shows it."""
        raise NotImplementedError

    def svg(self) -> str:
        """As a browser shows it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def save(self, path: str | Path) -> None:
        """Write a file: `.svg`, or `.txt` as a terminal shows it."""
        kind = Path(path).suffix
        if kind not in (".svg", ".txt"):
            raise ValueError(f"`{path}`: a picture is saved as `.svg` or `.txt`")
        Path(path).write_text(self.svg() if kind == ".svg" else self.text() + "\n", encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()
