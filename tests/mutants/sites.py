"""Where a file of Python can be changed in one place, and to what.

Operators, comparisons, `and`, `or`, `not`, numbers and booleans of code that runs: not annotations, decorators,
assertions or text, and not the types of type checkers.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
    ast.BitXor: (r"\^", "|"),
}
BOOLEAN: dict[type[ast.boolop], tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}


@dataclass(frozen=True)
class Site:
    """A place of a file, in bytes, and what it is changed to."""

    file: str
    line: int
    start: int
    end: int
    after: str

    @property
    def package(self) -> str:
        return Path(self.file).parts[2]

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def show(self, source: bytes) -> dict[str, str]:
        """The line before and after."""
        number = source[: self.start].count(b"\n")
        before, after = (text.decode().split("\n")[number].strip() for text in (source, self.apply(source)))
        return {"before": before, "after": after}


def sites(root: Path, packages: list[str]) -> list[Site]:
    """All places of these packages of `root/src/ptxlab`, in the order of their files."""
    found: list[Site] = []
    for package in packages:
        for file in sorted((root / "src/ptxlab" / package).rglob("*.py")):
            found += _Finder(str(file.relative_to(root)), file.read_bytes()).find()
    return found


class _Finder:
    def __init__(self, name: str, source: bytes) -> None:
        self.name = name
        self.source = source
        self.starts = [0, *(at.end() for at in re.finditer(rb"\n", source))]

    def find(self) -> Iterator[Site]:
        yield from self._visit(ast.parse(self.source))

    def _visit(self, node: ast.AST) -> Iterator[Site]:
        if isinstance(node, ast.Assert | ast.JoinedStr) or _is_for_types(node):
            return
        yield from self._of(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._visit(child)

    def _of(self, node: ast.AST) -> Iterator[Site]:
        match node:
            case ast.Compare():
                for left, operator, right in zip(
                    [node.left, *node.comparators], node.ops, node.comparators, strict=False
                ):
                    yield from self._between(left, right, COMPARISONS.get(type(operator)))
            case ast.BinOp() if not (_is_text(node.left) or _is_text(node.right) or _is_type(node)):
                yield from self._between(node.left, node.right, OPERATORS.get(type(node.op)))
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between(left, right, BOOLEAN[type(node.op)])
            case ast.UnaryOp(ast.Not()):
                yield self._site(node.lineno, self._start(node), self._start(node) + len("not"), "")
            case ast.AugAssign() if not _is_text(node.value):
                yield from self._between(node.target, node.value, OPERATORS.get(type(node.op)))
            case ast.Constant(bool(value)):
                yield self._site(node.lineno, self._start(node), self._end(node), str(not value))
            case ast.Constant(int(value)):
                yield self._site(node.lineno, self._start(node), self._end(node), str(value + 1))

    def _between(self, left: ast.expr, right: ast.expr, change: tuple[str, str] | None) -> Iterator[Site]:
        """The operator between two expressions; but not in a comment."""
        if change is None:
            return
        start, stop = self._end(left), self._start(right)
        gap = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), self.source[start:stop])
        pattern = rf"\b{change[0]}\b" if change[0][0].isalpha() else change[0]
        found = re.search(pattern.encode(), gap)
        if found:
            yield self._site(left.end_lineno or left.lineno, start + found.start(), start + found.end(), change[1])

    def _site(self, line: int, start: int, end: int, after: str) -> Site:
        return Site(self.name, line, start, end, after)

    def _start(self, node: ast.expr) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr() | ast.Constant(str() | bytes()):
            return True
        case ast.BinOp():
            return _is_text(node.left) or _is_text(node.right)
    return False


def _is_type(node: ast.expr) -> bool:
    """`int | Name`: a type as a value."""
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return _is_type(left) and _is_type(right)
        case ast.Constant(None) | ast.Name("int" | "str" | "bool" | "float" | "bytes" | "list" | "dict" | "tuple"):
            return True
        case ast.Name(name) | ast.Attribute(attr=name) | ast.Subscript(ast.Name(name)):
            return name[0].isupper() and (len(name) == 1 or not name.isupper())
    return False


def _is_for_types(node: ast.AST) -> bool:
    match node:
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.Subscript(ast.Name("Literal" | "Annotated")):
            return True
        case ast.Assign([ast.Name("__all__" | "__slots__")]):
            return True
    return False
