"""What is done with a program, and what is wrong with what comes of it."""

import random
import re
import time
import traceback
from dataclasses import dataclass

import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab.report import Diagnostic, render
from ptxlab.toolchain import accepted, find, judge
from ptxlab.toolchain.header import unterminated_comment
from tests.fuzz.programs import Program
from tests.tools import is_there, judging_release, release_of

HAS_PTXAS = is_there("ptxas") and release_of(find("ptxas")) is not None  # others judge nonsense otherwise
MOST_SECONDS = 60  # for all that is done with one program, on a machine that does other things too
LAUNCH_SECONDS = 1.0


@dataclass(frozen=True)
class Finding:
    """What went wrong, in a word and in full."""

    what: str
    text: str


def examine(program: Program, legality: bool = HAS_PTXAS) -> Finding | None:
    """The first thing that is wrong with how ptxlab deals with a program."""
    started = time.perf_counter()
    try:
        found = _examine(program, legality)
    except Exception:
        return Finding("traceback", traceback.format_exc())
    taken = time.perf_counter() - started
    if found is None and taken > MOST_SECONDS:
        return Finding("slow", f"{taken:.0f} seconds")
    return found


def _examine(program: Program, legality: bool) -> Finding | None:
    module, errors = _read(program.text)
    # ptxas writes some instructions as others, and then takes no elements of vectors for their operands.
    if legality and program.kind != "vectors" and (found := _disagreement(program.text, errors)):
        return found
    if module is None:
        return None
    printed = ptxlab.format(module)
    again, other = _read(printed)
    if again != module or [one.code for one in other] != [one.code for one in errors]:
        return Finding("printed otherwise", printed)
    if errors:
        return None
    for name in module.entries:
        _launch(module, name, random.Random(program.seed))
    wrong = program.expect() if program.expect else None
    return Finding("wrong result", wrong) if wrong else None


def _read(text: str) -> tuple[ir.Module | None, list[Diagnostic]]:
    """The module, if its syntax is right, and its errors, which can all be shown."""
    module = None
    try:
        module = ptxlab.parse(text)
        found = ptxlab.check(module, ptxas=judging_release(text) if HAS_PTXAS else None)
    except ptxlab.PtxError as problem:
        found = list(problem.diagnostics)
    for style in ("full", "concise", "json"):
        render(found, style)
    return module, [one for one in found if one.level == "error"]


# What ptxas says of what is missing rather than wrong.
ELSEWHERE = ("Unresolved extern", "Undefined reference", "Memory allocation failure")
_NUMBER = re.compile(r"\b(?:0x[0-9a-fA-F]+|\d+)\b")
OVERFLOW = 1 << 63  # from here on ptxas loses bits of sizes and counts, and then lets them pass
EXCESSIVE = "excessive-"  # memory of which ptxas counts 31 bits only
# What ptxas takes and `check` refuses, as documentation says: which error it is, and what is in its line.
STRICTER = (
    ("immediate-range", re.compile(r"\bbar(rier)?\.")),  # numbers of more than 32 bits
    ("illegal-modifier", re.compile(r"\btestp\.f(32|64)\b")),  # without a property, of which nothing is computed
    ("operand-type", re.compile(r"\b(tex|tld4)\..*\[[^]]*\}\s*,\s*\{[^]]*\]")),  # offsets within the brackets
)
WIDE = 1 << 32


def _disagreement(text: str, errors: list[Diagnostic]) -> Finding | None:
    if unterminated_comment(text) is not None:  # ptxas would never end
        return None
    verdicts = judge(text, timeout=30)
    shown = [one for one in verdicts if one.level not in ("warning", "info")]
    no_answer = shown and all(one.level in ("crash", "timeout") or one.message.startswith("Internal ") for one in shown)
    if no_answer or accepted(verdicts) == (not errors) or any(one.message.startswith(ELSEWHERE) for one in shown):
        return None
    if errors and all(one.code.startswith(EXCESSIVE) for one in errors):
        return None
    if errors and _has_at_least(OVERFLOW, text):
        return None
    if errors and all(_is_stricter(one, text.splitlines()[one.line - 1]) for one in errors):
        return None
    ours = f"{errors[0].line}: {errors[0].code}: {errors[0].message}" if errors else "accepted"
    theirs = "; ".join(f"{one.line}: {one.message}" for one in shown) or "accepted"
    return Finding("missed" if not errors else "false refusal", f"ptxlab: {ours}\nptxas: {theirs}")


def _has_at_least(number: int, text: str) -> bool:
    return any(int(one, 16 if "x" in one else 10) >= number for one in _NUMBER.findall(text))


def _is_stricter(error: Diagnostic, line: str) -> bool:
    """Whether it is one of the few that documentation names."""
    if error.code == "immediate-range" and not _has_at_least(WIDE, line):
        return False
    return any(error.code == code and pattern.search(line) for code, pattern in STRICTER)


def _launch(module: ir.Module, name: str, choose: random.Random) -> None:
    """Run a kernel with random arguments; what it does wrong is its own affair."""
    arguments = [_argument(parameter, choose) for parameter in module[name].parameters]
    try:
        found = module[name].launch(
            choose.choice([1, 2]), choose.choice([1, 32, 64, 128]), arguments, device="cpu", on_error="collect",
            timeout=LAUNCH_SECONDS, detectors=choose.random() < 0.7, seed=choose.choice([0, 1, 5]),
        ).diagnostics  # fmt: skip
    except (ptxlab.KernelError, ptxlab.PtxError) as refused:
        found = refused.diagnostics
    render(found, "full")


def _argument(parameter: ir.Variable, choose: random.Random) -> object:
    if parameter.dimensions:
        size = (parameter.elements or 0) * parameter.type.width // 8
        return bytes(choose.randrange(256) for _ in range(min(size, 1 << 16)))
    if parameter.type.width == 64 and parameter.type.kind != "f" and choose.random() < 0.9:
        return np.frombuffer(choose.randbytes(1 << 14), np.uint8).copy()
    if parameter.type.kind == "f":
        return choose.choice([0.0, 1.5, -2.0])
    return choose.choice([0, 1, 7, 32, 100])
