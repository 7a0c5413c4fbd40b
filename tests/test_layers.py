"""No layer imports one above it, by a name in a string either: import-linter sees only statements."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "ptxlab"


def levels() -> dict[str, int]:
    """How high each package is."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["name"] == "layers"]
    return {name: -number for number, layer in enumerate(layers) for name in layer.split(" | ")}


def imported_by_name(tree: ast.AST) -> Iterator[str]:
    """The packages of ptxlab that `import_module("ptxlab...")` names, also in an f-string over a tuple of names."""
    loops = {
        node.target.id: [part.value for part in node.iter.elts if isinstance(part, ast.Constant)]
        for node in ast.walk(tree)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Tuple)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("import_module"), [ast.Constant(str(name)), *_]) if name.startswith("ptxlab."):
                yield name.split(".")[1]
            case ast.Call(
                ast.Name("import_module"),
                [ast.JoinedStr([ast.Constant("ptxlab."), ast.FormattedValue(ast.Name(name)), *_]), *_],
            ):
                yield from loops.get(name, ())


def test_no_layer_imports_one_above_it_by_name() -> None:
    heights = levels()
    homes = {file: file.relative_to(SOURCE).parts[0].removesuffix(".py") for file in SOURCE.rglob("*.py")}
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file, own in homes.items()
        if own in heights and "import_module" in file.read_text()
        for name in imported_by_name(ast.parse(file.read_text()))
        if heights[name] > heights[own]
    ]
    assert found == []


def test_an_import_by_name_is_found() -> None:
    assert list(imported_by_name(ast.parse("import_module('ptxlab.lab.widget')"))) == ["lab"]
    text = "for package in ('gpu', 'lab'):\n    import_module(f'ptxlab.{package}.pages')"
    assert list(imported_by_name(ast.parse(text))) == ["gpu", "lab"]
