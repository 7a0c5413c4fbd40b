"""Types for editors: Python reads them, and they say of each word what may follow."""

import ast

from ptxlab.author.stubs import stubs


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
