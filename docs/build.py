"""Write the reference from the table and the rules' own pages, beside what is written by hand: `make docs`."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path

from click import unstyle

from ptxlab.cli.explain import explain_forms, pages
from ptxlab.emulate.refuse import is_emulated
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "docs"


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


def coverage() -> str:
    """Each form of each instruction, and what is done with it."""
    known = Counter(is_emulated(form) for form in forms())
    parts = [
        "# Coverage\n",
        f"The table has {known.total()} forms of instructions. All of them are parsed and checked; {known[True]} are "
        "emulated. None has been compared with a GPU yet: evidence of that will be listed here.\n",
        "Where a form is emulated, `.shared::cluster` is not: it needs clusters of several blocks.\n",
    ]
    for chapter, in_chapter in groupby(forms(), key=lambda form: form.chapter):
        parts += [
            f"## {chapter.replace('_', ' ').capitalize()}\n",
            "| form | parsed | checked | emulated | compared with a GPU |",
            "|---|---|---|---|---|",
            *map(row, in_chapter),
            "",
        ]
    return "\n".join(parts)


def row(form: Form) -> str:
    """One form in the table of what is covered."""
    return f"| `{form.syntax.replace('|', chr(92) + '|')}` | yes | yes | {'yes' if is_emulated(form) else 'no'} | no |"


def main() -> None:
    """Write the files and say where they are."""
    BUILD.mkdir(parents=True, exist_ok=True)
    written = {page.name: page.read_text(encoding="utf-8") for page in HERE.glob("*.md")}
    made = {"instructions.md": instructions(), "rules.md": rules(), "coverage.md": coverage()}
    for name, text in {**made, **written}.items():
        (BUILD / name).write_text(text, encoding="utf-8")
        print(f"wrote build/docs/{name}")


if __name__ == "__main__":
    main()
