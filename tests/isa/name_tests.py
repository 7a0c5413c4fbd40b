"""Finds code that asks for an instruction or a special register by its name: `mnemonic == "bar"`, `case "%tid"`.

A literal is compared with something: by `==` or `in`, in a `case`, as a key of a dictionary, by `startswith`. It is
a finding if the literal is the name of an instruction, or the start of one, which means nothing else (`ld`,
`cp.async`, `mma_async`); or if it is an ordinary word (`add`), or a later word of a name (`bulk`), and what it is
compared with is the text of an opcode, or a part of it. The name of a special register, or the start of one, always is.
Constants count as the literals in them, from other files too.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.table import forms

NAMES = {".".join(form.name[:count]) for form in forms() for count in range(1, len(form.name) + 1)}
LATER_WORDS = {word for form in forms() for word in form.name[1:]}
SHORTEST = 4  # characters of a special register's name: `%r` and `%p` start names of other registers
# Mnemonics that are also operations of Python code and units of `isa.asynchronous`, or plain English.
ORDINARY = frozenset(
    "abs add and bar barrier call cos cp discard div elect exit fabric fence fma mad match max mbarrier min mul neg "
    "not or prefetch rem set sin sqrt sub tanh tex trap vote wgmma xor".split()
)
# What holds the text of an opcode, or of a part of it, by the name of a variable or of an attribute.
SPELLED = frozenset("opcode mnemonic mnemonics by_mnemonic modifiers family".split())
TEXT_METHODS = frozenset("split partition rpartition lower rstrip removeprefix removesuffix get".split())
# What compares, what names things, and what gives them values; and what has nothing of these below it.
ASKED = (
    ast.Compare, ast.Match, ast.Subscript, ast.Call, ast.Dict, ast.Set, ast.ImportFrom,
    ast.Assign, ast.NamedExpr, ast.For, ast.comprehension,
)  # fmt: skip
LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
COLLECTIONS = frozenset("frozenset set tuple list dict".split())


@dataclass(frozen=True)
class Finding:
    """A test of an instruction's name."""

    path: str
    line: int
    subject: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.subject}` is compared with {', '.join(self.names)}"


def scan(root: Path, skipped: tuple[str, ...]) -> list[Finding]:
    """All findings in the sources of a package, but for some of its parts."""
    files: dict[str, File] = {}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        files[name] = File(name, path.read_text(), files)
    asked = [file for name, file in files.items() if name.partition("/")[0] not in skipped]
    return [finding for file in asked for finding in file.findings()]


@dataclass
class File:
    """One source; `files` are all, by their paths."""

    path: str
    text: str
    files: dict[str, "File"]

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax; of files that are not asked and whose constants are not imported, it is never needed."""
        return ast.parse(self.text)

    def findings(self) -> Iterator[Finding]:
        """What asks for a name, by line."""
        found = set()
        for node, subject, literals in self._tests():
            if not any(_is_name(text, True) for text in literals):
                continue
            spelled = self._is_spelled(subject)
            names = [text for text in literals if _is_name(text, spelled)]
            if names:
                found.add(Finding(self.path, node.lineno, ast.unparse(subject), tuple(dict.fromkeys(names))))
        yield from sorted(found, key=lambda finding: (finding.line, finding.subject))

    def _tests(self) -> Iterator[tuple[ast.expr | ast.pattern, ast.expr, list[str]]]:
        """Everywhere that something is compared with literals: where, what, and with which."""
        for node in self._nodes:
            match node:
                case ast.Compare():
                    sides = [node.left, *node.comparators]
                    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
                        if isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                            yield node, left, self._literals(right)
                            yield node, right, self._literals(left)
                case ast.Match():
                    for case in node.cases:
                        for part in ast.walk(case.pattern):
                            if isinstance(part, ast.MatchValue):
                                yield part, node.subject, self._literals(part.value)
                case ast.Subscript():
                    yield node, node.slice, self._literals(node.value)
                    yield node, node.value, self._literals(node.slice)
                case ast.Call(func=ast.Attribute(value=subject, attr="startswith" | "endswith"), args=[given, *_]):
                    yield node, subject, self._literals(given)
                case ast.Call(func=ast.Attribute(value=subject, attr="get"), args=[given, *_]):
                    yield node, subject, self._literals(given)
                    yield node, given, self._literals(subject)
                case ast.Call(func=ast.Attribute(attr="by_mnemonic" | "named") as subject):
                    yield node, subject, [text for given in node.args for text in self._literals(given)]
                case ast.Dict() | ast.Set():
                    yield node, node, self._literals(node)

    def _literals(self, node: ast.expr | None) -> list[str]:
        """The texts in an expression that is written out, or the name of one that is."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.List(elts=parts):
                return [text for part in parts for text in self._literals(part)]
            case ast.Dict(keys=keys):
                return [text for key in keys for text in self._literals(key)]
            case ast.Starred(value=value):
                return self._literals(value)
            case ast.BinOp(left=left, right=right):
                return [*self._literals(left), *self._literals(right)]
            case ast.Call(func=ast.Attribute(value=value, attr="split"), args=[]):
                return [word for text in self._literals(value) for word in text.split()]
            case ast.Call(func=ast.Name(id=name), args=parts, keywords=keywords) if name in COLLECTIONS:
                named = [keyword.arg for keyword in keywords if keyword.arg]
                return [*(text for part in parts for text in self._literals(part)), *named]
            case ast.Call(func=ast.Attribute(attr="fromkeys") | ast.Name(id="opcode"), args=[given, *_]):
                return self._literals(given)
            case ast.Name(id=name):
                return self._constant(name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if self._imports.get(module) in self.files:
                return self.files[self._imports[module]]._constant(name)
        return []

    def _constant(self, name: str) -> list[str]:
        """The texts in a constant of this file, or of one that it is imported from."""
        if name in self._constants:
            return self._literals(self._constants[name])
        path, _, attribute = self._imports.get(name, "").partition(":")
        return self.files[path]._constant(attribute) if attribute and path != self.path else []

    @cached_property
    def _constants(self) -> dict[str, ast.expr]:
        """The names that are given a value at the top level."""
        found: dict[str, ast.expr] = {}
        for statement in self.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found[name] = value
        return found

    @cached_property
    def _imports(self) -> dict[str, str]:
        """Where imported names come from: the file of a module, or `file:name` of what it holds."""
        found: dict[str, str] = {}
        for node in self._nodes:
            if isinstance(node, ast.ImportFrom):
                folder = [*self.path.split("/")[: -node.level]] if node.level else []
                parts = [*folder, *(node.module or "").split(".")[0 if node.level else 1 :]]
                for alias in node.names:
                    module, holder = self._module([*parts, alias.name]), self._module(parts)
                    if module or holder:
                        found[alias.asname or alias.name] = module or f"{holder}:{alias.name}"
        return found

    def _module(self, parts: list[str]) -> str | None:
        inside = "/".join(part for part in parts if part)
        return next((path for path in (f"{inside}.py", f"{inside}/__init__.py") if path in self.files), None)

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        """What is asked of; by far the most nodes are names, attributes and what they are read for."""
        found, stack = [], [self.tree]
        while stack:
            node = stack.pop()
            if isinstance(node, ASKED):
                found.append(node)
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    stack += [one for one in value if isinstance(one, ast.AST)]
                elif isinstance(value, ast.AST) and not isinstance(value, LEAVES):
                    stack.append(value)
        return found

    @cached_property
    def _assignments(self) -> list[tuple[list[str], ast.expr]]:
        return list(_assignments(self._nodes))

    @cached_property
    def _holders(self) -> set[str]:
        """The variables that are given the text of an opcode, or of a part of it, somewhere in the file."""
        found: set[str] = set()
        while True:
            new = {name for target, value in self._assignments if self._spells(value, found) for name in target}
            if new <= found:
                return found
            found |= new

    def _is_spelled(self, node: ast.expr) -> bool:
        return self._spells(node, self._holders)

    def _spells(self, node: ast.expr, holders: set[str]) -> bool:
        """Whether an expression is the text of an opcode, its words, or one of them."""
        match node:
            case ast.Name(id=name):
                return name in SPELLED or name in holders
            case ast.Attribute(value=ast.Attribute(attr="form") | ast.Name(id="form"), attr="name"):
                return True
            case ast.Attribute(value=value, attr="text"):
                return self._spells(value, holders)
            case ast.Attribute(attr=name):
                return name in SPELLED
            case ast.Subscript(value=value) | ast.Starred(value=value):
                return self._spells(value, holders)
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                return method in TEXT_METHODS and self._spells(value, holders)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.BoolOp(values=parts):
                return any(self._spells(part, holders) for part in parts)
            case ast.IfExp(body=body, orelse=other):
                return self._spells(body, holders) or self._spells(other, holders)
            case ast.NamedExpr(value=value):
                return self._spells(value, holders)
        return False


def _is_name(text: str, spelled: bool) -> bool:
    if text.startswith("%"):
        return len(text) >= SHORTEST and any(name.startswith(text.partition(".")[0]) for name in SPECIAL_REGISTERS)
    first, dot, _ = text.partition(".")
    if first in NAMES:
        return bool(spelled or first not in ORDINARY or (dot and text.rstrip(".") in NAMES))
    return text in LATER_WORDS and (spelled or "_" in text)


def _assignments(nodes: list[ast.AST]) -> Iterator[tuple[list[str], ast.expr]]:
    """The variables that values are given to, by assignments and by loops."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                for target, value in zip(targets, values, strict=True):
                    yield _named(target), value
            case ast.Assign(targets=targets, value=value):
                yield [name for target in targets for name in _named(target)], value
            case ast.NamedExpr(target=target, value=value):
                yield _named(target), value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield _named(target), value


def _named(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
