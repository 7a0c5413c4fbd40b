"""Types for editors: Python reads them, and they say of each word what may follow."""

import ast
import re
from pathlib import Path

import pytest

from ptxlab.author.spelling import name_of
from ptxlab.author.stubs import _classes, stubs

api = pytest.importorskip("mypy.api")


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("add.s32", "s32"),
        ("setp.lt.and.f32", "pred"),
        ("ld.global.v4.f32", "tuple[f32, f32, f32, f32]"),
        ("cvt.rn.bf16x2.f32", "bf16x2"),
        ("mul.wide.u32", "u64"),
        ("ld.global.u8", "u16"),
        ("st.global.f32", "None"),
        ("mad.lo.cc.u32", "u32"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tuple[f32, f32, f32, f32]"),
    ],
)
def test_an_instruction_returns_registers_of_the_type_that_the_table_knows(text: str, type: str) -> None:
    head, *words = text.split(".")
    variables: dict[str, str] = {}
    lines, name = _classes(head, variables)
    parts = "\n".join(lines).split("class ")
    classes = {part.partition(":")[0]: part for part in parts}
    for word in words:
        name = next(
            line.partition(": ")[2] for line in classes[name].splitlines() if line.startswith(f"    {name_of(word)}: ")
        )
    returned = re.search(r"__call__.* -> (\w+):", classes[name])
    assert returned
    assert {variable: type for type, variable in variables.items()}.get(returned[1], returned[1]) == type


@pytest.mark.bulk
def test_stubs() -> None:
    tree = ast.parse(stubs())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    fields = {
        name: {part.target.id: part.annotation.id for part in node.body if isinstance(part, ast.AnnAssign)}  # type: ignore[union-attr]
        for name, node in classes.items()
    }

    def reached(*words: str) -> str:
        name = "Ptx"
        for word in words:
            name = fields[name][word]
        return name

    final = classes[reached("fma", "rn", "f32")]
    (call,) = [part for part in final.body if isinstance(part, ast.FunctionDef) and part.name == "__call__"]
    assert [argument.arg for argument in call.args.args] == ["self", "a", "b", "c"]
    assert (ast.get_docstring(call) or "").startswith("fma.rnd{.ftz}{.sat}.f32 d, a, b, c: ")
    assert "__call__" not in {
        part.name for part in classes[reached("fma", "rn")].body if isinstance(part, ast.FunctionDef)
    }
    assert fields["Ptx"]["tid"] == "Components"
    assert "global_" in fields[reached("ld")]
    reached("mma", "sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32")


RIGHT = """
from instructions import ptx

fma = ptx.fma.rn.f32(1.0, 2.0, 3.0)
ptx.ld["global"].nc.v4.f32(fma, out=fma, when=fma)
ptx.cp.async_.cg.shared.global_(fma, fma, 16)
ptx.tcgen05.mma["cta_group::1"]["kind::f16"](fma, fma, fma, 0, fma)
ptx.tensormap.cp_fenceproxy.global_.shared__cta.tensormap__generic.release.gpu.sync.aligned(fma, fma, 128)
with ptx.when(ptx.tid.x < 3):
    ptx.bar.sync(0)
reveal_type(ptx.tid.x)
reveal_type(ptx.clock64)
reveal_type(ptx.shared(ptx.laneid, 32).v4)
reveal_type(ptx.fma.rn.f32(1.0, 2.0, 3.0) * 2)
reveal_type(ptx.setp.lt.u32(1, 2))
reveal_type(ptx.ld.global_.v2.u64(fma)[1])
reveal_type(ptx.cvt.rn.f16.f32(fma) < 1)
reveal_type(ptx.mov.b32(fma, out=ptx.tid.x))
"""
WRONG = """
from instructions import ptx

ptx.fma.rnn.f32(1.0, 2.0, 3.0)
ptx.ld.golbal.f32(1)
ptx.add.rn.u32(1, 2)
ptx.fma.rn.f32(1.0, 2.0)
ptx.fma.rn(1.0, 2.0, 3.0)
ptx.tid.w
ptx.nothing
ptx.when(1, 2)
ptx.add.u32(1, 2, pred=3)
ptx.tid.x.width
ptx.tile(1, 2, 3).pithc
"""


@pytest.mark.slow
@pytest.mark.bulk
def test_a_type_checker_accepts_right_and_refuses_wrong(tmp_path: Path) -> None:
    (tmp_path / "instructions.pyi").write_text(stubs())
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    options = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    output, _, _ = api.run([*options, str(tmp_path / "right.py"), str(tmp_path / "wrong.py")])
    shown = [
        line.partition('Revealed type is "ptxlab.author.')[2] for line in output.splitlines() if "Revealed" in line
    ]
    names = "values.u32 values.u64 pointers.Pointer values.f32 values.pred values.u64 values.pred values.u32"
    assert shown == [f'{name}"' for name in names.split()]
    lines = [line.partition("wrong.py:")[2] for line in output.splitlines() if ": error: " in line]
    expected = ['"rnn"; maybe "rn"?', '"golbal"; maybe "global_"?', '"u32"', 'Missing positional argument "c"',
                "not callable", '"w"', '"nothing"', 'Too many arguments for "when"', '"pred"', '"width"',
                '"pithc"; maybe "pitch"?']  # fmt: skip
    assert len(lines) == len(expected)
    for number, (line, words) in enumerate(zip(lines, expected, strict=True), 4):
        assert line.startswith(f"{number}: ")
        assert words in line
