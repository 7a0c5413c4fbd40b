"""Write the reference from the table and the rules' own pages, beside what is written by hand: `make docs`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ptxlab import kernels
from ptxlab.emulate.translate.refusals import READ, TARGETS, Refusal, answer_of, refusals_of
from ptxlab.emulate.translate.refuse import is_emulated
from ptxlab.explain import explain_forms, pages
from ptxlab.isa.form import Form
from ptxlab.isa.table import CHAPTERS, forms
from ptxlab.measure import Record
from ptxlab.measure.page import as_page
from ptxlab.measure.table import as_markdown
from ptxlab.report.diagnostic import current_code
from ptxlab.report.times import seconds

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "docs"
MEASURED = HERE.parent / "evidence" / "agreement_gpu.json"
MACHINE_CODE = HERE.parent / "evidence" / "mma_sass.json"
REGISTER_USE = HERE.parent / "evidence" / "register_use.json"
BENCHES = HERE.parent / "evidence" / "bench"
TEXT = HERE.parent / "evidence" / "optimisation_text.json"
LAUNCHES = HERE.parent / "evidence" / "launch.json"
SANITIZER = HERE.parent / "evidence" / "sanitizer.json"
ESTIMATES = HERE.parent / "evidence" / "estimate.json"
LAB = HERE.parent / "evidence" / "lab.json"


def by_chapter() -> Iterator[tuple[str, Iterable[Form]]]:
    """Every chapter of the manual, in its order, with the forms of its instructions, those of a name together."""
    names = list(dict.fromkeys(form.name for form in forms()))
    ordered = sorted(forms(), key=lambda form: ([*CHAPTERS].index(form.chapter), names.index(form.name)))
    return groupby(ordered, key=lambda form: form.chapter)


def instructions() -> str:
    """Every instruction by chapter of the manual, with its forms and their availability."""
    parts = ["# Instructions\n"]
    for chapter, in_chapter in by_chapter():
        parts.append(f"## {chapter.replace('_', ' ').capitalize()}\n")
        for name, group in groupby(in_chapter, key=lambda form: ".".join(form.name)):
            parts += [f"### `{name}`\n", *explain_forms(group), ""]
    return "\n".join(parts)


def rules() -> str:
    """The page of every code that a diagnostic can have."""
    head = "# Errors and warnings\n\nWhat `ptxlab explain CODE` prints, for each of them.\n"
    return "\n".join([head, *(f"## `{code}`\n\n{page}\n" for code, page in sorted(pages().items()))])


def coverage() -> str:
    """Each form of each instruction, and what is done with it."""
    known = Counter(is_emulated(form) for form in forms())
    refused = [refusal for form in forms() for refusal in refusals_of(form) if refusal.modifier is None]
    later = sum(refusal.is_later for refusal in refused)
    evidence = json.loads(MEASURED.read_text(encoding="utf-8"))
    measured: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for entry in evidence["forms"]:
        measured[entry["chapter"], entry["form"]].append(entry)
    parts = [
        "# Coverage\n",
        f"The table has {known.total()} forms of instructions. All of them are parsed and checked; {known[True]} are "
        f"emulated. Of the {len(refused)} that the emulator refuses, {later} belong to a PTX later than "
        f"{READ[0]}.{READ[1]}, which ptxas of CUDA 13.0 does not read. The columns of targets say whether a module for "
        "that target can use the form: `yes`, `partly` (without the modifiers named beside it), `no`; nothing, "
        "where the target does not have the form. What is emulated of `tcgen05` is modelled, not measured.\n",
        f"The last column is what `{evidence['command']}` found on an {evidence['gpu']} (driver "
        f"{evidence['driver']}, ptxas {evidence['ptxas']}, {evidence['date']}): how many results were compared bit for "
        "bit, and how many differed. Memory, barriers and copies are compared by whole kernels, not form by form.\n",
    ]
    for chapter, in_chapter in by_chapter():
        parts += [
            f"## {chapter.replace('_', ' ').capitalize()}\n",
            f"| form | {' | '.join(TARGETS)} | refused | compared with a GPU |",
            f"|---|{'---|' * len(TARGETS)}---|---|",
            *(row(form, measured[chapter, form.syntax]) for form in in_chapter),
            "",
        ]
    return "\n".join(parts)


def row(form: Form, measured: Sequence[Mapping[str, Any]]) -> str:
    """One form in the table of what is covered."""
    syntax = form.syntax.replace("|", "\\|")
    targets = " | ".join(answer_of(form, target) for target in TARGETS)
    refused = "; ".join(f"{refusal} (PTX {spelled(refusal)})" for refusal in refusals_of(form))
    return f"| `{syntax}` | {targets} | {refused} | {compared(measured)} |"


def spelled(refusal: Refusal) -> str:
    """The versions of PTX from which on something is there."""
    return " or ".join(sorted({f"{version[0]}.{version[1]}" for version, _ in refusal.since.alternatives}))


def compared(measured: Sequence[Mapping[str, Any]]) -> str:
    """How the results of a form compare with those of a GPU."""
    values, wrong = (sum(entry[name] for entry in measured) for name in ("values", "mismatches"))
    if not values:
        return "no"
    if not wrong:
        return f"{values:,} results, all equal"
    distance = max(entry.get("largest_ulps", 0) for entry in measured)
    return f"{values:,} results, {wrong:,} differ" + (f" (approximate, by up to {distance:,} ulp)" if distance else "")


def gallery() -> str:
    """What teaches each kernel, and under it what was measured of it."""
    parts = ["# The gallery\n"]
    for name in kernels.names():
        parts.append(under(kernels.readme(name), f"../../src/ptxlab/kernels/{name}"))
        record = BENCHES / f"{name}.json"
        if record.exists():
            parts += ["### Measured\n", as_markdown(Record.read(record)), ""]
        if name == "mma_variants":
            parts += ["### Machine code\n", machine_code()]
        if name == "registers":
            parts += ["### Machine code\n", register_use()]
    return "\n".join(parts)


def hopper() -> str:
    """The table of docs/kernels.md: the `wgmma` kernel beside cuBLAS, in TFLOP/s."""
    lines = ["| type | m = n = k | wgmma_gemm | cuBLAS | ratio |", "|---|---:|---:|---:|---:|"]
    sizes = Record.read(BENCHES / "wgmma_gemm.json").sizes
    for sized in sorted(sizes, key=lambda sized: (sized.size["type"], sized.size["m"])):
        if sized.size.get("epilogue") or not sized.size["m"] == sized.size["n"] == sized.size["k"]:
            continue  # the gallery has all
        ours, theirs = (f"{sized[name].flops / 1e12:.0f}" for name in ("wgmma", "cuBLAS"))
        square = f"{sized.size['type']} | {sized.size['m']:,}"
        lines.append(f"| {square} | {ours} | {theirs} | {sized.ratio('wgmma', 'cuBLAS'):.2f} |")
    return "\n".join([*lines, ""])


def beside_sanitizer(path: Path = SANITIZER) -> str:
    """The table of the README: how many of our wrong kernels compute-sanitizer reports, and how many right ones."""
    kernels = json.loads(path.read_text(encoding="utf-8"))["kernels"]

    def row(title: str, chosen: Sequence[Mapping[str, Any]]) -> str:
        tools = sum(
            any(said["verdict"] == "found" for tool, said in kernel["tools"].items() if tool != "none")
            for kernel in chosen
        )
        return f"| {title} | {len(chosen)} | {sum(bool(kernel['emulator']) for kernel in chosen)} | {tools} |"

    codes = {"data races": "data-race", "reads of memory that was never written": "uninitialized-read",
             "tensor maps that are changed without a fence": "stale-tensor-map",
             "collectives that rely on lockstep": "unordered-collective"}  # fmt: skip
    wrong, right = ([one for one in kernels if bool(one["emulator"]) is is_wrong] for is_wrong in (True, False))
    lines = ["| kernels with | there are | ptxlab reports | compute-sanitizer reports |", "|---|---:|---:|---:|"]
    lines += [
        row(title, [one for one in wrong if code in map(current_code, one["emulator"])])
        for title, code in codes.items()
    ]
    lines += [row("any mistake", wrong), row("none: a report is false", right)]
    return "\n".join([*lines, ""])


def attention() -> str:
    """The table of docs/kernels.md: attention by `wgmma` beside cuDNN, heads of 128 elements, in TFLOP/s."""
    lines = ["| queries and keys | mask | wgmma_attention | cuDNN | ratio |", "|---:|---|---:|---:|---:|"]
    sizes = Record.read(BENCHES / "wgmma_attention.json").sizes
    for sized in sorted(sizes, key=lambda sized: (sized.size["causal"], sized.size["length"])):
        length, causal = sized.size["length"], sized.size["causal"]
        is_special = {"window", "sequences"} & sized.size.keys() or len({*sized.size["heads"]}) > 1
        if sized.size["size"] != 128 or sized.size["type"] != "bf16" or is_special:
            continue  # the gallery has all
        ours, theirs = (f"{sized[name].flops / 1e12:.0f}" for name in ("wgmma", "torch, cuDNN"))
        ratio = sized.ratio("wgmma", "torch, cuDNN")
        lines.append(f"| {length:,} | {'causal' if causal else 'none'} | {ours} | {theirs} | {ratio:.2f} |")
    return "\n".join([*lines, ""])


def gradient() -> str:
    """The sentence of docs/kernels.md on the gradient of attention beside cuDNN's."""

    def range_of(heads: Collection[int]) -> str:
        sizes = Record.read(BENCHES / "wgmma_attention_backward.json").sizes
        timed = (one for one in sizes if one.size["size"] in heads and one["torch, cuDNN"].samples)
        ratios = sorted(one.ratio("wgmma", "torch, cuDNN") for one in timed)
        return f"{ratios[0]:.2f} to {ratios[-1]:.2f} times as fast"

    small, large = range_of((64, 128)), range_of((256,))
    return f"With heads of 64 and 128 elements the gradient is {small} as cuDNN's, with 256 {large}"


def under(page: str, folder: str) -> str:
    """A page of a folder as a part of one elsewhere: headings a level lower, links to where they meant."""
    parts = re.split(r"^(```.*?^```)$", page, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [
        re.sub(r"\]\((?!\w+:)", f"]({folder}/", re.sub(r"^#", "##", text, flags=re.MULTILINE)) for text in parts[::2]
    ]
    return "".join(parts)


def machine_code() -> str:
    """What each kind of `mma` becomes."""
    kept = json.loads(MACHINE_CODE.read_text(encoding="utf-8"))
    targets = list(kept["kinds"][0]["sass"])
    parts = [
        f"What ptxas {kept['ptxas']} makes of each kind ({kept['date']}, `benchmarks/mma_sass.py`):\n",
        "| instruction | " + " | ".join(targets) + " |",
        "|---" * (len(targets) + 1) + "|",
    ]
    for kind in kept["kinds"]:
        becomes = ["<br>".join(f"`{one}`" for one in found) if found else "refused" for found in kind["sass"].values()]
        parts.append("| " + " | ".join([f"`{kind['instruction']}`", *becomes]) + " |")
    return "\n".join([*parts, ""])


def register_use() -> str:
    """What each directive on registers does to the machine code."""
    kept = json.loads(REGISTER_USE.read_text(encoding="utf-8"))
    parts = [
        f"By ptxas {kept['ptxas']} for {kept['target']} ({kept['date']}, `benchmarks/register_use.py`):\n",
        "| said | registers | bytes spilled | instructions | warps on an SM |",
        "|---|---:|---:|---:|---:|",
    ]
    parts += [f"| `{said}` | " + " | ".join(map(str, row.values())) + " |" for said, row in kept["use"].items()]
    return "\n".join([*parts, ""])


def techniques() -> str:
    """The optimization text's table of techniques, with what we measured of each beside it."""
    text = json.loads(TEXT.read_text(encoding="utf-8"))
    records = {name: Record.read(BENCHES / f"{name}.json") for name in {one["entry"] for one in text["techniques"]}}
    machine = next(iter(records.values())).machine["gpu"]
    parts = [
        "# Techniques\n",
        f"On the left what {text['source']}, says of an {text['machine']}; some techniques it names without a figure. "
        f"On the right what `ptxlab bench` measured of our own kernels on an {machine}, where the data of one run does "
        "not stay in the cache for the next. The kernels are in [the gallery](gallery.md), what to make of it in [the "
        "claims](claims.md).\n",
        "| technique | text: before | after | speed-up | ours | size | before | after | speed-up |",
        "|---|---:|---:|---:|---|---|---:|---:|---:|",
    ]
    for one in text["techniques"]:
        before, after = one["arms"]
        text_says = [one["name"], *(one.get(key, "") for key in ("before", "after", "speed_up")), f"{before} → {after}"]
        for sized in records[one["entry"]].sizes:
            times = [seconds(sized[contender].median) for contender in (before, after)]
            parts.append(
                "| " + " | ".join([*text_says, sized.spelled, *times, f"{sized.ratio(after, before):.2f}"]) + " |"
            )
            text_says = [""] * len(text_says)
    return "\n".join([*parts, ""])


def launches() -> str:
    """What a launch costs the program that makes it, beside others who launch kernels from Python."""
    found = json.loads(LAUNCHES.read_text(encoding="utf-8"))
    about = found["about"]
    lines = [
        "# What a launch costs\n",
        "Microseconds that one call keeps its caller: median and quartiles of rows of launches that take turns, on an "
        f"{about['gpu']} (driver {about['driver']}, Python {about['python']}, {about['date']}), by "
        "`benchmarks/launch.py`.\n",
        "| way | median | quartiles | beside `cuda.core.launch` |",
        "|---|---|---|---|",
    ]
    base = found["ways"]["cuda.core.launch"]["microseconds"]
    for name, way in found["ways"].items():
        low, high = way["quartiles"]
        median = way["microseconds"]
        lines.append(f"| {name} | {median:.2f} | {low:.2f} to {high:.2f} | {median / base:.2f} |")
    return "\n".join([*lines, ""])


def sanitizer(path: Path = SANITIZER) -> str:
    """Who finds what: the emulator, and each tool of compute-sanitizer, on the kernels of our own tests."""
    found = json.loads(path.read_text(encoding="utf-8"))
    tools = ("memcheck", "racecheck", "synccheck", "initcheck")
    lines = [
        "# Who finds what\n",
        f"The kernels of the detectors' own tests, on the emulator and under compute-sanitizer ({found['sanitizer']}, "
        f"{found['gpu']}, driver {found['driver']}, {found['date']}), by `{found['command']}`. The tests are made for "
        "the emulator, so it finds all of them; what it misses elsewhere is in `evidence/mutation.json`. A number is "
        "how many of the kernels a tool reports; the last column is what the GPU does by itself.\n",
        "| what is wrong | kernels | emulator | " + " | ".join(tools) + " | any tool | GPU alone |",
        "|---" * (len(tools) + 5) + "|",
    ]
    kinds: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for kernel in found["kernels"]:
        kinds[
            ", ".join(f"`{current_code(code)}`" for code in kernel["emulator"]) or "nothing: a report is false"
        ].append(kernel)
    order = sorted(kinds, key=lambda name: (not name.startswith("`"), name))
    lines += [f"| {kind} | {found_by(kinds[kind], tools)} |" for kind in order]
    lines += reports_on_right_kernels(found["kernels"], tools)
    return "\n".join([*lines, ""])


def reports_on_right_kernels(kernels: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> list[str]:
    """What tools say of kernels that are right, kernel by kernel, and why that is."""
    rows = [
        f"| {kernel['test'].replace('|', chr(92) + '|')} | {tool} | {kernel['tools'][tool].get('said', '')} |"
        for kernel in kernels
        for tool in tools
        if not kernel["emulator"] and kernel["tools"].get(tool, {}).get("verdict") == "found"
    ]
    if not rows:
        return []
    return [
        "\nEach report on a kernel that is right, in the tool's words. `racecheck` follows barriers, not the order "
        "that releases and acquires, relaxed accesses with fences, or one lane for its warp make in shared memory. "
        "`synccheck` wants all warps at the same `bar` instruction, where PTX counts threads that come to a barrier of "
        "the same number, and a wait for every phase of an mbarrier, where a phase may complete unseen.\n",
        "| kernel | tool | it says |",
        "|---|---|---|",
        *rows,
    ]


def found_by(kernels: Sequence[Mapping[str, Any]], tools: Sequence[str]) -> str:
    """How many kernels each reports, those that a tool was not run on left out."""

    def verdict(kernel: Mapping[str, Any], tool: str) -> str:
        return str(kernel["tools"].get(tool, {"verdict": "not run"})["verdict"])

    cells = [str(len(kernels)), str(sum(bool(kernel["emulator"]) for kernel in kernels))]
    for tool in tools:
        verdicts = Counter(verdict(kernel, tool) for kernel in kernels)
        ran = len(kernels) - verdicts["not run"]
        cells.append(f"{verdicts['found']}" + (f" of {ran}" if ran < len(kernels) else ""))
    cells.append(str(sum(any(verdict(kernel, tool) == "found" for tool in tools) for kernel in kernels)))
    alone = Counter(verdict(kernel, "none") for kernel in kernels)
    cells.append(", ".join(f"{count} {name}" for name, count in sorted(alone.items())))
    return " | ".join(cells)


def lab_speed(path: Path = LAB) -> str:
    """How fast the page of `ptxlab lab` is in a browser, view by view."""
    found = json.loads(path.read_text(encoding="utf-8"))
    about, load, steps = found["about"], found["load"], found["steps"]
    lines = [
        f"{about['cores']} {about['machine']} cores, {about['chromium']}, commit {about['commit']}, {about['date']}; "
        f"{steps['threads']:,} steps of threads, {steps['warps']:,} of warps:\n",
        "| view | a step: median | longest | a jump to any block: median | longest |",
        "|---|---:|---:|---:|---:|",
    ]
    for view, times in found["views"].items():
        cells = [f"{times[kind][name]:.0f} ms" for kind in ("step", "jump") for name in ("median", "longest")]
        lines.append(f"| {view} | {' | '.join(cells)} |")
    tabs, first = found["tabs"], found["first"]
    lines += [
        "",
        f"Another view: {tabs['median']:.0f} ms, at most {tabs['longest']:.0f} ms. Opening the recording: "
        f"{load['all']:.1f} s, of which {load['file']:.1f} s decompress it in as many threads as there are cores, "
        f"{load['order']:.1f} s order it by warps and find all writes, "
        f"{load['source']:.1f} s pass until the source is shown, and "
        f"{load['rest']:.1f} s until the registers and the timeline are. Right after that, the first step takes "
        f"{first['step']['longest']:.0f} ms, the first jump {first['jump']['longest']:.0f} ms.",
    ]
    return "\n".join([*lines, ""])


def estimates(path: Path = ESTIMATES) -> str:
    """How far estimates are from measured times, by part and by launch."""
    found = json.loads(path.read_text(encoding="utf-8"))
    names = {"fitted": "fitted", "others": "in view", "unseen": "added afterwards", "all": "all"}
    lines = ["| kernels | launches | error | worst | within 1.3 |", "|---|---:|---:|---:|---:|"]
    for part, name in names.items():
        one = found["summary"][part]
        cells = [
            str(one["launches"]),
            f"{one['geometric mean']:.2f}",
            f"{one['worst']:.2f}",
            f"{one['within 1.3']:.0%}",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    limiters = found["limiters"]
    lines += [
        f"\nThe limiter is the one that is expected of the kernel in {limiters['right']} of {limiters['known']} "
        "launches that have one; no profiler was asked.\n",
        "| kernel | variant | size | estimate, µs | measured, µs | ratio | limiter |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for row in found["rows"]:
        size = ", ".join(str(value) for value in row["size"].values())
        times = f"{row['predicted, us']:,} | {row['measured, us']:,} | {row['ratio']:.2f}"
        lines.append(f"| {row['kernel']} | {row['variant']} | {size} | {times} | {row['limiter']} |")
    return "\n".join([*lines, ""])


def index(pages: Mapping[str, str]) -> str:
    """The title of each page, and where it is."""
    titles = {name: text.partition("\n")[0].lstrip("# ") for name, text in pages.items()}
    return "\n".join(["# ptxlab\n", *(f"- [{titles[name]}]({name})" for name in sorted(titles)), ""])


def replaced(text: str, table: str) -> str:
    """A page with this table instead of that with the same header."""
    header = re.escape(table.partition("\n")[0])
    return re.sub(rf"^{header}\n(?:\|.*\n)+", lambda _: table, text, flags=re.MULTILINE)


def write_measured() -> None:
    """Write what was measured into the pages that show it: the README, docs/kernels.md, the page beside the records."""
    readme = HERE.parent / "README.md"
    written = replaced(readme.read_text(encoding="utf-8"), beside_sanitizer())
    readme.write_text(written, encoding="utf-8")
    path = HERE / "kernels.md"
    text = path.read_text(encoding="utf-8")
    for table in (hopper(), attention()):
        text = replaced(text, table)
    text = re.sub(r"With heads of 64 and 128 elements the gradient is [^:]*(?=:)", gradient(), text)
    for name, sentence in (("wgmma_gemm", r"TFLOP/s on an NVIDIA H200,"), ("wgmma_attention", r"on the same GPU,")):
        rounds = min(len(one["wgmma"].samples) for one in Record.read(BENCHES / f"{name}.json").sizes)
        words = sentence.replace(" ", r"\s+")
        text = re.sub(rf"({words}\s+medians\s+of\s+at\s+least\s+)\d+", rf"\g<1>{rounds}", text)
    path.write_text(text, encoding="utf-8")
    (BENCHES / "README.md").write_text(benchmarks(), encoding="utf-8")
    page, mark = HERE / "estimate.md", r"(?<=<!-- measured: estimate -->\n).*?(?=<!-- end -->)"
    page.write_text(re.sub(mark, lambda _: estimates(), page.read_text("utf-8"), flags=re.DOTALL), "utf-8")
    if LAB.exists():  # it takes a browser, and a machine with nothing else on it
        page = HERE / "lab.md"
        mark = r"(?<=<!-- measured: lab -->\n).*?(?=<!-- end -->)"
        page.write_text(re.sub(mark, lambda _: lab_speed(), page.read_text("utf-8"), flags=re.DOTALL), "utf-8")


def benchmarks() -> str:
    """The page of all that was measured of the gallery."""
    return as_page([Record.read(path) for path in sorted(BENCHES.glob("*.json"))])


def main() -> None:
    """Write the files and say where they are; `--measured`: those that show what was measured; `--site`: the site."""
    if sys.argv[1:] == ["--measured"]:
        write_measured()
        return
    if sys.argv[1:] == ["--site"]:
        from site_pages import make

        sys.exit(make.main(sys.modules[__name__]))
    import measured

    for claim in measured.CLAIMS:
        claim()
    BUILD.mkdir(parents=True, exist_ok=True)
    written = {page.name: page.read_text(encoding="utf-8") for page in HERE.glob("*.md")}
    makers = [instructions, rules, coverage, gallery, techniques, launches, benchmarks]
    if SANITIZER.exists():  # it takes a GPU, and minutes of it
        makers.append(sanitizer)
    made = {f"{maker.__name__}.md": maker() for maker in makers}
    made["index.md"] = index({**made, **written})
    for name, text in {**made, **written}.items():
        (BUILD / name).write_text(text, encoding="utf-8")
        print(f"wrote build/docs/{name}")
    for folder in ("hopper", "lessons"):
        shutil.copytree(HERE / folder, BUILD / folder, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
