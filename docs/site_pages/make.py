"""Make the site: pages of the repository and of the program as Markdown in build/site-pages, and Sphinx over them."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import geometric_mean
from types import ModuleType

from site_pages import reference
from site_pages.links import ROOT, Staging
from site_pages.toc import FOLDERS, SECTIONS

from ptxlab import kernels
from ptxlab.measure import Record
from ptxlab.measure.page import compared
from ptxlab.measure.table import as_markdown

HERE = Path(__file__).parent
PAGES = ROOT / "build" / "site-pages"
SITE = ROOT / "build" / "site"
KINDS = {"feature": "New", "bugfix": "Mended", "removal": "Removed", "doc": "Documentation", "misc": "Other"}


def names() -> dict[str, str]:
    """The name on the site of each page that is written by hand."""
    found = {"CONTRIBUTING.md": "contributing", "SECURITY.md": "security", "README.md": "start",
             "evidence/bench/README.md": "measured"}  # fmt: skip
    for page in (ROOT / "docs").glob("*.md"):
        found[f"docs/{page.name}"] = f"guides/{page.stem}"
    for folder, place in FOLDERS.items():
        for page in (ROOT / folder).glob("*.md"):
            found[f"{folder}/{page.name}"] = f"{place}/{'index' if page.stem == 'README' else page.stem}"
    for name in kernels.names():
        found[f"src/ptxlab/kernels/{name}/README.md"] = f"gallery/{name}"
    return found


def write_pages(build: ModuleType, folder: Path = PAGES) -> None:
    """Write all that Sphinx reads; `build` is `docs/build.py`, which makes some of the pages."""
    shutil.rmtree(folder, ignore_errors=True)
    known = names()
    staging = Staging(folder, {**known, "CHANGELOG.md": "changes"})
    for file, name in known.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        if file == "README.md":
            text = start(text)
        if (place := str(Path(file).parent)) in FOLDERS and name.endswith("/index"):
            lessons = sorted(page.stem for page in (ROOT / place).glob("[0-9]*.md"))
            text += "\n" + reference.toctree(lessons, hidden=True)
        if name.startswith("gallery/"):
            text += measured(name.removeprefix("gallery/"), build)
        staging.write(name, text, file)
    staging.write("gallery/index", gallery(build))
    for name, text in (*reference.diagnostics(), *reference.instructions(build.by_chapter())):
        staging.write(name, text)
    made = {"coverage": build.coverage, "techniques": build.techniques, "launches": build.launches,
            "commands": reference.commands, "python": reference.python, "changes": changes}  # fmt: skip
    if build.SANITIZER.exists():
        made["sanitizer"] = build.sanitizer
    for name, maker in made.items():
        text = maker().replace("](gallery.md)", "](site:gallery/index.md)").replace("](claims.md)", "](../claims.md)")
        staging.write(name, text, *(["CHANGELOG.md"] if name == "changes" else []))
    staging.write(
        "index", landing(known, {*made, "start", "gallery/index", "diagnostics/index", "instructions/index"}, build)
    )
    staging.write_sources()


def landing(known: Mapping[str, str], made: set[str], build: ModuleType) -> str:
    """The first page, and after it the sidebar."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = (HERE / "index.md").read_text(encoding="utf-8").replace("{a race}", race(readme))
    text = text.replace("{beside compute-sanitizer}", build.beside_sanitizer())
    there = {*known.values(), *made}
    lost = {page for page in there if page.startswith("guides/")}
    for section, pages in SECTIONS.items():
        listed = [known.get(page) or page.removeprefix("site:") for page in pages]
        text += "\n" + reference.toctree([page for page in listed if page in there], section, hidden=True)
        lost -= set(listed)
    assert not lost, f"toc.py lacks {lost}"
    return text


def race(readme: str) -> str:
    """The race that the README shows, without the arrays that were printed before."""
    run = next(block for block in re.findall(r"^```console\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
               if block.startswith("$ ptxlab run reverse.ptx"))  # fmt: skip
    command, report = run.partition("\n")[0], run[run.index("error[") :].strip().partition("\n\n")[0]
    return f"```console\n{command}\n{report}\n```"


def start(readme: str) -> str:
    """The README's sections for someone who is new, in the order that they need them."""
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", readme, re.DOTALL | re.MULTILINE))
    wanted = ["Install", "A race, found and explained", "What it runs", "From Python", "Commands"]
    intro = readme.partition("\n")[2].partition("\n## ")[0].strip()
    bodies = {title: sections[title] for title in wanted}
    bodies["From Python"] = bodies["From Python"].partition("| page | subject |")[0]  # the sidebar is that
    return "\n".join(["# Getting started\n", intro, "", *(f"## {title}\n{body}" for title, body in bodies.items())])


def gallery(build: ModuleType) -> str:
    """Every kernel in a row, with what it computes and how it compares."""
    lines = [
        "# The gallery\n",
        "Kernels that are right, explained, and measured beside the library that you would use instead. `ptxlab bench "
        "NAME` measures one on your GPU; [what was measured](../../evidence/bench/README.md) has every size, with the "
        "rows that lose.\n",
        "The ratio is the geometric mean over all sizes of the library's time to ours: above 1, ours is faster.\n",
        "| kernel | what it is | ratio |",
        "|---|---|---:|",
    ]
    found = kernels.names()
    for name in found:
        title = kernels.readme(name).partition("\n")[0].lstrip("# ")
        lines.append(f"| [`{name}`](site:gallery/{name}.md) | {title} | {ratio(name, build)} |")
    return "\n".join([*lines, "", reference.toctree(found, hidden=True)])


def ratio(name: str, build: ModuleType) -> str:
    """How fast a kernel is beside the fastest library, if it was measured."""
    record = build.BENCHES / f"{name}.json"
    found = [compared(sized) for sized in Record.read(record).sizes] if record.exists() else []
    ratios = [one[1] for one in found if one is not None]
    return f"{geometric_mean(ratios):.2f}" if ratios else ""


def measured(name: str, build: ModuleType) -> str:
    """What is set under a kernel's README: its benchmark, and machine code where that is the subject."""
    parts = []
    record = build.BENCHES / f"{name}.json"
    if record.exists():
        parts += ["", "## Measured\n", as_markdown(Record.read(record)), ""]
    extra = {"mma_variants": build.machine_code, "registers": build.register_use}
    if name in extra:
        parts += ["", "## Machine code\n", extra[name]()]
    return "\n".join(parts)


def changes() -> str:
    """The notes of releases, after what is not released yet, from the fragments of `changes`."""
    title, _, notes = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("\n")
    parts = []
    files = sorted((ROOT / "changes").glob("*.md"))
    for kind, heading in KINDS.items():
        texts = [" ".join(file.read_text("utf-8").split()) for file in files if file.name.endswith(f".{kind}.md")]
        parts += [f"### {heading}\n", *(f"- {text}" for text in texts), ""] if texts else []
    unreleased = ["## Not released yet\n", *parts] if parts else []
    return "\n".join([title, "", *unreleased, notes.strip(), ""])


def main(build: ModuleType) -> int:
    """Write the pages and run Sphinx; a warning is an error."""
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        sys.exit("the site needs Sphinx: pip install 'ptxlab[docs]'")
    write_pages(build)
    status: int = build_main(["-b", "html", "-c", str(HERE), "-W", "--keep-going", "-q",
                              "-d", str(SITE.parent / "site-trees"), str(PAGES), str(SITE)])  # fmt: skip
    if not status:
        print(f"wrote {SITE.relative_to(ROOT)}/index.html")
    return status
