"""`check` and ptxas agree on damaged files; `python -m tests.check.agreement` asks about thousands of them.

Here are few enough for every run: of small files, of each kind of damage, at fixed seeds.
"""

import random

import pytest

from ptxlab.toolchain import Verdict

from ..tools import needs_ptxas
from .agreement import Outcome, compare, score
from .damage import KINDS, Mutant, mutants

SAMPLE = """\
.version 8.0
.target sm_80
.address_size 64
.entry k()
{
\t.reg .b32 %r<4>;
\tmov.u32 %r1, 7;
\tret;
}
"""


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.bulk)])
def test_agreement_on_damaged_files(seed: int) -> None:
    found = score(compare(8 * len(KINDS), seed, most=6_000, timeout=10))
    assert not found.false_refusals, "\n".join(map(str, found.false_refusals))
    assert found.agreement >= 0.995, "\n".join(map(str, found.missed))
    assert found.line_agreement >= 0.95, "\n".join(map(str, found.elsewhere))


def test_a_seed_gives_the_same_mutants() -> None:
    first, again = (list(mutants([("sample", SAMPLE)], 40, seed=3)) for _ in range(2))
    assert first == again
    assert all(mutant.text != SAMPLE for mutant in first)


def test_each_kind_damages_one_line_or_nothing() -> None:
    lines = SAMPLE.split("\n")
    for name, damage in KINDS.items():
        for at, line in enumerate(lines):
            changed = damage(lines, at, random.Random(f"{name} {at}"))
            assert changed is None or isinstance(changed, str), (name, line)
    assert lines == SAMPLE.split("\n")


def outcome(text: str, *verdicts: Verdict) -> Outcome:
    return Outcome(Mutant("sample", text, "kind", 1, "", ""), [], list(verdicts))


def test_what_ptxas_leaves_open_counts_apart() -> None:
    error = Verdict(3, "error", "Unknown symbol 'x'")
    assert outcome(SAMPLE, Verdict(None, "crash", "SIGSEGV")).no_answer
    assert outcome(SAMPLE, Verdict(None, "timeout", "did not end")).no_answer
    assert outcome(SAMPLE, Verdict(None, "error", "Internal compiler error.")).no_answer
    assert outcome(SAMPLE + "/* open").no_answer
    assert not outcome(SAMPLE, error, Verdict(None, "crash", "SIGSEGV")).no_answer
    counted = score([outcome(SAMPLE), outcome(SAMPLE, error), outcome(SAMPLE, Verdict(None, "crash", "SIGSEGV"))])
    assert (len(counted.answered), len(counted.unanswered), len(counted.missed)) == (2, 1, 1)
    assert counted.agreement == 0.5
