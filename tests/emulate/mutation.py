"""Is order that is taken away missed? `python -m tests.emulate.mutation` tries it, for each instruction that orders.

A mutant is a kernel that was correct, with one instruction that orders its threads removed or weakened. It is run with
checks on seeds 0 to 3. It is `reported` where there is an error (a race, a hang, …), a warning that the kernel itself
does not have, or else such a finding of `ptxlab check`. If nothing is reported by then, it is run on seeds 4 to 15, and
is `wrong` where a result is not what NumPy says, and has `survived` where all are right.
`survivors.py` says why a kernel is still right without it; all others are missed.

The report of an asynchronous kernel must show the line that was changed, by a label or a note. Where the instruction
was removed there is no such line. There it must show the nearest instruction before or after it that accesses memory
or starts an operation, or the nearest that waits, arrives or signals; or two accesses, one before and one after it; or
name the mbarrier that it was about.

`--only=NAME` takes kernels whose name has NAME in it, `--asynchronous` and `--synchronous` those of one sort,
`--most=N` the first N mutants; `--workers=N` uses as many processes. `--save=FILE` keeps what came of them, and
`--join=FILE,FILE` takes it from such files instead of running anything. `--evidence` writes the score and all mutants
that are not reported to `evidence/mutation.json`.

`--seeds=50 --originals=FILE` runs the asynchronous kernels as they are, under so many seeds, and writes to FILE how
many findings there are; `--evidence --originals=FILE` takes that up.
"""

import datetime
import json
import pickle
import platform
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import ptxlab
from ptxlab import ir
from ptxlab.measure.machine import commit
from ptxlab.report import Diagnostic
from tests.emulate.mutation_operators import changes, is_access, is_synchronization, variables_of
from tests.emulate.mutation_subjects import Subject, subjects
from tests.emulate.survivors import EQUIVALENT, Survivor

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence" / "mutation.json"
SEEDS = range(4)
MORE_SEEDS = range(4, 16)  # of what nothing has reported
Item = TypeVar("Item")
Made = TypeVar("Made")


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


def mutants_of(subject: Subject) -> Iterator[Mutant]:
    """Each change to each instruction of a kernel that is executed."""
    module = subject.parse(subject.text)
    assert module.source is not None
    text = module.source.text
    executed, usual = run_original(subject, module)
    for function in module.functions:
        places = []
        for instruction in function.instructions():
            assert instruction.start is not None
            assert instruction.end is not None
            line = module.source.position(instruction.start)[0]
            if line in executed:
                places.append((line, instruction.start, instruction.end))
        for at, (line, start, end) in enumerate(places):
            for kind, after in changes(text[start:end]):
                mutated = text[:start] + after + text[end:]
                mutant = Mutant(subject, line, kind, text[start:end], after, mutated, usual=usual)
                if is_removal(kind):
                    shown = [(place[0], text[slice(*place[1:])]) for place in places]
                    names = variables_of(text, text[start:end]) if "mbarrier" in text[start:end] else ()
                    mutant = replace(mutant, beside=lines_beside(shown, at), variables=frozenset(names))
                yield mutant


def lines_beside(instructions: list[tuple[int, str]], at: int) -> tuple[int, ...]:
    """The nearest lines before and after one that access memory, and those that synchronize."""
    found: list[int] = []
    for is_shown in (is_access, is_synchronization):
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
        module = _without_state(mutant.subject, mutant.text, module)
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
        module = _without_state(mutant.subject, mutant.text, module)
        found, right = _run(mutant.subject, module, seed)
        errors = tuple(sorted({diagnostic.code for diagnostic in found if diagnostic.level == "error"}))
        if errors:
            return Outcome(mutant, "reported", errors, seed, _shows(found, mutant))
        is_right = is_right and right
    return Outcome(mutant, "survived" if is_right else "wrong")


def _without_state(subject: Subject, text: str, module: ir.Module) -> ir.Module:
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
        if diagnostic.code != "hang" and labels and min(labels) < mutant.line < max(labels):
            return True
    return False


def survivor_of(mutant: Mutant) -> Survivor | None:
    """What is known of a mutant that is not reported."""
    for survivor in EQUIVALENT:
        if survivor.holds(mutant.subject.name, mutant.line, mutant.kind, mutant.before):
            return survivor
    return None


# The score.


@dataclass(frozen=True)
class Score:
    """What many outcomes amount to."""

    outcomes: list[Outcome]

    @property
    def reported(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.verdict == "reported"]

    @property
    def equivalent(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.verdict == "survived" and survivor_of(o.mutant) is not None]

    @property
    def missed(self) -> list[Outcome]:
        """All others, those that were not examined included."""
        return [
            o
            for o in self.outcomes
            if o.verdict == "wrong" or (o.verdict == "survived" and survivor_of(o.mutant) is None)
        ]

    @property
    def unnamed(self) -> list[Outcome]:
        """Those of asynchronous kernels that are reported, but without the line that was changed, or one beside it."""
        return [o for o in self.reported if o.mutant.subject.is_asynchronous and not o.names_line]

    @property
    def share(self) -> float:
        """Of the mutants that are defects, those that are reported."""
        return len(self.reported) / max(1, len(self.outcomes) - len(self.equivalent))

    def __str__(self) -> str:
        return (
            f"{len(self.outcomes)} mutants: {len(self.reported)} reported, {len(self.equivalent)} equivalent, "
            f"{len(self.missed)} missed; {100 * self.share:.1f}% of the defects are reported"
        )


def evidence(score: Score, revision: str, where: str) -> dict[str, object]:
    """What a run measured, on what, with every mutant that is not reported."""
    kinds: dict[str, dict[str, int]] = {}
    for kind in sorted({o.mutant.kind for o in score.outcomes}):
        named = {"reported": score.reported, "equivalent": score.equivalent, "missed": score.missed}
        kinds[kind] = {"mutants": sum(o.mutant.kind == kind for o in score.outcomes)}
        kinds[kind] |= {name: sum(o.mutant.kind == kind for o in outcomes) for name, outcomes in named.items()}
    findings = Counter(" and ".join(o.findings) for o in score.reported)
    shown = [o for o in score.reported if o.mutant.subject.is_asynchronous and o.names_line]
    return {
        "command": "python -m tests.emulate.mutation --evidence",
        "versions": f"LLVM through llvmlite {version('llvmlite')}, NumPy {version('numpy')}",
        "platform": where,
        "commit": revision,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "kernels": len({o.mutant.subject.name for o in score.outcomes}),
        "mutants": len(score.outcomes),
        "reported": len(score.reported),
        "reported_by_seed_0": sum(o.seed == 0 for o in score.reported),
        "equivalent": len(score.equivalent),
        "missed": len(score.missed),
        "score": round(score.share, 4),
        "asynchronous": {
            "mutants": sum(o.mutant.subject.is_asynchronous for o in score.outcomes),
            "reported": sum(o.mutant.subject.is_asynchronous for o in score.reported),
            "changed_lines_named": sum(o.is_changed for o in shown),
            "changed_lines_not_named": [o.record() for o in score.unnamed if o.is_changed],
            "removed_lines_with_a_line_beside_named": sum(not o.is_changed for o in shown),
            "removed_lines_with_none_named": [o.record() for o in score.unnamed if not o.is_changed],
        },
        "kinds": kinds,
        "findings": dict(findings.most_common()),
        "missed_mutants": [o.record() for o in score.missed],
        "equivalent_mutants": [o.record() for o in score.equivalent],
    }


def findings_on_originals(seeds: int, workers: int) -> dict[str, object]:
    """How many findings the asynchronous kernels have as they are, under so many seeds; all must be right."""
    originals = [subject for subject in subjects() if subject.is_asynchronous]
    tasks = [(subject, range(first, min(first + 10, seeds))) for subject in originals for first in range(0, seeds, 10)]
    found = _in_parallel(_findings_of, tasks, workers)
    return {"kernels": [subject.name for subject in originals], "seeds": seeds, "findings": sum(found)}


def _findings_of(task: tuple[Subject, range]) -> int:
    subject, seeds = task
    count, module = 0, subject.parse(subject.text)
    for seed in seeds:
        module = _without_state(subject, subject.text, module)
        results, is_right = subject.run(module, seed)
        assert is_right, (subject.name, seed)
        count += sum(len(result.diagnostics) for result in results)
    return count


def _in_parallel(function: Callable[[Item], Made], items: Iterable[Item], workers: int) -> Iterator[Made]:
    """What a function makes of each item, in their order, by so many processes."""
    if workers == 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(function, items)


def outcomes_of(options: dict[str, str]) -> Iterator[Outcome]:
    """What comes of all mutants that are asked for, in their order; of those of earlier runs, what was saved."""
    if "join" in options:
        for name in options["join"].split(","):
            yield from pickle.loads(Path(name).read_bytes())["outcomes"]
        return
    chosen = [subject for subject in subjects() if options.get("only", "") in subject.name]
    for name in ("asynchronous", "synchronous"):
        if name in options:
            chosen = [subject for subject in chosen if subject.is_asynchronous == (name == "asynchronous")]
    workers = int(options.get("workers", 1))
    each = _in_parallel(_all_mutants_of, chosen, workers)
    made = islice(chain.from_iterable(each), int(options["most"]) if "most" in options else None)
    yield from _in_parallel(judge, made, workers)


def save(outcomes: list[Outcome], name: str) -> None:
    """Keep outcomes in a file, without the texts of the kernels."""
    kept = []
    for outcome in outcomes:
        subject = replace(outcome.mutant.subject, text="")
        kept.append(replace(outcome, mutant=replace(outcome.mutant, text="", subject=subject)))
    Path(name).write_bytes(pickle.dumps({"platform": this_platform(), "outcomes": kept}))


def this_platform() -> str:
    """Where this runs."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"


def platforms(options: dict[str, str]) -> str:
    """Where the mutants ran: here, or where the files that are joined come from."""
    if "join" not in options:
        return this_platform()
    found = (pickle.loads(Path(name).read_bytes())["platform"] for name in options["join"].split(","))
    return "; ".join(dict.fromkeys(found))


def _all_mutants_of(subject: Subject) -> list[Mutant]:
    return list(mutants_of(subject))


def main(arguments: list[str]) -> int:
    options = {name: value for name, _, value in (a.removeprefix("--").partition("=") for a in arguments)}
    if "seeds" in options:
        originals = findings_on_originals(int(options["seeds"]), int(options.get("workers", 1)))
        Path(options["originals"]).write_text(json.dumps(originals, indent=1) + "\n")
        return int(bool(originals["findings"]))
    outcomes = []
    for outcome in outcomes_of(options):
        outcomes.append(outcome)
        known = survivor_of(outcome.mutant)
        why = ", ".join(outcome.findings) or (known.reason if known else "NOT EXAMINED YET")
        if outcome.verdict == "wrong":
            why = "THE RESULT IS WRONG"
        print(f"{len(outcomes)} {outcome.verdict}: {outcome.mutant.name}: {why}", flush=True)
        if "save" in options and len(outcomes) % 20 == 0:
            save(outcomes, options["save"])
    if "save" in options:
        save(outcomes, options["save"])
    score = Score(outcomes)
    print(score)
    for outcome in score.unnamed:
        print("LINE NOT NAMED", outcome.mutant.name, ", ".join(outcome.findings))
    if not options.keys() & {"only", "most", "asynchronous", "synchronous"}:
        used = {survivor_of(o.mutant) for o in outcomes if o.verdict != "reported"}
        for survivor in EQUIVALENT:
            if survivor not in used:
                print("NO SURVIVOR ANY MORE", survivor)
    if "evidence" in options:
        record = evidence(score, commit(), platforms(options))
        if "originals" in options:
            record["originals"] = json.loads(Path(options["originals"]).read_text())
        EVIDENCE.write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(score.missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
