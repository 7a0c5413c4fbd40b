"""ptxas as the oracle: verdicts in bulk equal those one at a time, and are asked for once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxlab.toolchain import Tool, accepted, cache, judge, judge_many
from ptxlab.toolchain.oracle import _job, _run_group


def test_a_verdict_has_line_level_and_message(ptxas: Tool, kernel: str) -> None:
    assert judge(kernel, tool=ptxas) == []
    assert judge(kernel.replace("mov", "movx"), tool=ptxas) == [
        (9, "error", "Not a name of any known instruction: 'movx'")
    ]
    assert not accepted(judge(kernel, "sm_75", tool=ptxas))


def _variants(kernel: str) -> list[str]:
    changes = [
        ("7;", "8;"),
        ("add.u32 %r2, %r1, 7", "shfl.sync.idx.b32 %r2 %r1, 0, 31, -1"),
        ("7;", "9;"),
        ("add.u32", "add.u64"),
        ("ret;", "ret"),
        ("sm_80", "sm_90a"),
        ("8.0", "99.0"),
        ("mov.u32", "mov"),
        ("}", ""),
        ("    ret;", "    .shared .b8 tile[60000];\n    st.shared.u32 [tile], %r2;\n    ret;"),
        ("    ret;", "    call nowhere, ();\n    ret;"),
        ("st.global", "ld.global"),
        (".visible", ".weak"),
        ("    ret;", "    /* comment */ ret;"),
        ("    ret;", "    bra k;"),
        ("}\n", "}\n.visible .entry k() { ret; }\n"),
        ("}\n", "}\n.visible .entry other() { ret; }\n"),
        ("}\n", "}\n/* open"),
        (".visible .entry", ".global .u32 k;\n.visible .entry"),
        ("{\n", '{\n    .pragma "nounroll";\n'),
    ]
    return [kernel, *(kernel.replace(old, new) for old, new in changes)]


def test_a_shared_run_gives_each_text_its_own_verdict(ptxas: Tool, kernel: str) -> None:
    texts = _variants(kernel)
    together = judge_many([(text, "sm_80") for text in texts], ptxas)
    for text, verdicts in zip(texts, together, strict=True):
        job = _job(text, "sm_80", ptxas, (), 20)
        assert _run_group([job])[job.key] == verdicts
    assert sum(accepted(verdicts) for verdicts in together) >= 5


def test_variables_of_one_name_in_several_texts_are_several(ptxas: Tool, kernel: str) -> None:
    text = ".version 8.0\n.target sm_80\n.address_size 64\n{}\n.entry k() {{ .reg .b64 %d; mov.u64 %d, v; ret; }}\n"
    declared = [".const .u32 v[4];", ".shared .u32 w, v[25000000];", ".global .u32 v[4];"]
    texts = [text.format(line) for line in declared]
    found = judge_many([(text, None) for text in texts], ptxas)
    assert [accepted(verdicts) for verdicts in found] == [True, False, True]
    assert "uses too much shared data" in found[1][0].message


def test_verdicts_are_remembered(fake_ptxas: Callable[[str], Tool], kernel: str, tmp_path: Path) -> None:
    tool = fake_ptxas(f"echo run >> {tmp_path / 'runs'}")
    assert judge(kernel, tool=tool) == judge(kernel, tool=tool) == []
    assert (tmp_path / "runs").read_text().count("run") == 1
    assert Path(os.environ["PTXLAB_CACHE"], "answers.sqlite").is_file()
    judge(kernel, tool=tool, options=["-c"])
    assert (tmp_path / "runs").read_text().count("run") == 2


def test_a_crash_is_found_among_many(ptxas: Tool, fake_ptxas: Callable[[str], Tool], kernel: str) -> None:
    tool = fake_ptxas("grep -q POISON *.ptx && kill -SEGV $$\nexit 0")
    texts = [kernel.replace("7;", f"{i};") for i in range(20)]
    texts[13] += "// POISON\n"
    found = judge_many([(text, None) for text in texts], tool)
    assert [index for index, verdicts in enumerate(found) if verdicts] == [13]
    assert found[13] == [(None, "crash", "ptxas was killed by SIGSEGV")]


def test_a_time_limit_is_not_remembered(fake_ptxas: Callable[[str], Tool], kernel: str, tmp_path: Path) -> None:
    tool = fake_ptxas(f"echo run >> {tmp_path / 'runs'}; sleep 30")
    assert judge(kernel, tool=tool, timeout=0.2)[0].level == "timeout"
    assert judge(kernel, tool=tool, timeout=0.2)[0].level == "timeout"
    assert (tmp_path / "runs").read_text().count("run") == 2


def test_a_comment_that_never_ends_has_a_verdict(ptxas: Tool, kernel: str) -> None:
    ((line, level, _),) = judge(kernel + "\n/* open", tool=ptxas)
    assert (line, level) == (15, "error")


@pytest.mark.parametrize("count", [0, 1])
def test_few_questions(ptxas: Tool, kernel: str, count: int) -> None:
    assert judge_many([(kernel, None)] * count, ptxas) == [[]] * count


@pytest.mark.parametrize("damage", [lambda data: b"not a database" * 100, lambda data: data[:4096] + bytes(4096)])
def test_answers_that_are_damaged_are_asked_again(
    damage: Callable[[bytes], bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    cache.remember({f"key {number}": "answer" for number in range(2000)})
    path = Path(os.environ["PTXLAB_CACHE"], "answers.sqlite")
    path.write_bytes(damage(path.read_bytes()))
    assert cache.recall(["key 1"]) in ({}, {"key 1": "answer"})
    cache.remember({"key 2": "answer"})
    assert "has no `answers.sqlite` that can be used" in capsys.readouterr().err
