"""The pages of the site that are made from the program: diagnostics, instructions, commands, names in Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from inspect import cleandoc, isclass, isfunction
from itertools import groupby

import click

import ptxlab
from ptxlab import kernels
from ptxlab.cli.group import SUBCOMMANDS
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.emulate.explain.pages import pages as pages_of_emulator
from ptxlab.emulate.translate.refusals import refusals_of
from ptxlab.explain import explain_forms, pages, summary_of
from ptxlab.isa.form import Form

Pages = Iterator[tuple[str, str]]
ORPHAN = "---\norphan: true\n---\n"
"""The beginning of a page that is not in the sidebar, which would be too long; the page of its folder lists it."""


def toctree(names: Iterable[str], caption: str = "", depth: int = 1, hidden: bool = False) -> str:
    """Sphinx's list of pages, which makes the sidebar."""
    options = [f":maxdepth: {depth}", *([f":caption: {caption}"] if caption else []), *([":hidden:"] if hidden else [])]
    return "\n".join(["```{toctree}", *options, "", *names, "```", ""])


def diagnostics() -> Pages:
    """A page for each code, and the list of them; the address of a page is `diagnostics/CODE.html`, for good."""
    found = pages()
    running = set(pages_of_emulator())
    from ptxlab.check.rules import rules_by_code

    parts = {
        "While a kernel runs": sorted(running),
        "By `ptxlab check`": sorted(set(rules_by_code()) - running),
        "Of files, compilers, GPUs and the rest": sorted(set(found) - running - set(rules_by_code())),
    }
    lines = ["# Diagnostics\n", f"Each of the {len(found)} codes has a page: what `ptxlab explain CODE` prints.\n"]
    for title, codes in parts.items():
        lines += [f"## {title}\n", "| code | |", "|---|---|"]
        lines += [f"| [`{code}`](site:diagnostics/{code}.md) | {first_sentence(found[code])} |" for code in codes]
        lines.append("")
    yield "diagnostics/index", "\n".join(lines)
    for code, text in found.items():
        yield f"diagnostics/{code}", f"{ORPHAN}# `{code}`\n\n{text}\n"


def first_sentence(text: str) -> str:
    """What a page begins with, for a cell of a table."""
    return summary_of(text.strip()).replace("|", "\\|")


def instructions(chapters: Iterable[tuple[str, Iterable[Form]]]) -> Pages:
    """A page for each chapter, with the forms of its instructions and what the emulator makes of them."""
    index = [
        "# Instructions\n",
        "What ptxlab's own table has of each: what it does, its forms, since when they are there, what the emulator "
        "refuses. `ptxlab explain NAME` prints the same; the [coverage](site:coverage.md) has each form. The "
        "manual is NVIDIA's [PTX ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/).\n",
    ]
    for chapter, in_chapter in chapters:
        title = chapter.replace("_", " ").capitalize()
        parts, listed = [f"{ORPHAN}# {title}\n"], []
        for name, group in groupby(in_chapter, key=lambda form: ".".join(form.name)):
            forms = list(group)
            parts += [f"## `{name}`\n", *described(forms), ""]
            listed.append(f"[`{name}`](site:instructions/{chapter}.md#{slug(name)})")
        index.append(f"**[{title}](site:instructions/{chapter}.md)**: {', '.join(listed)}\n")
        yield f"instructions/{chapter}", "\n".join(parts)
    yield "instructions/index", "\n".join(index)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def described(forms: list[Form]) -> Iterator[str]:
    """Forms of one instruction: the text of `ptxlab explain` with its indented parts as code."""
    for text, group in groupby(forms, key=lambda form: form.text):
        alike = list(group)
        lines = list(explain_forms(alike))
        assert lines[0] == text
        code = "\n".join(line.removeprefix("    ") for line in lines[1:]).strip("\n")
        yield f"{text}\n\n```ptx\n{code}\n```\n"
        refused = sorted({str(refusal) for form in alike for refusal in refusals_of(form)})
        if refused:
            yield "The emulator refuses: " + "; ".join(refused) + ".\n"


def commands() -> str:
    """Every subcommand: how it is called, what it does, its options."""
    parts = ["# Commands\n", "`python -m ptxlab` is the same as `ptxlab`. What `--help` prints, command by command:\n"]
    for name in SUBCOMMANDS:
        group = click.Context(command_line, info_name="ptxlab")
        command = command_line.get_command(group, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=group)
        usage = " ".join(command.collect_usage_pieces(context))
        parts += [f"## `ptxlab {name}`\n", f"```console\n$ ptxlab {name} {usage}\n```\n", *help_of(command)]
        records = [option.get_help_record(context) for option in command.get_params(context)]
        rows = [f"| {cell(f'`{record[0]}`')} | {cell(record[1])} |" for record in records if record and record[1]]
        parts += ["| option | |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def help_of(command: click.Command) -> Iterator[str]:
    """The text of `--help`, with what click keeps as it is as code."""
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            head, *lines = paragraph.removeprefix("\b").strip("\n").split("\n")
            indented = [line for line in lines if line.startswith(" ")]
            if len(indented) == len(lines):
                yield f"{head}\n" if head.endswith(":") else f"```text\n{head}\n```\n"
                yield "```console\n" + cleandoc("\n" + "\n".join(lines)) + "\n```\n"
            else:
                yield "```text\n" + "\n".join([head, *lines]) + "\n```\n"
        elif paragraph.strip():
            yield " ".join(paragraph.split()) + "\n"


def cell(text: str) -> str:
    """Text as a cell of a table, in which nothing but code is markup."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()).replace("|", "\\|"))
    return "".join(part if part.startswith("`") else re.sub(r"([<*\[_])", r"\\\1", part) for part in parts)


GROUPS = {
    "Read, check, print": "load parse check format cuda render",
    "Launch": "Result launch_chain explore Record Trace estimate Estimate",
    "Arguments": "tensor_map im2col_map PointerArray Multicast Texture Surface Sampler",
    "Findings": "Diagnostic PtxError KernelError TraceError explain",
    "Kernels of other frameworks": "from_framework triton cute numba",
}


def python() -> str:
    """The names of `ptxlab` and the functions of `ptxlab.kernels`, from their docstrings."""
    there = [name for name in ptxlab.__all__ if name != "__version__"]
    groups = {title: [name for name in names.split() if name in there] for title, names in GROUPS.items()}
    groups["More"] = sorted({*there} - {name for names in groups.values() for name in names})
    parts = ["# Python\n", "```{eval-rst}", ".. py:module:: ptxlab", "```\n"]
    for title, names in groups.items():
        parts += [f"## {title}\n"] if names else []
        parts += [documented(f"ptxlab.{name}", getattr(ptxlab, name)) for name in names]
        if title == "Launch":
            parts.append(documented("ptxlab.ir.Module", ptxlab.ir.Module, "entries version target get set"))
            parts.append(documented("ptxlab.ir.Function", ptxlab.ir.Function, "launch"))
    parts += ["## Functions of the gallery\n", "[Functions](../functions.md) explains them.\n"]
    parts += [documented(f"ptxlab.kernels.{name}", getattr(kernels, name)) for name in kernels.__all__]
    return "\n".join(parts)


def documented(name: str, value: object, members: str = "") -> str:
    """One name, by Sphinx's autodoc."""
    kind = "class" if isclass(value) else "function" if isfunction(value) else "data"
    if type(value).__name__ == "module":
        kind = "module"
    elif kind == "data" and callable(value):
        kind = "function"
    options = [f"   :members: {', '.join(members.split())}".rstrip()] if kind in ("class", "module") else []
    if kind == "class":
        options.append("   :class-doc-from: class")
    return "\n".join(["```{eval-rst}", f".. auto{kind}:: {name}", *options, "```", ""])
