"""Write the reference, instructions and rules, from the table and the rules' own pages: `make docs`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from click import unstyle

from ptxlab.cli.explain import explain_forms, pages
from ptxlab.isa.table import forms

BUILD = Path(__file__).parent.parent / "build" / "docs"


def instructions() -> str:
    """Every instruction by chapter of the manual, with its forms and their availability."""
    parts = ["# Instructions\n"]
    for chapter, in_chapter in groupby(forms(), key=lambda form: form.chapter):
        parts.append(f"## {chapter.replace('_', ' ').capitalize()}\n")
        for name, group in groupby(in_chapter, key=lambda form: ".".join(form.name)):
            parts += [f"### `{name}`\n", *map(unstyle, explain_forms(group)), ""]
    return "\n".join(parts)


def rules() -> str:
    """The page of every rule."""
    return "\n".join(["# Rules\n", *(f"## `{code}`\n\n{page}\n" for code, page in sorted(pages().items()))])


def main() -> None:
    """Write both files and say where they are."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for name, text in {"instructions.md": instructions(), "rules.md": rules()}.items():
        (BUILD / name).write_text(text, encoding="utf-8")
        print(f"wrote build/docs/{name}")


if __name__ == "__main__":
    main()
