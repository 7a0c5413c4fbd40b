"""Mutants: kernels with order taken away, and what is reported of them.

A mutant is a kernel that was correct, with one instruction that orders its threads removed or weakened. It is run with
checks on seeds 0 to 3. It is `reported` where there is an error (a race, a hang, …), a warning that the kernel itself
does not have, or else such a finding of `ptxlab check`. If nothing is reported by then, it is run on seeds 4 to 15, and
is `wrong` where a result is not what NumPy says, and has `survived` where all are right.
`survivors.py` says why a kernel is still right without it; all others are missed.

The report of an asynchronous kernel must show the line that was changed, by a label or a note. Where the instruction
was removed there is no such line. There it must show the nearest instruction before or after it that accesses memory
or starts an operation, or the nearest that waits, arrives or signals; or two accesses, one before and one after it,
which may be in the next iteration of a loop; or name the mbarrier that it was about.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import ptxlab
from ptxlab import ir
from ptxlab.report import Diagnostic
from tests.emulate.mutation_operators import changes, is_access, is_synchronization, variables_of
from tests.emulate.mutation_subjects import Subject
from tests.emulate.survivors import EQUIVALENT, Survivor

SEEDS = range(4)
BRANCH = re.compile(r"\bbra(?:\.uni)?\s+([\w$]+)")
VERSION = re.compile(r"\.version\s+(\d\.\d)")  # from 8.6 on, mbarriers have relaxed operations
MORE_SEEDS = range(4, 16)  # of what nothing has reported


@dataclass(frozen=True)
class Mutant:
    """One kernel with one change."""

    subject: Subject = field(repr=False)
    line: int
    kind: str
    """What was done, for example `remove barrier`; see `mutation_operators`."""
    before: str
    after: str
    text: str = field(repr=False)
    beside: tuple[int, ...] = ()
    """The lines that a report may show instead of one that was removed."""
    variables: frozenset[str] = frozenset()
    """The mbarriers that it may name instead."""
    usual: frozenset[str] = frozenset()
    """The codes of warnings that the kernel itself has."""

    @property
    def name(self) -> str:
        return f"{self.subject.name} line {self.line}, {self.kind}"


@dataclass(frozen=True)
class Outcome:
    """What came of one mutant."""

    mutant: Mutant
    verdict: str
    """`reported`, `wrong` or `survived`."""
    findings: tuple[str, ...] = ()
    """The codes of the errors that were reported."""
    seed: int = 0
    """The seed that reported them."""
    names_line: bool = False
    """Whether a label is on the line that was changed, or a note names it; of a removed one, on a line beside it."""

    @property
    def is_changed(self) -> bool:
        """Whether the instruction was changed, and is still there."""
        return not is_removal(self.mutant.kind)

    def record(self) -> dict[str, object]:
        """For the evidence file."""
        m = self.mutant
        found = survivor_of(m)
        return {
            "case": m.subject.name,
            "line": m.line,
            "kind": m.kind,
            "before": m.before,
            "after": m.after,
            "verdict": self.verdict,
            "reason": found.reason if found else "",
        }


def is_removal(kind: str) -> bool:
    """Whether a change takes an instruction away, or puts something else in its place."""
    return kind.startswith(("remove", "barrier of"))


def is_of_descriptor(kind: str) -> bool:
    """Whether a change is one of a field of a descriptor."""
    return kind.startswith("other ") and kind != "other parity"


def mutants_of(subject: Subject) -> Iterator[Mutant]:
    """Each change to each instruction of a kernel that is executed.

    Of MMAs that one line of the source is unrolled to, the descriptors of the first are changed.
    """
    module = subject.parse(subject.text)
    assert module.source is not None
    text = module.source.text
    executed, usual = run_original(subject, module)
    seen: set[tuple[tuple[int, int], str]] = set()
    for function in module.functions:
        places, sources, source = [], [], None
        for statement in function.statements():
            if isinstance(statement, ir.Location):
                source = (statement.file, statement.line)
            if not isinstance(statement, ir.Instruction):
                continue
            assert statement.start is not None
            assert statement.end is not None
            line = module.source.position(statement.start)[0]
            if line in executed:
                places.append((line, statement.start, statement.end))
                sources.append(source)
        for at, (line, start, end) in enumerate(places):
            for kind, after in changes(text[start:end]):
                if source := sources[at] if is_of_descriptor(kind) else None:
                    if (source, kind) in seen:
                        continue
                    seen.add((source, kind))
                mutated = text[:start] + after + text[end:]
                if "mbarrier" in after and ".relaxed" in after:
                    mutated = VERSION.sub(lambda found: f".version {max(float(found[1]), 8.6)}", mutated)
                mutant = Mutant(subject, line, kind, text[start:end], after, mutated, usual=usual)
                if is_removal(kind):
                    shown = [(place[0], text[slice(*place[1:])]) for place in places]
                    names = variables_of(text, text[start:end]) if "mbarrier" in text[start:end] else ()
                    mutant = replace(mutant, beside=lines_beside(shown, at), variables=frozenset(names))
                yield mutant


def lines_beside(instructions: list[tuple[int, str]], at: int) -> tuple[int, ...]:
    """The nearest lines before and after one that access memory, and that synchronize; of a cluster barrier, halves."""
    found: list[int] = []
    halves = [lambda text: "barrier.cluster" in text] if "barrier.cluster" in instructions[at][1] else []
    for is_shown in (is_access, is_synchronization, *halves):
        found += [line for line, text in instructions[:at] if is_shown(text)][-1:]
        found += [line for line, text in instructions[at + 1 :] if is_shown(text)][:1]
    return tuple(found)


def run_original(subject: Subject, module: ir.Module) -> tuple[set[int], frozenset[str]]:
    """The lines that a kernel executes, and the warnings that it has; it must be right, and have no errors."""
    results, is_right = subject.run(module, 0)
    assert is_right, subject.name
    found = [diagnostic for result in results for diagnostic in result.diagnostics]
    assert not [diagnostic for diagnostic in found if diagnostic.level == "error"], subject.name
    lines = {line for result in results for line in result.counters["lines"]}
    return lines, frozenset(diagnostic.code for diagnostic in found)


def judge(mutant: Mutant) -> Outcome:
    """Run a mutant until a seed reports it."""
    is_right = True
    warned: list[Diagnostic] = []
    module = mutant.subject.parse(mutant.text)
    for seed in SEEDS:
        module = without_state(mutant.subject, mutant.text, module)
        found, right = _run(mutant.subject, module, seed)
        errors = tuple(sorted({diagnostic.code for diagnostic in found if diagnostic.level == "error"}))
        if errors:
            return Outcome(mutant, "reported", errors, seed, _shows(found, mutant))
        warned = warned or [diagnostic for diagnostic in found if diagnostic.code not in mutant.usual]
        is_right = is_right and right
    if warned:
        codes = tuple(sorted({f"warning {diagnostic.code}" for diagnostic in warned}))
        return Outcome(mutant, "reported", codes, 0, _shows(warned, mutant))
    if static := new_in_check(mutant, module):
        codes = tuple(sorted({f"check {diagnostic.code}" for diagnostic in static}))
        return Outcome(mutant, "reported", codes, 0, _shows(static, mutant))
    for seed in MORE_SEEDS:
        module = without_state(mutant.subject, mutant.text, module)
        found, right = _run(mutant.subject, module, seed)
        errors = tuple(sorted({diagnostic.code for diagnostic in found if diagnostic.level == "error"}))
        if errors:
            return Outcome(mutant, "reported", errors, seed, _shows(found, mutant))
        is_right = is_right and right
    return Outcome(mutant, "survived" if is_right else "wrong")


def without_state(subject: Subject, text: str, module: ir.Module) -> ir.Module:
    """A module whose variables have their first values: the same one, if it has none that a kernel changes."""
    return subject.parse(text) if re.search(r"^\s*(\.\w+\s+)*\.global\b", text, re.MULTILINE) else module


def _run(subject: Subject, module: ir.Module, seed: int) -> tuple[list[Diagnostic], bool]:
    """What a launch finds, and whether its result is right."""
    try:
        results, right = subject.run(module, seed)
    except (ptxlab.PtxError, ptxlab.KernelError) as error:  # its arguments do not fit any more
        return list(error.diagnostics), False
    return [diagnostic for result in results for diagnostic in result.diagnostics], right


def new_in_check(mutant: Mutant, module: ir.Module) -> list[Diagnostic]:
    """What `ptxlab check` finds of a mutant, of the codes that it finds less often of the kernel itself."""
    original = mutant.subject.parse(mutant.subject.text)
    usual = Counter(diagnostic.code for diagnostic in ptxlab.check(original))
    found = ptxlab.check(module)
    counts = Counter(diagnostic.code for diagnostic in found)
    return [diagnostic for diagnostic in found if counts[diagnostic.code] > usual[diagnostic.code]]


def _shows(found: list[Diagnostic], mutant: Mutant) -> bool:
    """Whether diagnostics show the line that was changed; or if it was removed, what is beside it."""
    for diagnostic in found:
        labels = {label.span.source.position(label.span.start)[0] for label in diagnostic.labels}
        texts = [diagnostic.message, *diagnostic.notes, *(label.text for label in diagnostic.labels)]
        lines = labels | {int(line) for text in texts for line in re.findall(r"\bline (\d+)\b", text)}
        if lines & {mutant.line, *mutant.beside}:
            return True
        if not is_removal(mutant.kind):
            continue
        if any(f"`{name}`" in text for name in mutant.variables for text in texts):
            return True
        if diagnostic.code != "hang" and _is_between(diagnostic, mutant):
            return True
    return False


def _is_between(diagnostic: Diagnostic, mutant: Mutant) -> bool:
    """Whether a line is between the accesses that labels show; one of them may be in the next iteration of a loop."""
    lines = [label.span.source.position(label.span.start)[0] for label in diagnostic.labels]
    if not lines or min(lines) < mutant.line < max(lines):
        return bool(lines)
    text = mutant.text.splitlines()
    labels = {name: at for at, line in enumerate(text, 1) for name in re.findall(r"^\s*([\w$]+):", line)}
    branches = [
        (at, labels[name]) for at, line in enumerate(text, 1) for name in BRANCH.findall(line) if name in labels
    ]
    return any(start <= min(lines) and max(lines) <= end and start < mutant.line < end for end, start in branches)


def survivor_of(mutant: Mutant) -> Survivor | None:
    """What is known of a mutant that is not reported."""
    for survivor in EQUIVALENT:
        if survivor.holds(mutant.subject.name, mutant.line, mutant.kind, mutant.before):
            return survivor
    return None
