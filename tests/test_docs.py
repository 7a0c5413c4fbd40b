"""The pages that are written by hand are true, and those that are made have what they should."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ptxlab.cli.samples import SAXPY
from ptxlab.explain import pages
from ptxlab.isa.table import CHAPTERS, forms
from ptxlab.kernels import registers

DOCS = Path(__file__).parent.parent / "docs"
EMULATOR = (DOCS / "emulator.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build", DOCS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_coverage_has_every_form(build: ModuleType) -> None:
    rows = [line for line in build.coverage().splitlines() if line.startswith("| `")]
    assert len(rows) == len(forms())
    (shl,) = [row for row in rows if row.startswith("| `shl.type d, a, b` | yes | yes | yes | yes |  |")]
    assert "all equal" in shl
    assert "| `ret{.uni}` | yes | yes | yes | yes |  | no |" in rows


def test_coverage_says_what_is_refused_of_a_form(build: ModuleType) -> None:
    rows = [line for line in build.coverage().splitlines() if line.startswith("| `")]
    assert [
        row for row in rows if row.startswith("| `tcgen05.alloc") and " |  | partly | partly |  | `.exclusive`: " in row
    ]
    assert [row for row in rows if row.startswith("| `spcompress") and "|  |  |  |  | the manual leaves" in row]
    assert [
        row for row in rows if row.startswith("| `mma.sync") and "| no | no | no | no | it is not in the manual" in row
    ]


def test_each_chapter_and_each_instruction_appears_once(build: ModuleType) -> None:
    for page in (build.instructions(), build.coverage()):
        chapters = re.findall(r"^## (.*)", page, re.MULTILINE)
        assert chapters == [chapter.replace("_", " ").capitalize() for chapter in CHAPTERS]
    for chapter in build.instructions().split("\n## ")[1:]:
        names = re.findall(r"^### (.*)", chapter, re.MULTILINE)
        assert len(names) == len(set(names))


def test_every_technique_of_the_text_was_measured(build: ModuleType) -> None:
    rows = [line.split(" | ") for line in build.techniques().splitlines() if line.startswith("| ")][1:]
    assert [row[0].strip("| ") for row in rows if row[1].strip()] == [
        "software pipelining by `cp.async`",
        "cache hints `ld.cs`, `st.wt`",
        "warp reduction by `shfl`",
        "attention tile by `mma`",
    ]
    assert all(float(row[-1].rstrip(" |")) > 0 for row in rows)


def test_the_gallery_says_what_directives_on_registers_do(build: ModuleType) -> None:
    rows = [line for line in build.register_use().splitlines() if line.startswith("| `")]
    assert len(rows) == len(registers.DIRECTIVES)
    assert build.register_use() in build.gallery()


ROOT = DOCS.parent
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def without_code(page: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE))


PAGES = [page for pattern in ("*.md", "docs/**/*.md", "src/**/README.md", "benchmarks/*.md")
         for page in ROOT.glob(pattern)]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = [link for link in LINK.findall(without_code(page.read_text("utf-8"))) if not (page.parent / link).exists()]
    assert dead == []


def test_links_of_what_is_made_lead_somewhere(build: ModuleType) -> None:
    pages = {"gallery.md": build.gallery(), "techniques.md": build.techniques(), "claims.md": "# Claims"}
    pages["index.md"] = build.index(pages)
    links = [link for page in pages.values() for link in LINK.findall(without_code(page))]
    assert len(links) > 20
    assert [link for link in links if link not in pages and not (build.BUILD / link).resolve().exists()] == []


def test_the_gallery_has_the_code_of_the_readmes_unchanged(build: ModuleType) -> None:
    page = "# A\n\n```python\n# a remark\nx = y[0](z)\n```\n\n## B\n\n[k](k.py), [far](https://a.b)\n"
    assert build.under(page, "up") == (
        "## A\n\n```python\n# a remark\nx = y[0](z)\n```\n\n### B\n\n[k](up/k.py), [far](https://a.b)\n"
    )


def test_the_readme_has_what_compute_sanitizer_found(build: ModuleType) -> None:
    assert build.beside_sanitizer() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_of_kernels_has_what_was_measured_beside_cublas(build: ModuleType) -> None:
    readme = (DOCS / "kernels.md").read_text(encoding="utf-8")
    measured = build.Record.read(build.BENCHES / "wgmma_gemm.json")
    rounds = min(len(sized["wgmma"].samples) for sized in measured.sizes)
    assert build.hopper() in readme
    assert f"TFLOP/s on an {measured.machine['gpu']}, medians of at least {rounds} rounds" in " ".join(readme.split())


def test_the_page_of_kernels_has_what_was_measured_beside_cudnn(build: ModuleType) -> None:
    readme = (DOCS / "kernels.md").read_text(encoding="utf-8")
    measured = build.Record.read(build.BENCHES / "wgmma_attention.json")
    rounds = min(len(sized["wgmma"].samples) for sized in measured.sizes)
    assert build.attention() in readme
    assert build.gradient() in " ".join(readme.split())
    assert f"on the same GPU, medians of at least {rounds} rounds" in " ".join(readme.split())


def test_the_page_of_benchmarks_is_made_from_the_records(build: ModuleType) -> None:
    page = (build.BENCHES / "README.md").read_text(encoding="utf-8")
    assert page == build.benchmarks(), "`python docs/build.py --measured` writes it"


def test_what_a_launch_costs(build: ModuleType) -> None:
    page = build.launches()
    ratio = float(re.search(r"^\| prepared\.launch\(\) \|.*\| ([\d.]+) \|$", page, re.M)[1])  # type: ignore[index]
    assert ratio < 1.2


def test_who_finds_what(build: ModuleType, tmp_path: Path) -> None:
    def kernel(emulator: list[str], **tools: str) -> dict[str, object]:
        return {"test": "", "emulator": emulator, "tools": {name: {"verdict": word} for name, word in tools.items()}}

    evidence = {
        "command": "python -m tests.gpu.sanitizer", "sanitizer": "2025.3", "gpu": "H200", "driver": "580", "date": "",
        "kernels": [
            kernel(["data-race"], none="silent", memcheck="silent", racecheck="found", synccheck="silent"),
            kernel(["data-race"], none="hangs", memcheck="silent", racecheck="silent", synccheck="silent"),
            kernel([], none="silent", memcheck="silent", racecheck="silent", synccheck="found", initcheck="silent"),
        ],
    }  # fmt: skip
    path = tmp_path / "sanitizer.json"
    path.write_text(json.dumps(evidence))
    rows = [line for line in build.sanitizer(path).splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| `data-race` | 2 | 2 | 0 | 1 | 0 | 0 of 0 | 1 | 1 hangs, 1 silent |",
        "| nothing: a report is false | 1 | 0 | 0 | 0 | 1 | 0 | 1 | 1 silent |",
        "| kernel | tool | it says |",
        "|  | synccheck |  |",
    ]


SPIN_LOCK = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry spin_lock(.param .u64 lock)
{
    .reg .b64 %rd1;
    .reg .b32 %r<4>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [lock];
again:
    atom.acquire.gpu.global.cas.b32 %r1, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ld.global.u32 %r2, [%rd1+4];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd1+4], %r2;
    st.release.gpu.global.u32 [%rd1], 0;
    ret;
}
"""


def test_the_python_on_the_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.ptx").write_text(SAXPY)
    Path("spin_lock.ptx").write_text(SPIN_LOCK)
    *examples, suite = re.findall(r"```python\n(.*?)```", EMULATOR, re.DOTALL)
    names: dict[str, Any] = {}
    for code in examples:  # they assert what they compute
        assert "\nassert " in code
        exec(code, names)
    exec(suite, names)
    names["test_saxpy"](1)


def test_the_findings_on_the_emulator_have_pages() -> None:
    table = EMULATOR.partition("| finding | when |")[2].partition("\n\n")[0]
    named = re.findall(r"`([a-z]+(?:-[a-z]+)*)`", "\n".join(row.split("|")[1] for row in table.split("\n")[2:]))
    assert len(named) > 8
    assert set(named) <= set(pages())


def test_estimates_are_those_of_the_evidence(build: ModuleType) -> None:
    assert f"<!-- measured: estimate -->\n{build.estimates()}<!-- end -->" in (DOCS / "estimate.md").read_text("utf-8")


def test_each_promise_of_security_names_its_tests() -> None:
    """A promise is a paragraph that starts in bold; the tests after its dash are there."""
    promised = (DOCS.parent / "SECURITY.md").read_text(encoding="utf-8").partition("## What is not")[0]
    paragraphs = [one for one in promised.split("\n\n") if one.startswith("**")]
    assert len(paragraphs) >= 8
    for paragraph in paragraphs:
        names = re.findall(r"`(tests/[\w/.]+)`", paragraph.rpartition("—")[2])
        assert names, paragraph
        assert [name for name in names if not (DOCS.parent / name).exists()] == []


def test_every_benchmark_is_in_the_index() -> None:
    index = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\((\w+\.py)\)", index)) == sorted(file.name for file in ROOT.glob("benchmarks/*.py"))
