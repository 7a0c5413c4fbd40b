"""Verdicts as values, pages and JSON; tasks with strides and alignment; limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ptxlab import parse, verify
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.verify import SCHEMA, Array, Scalar, Size, Task, TaskError
from ptxlab.verify.formulas import FormulaError, evaluate
from ptxlab.verify.parts import assembles
from ptxlab.verify.task import load_task
from tests.verify.cheats import AUTHORED, HEAD, KERNEL, LOAD, STORE, TASK, changed

TASK_FILE = """
from ptxlab.verify import Array, Scalar, Size, Task
task = Task("affine", lambda x: 2 * x + 1, sizes={"n": Size(1, 200)}, hidden=3, seeds=1,
            arguments=[Array("x", "f32", "n"), Array("y", "f32", "n", role="out"), Scalar("n")])
"""

# The first block writes what is after its row.
GAP = """    setp.eq.u32 %p2, %r2, 0;
    mul.wide.u32 %rd8, %r1, 4;
    add.s64 %rd8, %rd2, %rd8;
    setp.eq.and.u32 %p2, %r3, 0, %p2;
    @%p2 st.global.f32 [%rd8], %f2;
"""


def matches(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is as a JSON Schema says, as far as ours go."""
    if "anyOf" in schema:
        return any(matches(value, one) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    types = {"string": str, "integer": int, "number": (int, float), "array": list, "object": dict, "null": type(None)}
    named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(isinstance(value, types[one]) for one in named):
        return False
    if isinstance(value, list):
        return all(matches(one, schema["items"]) for one in value)
    if isinstance(value, dict) and "properties" in schema:
        return value.keys() == schema["properties"].keys() and all(
            matches(value[key], one) for key, one in schema["properties"].items()
        )
    return True


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK_FILE)
    launch = "// launch: affine grid=ceil_div(n, 64) block=64\n"
    (tmp_path / "right.ptx").write_text(launch + HEAD + KERNEL)
    (tmp_path / "wrong.ptx").write_text(launch + changed(("0f3F800000", "0f40000000")))
    run = CliRunner().invoke
    given = ["verify", str(tmp_path / "task.py"), "--no-estimate", "--seed", "5", "--kernel"]
    found = run(command_line, [*given, str(tmp_path / "right.ptx"), "--format", "json"])
    assert found.exit_code == 0, found.output
    said = json.loads(found.output)
    assert matches(said, SCHEMA)
    assert said["status"] == "accepted"
    level = next(part for part in said["parts"] if part["name"] == "equal")["figures"]["level"]
    assert level in ("same-bits", "same-function")
    found = run(command_line, [*given, str(tmp_path / "wrong.ptx")])
    assert found.exit_code == 1
    assert "wrong-values: `y` is not what the reference gives" in found.output
    replay = next(line for line in found.output.splitlines() if "replay: " in line).partition("replay: ptxlab ")[2]
    again = run(
        command_line, [*replay.split(), "--no-estimate", "--format", "markdown", "--output", str(tmp_path / "x")]
    )
    assert again.exit_code == 1
    assert again.output.startswith("verify affine wrong.ptx: rejected [wrong-values] (")
    assert "| equal | FAILED |" in (tmp_path / "x").read_text()
    found = run(command_line, [*given, str(tmp_path / "wrong.ptx"), "--format", "html"])
    assert "<h2>equal: wrong-values</h2>" in found.output
    assert json.loads(run(command_line, ["verify", "--schema"]).output) == SCHEMA


@pytest.mark.parametrize(
    ("change", "status"), [(("", ""), "passed"), (("%r2, %ctaid.x;", "%r2, %ctaid.x; min.u32 %r2, %r2, 1;"), "open")]
)
def test_a_proof_is_a_part_where_it_is_asked_for(tmp_path: Path, change: tuple[str, str], status: str) -> None:
    pytest.importorskip("z3", reason="a proof needs `pip install 'ptxlab[prove]'`")
    (tmp_path / "task.py").write_text(TASK_FILE)
    assert change[0] in KERNEL
    text = "// launch: affine grid=ceil_div(n, 64) block=64\n" + HEAD + KERNEL.replace(*change)
    (tmp_path / "kernel.ptx").write_text(text)
    sizes = {"n": 100}  # two blocks: a third one would write what the second does
    found = verify(tmp_path / "task.py", tmp_path / "kernel.ptx", sizes=sizes, estimate=False, prove=True)
    assert found["proof"].status == status, str(found)
    assert matches(found.as_dict(), SCHEMA)


def test_strides_and_alignment(tmp_path: Path) -> None:
    """Rows with gaps at an address that is a multiple of 4 only: vectors and writes to gaps are found."""
    row = KERNEL.replace(".param .u32 n)", ".param .u32 n, .param .u32 step)")
    row = row.replace("    mad.lo.u32 %r4, %r2, 64, %r3;\n", "    mov.u32 %r4, %r3;\n")
    row = row.replace("    mul.wide.u32 %rd3, %r4, 4;\n", "    ld.param.u32 %r9, [step];\n"
                      "    mad.lo.u32 %r4, %r2, %r9, %r4;\n    mul.wide.u32 %rd3, %r4, 4;\n")  # fmt: skip
    task = Task(
        "affine",
        lambda x: 2 * x + 1,
        sizes={"rows": Size(1, 5), "n": Size(1, 60)},
        arguments=[
            Array("x", "f32", "rows, n", strides="n + 3, 1", alignment=4),
            Array("y", "f32", "rows, n", role="out", strides="n + 3, 1", alignment=4),
            Scalar("n"),
            Scalar("step", value="n + 3"),
        ],
        hidden=3,
        seeds=1,
        launch="grid=rows block=64",
    )
    file = tmp_path / "kernel.ptx"
    for text, code in (
        (row, None),
        (row.replace(STORE, STORE + GAP), "written-gap"),
        (row.replace(LOAD, "    .reg .f32 %g;\n    ld.global.v2.f32 {%f1, %g}, [%rd4];\n"), "misaligned-access"),
    ):
        file.write_text(HEAD + text)
        found = verify(task, file, seed=2, estimate=False, symbolic=False)
        assert (code is None) == found.accepted, str(found)
        assert code is None or code in found.codes, str(found)


def test_limits(tmp_path: Path) -> None:
    endless = tmp_path / "endless.ptx"
    endless.write_text(changed((STORE, "again:\n    ld.volatile.global.f32 %f2, [%rd5];\n    bra again;\n")))
    found = verify(TASK, endless, timeout=3, estimate=False)
    assert not found.accepted
    assert {"hang", "timeout", "out-of-time"} & set(found.codes), str(found)
    large = tmp_path / "large.ptx"
    large.write_text(
        "// workspace: w f32[n * 1000000000]\n// launch: affine grid=1 block=64 args=x,w,n\n" + HEAD + KERNEL
    )
    assert verify(TASK, large, estimate=False).codes == ["too-large"]
    slow = tmp_path / "slow.ptx"
    slow.write_text(HEAD + KERNEL)
    late = verify(TASK, slow, timeout=0.1, estimate=False)  # it is right, and there was no time to see that
    assert (late.status, set(late.codes) - {"out-of-time", "ptxas-timeout"}) == ("undecided", set())
    sleeping = tmp_path / "sleeping.py"
    sleeping.write_text("import time\ntime.sleep(60)\n" + AUTHORED.format(""))
    assert verify(TASK, sleeping, timeout=1.5, estimate=False).codes == ["out-of-time"]


def test_a_late_assembler_says_nothing_of_the_kernel() -> None:
    module = parse(HEAD + KERNEL, name="slow.ptx")
    part = assembles([module], ["sm_80"], 1e-6)
    if not part.notes[0].startswith("asked"):
        pytest.skip("there is no ptxas")
    assert ([one.code for one in part.findings], part.status) == (["ptxas-timeout"], "open")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__import__('os')", "expected numbers"),
        ("n ** 99", "expected numbers"),
        ("m", "there is no size `m`"),
        ("n // 0", "division by zero"),
        ("n * 99999999999999", "too large"),
        ("(" * 500, "is not a formula"),
    ],
)
def test_formulas_refuse(text: str, said: str) -> None:
    with pytest.raises(FormulaError, match=said.replace("(", r"\(")):
        evaluate(text, {"n": 7})


def test_tasks_refuse() -> None:
    with pytest.raises(TaskError, match="no argument has the role `out`"):
        Task("t", np.exp, sizes={}, arguments=[Array("x", "f32", "4")])
    with pytest.raises(TaskError, match="there is no type f31"):
        Task("t", np.exp, sizes={}, arguments=[Array("x", "f31", "4", role="out")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("task = (", "line 1: '\\(' was never closed"),
        ("x = 1\ny = x.z\n", "line 2: AttributeError: 'int' object has no attribute 'z'"),
        ("x = 1\n", "task"),
    ],
)
def test_wrong_task_files(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "task.py"
    file.write_text(text)
    with pytest.raises(TaskError, match=said):
        load_task(file)
