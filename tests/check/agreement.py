"""Do `check` and ptxas agree on damaged files? `python -m tests.check.agreement --count=5000 --seed=1` tells.

Prints each disagreement with what was done, then the score: verdicts, false refusals, and the line of the first error.
"""

import sys
from collections import Counter
from dataclasses import dataclass

import ptxlab
from ptxlab.report import Diagnostic
from ptxlab.toolchain import Verdict, accepted, judge_many

from ..corpus import files
from .damage import Mutant, mutants


@dataclass(frozen=True)
class Outcome:
    """What both said of one mutant."""

    mutant: Mutant
    ours: list[Diagnostic]
    theirs: list[Verdict]

    @property
    def we_accept(self) -> bool:
        return not self.ours

    @property
    def they_accept(self) -> bool:
        return accepted(self.theirs)

    @property
    def agree(self) -> bool:
        return self.we_accept == self.they_accept

    @property
    def same_line(self) -> bool:
        lines = [verdict.line for verdict in self.theirs if verdict.level == "error" and verdict.line]
        return not lines or bool(self.ours) and self.ours[0].line == lines[0]

    def __str__(self) -> str:
        mutant = self.mutant
        ours = f"{self.ours[0].line}: {self.ours[0].code}: {self.ours[0].message}" if self.ours else "accepted"
        errors = [f"{v.line}: {v.message}" for v in self.theirs if v.level not in ("warning", "info")]
        return (
            f"{mutant.name}:{mutant.line} {mutant.kind}\n    {mutant.before.strip()[:150]}\n -> {mutant.after.strip()[:150]}\n"
            f"    ours {ours[:200]}\n    ptxas {'; '.join(errors[:2])[:200] or 'accepted'}"
        )


def errors_of(text: str, name: str) -> list[Diagnostic]:
    """The errors that a user is shown, first those of the parser."""
    try:
        found = ptxlab.check(ptxlab.parse(text, name=name))
    except ptxlab.PtxError as problem:
        found = problem.diagnostics
    return [diagnostic for diagnostic in found if diagnostic.level == "error"]


def small_files(most: int = 30_000) -> list[tuple[str, str]]:
    """Corpus files that ptxas reads quickly, and that the found ptxas can read."""
    found = []
    for case in files():
        text = case.text()
        if len(text) <= most and "\r" not in text and not case.assembler_flags:
            found.append((case.name, text))
    return found


def compare(count: int, seed: int) -> list[Outcome]:
    """Both verdicts on `count` mutants."""
    made = list(mutants(small_files(), count, seed))
    verdicts = judge_many([(mutant.text, None) for mutant in made])
    return [Outcome(m, errors_of(m.text, m.name), v) for m, v in zip(made, verdicts, strict=True)]


def main(arguments: list[str]) -> int:
    options = dict(argument.removeprefix("--").split("=") for argument in arguments)
    outcomes = compare(int(options.get("count", "1000")), int(options.get("seed", "1")))
    kinds: Counter[str] = Counter()
    for outcome in outcomes:
        if not outcome.agree:
            kinds[outcome.mutant.kind] += 1
            print("FALSE REFUSAL" if outcome.they_accept else "MISSED", outcome)
    refused = [o for o in outcomes if o.agree and not o.they_accept]
    elsewhere = [o for o in refused if not o.same_line]
    if "lines" in options:
        for outcome in elsewhere[: int(options["lines"])]:
            print("LINE", outcome)
    wrong = sum(kinds.values())
    false = sum(o.they_accept and not o.we_accept for o in outcomes)
    print(f"{len(outcomes)} mutants, {sum(o.they_accept for o in outcomes)} accepted by ptxas")
    print(f"agreement {100 * (1 - wrong / len(outcomes)):.2f}%, {false} false refusals, {dict(kinds)}")
    print(
        f"line of the first error equal in {100 * (1 - len(elsewhere) / max(1, len(refused))):.1f}% of {len(refused)}"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
