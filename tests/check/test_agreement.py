"""`check` and ptxas agree on damaged files; `python -m tests.check.agreement` asks about thousands of them.

Here are few enough for every run: of small files, of each kind of damage, at fixed seeds.
"""

import random

import pytest

from ptxlab.toolchain import PtxasMessage

from ..tools import needs_ptxas
from .agreement import Outcome, compare, score, small_files, small_modules
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
@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(("seed", "each"), [(1, 1), (1, 8), (2, 8)])
def test_agreement_on_damaged_files(seed: int, each: int) -> None:
    found = score(compare(small_files(6_000), each * len(KINDS), seed, timeout=10))
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


@needs_ptxas
def test_an_instruction_is_taken_out_with_what_it_names() -> None:
    text = SAMPLE.replace(".entry k()", ".global .u32 table[8];\n.entry k(.param .u64 out)").replace(
        "mov.u32 %r1, 7;", "@!%q bra done; ld.global.u32 %r1, [table+4]; ld.param.u64 %d, [out]; mov.u32 %r2, 7; done:"
    )
    text = text.replace(".reg", ".reg .pred %q; .reg .u64 %d; .reg")
    made = dict(small_modules([("sample", text)]))
    assert list(made) == [f"sample: {name}" for name in ("bra", "ld.global.u32", "ld.param.u64", "mov.u32", "ret")]
    lines = made["sample: ld.global.u32"].split("\n")
    assert lines[:5] == [*SAMPLE.split("\n")[:3], ".global .u32 v0[8];", ".entry k()"]
    assert lines[-4:] == ["ld.global.u32 %r1, [v0+4];", "ret;", "}", ""]
    assert "@!%p1 bra L0;\nL0:" in made["sample: bra"]


def outcome(text: str, *verdicts: PtxasMessage) -> Outcome:
    return Outcome(Mutant("sample", text, "kind", 1, "", ""), [], list(verdicts))


def test_what_ptxas_leaves_open_counts_apart() -> None:
    error = PtxasMessage(3, "error", "Unknown symbol 'x'")
    assert outcome(SAMPLE, PtxasMessage(None, "crash", "SIGSEGV")).no_answer
    assert outcome(SAMPLE, PtxasMessage(None, "timeout", "did not end")).no_answer
    assert outcome(SAMPLE, PtxasMessage(None, "error", "Internal compiler error.")).no_answer
    assert outcome(SAMPLE + "/* open").no_answer
    assert not outcome(SAMPLE, error, PtxasMessage(None, "crash", "SIGSEGV")).no_answer
    counted = score([outcome(SAMPLE), outcome(SAMPLE, error), outcome(SAMPLE, PtxasMessage(None, "crash", "SIGSEGV"))])
    assert (len(counted.answered), len(counted.unanswered), len(counted.missed)) == (2, 1, 1)
    assert counted.agreement == 0.5
