"""Grades: verdicts and scores of submissions for the NVFP4 problems, the history, and a teacher's own problem."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptxlab import gpu
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.grade import grade, problem, problems
from ptxlab.verify import TaskError
from tests.grade.submissions import SUBMISSIONS
from tests.tools import is_there

needs_compiler = pytest.mark.skipif(
    not (is_there("nvrtc") or (is_there("nvcc") and shutil.which("g++"))), reason="no NVRTC, and no nvcc with g++"
)

TEACHERS = """
from ptxlab.measure import Work
from ptxlab.verify import Array, Scalar, Size, Task
task = Task("copy", lambda x: x, sizes={"n": Size(1, 90)}, hidden=3, seeds=1, tolerance=0.0,
            arguments=[Array("x", "f32", "n"), Array("y", "f32", "n", role="out"), Scalar("n")],
            work=lambda n: Work(flops=0, bytes=8 * n, rate="f32"), timed=[{"n": 1 << 20}])
"""
COPY = """// launch: copy grid=ceil_div(n, 64) block=64
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<5>;
    .reg .pred %p;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r2, 64, %r3;
    setp.ge.u32 %p, %r4, %r1;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    @!%p ld.global.u32 %r2, [%rd4];
    @!%p st.global.u32 [%rd5], %r2;
    ret;
}
"""


def test_problems_are_tasks() -> None:
    for name in problems():
        task = problem(name)
        assert task.name == name
        assert task.title
        assert task.timed
        assert all(set(sizes) == set(task.sizes) for sizes in (*task.shapes, *task.timed, *task.draw_sizes()))
        task.expected(task.draw(dict(task.shapes[0]), [1]))
    with pytest.raises(TaskError, match="did you mean `softmax`"):
        problem("softmaks")


def test_a_teachers_problem(tmp_path: Path) -> None:
    for name, text in {"task.py": TEACHERS, "right.ptx": COPY, "wrong.ptx": COPY.replace("[%rd4]", "[%rd4+4]")}.items():
        (tmp_path / name).write_text(text)
    run, kept = CliRunner().invoke, ["--history", str(tmp_path / "grades.jsonl")]
    files = [str(tmp_path / name) for name in ("task.py", "wrong.ptx", "right.ptx")]
    found = run(command_line, ["grade", *files, *kept, "--format", "json", "--seed", "1", "--no-measure"])
    assert found.exit_code == 1, found.output
    wrong, right = json.loads(found.output)
    assert (wrong["status"], wrong["score"]) == ("rejected", 0)
    assert right["status"] == "accepted"
    assert 20 < right["score"] <= 100
    table = run(command_line, ["grade", "--table", *kept]).output
    assert table.index("| copy | right.ptx | accepted |") < table.index(
        "| copy | wrong.ptx | rejected (out-of-bounds) |"
    )
    assert len(json.loads(run(command_line, ["grade", "copy", "--table", *kept, "--format", "json"]).output)) == 2


@pytest.mark.gpu
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
def test_times_on_a_gpu(tmp_path: Path) -> None:
    """A right kernel has the time that is measured; one that does less at the size that is timed is rejected there."""
    idle = COPY.replace("    @!%p ld", "    setp.gt.or.u32 %p, %r1, 90, %p;\n    @!%p ld")
    for name, text in {"task.py": TEACHERS, "right.ptx": COPY, "idle.ptx": idle}.items():
        (tmp_path / name).write_text(text)
    right, wrong = (grade(tmp_path / "task.py", tmp_path / f"{name}.ptx", seed=1) for name in ("right", "idle"))
    ((time,), bytes) = right.verdict["estimate"].figures["times"], 8 << 20
    assert (right.status, time["kind"], time["sizes"]) == ("accepted", "measured", {"n": 1 << 20})
    assert bytes / 10e12 < time["seconds"] < 1e-3
    assert 5 < right.score <= 100
    assert (wrong.status, wrong.verdict.codes) == ("rejected", ["wrong-values"])
    assert "1,048,576 of 1,048,576 elements are wrong" in str(wrong)
    unmeasured = grade(tmp_path / "task.py", tmp_path / "idle.ptx", seed=1, measure=False)
    assert unmeasured.verdict["estimate"].figures["times"][0]["kind"] == "estimate"


@pytest.mark.parametrize(
    ("name", "kind"), [pytest.param(*key, marks=() if key == ("nvfp4_gemv", "slow") else pytest.mark.bulk)
                       for key in SUBMISSIONS]
)  # fmt: skip
@needs_compiler
def test_nvfp4(name: str, kind: str, tmp_path: Path) -> None:
    suffix, text, status, code = SUBMISSIONS[name, kind]
    file = tmp_path / f"{kind}{suffix}"
    file.write_text(text)
    found = grade(name, file, seed=3, symbolic=False)
    assert found.status == status, str(found)
    assert code is None or code in found.verdict.codes, str(found)
