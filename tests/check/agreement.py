"""Do `check` and ptxas agree on damaged files? `python -m tests.check.agreement --count=5000 --seed=1` asks.

Prints each disagreement with what was done, then the score: verdicts, false refusals, and the line of the first error.
`--seed=1,2,3` runs several, `--lines=20` also prints where the first errors are on different lines,
`--kinds="call,guard"` damages in these ways only, `--most=6000` takes only files of so many bytes, `--from=FOLDER` the
PTX files there, `--excerpts` damages small modules of one instruction each (`excerpts.py`), which takes a tenth of the
time. `--evidence` writes all of it to `evidence/agreement.json`.
"""

import datetime
import json
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ptxlab
from ptxlab.report import Diagnostic
from ptxlab.toolchain import PtxasMessage, accepted, find_assembler, judge_many
from ptxlab.toolchain.header import stated_version, unterminated_comment

from ..corpus import files
from ..isa.conformance import newest_readable
from ..tools import judging_release
from .damage import Mutant, mutants
from .excerpts import excerpts

ACCEPTED = "ptxas accepts it, but nothing can write to it"
EVIDENCE = Path(__file__).resolve().parents[2] / "evidence" / "agreement.json"


@dataclass(frozen=True)
class Outcome:
    """What both said of one mutant."""

    mutant: Mutant
    ours: list[Diagnostic]
    theirs: list[PtxasMessage]

    @property
    def we_accept(self) -> bool:
        return not self.ours

    @property
    def they_accept(self) -> bool:
        return accepted(self.theirs)

    @property
    def no_answer(self) -> bool:
        """Whether ptxas crashed, ran forever or gave up, with no error shown before that."""
        if unterminated_comment(self.mutant.text) is not None:  # it would never end, so it is not asked
            return True
        shown = [verdict for verdict in self.theirs if verdict.level not in ("warning", "info")]
        return bool(shown) and all(
            verdict.level in ("crash", "timeout") or verdict.message.startswith("Internal ") for verdict in shown
        )

    @property
    def agree(self) -> bool:
        return self.we_accept == self.they_accept

    @property
    def same_line(self) -> bool:
        lines = [verdict.line for verdict in self.theirs if verdict.level == "error" and verdict.line]
        return not lines or (bool(self.ours) and self.ours[0].line == lines[0])

    @property
    def we_say(self) -> str:
        return f"{self.ours[0].line}: {self.ours[0].code}: {self.ours[0].message}" if self.ours else "accepted"

    @property
    def they_say(self) -> str:
        return (
            "; ".join(f"{v.line}: {v.message}" for v in self.theirs if v.level not in ("warning", "info")) or "accepted"
        )

    def __str__(self) -> str:
        mutant = self.mutant
        return (
            f"{mutant.name}:{mutant.line} {mutant.kind}\n"
            f"    {mutant.before.strip()[:150]}\n -> {mutant.after.strip()[:150]}\n"
            f"    ours {self.we_say[:200]}\n    ptxas {self.they_say[:200]}"
        )

    def record(self) -> dict[str, object]:
        """For the evidence file: all that is needed to make this mutant again and to see what is odd about it."""
        m = self.mutant
        return {
            "file": m.name,
            "line": m.line,
            "kind": m.kind,
            "before": m.before.strip(),
            "after": m.after.strip(),
            "ptxlab": self.we_say[:300],
            "ptxas": self.they_say[:300],
        }


@dataclass(frozen=True)
class Score:
    """What many outcomes amount to; mutants on which ptxas has no answer count nowhere else."""

    answered: list[Outcome]
    unanswered: list[Outcome]

    @property
    def false_refusals(self) -> list[Outcome]:
        return [o for o in self.answered if o.they_accept and not o.we_accept]

    @property
    def missed(self) -> list[Outcome]:
        return [o for o in self.answered if o.we_accept and not o.they_accept]

    @property
    def refused(self) -> list[Outcome]:
        return [o for o in self.answered if not o.we_accept and not o.they_accept]

    @property
    def elsewhere(self) -> list[Outcome]:
        """Those that both refuse, with the first error on another line."""
        return [o for o in self.refused if not o.same_line]

    @property
    def agreement(self) -> float:
        return 1 - (len(self.false_refusals) + len(self.missed)) / max(1, len(self.answered))

    @property
    def line_agreement(self) -> float:
        return 1 - len(self.elsewhere) / max(1, len(self.refused))

    def __str__(self) -> str:
        wrong = Counter(o.mutant.kind for o in (*self.false_refusals, *self.missed))
        return (
            f"{len(self.answered)} mutants, {sum(o.they_accept for o in self.answered)} accepted by ptxas, "
            f"{len(self.unanswered)} more without an answer of ptxas\n"
            f"agreement {100 * self.agreement:.2f}%, {len(self.false_refusals)} false refusals, {dict(wrong)}\n"
            f"line of the first error equal in {100 * self.line_agreement:.1f}% of {len(self.refused)}"
        )


def errors_of(text: str, name: str) -> list[Diagnostic]:
    """The errors that a user is shown, first those of the parser; not those that say that ptxas accepts it."""
    try:
        found = ptxlab.check(ptxlab.parse(text, name=name), ptxas=judging_release(text))
    except ptxlab.PtxError as problem:
        found = problem.diagnostics
    return [one for one in found if one.level == "error" and not any(ACCEPTED in label.text for label in one.labels)]


def small_files(most: int = 30_000) -> list[tuple[str, str]]:
    """Corpus files that ptxas reads quickly, and that the found ptxas can read."""
    found = []
    newest = newest_readable()
    for case in files():
        text = case.text()
        if (stated_version(text) or newest) > newest:
            continue
        if len(text) <= most and "\r" not in text and not case.assembler_flags:
            found.append((case.name, text))
    return found


def files_in(folder: Path, most: int) -> list[tuple[str, str]]:
    """PTX files of strangers."""
    found = [path for path in sorted(folder.glob("**/*.ptx")) if path.stat().st_size <= most]
    return [(path.name, path.read_text(errors="replace")) for path in found]


def small_modules(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """One instruction each, as far as ptxas takes them."""
    made = excerpts(texts)
    verdicts = judge_many([(text, None) for _, text in made])
    return [one for one, said in zip(made, verdicts, strict=True) if accepted(said)]


def compare(
    texts: Sequence[tuple[str, str]], count: int, seed: int, kinds: Sequence[str] = (), timeout: float = 60
) -> list[Outcome]:
    """Both verdicts on `count` mutants of texts, `timeout` seconds for each."""
    made = list(mutants(texts, count, seed, kinds))
    verdicts = judge_many([(mutant.text, None) for mutant in made], timeout=timeout)
    return [Outcome(m, errors_of(m.text, m.name), v) for m, v in zip(made, verdicts, strict=True)]


def score(outcomes: Sequence[Outcome]) -> Score:
    """Put outcomes apart by whether ptxas has an answer."""
    return Score([o for o in outcomes if not o.no_answer], [o for o in outcomes if o.no_answer])


def evidence(found: Score, count: int, seeds: Sequence[int]) -> dict[str, object]:
    """What a run measured, on what, with every disagreement."""
    versions = {tool.version for o in found.answered if (tool := find_assembler(stated_version(o.mutant.text)))}
    root = EVIDENCE.parents[1]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
    kinds: dict[str, dict[str, int]] = {}
    for kind in sorted({o.mutant.kind for o in (*found.answered, *found.unanswered)}):
        of_kind = [o for o in found.answered if o.mutant.kind == kind]
        kinds[kind] = {
            "mutants": len(of_kind),
            "accepted_by_ptxas": sum(o.they_accept for o in of_kind),
            "false_refusals": sum(o.mutant.kind == kind for o in found.false_refusals),
            "missed": sum(o.mutant.kind == kind for o in found.missed),
            "other_line": sum(o.mutant.kind == kind for o in found.elsewhere),
            "no_answer": sum(o.mutant.kind == kind for o in found.unanswered),
        }
    return {
        "command": f"python -m tests.check.agreement --count={count} --seed={','.join(map(str, seeds))} --evidence",
        "ptxas": sorted(versions),
        "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "commit": commit.stdout.strip(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "mutants": len(found.answered),
        "accepted_by_ptxas": sum(o.they_accept for o in found.answered),
        "agreement": round(found.agreement, 5),
        "false_refusals": [o.record() for o in found.false_refusals],
        "missed": [o.record() for o in found.missed],
        "line_agreement": round(found.line_agreement, 4),
        "other_line": [o.record() for o in found.elsewhere],
        "no_answer_of_ptxas": [o.record() for o in found.unanswered],
        "kinds": kinds,
    }


def main(arguments: list[str]) -> int:
    options = {name: value for name, _, value in (a.removeprefix("--").partition("=") for a in arguments)}
    count = int(options.get("count", "1000"))
    seeds = [int(seed) for seed in options.get("seed", "1").split(",")]
    kinds = options["kinds"].split(",") if "kinds" in options else []
    most = int(options.get("most", "30000"))
    texts = files_in(Path(options["from"]), most) if "from" in options else small_files(most)
    texts = small_modules(texts) if "excerpts" in options else texts
    found = score([outcome for seed in seeds for outcome in compare(texts, count, seed, kinds)])
    for outcome in found.false_refusals:
        print("FALSE REFUSAL", outcome)
    for outcome in found.missed:
        print("MISSED", outcome)
    for outcome in found.elsewhere[: int(options.get("lines", "0"))]:
        print("LINE", outcome)
    print(found)
    if "evidence" in options:
        EVIDENCE.parent.mkdir(exist_ok=True)
        EVIDENCE.write_text(json.dumps(evidence(found, count, seeds), indent=1) + "\n")
    return bool(found.false_refusals or found.missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
