"""Ask ptxas about every form of a chapter: accepted as stated, refused one step below.

`python -m tests.isa.conformance integer convert` prints each disagreement, and tests/isa/test_conformance.py asserts
that there are none; `--ptxas=13.4` asks that release, where it is found. `--mutants=60 --seed=1` asks about damaged
instructions instead, `--strays --most=1` about one spelling of a form with each modifier that there is. `--orders` also
swaps neighbouring modifiers and reports where ptxas and the table differ on that. `--only=TEXT` and `--most=N` narrow
the questions.
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ptxlab.isa.form import Form
from ptxlab.isa.opcode import Match, opcode
from ptxlab.isa.releases import NEWER, RELEASES, TOLERATED, Use, named
from ptxlab.isa.table import forms
from ptxlab.isa.targets import TARGETS, VERSIONS, Target, Version, target_named
from ptxlab.toolchain import Tool, find_assembler
from ptxlab.toolchain.tools import newest_version

from ..tools import ptxas_of, release_of
from .mutants import is_legal, mutants, shape_of, split_operands, strays
from .sample import Choice, instructions, module, sample_choices

CRASHED = -1000  # the status of a ptxas that ended without a verdict


@dataclass(frozen=True)
class Question:
    """One instruction at one version and target, and what the table says of it."""

    form: Form
    instruction: str
    version: Version
    target: str
    legal: bool


@dataclass(frozen=True)
class Disagreement:
    question: Question
    messages: tuple[str, ...]

    def __str__(self) -> str:
        q = self.question
        said = "; ".join(self.messages) or "accepted"
        verdict = "legal" if q.legal else "not legal"
        place = f"{q.version[0]}.{q.version[1]} {q.target}"
        return f"[{q.form.syntax}] {q.instruction} at {place}: table {verdict}, ptxas: {said}"


def questions(form: Form, most: int) -> Iterator[Question]:
    """What to ask about a form: each sampled spelling where it became available, and just below.

    A version that no ptxas at hand can read is not asked about.
    """
    for choice in sample_choices(form, most):
        lines = list(instructions(form, choice))
        for version, target in first_homes(form, choice):
            if version > newest_readable():
                continue
            for line in lines:
                yield Question(form, line, version, target, legal=True)
            for below_version, below_target in _below(form, choice, version, target):
                yield Question(
                    form, lines[0], below_version, below_target, is_legal(lines[0], below_version, below_target)
                )


@cache
def newest_readable() -> Version:
    """The newest version of PTX that a ptxas at hand can read."""
    return newest_version(find_assembler(VERSIONS[-1])) or VERSIONS[-1]


def first_homes(form: Form, choice: Choice) -> list[tuple[Version, str]]:
    """The earliest (version, target) pairs at which all that the choice needs is there."""
    needed = [requirement for _, requirement in form.requirements(choice)]
    versions = {version for requirement in needed for version, _ in requirement.alternatives}
    chips = {chip for requirement in needed for _, chip in requirement.alternatives}
    homes: list[tuple[Version, str]] = []
    for chip in sorted(chips, key=lambda chip: (chip.number, chip.suffix)):
        name = _spelled(chip)
        for version in sorted(versions):
            at = max(version, TARGETS[name])
            if all(requirement.holds(at, chip) for requirement in needed):
                homes.append((at, name))
                break
    return homes


def _below(form: Form, choice: Choice, version: Version, target: str) -> Iterator[tuple[Version, str]]:
    needed = [requirement for _, requirement in form.requirements(choice)]
    chip = target_named(target)
    if version > VERSIONS[0]:
        earlier = VERSIONS[VERSIONS.index(version) - 1]
        if earlier >= TARGETS[target] and not all(r.holds(earlier, chip) for r in needed):
            yield earlier, target
    lower = lower_target(target)
    if lower and TARGETS[lower] <= version and not all(r.holds(version, target_named(lower)) for r in needed):
        yield version, lower


def lower_target(target: str) -> str | None:
    if target[-1] in "af":
        return target[:-1]
    plain = sorted((name for name in TARGETS if name[-1] not in "af" and name != "sm_101"), key=lambda n: int(n[3:]))
    at = plain.index(target)
    return plain[at - 1] if at else None


def _spelled(chip: Target) -> str:
    return str(chip)


def judge_of(version: Version, release: str | None) -> Tool:
    """The ptxas to ask about a version of PTX: of that release, if it reads it."""
    if release is None or version > RELEASES[release]:
        return find_assembler(version)
    return ptxas_of(release)


def is_legal_for(question: Question, release: str | None) -> bool:
    """What the table says of an instruction, with what it knows of the release of ptxas."""
    spelled, _, rest = question.instruction.rstrip(";").partition(" ")
    shapes = tuple(map(shape_of, split_operands(rest)))
    found = opcode(spelled).match(shapes) if opcode(spelled).candidates else None
    expected = found.expected if isinstance(found, Match) else ()
    target = target_named(question.target)
    results = re.findall(r"%\w+", rest.partition("}")[0])
    repeats = len(set(results)) < len(results)
    use = Use(spelled, expected, shapes, question.version, target, "[prm" in rest, repeats)
    if question.legal:
        return release == "13.0" or not any(row.holds(use) for row in named(TOLERATED, use.spelling))
    return release == "13.4" and any(row.holds(use) for row in named(NEWER, use.spelling))


def disagreements(asked: list[Question], release: str | None = None) -> list[Disagreement]:
    """Where ptxas does not say what the table says of that release."""
    groups: dict[tuple[Version, str, bool], list[Question]] = defaultdict(list)
    for question in asked:
        groups[question.version, question.target, "sampler" in question.instruction].append(question)
    found = []
    for (version, target, _), group in groups.items():
        for start in range(0, len(group), 150):
            part = group[start : start + 150]
            answers = ask([question.instruction for question in part], version, target, release)
            judge = release_of(judge_of(version, release))
            for question, messages in zip(part, answers, strict=True):
                if is_legal_for(question, judge) != (not messages):
                    found.append(Disagreement(question, messages))
    return found


def ask(lines: list[str], version: Version, target: str, release: str | None = None) -> list[tuple[str, ...]]:
    """The errors of ptxas for each instruction.

    Its front end reports all errors of one function and then stops, so the instructions are first in one function
    together; those that pass are then alone, for what its later phases refuse.
    """
    answers: list[tuple[str, ...]] = [()] * len(lines)
    passed = list(range(len(lines)))
    for together in (True, False):
        if not passed:
            break
        tool = judge_of(version, release)
        said = _ask([lines[n] for n in passed], version, target, together, tool)
        for number, messages in zip(passed, said, strict=True):
            answers[number] = messages
        passed = [number for number in passed if not answers[number]]
    return answers


def _ask(lines: list[str], version: Version, target: str, together: bool, tool: Tool) -> list[tuple[str, ...]]:
    text, where = module(lines, version, target, together)
    output, status = _run_ptxas(text, tool, target)
    if status == CRASHED and len(lines) == 1:
        return [()]  # it says nothing about the instruction
    messages: dict[int, list[str]] = defaultdict(list)
    elsewhere = False
    for line, message in re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", output):
        if int(line) in where:
            messages[where[int(line)]].append(message)
        else:
            elsewhere = True
    stopped = re.search(r"line (\d+); fatal\s*: ", output)
    if together and not elsewhere and stopped and int(stopped[1]) in where:  # it has judged what is before
        at = where[int(stopped[1])] + 1
        rest = _ask(lines[at:], version, target, True, tool) if lines[at:] else []
        return [tuple(messages[n]) for n in range(at)] + rest
    if elsewhere or stopped or (messages and not together) or (status and not messages):
        if len(lines) == 1:  # an error without a line, or a crash
            return [tuple(messages[0]) or (output.strip() or f"ptxas ended with status {status}",)]
        half = len(lines) // 2
        return _ask(lines[:half], version, target, together, tool) + _ask(lines[half:], version, target, together, tool)
    return [tuple(messages[number]) for number in range(len(lines))]


def _run_ptxas(text: str, tool: Tool, target: str) -> tuple[str, int]:
    newer = find_assembler(VERSIONS[-1])
    chip = target_named(target)
    architecture = "sm_75" if chip.number < 75 else str(chip)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.ptx")
        path.write_text(text)
        for judge in (tool, newer):
            command = [judge.path, "-arch", architecture, "-O0", str(path), "-o", "/dev/null"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            except subprocess.TimeoutExpired:  # some instructions that no one writes take it forever
                return "ptxas does not end", -1
            crashes = done.returncode < 0 or "Internal compiler error" in done.stdout + done.stderr
            if not crashes:
                break
    if crashes:
        return "", CRASHED
    return done.stdout + done.stderr, done.returncode


def order_disagreements(form: Form) -> Iterator[str]:
    """Neighbouring modifiers swapped: where the table and ptxas differ on whether that is still an instruction."""
    for choice in sample_choices(form, 4):
        homes = first_homes(form, choice)
        line = next(instructions(form, choice))
        spelled, space, operands = line.partition(" ")
        parts = spelled.rstrip(";").split(".")
        swapped = []
        for at in range(1, len(parts) - 1):
            changed = [*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]]
            if changed != parts:
                swapped.append(".".join(changed))
        tail = f"{space}{operands}" if space else ";"
        for name, messages in zip(swapped, ask([s + tail for s in swapped], *homes[0]) if swapped else [], strict=True):
            legal = is_legal(name + tail, *homes[0])
            if legal != (not messages):
                verdict = "legal" if legal else "not legal"
                yield f"[{form.syntax}] {name}{tail}: table {verdict}, ptxas: {messages or 'accepted'}"


def mutant_questions(form: Form, most: int, seed: int) -> Iterator[Question]:
    """Damaged instructions of a form, at a version and target where the undamaged ones are legal."""
    version, target = _modern_home(form)
    if version <= newest_readable():
        for line in mutants(form, most, seed):
            yield Question(form, line, version, target, is_legal(line, version, target))


def stray_questions(form: Form, most: int) -> Iterator[Question]:
    """Instructions of a form with one more modifier, each there is: after the first word, and at the end."""
    version, target = _modern_home(form)
    if version > newest_readable():
        return
    for choice in sample_choices(form, most)[:most]:
        spelled, space, operands = next(instructions(form, choice)).rstrip(";").partition(" ")
        first, dot, rest = spelled.partition(".")
        for word in strays():
            for name in {f"{spelled}.{word}", f"{first}.{word}{dot}{rest}"}:
                line = f"{name}{space}{operands};"
                yield Question(form, line, version, target, is_legal(line, version, target))


def _modern_home(form: Form) -> tuple[Version, str]:
    """A version and target for a form, those of today if it is there; perhaps none that a ptxas at hand can read."""
    choice = sample_choices(form, 1)[0]
    needed = [requirement for _, requirement in form.requirements(choice)]
    for modern in ("sm_90a", "sm_100a", "sm_120a"):
        if all(requirement.holds((9, 0), target_named(modern)) for requirement in needed):
            return (9, 0), modern
    return first_homes(form, choice)[-1]


def main(arguments: list[str]) -> int:
    chapters = [a for a in arguments if not a.startswith("-")]
    most = next((int(a.partition("=")[2]) for a in arguments if a.startswith("--most=")), 64)
    only = next((a.partition("=")[2] for a in arguments if a.startswith("--only=")), "")
    chosen = [f for f in forms() if (not chapters or f.chapter in chapters) and only in f.syntax]
    if any(a.startswith("--mutants") for a in arguments):
        seed = next((int(a.partition("=")[2]) for a in arguments if a.startswith("--seed=")), 0)
        count = next((int(a.partition("=")[2]) for a in arguments if a.startswith("--mutants=")), 60)
        asked = [question for form in chosen for question in mutant_questions(form, count, seed)]
    elif "--strays" in arguments:
        asked = [question for form in chosen for question in stray_questions(form, most)]
    else:
        asked = [question for form in chosen for question in questions(form, most)]
    release = next((a.partition("=")[2] for a in arguments if a.startswith("--ptxas=")), None)
    wrong = disagreements(asked, release)
    for found in wrong:
        print(found)
    if "--orders" in arguments:
        for form in chosen:
            for text in order_disagreements(form):
                print("order", text)
    print(f"{len(chosen)} forms, {len(asked)} questions, {len(wrong)} disagreements")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
