"""Is order that is taken away missed? `python -m tests.emulate.mutation` tries it, for all mutants (`mutants.py`).

`--only=NAME` takes kernels whose name has NAME in it, `--asynchronous` and `--synchronous` those of one sort,
`--listed` those that `mutation_subjects.py` names, `--most=N` the first N mutants; `--workers=N` uses as many
processes. `--save=FILE` keeps what came of them as it comes, and `--join=FILE,FILE` takes it from such files instead of
running anything; with `--rest`, those that are not in them are run. `--evidence` writes the score and all mutants that
are not reported to `evidence/mutation.json`.

`--seeds=50 --originals=FILE` runs the asynchronous kernels as they are, under so many seeds, and writes to FILE how
many findings there are; `--evidence --originals=FILE` takes that up.
"""

import datetime
import json
import pickle
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from ptxlab.emulate.translate import effort
from ptxlab.measure.machine import commit
from tests.emulate.mutants import MORE_SEEDS, Mutant, Outcome, judge, mutants_of, survivor_of, without_state
from tests.emulate.mutation_subjects import Subject, subjects
from tests.emulate.survivors import EQUIVALENT

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence" / "mutation.json"
OPTIONS = frozenset("asynchronous evidence join listed most only originals rest save seeds synchronous workers".split())
Item = TypeVar("Item")
Made = TypeVar("Made")


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


def evidence(score: Score, revision: str, where: dict[str, str]) -> dict[str, object]:
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
        **where,
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


def findings_on_originals(seeds: int, workers: int, is_listed: bool = False) -> dict[str, object]:
    """How many findings the asynchronous kernels have as they are, under so many seeds; all must be right."""
    originals = [subject for subject in subjects() if subject.is_asynchronous and (subject.is_listed or not is_listed)]
    tasks = [(subject, range(first, min(first + 10, seeds))) for subject in originals for first in range(0, seeds, 10)]
    found = _in_parallel(_findings_of, tasks, workers)
    return {"kernels": [subject.name for subject in originals], "seeds": seeds, "findings": sum(found)}


def _findings_of(task: tuple[Subject, range]) -> int:
    subject, seeds = task
    count, module = 0, subject.parse(subject.text)
    for seed in seeds:
        module = without_state(subject, subject.text, module)
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


def _longest_first(mutants: Sequence[tuple[float, Mutant]], workers: int) -> Iterator[Outcome]:
    """What comes of mutants, each with how long it may take, as it comes."""
    ordered = [mutant for _, mutant in sorted(mutants, key=lambda one: -one[0])]
    if workers == 1:
        yield from map(judge, ordered)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _compile_soon) as pool:
        for future in as_completed([pool.submit(judge, mutant) for mutant in ordered]):
            yield future.result()


def _compile_soon() -> None:
    """Most mutants run once or twice: LLVM would take longer to optimize them than that saves."""
    effort.HIGHEST = 0


def outcomes_of(options: dict[str, str]) -> Iterator[Outcome]:
    """What comes of all mutants that are asked for, as it comes; of those of earlier runs, what was saved."""
    known = set()
    for name in options["join"].split(",") if "join" in options else ():
        for outcome in pickle.loads(Path(name).read_bytes())["outcomes"]:
            known.add(_key(outcome.mutant))
            yield outcome
    if "join" in options and "rest" not in options:
        return
    chosen = [subject for subject in subjects() if options.get("only", "") in subject.name]
    if "listed" in options:
        chosen = [subject for subject in chosen if subject.is_listed]
    for name in ("asynchronous", "synchronous"):
        if name in options:
            chosen = [subject for subject in chosen if subject.is_asynchronous == (name == "asynchronous")]
    workers = int(options.get("workers", 1))
    each = _in_parallel(_all_mutants_of, chosen, workers)
    made = islice(chain.from_iterable(each), int(options["most"]) if "most" in options else None)
    yield from _longest_first([one for one in made if _key(one[1]) not in known], workers)


def _key(mutant: Mutant) -> tuple[str, int, str, str]:
    """The kernel, the line and the change: no other mutant has the same."""
    return mutant.subject.name, mutant.line, mutant.kind, mutant.after


def save(outcomes: list[Outcome], name: str) -> None:
    """Keep outcomes in a file, without the texts of the kernels."""
    kept = []
    for outcome in outcomes:
        subject = replace(outcome.mutant.subject, text="")
        kept.append(replace(outcome, mutant=replace(outcome.mutant, text="", subject=subject)))
    Path(name).write_bytes(pickle.dumps({**this_machine(), "outcomes": kept}))


def this_machine() -> dict[str, str]:
    """Where this runs, and with what."""
    return {
        "versions": f"LLVM through llvmlite {version('llvmlite')}, NumPy {version('numpy')}",
        "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def machines(options: dict[str, str]) -> dict[str, str]:
    """Where the mutants ran: here, or where the files that are joined come from."""
    if "join" not in options:
        return this_machine()
    saved = [pickle.loads(Path(name).read_bytes()) for name in options["join"].split(",")]
    return {name: "; ".join(dict.fromkeys(one[name] for one in saved)) for name in this_machine()}


def _all_mutants_of(subject: Subject) -> list[tuple[float, Mutant]]:
    """All of a kernel, each with how long it may take: as long as the kernel itself, or if it survives, more often."""
    _compile_soon()
    start = time.perf_counter()
    found = list(mutants_of(subject))
    once = time.perf_counter() - start
    return [(once * (1 if survivor_of(mutant) is None else MORE_SEEDS.stop), mutant) for mutant in found]


def main(arguments: list[str]) -> int:
    options = {name: value for name, _, value in (a.removeprefix("--").partition("=") for a in arguments)}
    if unknown := options.keys() - OPTIONS:
        print(__doc__)
        return 0 if unknown <= {"help", "-h"} else 2
    if "seeds" in options:
        workers = int(options.get("workers", 1))
        originals = findings_on_originals(int(options["seeds"]), workers, "listed" in options)
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
    outcomes.sort(key=lambda outcome: _key(outcome.mutant))
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
        record = evidence(score, commit(), machines(options))
        if "listed" in options:
            record["not_examined"] = [subject.name for subject in subjects() if not subject.is_listed]
        if "originals" in options:
            record["originals"] = json.loads(Path(options["originals"]).read_text())
        EVIDENCE.write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(score.missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
