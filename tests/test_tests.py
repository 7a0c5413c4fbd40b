"""Every test can fail: it asserts something, or calls a function of `tests` that does."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASSERTING = ("pytest.raises", "pytest.fail", "pytest.warns", "np.testing.")


@cache
def functions(file: Path) -> dict[str, ast.stmt]:
    """The functions of a file, by name: `def f` and `f = partial(...)`."""
    found: dict[str, ast.stmt] = {}
    for node in _tree(file).body:
        match node:
            case ast.FunctionDef(name) | ast.Assign([ast.Name(name)], ast.Call(ast.Name("partial"))):
                found[name] = node
    return found


@cache
def imports(file: Path) -> dict[str, Path]:
    """Names that a file imports from other files of `tests`, and where they come from."""
    found = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom) and node.module:
            folder = ROOT.joinpath(*node.module.split("."))
            for alias in node.names:
                for origin in (folder.with_suffix(".py"), folder / f"{alias.name}.py", folder / "__init__.py"):
                    if origin.exists():
                        found[alias.asname or alias.name] = origin
                        break
    return found


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def asserts(file: Path, name: str, calling: tuple[str, ...] = ()) -> bool:
    """Whether a function that a file defines or imports asserts something, or one that it calls."""
    while name not in functions(file):
        if name not in imports(file):
            return False
        file = imports(file)[name]
    for node in ast.walk(functions(file)[name]):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.Call):
            is_partial = isinstance(node.func, ast.Name) and node.func.id == "partial"
            called = ast.unparse(node.args[0] if is_partial else node.func)
            if called.startswith(ASSERTING):
                return True
            origin, _, called = called.rpartition(".")  # `asking.refuses(...)` is a function of the imported file
            home = imports(file).get(origin) if origin else file
            if home and called not in calling and asserts(home, called, (*calling, name)):
                return True
    return False


def test_every_test_asserts_something() -> None:
    tests = [(file, name) for file in sorted((ROOT / "tests").rglob("test_*.py")) for name in functions(file)]
    silent = [f"{file.name}: {name}" for file, name in tests if name.startswith("test_") and not asserts(file, name)]
    assert len(tests) > 1000
    assert silent == []


def test_a_test_without_an_assertion_is_found(tmp_path: Path) -> None:
    file = tmp_path / "test_made.py"
    file.write_text("""
from tests.processes import run
def test_nothing(): launch()
def test_helper(): helper()
def test_imported(): run("")
def helper(): assert launch()
def launch(): return 0
bound = partial(helper, 1)
""")
    assert [name for name in functions(file) if not asserts(file, name)] == ["test_nothing", "launch"]
