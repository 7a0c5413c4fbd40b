"""Is order that is taken away missed? `python -m tests.emulate.mutation` tries it, for each instruction that orders.

A mutant is a kernel that was correct, with one instruction that orders its threads removed or weakened. It is run with
checks on seeds 0 and 1. It is `reported` where there is an error (a race, a hang, a timeout, …). If nothing is reported
it is `wrong` where the result is not what NumPy says, and has `survived` where it is. `survivors.py` says of each of
those two why it is still right without it, or that it is missed.

`--only=NAME` takes kernels whose name has NAME in it, `--most=N` the first N mutants, `--evidence` writes the score and
all mutants that are not reported to `evidence/mutation.json`.
"""

import datetime
import json
import platform
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab.device.result import Result
from tests.emulate.kernels import CASES, Case, Launch
from tests.emulate.survivors import EQUIVALENT, MISSED, Survivor

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence" / "mutation.json"
SEEDS = (0, 1)
TIMEOUT = 5


@dataclass(frozen=True)
class Mutant:
    """One kernel with one change."""

    case: Case = field(repr=False)
    line: int
    kind: str
    """What was done, for example `remove barrier`; see `changes`."""
    before: str
    after: str
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.case.name} line {self.line}, {self.kind}"


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

    def record(self) -> dict[str, object]:
        """For the evidence file."""
        m = self.mutant
        found = survivor_of(m)
        return {
            "case": m.case.name,
            "line": m.line,
            "kind": m.kind,
            "before": m.before,
            "after": m.after,
            "verdict": self.verdict,
            "reason": found.reason if found else "",
        }


# What can be done to an instruction.


def changes(text: str) -> Iterator[tuple[str, str]]:
    """Each change to an instruction that takes order from it: its kind, and the instruction instead; "" removes it."""
    match = re.fullmatch(r"((?:@!?%?\w+\s+)?)([\w.:]+)(.*)", text, re.DOTALL)
    assert match, text
    guard, opcode, rest = match.groups()
    mnemonic, *modifiers = opcode.split(".")
    operands = [part.strip() for part in rest.rstrip(";").split(",")]
    if mnemonic in ("bar", "barrier"):
        yield from barrier_changes(guard, modifiers, operands)
    elif mnemonic in ("membar", "fence"):
        yield "remove fence", ""
        wide = re.search(r"\.(gl|gpu|sys|cluster)\b", opcode)
        if wide:
            yield "narrow scope", f"{guard}{opcode.replace(wide[0], '.cta')}{rest}"
    elif opcode.startswith("cp.async.wait_"):
        yield "remove wait", ""
        if modifiers[1] == "wait_group":
            yield "wait for one group less", f"{guard}{opcode} {int(operands[0]) + 1};"
    elif opcode.startswith(("cp.async.mbarrier.arrive", "mbarrier.arrive")):
        yield "remove arrive", ""
    elif mnemonic == "mbarrier" and modifiers[0] in ("test_wait", "try_wait"):
        yield "remove wait", f"{guard}setp.eq.u32 {operands[0]}, 0, 0;"
    elif mnemonic in ("ld", "st", "atom", "red"):
        yield from access_changes(guard, mnemonic, modifiers, rest)


def barrier_changes(guard: str, modifiers: list[str], operands: list[str]) -> Iterator[tuple[str, str]]:
    """A block's barrier becomes nothing, or one of the warp; one that counts votes counts only the thread's own."""
    if modifiers[0] == "warp":
        yield "remove warp barrier", ""
    elif "red" in modifiers:
        own = f"selp.u32 {operands[0]}, 1, 0, {operands[-1]};" if "popc" in modifiers else ""
        yield "remove barrier", f"{guard}{own or f'mov.pred {operands[0]}, {operands[-1]};'}"
    else:
        yield "remove barrier", ""
        if "sync" in modifiers:
            yield "barrier of the warp only", f"{guard}bar.warp.sync 0xffffffff;"


def access_changes(guard: str, mnemonic: str, modifiers: list[str], rest: str) -> Iterator[tuple[str, str]]:
    """Less order, a smaller scope, or a weak access instead of a strong one."""

    def with_modifiers(changed: list[str]) -> str:
        return f"{guard}{'.'.join([mnemonic, *changed])}{rest}"

    order = next((word for word in modifiers if word in ("acquire", "release", "acq_rel")), None)
    scope = next((word for word in modifiers if word in ("gpu", "sys", "cluster", "cta")), None)
    if order:
        yield f"{order} to relaxed", with_modifiers([word.replace(order, "relaxed") for word in modifiers])
    if "volatile" in modifiers:
        yield "volatile to weak", with_modifiers([word for word in modifiers if word != "volatile"])
    if "relaxed" in modifiers and mnemonic in ("ld", "st"):
        yield "relaxed to weak", with_modifiers([word for word in modifiers if word not in ("relaxed", scope)])
    if any(word.startswith("shared") for word in modifiers):
        return  # no other block accesses it: every scope is as good
    if scope not in (None, "cta"):
        yield "narrow scope", with_modifiers(["cta" if word == scope else word for word in modifiers])
    if scope is None and mnemonic in ("atom", "red"):
        yield "narrow scope", with_modifiers(["cta", *modifiers])  # without a scope it is `.gpu`


def mutants(only: str = "") -> Iterator[Mutant]:
    """Each change to each instruction that is executed, of each kernel that synchronises, in the first of its builds.

    With an mbarrier, sm_90 as well, where waiting for one is another instruction.
    """
    seen = set()
    for case in CASES:
        kernel = case.name.partition("-")[0]
        again = "mbarrier" in case.synchronises and case.path.name.endswith("sm_90.ptx")
        if case.synchronises and (kernel not in seen or again):
            seen.add(kernel)
            if only in case.name:
                yield from mutants_of(case)


def mutants_of(case: Case) -> Iterator[Mutant]:
    """The mutants of one case."""
    module = ptxlab.load(case.path)
    assert module.source is not None
    text = module.source.text
    executed = lines_executed(case, module)
    for function in module.functions:
        for instruction in function.instructions():
            start, end = instruction.start, instruction.end
            assert start is not None
            assert end is not None
            line = module.source.position(start)[0]
            if line in executed:
                for kind, after in changes(text[start:end]):
                    yield Mutant(case, line, kind, text[start:end], after, text[:start] + after + text[end:])


def lines_executed(case: Case, module: ir.Module) -> set[int]:
    """The lines that a case executes; it must be correct."""
    run = case.make(np.random.default_rng(0))
    lines: set[int] = set()
    printed = ""
    for launch in run.launches:
        result = start_launch(module, launch, 0)
        assert not [found for found in result.diagnostics if found.level == "error"], case.name
        lines |= set(result.counters["lines"])
        printed += result.output
    for check in run.checks:
        check(printed)
    return lines


# Running.


def start_launch(module: ir.Module, launch: Launch, seed: int) -> Result:
    """Run one launch with all checks."""
    result: Result = module[launch.entry].launch(
        launch.grid,
        launch.block,
        launch.args,
        shared=launch.shared,
        cluster=launch.cluster,
        device="cpu",
        seed=seed,
        on_error="collect",
        timeout=TIMEOUT,
    )
    return result


def judge(mutant: Mutant) -> Outcome:
    """Run a mutant until a seed reports it."""
    module = ptxlab.parse(mutant.text, name=mutant.case.path.name)
    right = True
    for seed in SEEDS:
        run = mutant.case.make(np.random.default_rng(0))
        printed = ""
        for launch in run.launches:
            result = start_launch(module, launch, seed)
            found = {diagnostic.code for diagnostic in result.diagnostics if diagnostic.level == "error"}
            if found:
                return Outcome(mutant, "reported", tuple(sorted(found)), seed)
            printed += result.output
        try:
            for check in run.checks:
                check(printed)
        except AssertionError:
            right = False
    return Outcome(mutant, "survived" if right else "wrong")


def survivor_of(mutant: Mutant) -> Survivor | None:
    """What is known of a mutant that is not reported."""
    for survivor in (*EQUIVALENT, *MISSED):
        if (survivor.case, True, True) == (
            mutant.case.name,
            mutant.line in survivor.lines,
            mutant.kind in survivor.kinds,
        ):
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
        return [o for o in self.outcomes if o.verdict != "reported" and survivor_of(o.mutant) in EQUIVALENT]

    @property
    def missed(self) -> list[Outcome]:
        """All others, those that were not examined included."""
        return [o for o in self.outcomes if o.verdict != "reported" and survivor_of(o.mutant) not in EQUIVALENT]

    @property
    def share(self) -> float:
        """Of the mutants that are defects, those that are reported."""
        return len(self.reported) / max(1, len(self.outcomes) - len(self.equivalent))

    def __str__(self) -> str:
        return (
            f"{len(self.outcomes)} mutants: {len(self.reported)} reported, {len(self.equivalent)} equivalent, "
            f"{len(self.missed)} missed; {100 * self.share:.1f}% of the defects are reported"
        )


def evidence(score: Score, commit: str) -> dict[str, object]:
    """What a run measured, on what, with every mutant that is not reported."""
    kinds: dict[str, dict[str, int]] = {}
    for kind in sorted({o.mutant.kind for o in score.outcomes}):
        named = {"reported": score.reported, "equivalent": score.equivalent, "missed": score.missed}
        kinds[kind] = {"mutants": sum(o.mutant.kind == kind for o in score.outcomes)}
        kinds[kind] |= {name: sum(o.mutant.kind == kind for o in outcomes) for name, outcomes in named.items()}
    findings = Counter(" and ".join(o.findings) for o in score.reported)
    return {
        "command": "python -m tests.emulate.mutation --evidence",
        "versions": f"LLVM through llvmlite {version('llvmlite')}, NumPy {version('numpy')}",
        "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "commit": commit,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "kernels": len({o.mutant.case.name for o in score.outcomes}),
        "mutants": len(score.outcomes),
        "reported": len(score.reported),
        "reported_by_seed_0": sum(o.seed == 0 for o in score.reported),
        "equivalent": len(score.equivalent),
        "missed": len(score.missed),
        "score": round(score.share, 4),
        "kinds": kinds,
        "findings": dict(findings.most_common()),
        "missed_mutants": [o.record() for o in score.missed],
        "equivalent_mutants": [o.record() for o in score.equivalent],
    }


def main(arguments: list[str]) -> int:
    options = {name: value for name, _, value in (a.removeprefix("--").partition("=") for a in arguments)}
    most = int(options["most"]) if "most" in options else None
    root = EVIDENCE.parents[1]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
    outcomes = []
    for mutant in islice(mutants(options.get("only", "")), most):
        outcome = judge(mutant)
        outcomes.append(outcome)
        known = survivor_of(mutant)
        why = ", ".join(outcome.findings) or (known.reason if known else "NOT EXAMINED YET")
        print(f"{len(outcomes)} {outcome.verdict}: {mutant.name}: {why}", flush=True)
    score = Score(outcomes)
    print(score)
    if not options.keys() & {"only", "most"}:
        used = {survivor_of(o.mutant) for o in outcomes if o.verdict != "reported"}
        for survivor in (*EQUIVALENT, *MISSED):
            if survivor not in used:
                print("NO SURVIVOR ANY MORE", survivor)
    if "evidence" in options:
        EVIDENCE.parent.mkdir(exist_ok=True)
        EVIDENCE.write_text(json.dumps(evidence(score, commit.stdout.strip()), indent=1) + "\n")
    return int(any(survivor_of(o.mutant) is None for o in score.missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
