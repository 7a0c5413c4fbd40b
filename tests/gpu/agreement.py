"""Whether the emulator and a GPU agree: every form whose operands are values, on a million of them.

    PYTHONPATH=src:. python3 -m tests.gpu.agreement --values=1048576 --evidence

A form's spellings become kernels (see `tests/isa/kernels.py`) that run with the same operands on both; results are
compared bit for bit. A form of matrices runs on `--tiles` tiles a spelling. Mismatches are printed with their operands
and both results; the status is 1 if there are any outside of approximate instructions. `--evidence` writes
evidence/agreement_gpu.json, and with `--merge` only what it says of the forms that ran.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import ptxlab
from ptxlab import gpu
from ptxlab.isa.form import Form
from ptxlab.isa.operand import Expected
from ptxlab.isa.selectors import SELECTORS
from ptxlab.isa.table import forms
from ptxlab.report import KernelError, PtxError
from tests.gpu.values import MATRICES, WARP, Words, draw
from tests.isa.cases import Case, all_operands
from tests.isa.kernels import Group, has_carry, home, kernel, registers
from tests.isa.sample import Choice, sample_choices

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = (
    "integer", "extended_precision", "floating_point", "half", "mixed_precision", "compare", "logic", "move", "convert",
    "video", "warp", *MATRICES, "matrix_move",
)  # fmt: skip
# Addresses differ from machine to machine.
LEFT_OUT = ("cvta", "isspacep", "mapa", "getctarank", "cvta_to", "istypep", "createpolicy", "alloca", "elect")
BLOCK = 128
TOGETHER = 8  # spellings in one kernel
FIRST = 3  # mismatches of a spelling that are shown

Row = dict[str, Any]  # what the evidence says of a form


@dataclass
class Tally:
    """What came of a form."""

    form: str
    chapter: str
    example: str
    spellings: int = 0
    values: int = 0
    mismatches: int = 0
    approximate: bool = False
    largest_ulps: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Question:
    """Which form, and how much of it."""

    number: int
    values: int
    tiles: int
    most: int
    seed: int
    other: str


def is_examined(form: Form) -> bool:
    """Whether all operands of a form are values and immediates, so that a table of numbers is all it needs."""
    if form.chapter not in CHAPTERS or form.semantics is None or form.name[0] in LEFT_OUT:
        return False
    choice = next(iter(sample_choices(form, 1)), None)
    if choice is None:
        return False
    return all(one.kind in ("value", "immediate") for one in all_operands(form, form.modifiers(choice)))


def examine(question: Question) -> Tally:
    """Run the spellings of a form on both."""
    started = time.perf_counter()
    form = forms()[question.number]
    choices = sample_choices(form, question.most, question.seed)
    tally = Tally(form.syntax, form.chapter, form.spell(choices[0]))
    tally.approximate = "approx" in form.syntax or form.syntax.startswith("div.full")
    homes: dict[Any, list[Group]] = defaultdict(list)
    for choice in choices:
        where = place(form, choice, tally)
        if where is not None:
            homes[where].append(make_group(form, choice, question.seed))
    count = sum(map(len, homes.values()))
    tally.spellings = count
    threads = question.tiles * WARP if form.chapter in MATRICES else -(-question.values // max(count, 1))
    threads = max(-(-threads // BLOCK), 1) * BLOCK
    size = 1 if form.chapter in MATRICES else TOGETHER
    for groups in homes.values():
        for first in range(0, len(groups), size):
            part = groups[first : first + size]
            try:
                compare(part, threads, question, tally)
            except (KernelError, PtxError) as problem:
                tally.problems.append(f"{form.spell(part[0].first.choice)}: {str(problem)[:600]}")
            except Exception:
                tally.problems.append(f"{form.spell(part[0].first.choice)}: {traceback.format_exc()[-600:]}")
    tally.seconds = round(time.perf_counter() - started, 2)
    return tally


def place(form: Form, choice: Choice, tally: Tally) -> Any:
    """The version and target to compile a choice for, or None, noted, where this GPU can't run it."""
    try:
        where = home(form, choice)
    except StopIteration:
        reason = "no target for it"
    else:
        reason = f"needs {where[1]}"
        known = gpu.devices()
        architecture = known[0].architecture_for(where[1]) if known else "sm_90"
        if architecture is not None:
            return where
    tally.skipped[reason] = tally.skipped.get(reason, 0) + 1
    return None


def allowed(one: Expected, form: Form, choice: Choice) -> Sequence[int]:
    """The values that an immediate may have."""
    if form.chapter == "matrix_sparse" and choice.get("shape") == "m16n8k32" and one.allowed is not None:
        return one.allowed[:2]  # ptxas 13.4 takes 0 to 3 with f16, ptxas 13.0 and the manual 0 and 1
    return range(256) if one.allowed is None else one.allowed


def make_group(form: Form, choice: Choice, seed: int) -> Group:
    """An instruction: its immediates, selections and signs; the bits of registers are drawn later."""
    generator = random.Random(f"{form.syntax}{choice}{seed}")
    operands = all_operands(form, form.modifiers(choice))
    immediates = {one.name: generator.choice(allowed(one, form, choice)) for one in operands if one.kind == "immediate"}
    selections = {
        one.name: generator.choice(sorted(SELECTORS[one.select]))
        for one in operands
        if one.select and (generator.random() < 0.6 or (one.name == "d" and one.select == "part"))
    }
    minus = frozenset(one.name for one in operands if one.minus and generator.random() < 0.4)
    minus = minus - {"c"} if len(minus & {"a", "b"}) == 1 else minus
    negated = [one.name for one in operands if one.negatable and one.role != "write" and generator.randrange(2)]
    return Group((Case(form, choice, immediates, selections, minus),), frozenset(negated))


def compare(groups: Sequence[Group], threads: int, question: Question, tally: Tally) -> None:
    """Run groups with random operands on both, and note where they differ."""
    rng = np.random.default_rng([question.number, question.seed, len(groups), threads])
    inputs: list[Words] = []
    for group in groups:
        form = group.first.form
        for one in registers(group, "read"):
            inputs += draw(rng, one, group.first.m, form.chapter, form.name[0], threads)
        if has_carry(form):
            inputs += [rng.integers(0, 2, threads).astype(np.uint64), np.zeros(threads, np.uint64)]
    given = np.stack(inputs).reshape(-1, 2, threads).transpose(0, 2, 1).copy() if inputs else np.zeros((1, 1, 2))
    slots = sum(result_slots(group) for group in groups)
    found = [np.zeros((slots, threads, 2), np.uint64) for _ in range(2)]
    module = ptxlab.parse(kernel(groups, threads), name="cases.ptx")
    how = {"grid": threads // BLOCK, "block": BLOCK}
    module["cases"].launch(args=[given, found[0]], device="cpu", detectors=False, workers=1, **how)
    module["cases"].launch(args=[given, found[1]], device=question.other, **how)
    read = written = 0
    for group in groups:
        slots = result_slots(group)
        here, there = (part[written : written + slots] for part in found)
        wrong = (here != there).any(axis=(0, 2))
        tally.values += threads
        tally.mismatches += int(wrong.sum())
        taken = sum(one.count or 1 for one in registers(group, "read")) + has_carry(group.first.form)
        if wrong.any():
            tally.largest_ulps = max(tally.largest_ulps, largest_distance(group, here, there))
            tally.shown += show(group, given[read : read + taken], here, there, np.flatnonzero(wrong))
        read, written = read + taken, written + slots


def result_slots(group: Group) -> int:
    """Slots that the results of a group take."""
    return sum(one.count or 1 for one in registers(group, "write")) + has_carry(group.first.form)


def show(group: Group, given: Any, here: Any, there: Any, wrong: npt.NDArray[np.intp]) -> Iterator[str]:
    """The first mismatches of a spelling."""
    first = group.first
    text = first.form.spell(first.choice)
    more = "".join(f" {name}={value}" for name, value in first.bits.items())
    more += f" selections {dict(first.selections)}" * bool(first.selections)
    more += f" minus {sorted(first.minus)}" * bool(first.minus) + f" not {sorted(group.negated)}" * bool(group.negated)
    for thread in wrong[:FIRST]:
        operands = " ".join(map(spell, given[:, thread]))
        emulated, measured = (" ".join(map(spell, part[:, thread])) for part in (here, there))
        yield f"{text}{more}: {operands} -> {emulated} emulated, {measured} measured ({len(wrong)} of {here.shape[1]})"


def spell(words: Any) -> str:
    """A pattern in hexadecimal."""
    return f"{int(words[0]) | int(words[1]) << 64:#x}"


def largest_distance(group: Group, here: Any, there: Any) -> int:
    """The most floats between two results; 0 where results are not floats."""
    (first, *others) = registers(group, "write")
    sizes = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
    if others or first.type is None or first.type.name not in sizes or first.count:
        return 0
    width = sizes[first.type.name]
    mantissa = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[first.type.name]
    infinity = (1 << (width - 1)) - (1 << mantissa)
    worst = 0
    for a, b in zip(here[0, :, 0].tolist(), there[0, :, 0].tolist(), strict=True):
        low = (1 << (width - 1)) - 1
        if a != b and (a & low) <= infinity and (b & low) <= infinity:
            worst = max(worst, abs(ordered(a, width) - ordered(b, width)))
    return worst


def ordered(bits: int, width: int) -> int:
    """A number that grows with the float.

    >>> ordered(0x8001, 16)
    -1
    """
    return bits if bits >> (width - 1) == 0 else -(bits & ((1 << (width - 1)) - 1))


def questions(options: argparse.Namespace) -> list[Question]:
    """One for each form that is examined."""
    return [
        Question(number, options.values, options.tiles, options.most, options.seed, options.other)
        for number, form in enumerate(forms())
        if is_examined(form) and (not options.only or any(word in form.syntax for word in options.only.split(",")))
    ]


def main() -> int:
    """Examine all forms, print what differs, and keep the evidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=1 << 20, help="values of a form")
    parser.add_argument("--tiles", type=int, default=10_000, help="tiles of a spelling of a matrix form")
    parser.add_argument("--most", type=int, default=48, help="spellings of a form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="forms that contain one of these words, with commas between them")
    parser.add_argument("--other", default="cuda", help="what the emulator is compared with; `cpu` tries the program")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--commit", default="", help="what is measured, where there is no git to ask")
    parser.add_argument("--evidence", action="store_true", help="write evidence/agreement_gpu.json")
    parser.add_argument("--merge", action="store_true", help="keep what the evidence says of other forms")
    parser.add_argument("--output", type=Path, default=ROOT / "evidence" / "agreement_gpu.json")
    options = parser.parse_args()
    started = time.perf_counter()
    tallies = []
    # The slowest first, so that no worker waits for the last.
    asked = sorted(questions(options), key=lambda question: forms()[question.number].chapter not in MATRICES)
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for done in as_completed([pool.submit(examine, question) for question in asked]):
            tally = done.result()
            tallies.append(tally)
            if (tally.mismatches and not tally.approximate) or tally.problems:
                print(f"{tally.chapter}: {tally.form}: {tally.mismatches} of {tally.values} differ", flush=True)
                for line in (*tally.shown[: 2 * FIRST], *tally.problems[:2]):
                    print(f"    {line}", flush=True)
    tallies.sort(key=lambda tally: (tally.chapter, tally.form, tally.example))
    if options.evidence:
        write(options, tallies, time.perf_counter() - started)
    wrong = [tally for tally in tallies if tally.mismatches and not tally.approximate]
    failed = [tally for tally in tallies if tally.problems]
    near = [tally for tally in tallies if tally.mismatches and tally.approximate]
    for tally in near:
        print(f"approximate: {tally.form}: {tally.mismatches} of {tally.values}, at most {tally.largest_ulps} apart")
        for line in tally.shown[:FIRST]:
            print(f"    {line}")
    print(f"{len(tallies)} forms, {sum(tally.spellings for tally in tallies)} spellings, "
          f"{sum(tally.values for tally in tallies):,} values in {time.perf_counter() - started:.0f} s: "
          f"{len(wrong)} forms differ, {len(near)} approximate ones do, {len(failed)} could not be run")  # fmt: skip
    return 1 if wrong or failed else 0


def write(options: argparse.Namespace, tallies: Sequence[Tally], seconds: float) -> None:
    """Keep what was measured, one line a form."""
    from ptxlab.gpu.hardware import driver_release
    from ptxlab.toolchain import find

    known = gpu.devices()
    head: Row = {
        "command": "python -m tests.gpu.agreement",
        "options": {name: getattr(options, name) for name in ("values", "tiles", "most", "seed", "only")},
        "gpu": known[0].name if known else None,
        "target": known[0].target if known else None,
        "driver": driver_release(),
        "cuda": ".".join(map(str, known[0].cuda)) if known else None,
        "ptxas": find("ptxas").version,
        "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "commit": options.commit or commit(),
        "date": date.today().isoformat(),
        "seconds": round(seconds, 1),
    }
    keep(options.output, head, [entry(tally) for tally in tallies], merge=options.merge)


def keep(path: Path, head: Row, rows: Sequence[Row], *, merge: bool) -> None:
    """Write the evidence, or with `merge` put what is new in its place."""
    if merge:
        head, rows = merged(json.loads(path.read_text(encoding="utf-8")), head, rows)
    head["values"] = sum(row["values"] for row in rows)
    head["mismatches"] = sum(row["mismatches"] for row in rows if not row.get("approximate"))
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    text = json.dumps(head, indent=1)[:-2] + f',\n "forms": [\n{lines}\n ]\n}}\n'
    json.loads(text)
    path.write_text(text, encoding="utf-8")


def entry(tally: Tally) -> Row:
    """What is kept of a form."""
    row = {key: value for key, value in vars(tally).items() if value or key in ("values", "mismatches")}
    row.pop("seconds", None)
    return row | ({"shown": tally.shown[: 2 * FIRST]} if tally.shown else {})


def merged(kept: Row, head: Row, rows: Sequence[Row]) -> tuple[Row, list[Row]]:
    """The evidence that there was, with what is new put in its place; the head lists the runs that added to it."""
    again = {identity(row) for row in rows}
    others = [row for row in kept.pop("forms") if identity(row) not in again]
    runs = [*kept.pop("merged", []), head | {"forms": len(rows)}]
    return kept | {"merged": runs}, sorted([*others, *rows], key=identity)


def identity(row: Row) -> tuple[str, str, str]:
    """What a row is about; forms that read the same share it, and run together."""
    return row["chapter"], row["form"], row["example"]


def commit() -> str:
    """The commit that is checked out."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
