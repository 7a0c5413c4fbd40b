"""A Python function as an algorithm: its text is read, it never runs.

| Python | what it is |
|---|---|
| `for i in range(n):`, `for i, j in grid(m, n):` | loops; their iterations are independent |
| `sum(... for x in range(k) if ...)`, `max(...)`, `min(...)` | a reduction |
| `y[i, j] = ...`, under `if ...:` where it is not for all | a store |
| `t = ...` | a name for a number |
| `a if 0 <= i < n else b`, `exp(x)`, `max(a, b)` | expressions |
"""

from __future__ import annotations

import ast
import copyreg
import inspect
import linecache
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, NoReturn

from ptxlab.author.lines import definition_of, refuse_line
from ptxlab.measure.block_scaled import FORMATS
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import (
    Algorithm,
    Applied,
    Array,
    Expression,
    Gathered,
    Index,
    Let,
    Load,
    Name,
    Number,
    Reduce,
    Statement,
    Store,
    gathered,
    loads,
)

FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "tanh", "abs", "sin", "cos")
REDUCTIONS = {"sum": "add", "max": "max", "min": "min"}
_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}


class ArrayType:
    """`f32["m", "k"]` in an annotation; without extents it is a number."""

    def __init__(self, element: str, extents: tuple[str | int, ...] = ()) -> None:
        self.element = element
        self.extents = extents

    def __getitem__(self, extents: object) -> ArrayType:
        return ArrayType(self.element, extents if isinstance(extents, tuple) else (extents,))


ELEMENTS = ("f32", "f16", "bf16", "e4m3", "e5m2", "s8", "u8", "s32", "nvfp4", "mxf4", "mxf8")
f32, f16, bf16, e4m3, e5m2, s8, u8, s32, nvfp4, mxf4, mxf8 = map(ArrayType, ELEMENTS)


def algorithm(function: Callable[..., object]) -> Algorithm:
    """Read a Python function as an algorithm."""
    return _Reader(function).read()


def algorithm_of(text: str, name: str, file: str, types: Mapping[str, object] | None = None) -> Algorithm:
    """Read the text of a function that is in no file; `types` are those of its parameters, where it does not say."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {element: ArrayType(element) for element in ELEMENTS}
    exec(compile(text, file, "exec", flags=annotations.compiler_flag), space)
    if types is not None:
        space[name].__annotations__ = dict(types)
    return replace(algorithm(space[name]), text=text)


def _reduced(one: Algorithm) -> tuple[Any, ...]:
    """How an algorithm is pickled: by its text, which another process need not have as a file."""
    definition = definition_of(one.function.__code__)
    assert definition is not None
    types = inspect.get_annotations(one.function, eval_str=True)
    plain = ast.FunctionDef(**{**vars(definition), "decorator_list": [], "returns": None})
    return algorithm_of, (ast.unparse(plain), one.name, f"<{one.name}>", types)


copyreg.pickle(Algorithm, _reduced)


class _Reader:
    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.file = function.__code__.co_filename
        self.arrays: dict[str, Array] = {}
        self.numbers: set[str] = set()
        self.sizes: dict[str, None] = {}
        self.axes: dict[str, Linear] = {}
        self.statements: list[Statement] = []
        self.made: dict[str, tuple[str, ...]] = {}  # what has a name, and the loops that it is made in
        self.conditions: set[str] = set()  # those of them that are conditions
        self.whole: dict[str, Linear] = {}  # those that are loop variables, or elements that are indices

    def refuse(self, node: ast.AST | int, message: str, label: str = "", helps: tuple[str, ...] = ()) -> NoReturn:
        line = node if isinstance(node, int) else getattr(node, "lineno", self.function.__code__.co_firstlineno)
        refuse_line("not-an-algorithm", message, self.file, line, label, helps)

    def read(self) -> Algorithm:
        definition = definition_of(self.function.__code__)
        if definition is None:
            self.refuse(1, f"the text of `{self.function.__name__}` is not known: an algorithm is in a file")
        self._read_parameters(definition)
        body = definition.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        if len(body) != 1 or not isinstance(body[0], ast.For):
            other = next((node for node in body if not isinstance(node, ast.For)), body[-1])
            self.refuse(other, "an algorithm is one loop, with all else in it", "beside it")
        self._read_body(body, {}, (), None)
        if not any(isinstance(one, Store) for one in self.statements):
            self.refuse(definition, f"`{definition.name}` writes no array")
        found = Algorithm(
            definition.name, tuple(inspect.signature(self.function).parameters), self.arrays, tuple(self.sizes),
            self.axes, tuple(self.statements), self.function,
        )  # fmt: skip
        _check_stores(found)
        return found

    def _read_parameters(self, definition: ast.FunctionDef) -> None:
        try:
            types = inspect.get_annotations(self.function, eval_str=True)
        except NameError as problem:
            self.refuse(definition, f"an annotation means nothing: {problem}")
        for name in inspect.signature(self.function).parameters:
            type = types.get(name)
            if not isinstance(type, ArrayType):
                said = 'annotate it: `f32["m", "n"]`, or `f32` for a number'
                self.refuse(definition, f"parameter `{name}` has no type", helps=(said,))
            if not type.extents:
                self.numbers.add(name)
                continue
            extents = []
            for text in type.extents:
                try:
                    tree = ast.parse(str(text), mode="eval").body
                except SyntaxError:
                    self.refuse(definition, f"`{text}` is not the extent of an array")
                for node in ast.walk(tree):
                    if isinstance(node, ast.Name):
                        self.sizes.setdefault(node.id)
                extents.append(self._linear(tree, {}, definition.lineno))
            if type.element in FORMATS and len(extents) != 2:
                said = f"`{name}` has {len(extents)} dimensions: {type.element} is of matrices"
                self.refuse(definition, said, helps=(f'`{type.element}["m", "k"]`, with scale factors along `k`',))
            self.arrays[name] = Array(name, type.element, tuple(extents))
        if both := [name for name in self.sizes if name in self.arrays or name in self.numbers]:
            self.refuse(definition, f"`{both[0]}` is a parameter, and the size of an array")

    def _read_body(
        self, body: list[ast.stmt], names: dict[str, Linear], axes: tuple[str, ...], condition: Expression | None
    ) -> None:
        for node in body:
            match node:
                case ast.For(orelse=[]) if condition is None:
                    inner, added = self._loops(node.target, node.iter, names, axes)
                    self._read_body(node.body, inner, axes + added, None)
                case ast.If(orelse=[]):
                    found = self._condition(node.test, self._expression(node.test, names, axes))
                    self._read_body(node.body, names, axes, _both(condition, found))
                case ast.Assign(targets=[ast.Name(id=name)]) if condition is None:
                    if name in {*self.made, *self.numbers, *self.arrays, *self.sizes, *names}:
                        self.refuse(node, f"`{name}` is assigned a second time", "a name is for one value")
                    self._assign(name, node, names, axes)
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=array)) as target]):
                    index = self._index(array, target, names)
                    if gathered(*index):
                        said = f"`{array}` is written at indices that are read: iterations may write one element"
                        self.refuse(node, said, "which of them is last?")
                    if self.arrays[array].element not in ("f32", "f16", "bf16"):
                        said = f"`{array}` is of {self.arrays[array].element}, which is only read"
                        self.refuse(node, said, helps=("store it as `f16`, `bf16` or `f32`",))
                    value = self._expression(node.value, names, axes, inside=condition is None)
                    value = self._number(node.value, value)
                    store = Store(axes, value, node.lineno, array, index, condition)
                    if condition is None:
                        for axis, extent in enumerate(self.arrays[array].extents):
                            self._check_inside(node, array, index[axis], extent)
                    self.statements.append(store)
                case ast.AugAssign():
                    self.refuse(node, "a sum is written as one", helps=("`t = sum(... for x in range(k))`",))
                case _:
                    said = "loops, `t = ...`, `y[i] = ...` and `if ...:` around stores are read"
                    self.refuse(node, f"this statement is not part of an algorithm: `{_text(node)}`", helps=(said,))

    def _assign(self, name: str, node: ast.Assign, names: dict[str, Linear], axes: tuple[str, ...]) -> None:
        count = len(self.statements)
        value = self._expression(node.value, names, axes, name)
        if isinstance(value, Index):
            self.whole[name] = value.value
        elif len(self.statements) == count or not (isinstance(value, Name) and value.name == name):
            self.statements.append(Let(axes, value, node.lineno, name))
        self.made[name] = axes
        if self._holds(value):
            self.conditions.add(name)

    def _holds(self, value: Expression) -> bool:
        """Whether an expression is a condition."""
        if isinstance(value, Name):
            return value.name in self.conditions
        return isinstance(value, Applied) and value.name in (*_COMPARED.values(), "and", "or")

    def _number(self, node: ast.expr, value: Expression) -> Expression:
        if self._holds(value):
            helps = (f"choose: `1.0 if {_text(node)} else 0.0`",)
            self.refuse(node, f"`{_text(node)}` is a condition, expected a number", helps=helps)
        return value

    def _condition(self, node: ast.expr, value: Expression) -> Expression:
        if not self._holds(value):
            helps = (f"compare: `{_text(node)} != 0`",)
            self.refuse(node, f"`{_text(node)}` is a number, expected a condition", helps=helps)
        return value

    def _loops(
        self, target: ast.expr, source: ast.expr, names: Mapping[str, Linear], axes: tuple[str, ...]
    ) -> tuple[dict[str, Linear], tuple[str, ...]]:
        """The names in a loop, and the axes that it adds."""
        match target, source:
            case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[limit]):
                wanted = [(name, Linear(), limit)]
            case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[first, limit]):
                wanted = [(name, self._linear(first, {}, first.lineno), limit)]
            case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="grid"), args=limits) if len(targets) == len(
                limits
            ):
                wanted = [
                    (getattr(one, "id", "?"), Linear(), limit) for one, limit in zip(targets, limits, strict=True)
                ]
            case _:
                self.refuse(
                    source, "a loop is over `range(n)`, `range(first, n)` or `grid(m, n)`", "of no known extent"
                )
        inner = dict(names)
        for name, start, limit in wanted:
            if depends := [one.id for one in ast.walk(limit) if isinstance(one, ast.Name) and one.id in names]:
                said = f"how many iterations `{name}` has depends on `{depends[0]}`"
                helps = ("a loop over all, with a condition: `sum(... for j in range(n) if j < i)`",)
                self.refuse(source, said, helps=helps)
            extent = self._linear(limit, {}, limit.lineno) - start
            if name in axes or name in self.sizes or name in self.arrays or name in self.made:
                self.refuse(source, f"`{name}` is the name of something else already")
            if self.axes.setdefault(name, extent) != extent:
                was = self.axes[name]
                self.refuse(source, f"`{name}` goes to {extent} here, to {was} before", helps=("use another name",))
            inner[name] = Linear.of(name) + start
        return inner, tuple(name for name, _, _ in wanted)

    def _linear(self, node: ast.expr, names: Mapping[str, Linear], line: int) -> Linear:  # noqa: RET503 - `refuse` does not return
        match node:
            case ast.Constant(value=int(value)):
                return Linear.of(value)
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.Subscript(value=ast.Name(id=array)) if self._is_whole(array):
                index = self._index(array, node, names)
                return Linear.of(Gathered.of(Load(array, index, self._are_inside(node, array, index, True))))
            case ast.Name(id=name) if name in self.sizes:
                return Linear.of(name)
            case ast.Name(id=name) if name in self.whole:
                self._check_loop(node, name, names)
                return self.whole[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._linear(operand, names, line)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
                first, second = self._linear(left, names, line), self._linear(right, names, line)
                return first + second if isinstance(operator, ast.Add) else first - second
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                first, second = self._linear(left, names, line), self._linear(right, names, line)
                if first.is_constant or second.is_constant:
                    return second * first.constant if first.is_constant else first * second.constant
        self.refuse(
            line,
            f"`{_text(node)}` is not a sum of loop variables and sizes",
            helps=("indices and extents are `i`, `i + 1`, `2 * i + p`, `n - 1 - i`",),
        )

    def _check_loop(self, node: ast.expr, name: str, axes: Collection[str]) -> None:
        """Refuse a number outside of the loops that it is made in."""
        if missing := [axis for axis in self.made.get(name, ()) if axis not in axes]:
            said = f"`{name}` is a number for each `{missing[0]}`, and this is not in a loop over it"
            self.refuse(node, said, helps=(f"reduce it: `max({name} for {missing[0]} in range(...))`",))

    def _index(self, array: str, node: ast.Subscript, names: Mapping[str, Linear]) -> tuple[Linear, ...]:
        if array not in self.arrays:
            self.refuse(node, f"there is no array `{array}`")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(self.arrays[array].extents):
            wanted = len(self.arrays[array].extents)
            self.refuse(node, f"`{array}` has {wanted} dimensions, and {len(parts)} indices are given")
        return tuple(self._linear(part, names, node.lineno) for part in parts)

    def _expression(  # noqa: RET503 - `refuse` does not return
        self, node: ast.expr, names: Mapping[str, Linear], axes: tuple[str, ...], name: str = "", inside: bool = True
    ) -> Expression:
        """`name` is for a reduction that is all of the expression; not `inside`, indices may be out of bounds."""

        def of(one: ast.expr, inside: bool = inside) -> Expression:
            return self._number(one, self._expression(one, names, axes, inside=inside))

        def holds(one: ast.expr) -> Expression:
            return self._condition(one, self._expression(one, names, axes, inside=inside))

        match node:
            case ast.Constant(value=int(value) | float(value)):
                return Number(float(value))
            case ast.Name(id=found) if found in names or found in self.sizes:
                return Index(self._linear(node, names, node.lineno))
            case ast.Name(id=found) if found in self.made or found in self.numbers:
                self._check_loop(node, found, axes)
                return Index(self.whole[found]) if found in self.whole else Name(found)
            case ast.Subscript(value=ast.Name(id=array)) if self._is_whole(array):
                return Index(self._linear(node, names, node.lineno))
            case ast.Subscript(value=ast.Name(id=array)):
                index = self._index(array, node, names)
                return Load(array, index, self._are_inside(node, array, index, inside))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Applied("neg", (of(operand),))
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
                base = of(left)
                return Applied("mul", (base, base))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
                return Applied(_BINARY[type(operator)], (of(left), of(right)))
            case ast.Compare(left=left, ops=operators, comparators=others):
                sides = [of(one) for one in (left, *others)]
                found_all: Expression | None = None
                for number, relation in enumerate(operators):
                    if type(relation) not in _COMPARED:
                        self.refuse(node, f"`{_text(node)}` is not a comparison of numbers")
                    pair = Applied(_COMPARED[type(relation)], (sides[number], sides[number + 1]))
                    found_all = _both(found_all, pair)
                assert found_all is not None
                return found_all
            case ast.BoolOp(op=connective, values=values):
                kind = "and" if isinstance(connective, ast.And) else "or"
                return reduce(lambda left, right: Applied(kind, (left, right)), map(holds, values))
            case ast.IfExp(test=test, body=body, orelse=other):
                return Applied("choose", (holds(test), of(body, False), of(other, False)))
            case ast.Call(func=ast.Name(id=function), args=[ast.GeneratorExp() as generator], keywords=[]):
                return self._reduce(function, generator, names, axes, name, inside)
            case ast.Call(func=ast.Name(id="max" | "min" as function), args=[_, _, *_] as operands, keywords=[]):
                return reduce(lambda left, right: Applied(function, (left, right)), map(of, operands))
            case ast.Call(func=ast.Name(id=function), args=[argument], keywords=[]) if function in FUNCTIONS:
                return Applied(function, (of(argument),))
        known = ", ".join(f"`{one}`" for one in (*FUNCTIONS, "max", "min", "sum"))
        self.refuse(node, f"`{_text(node)}` is not an expression of an algorithm", helps=(f"functions are {known}",))

    def _reduce(
        self, function: str, node: ast.GeneratorExp, names: Mapping[str, Linear], axes: tuple[str, ...], name: str,
        inside: bool,
    ) -> Expression:  # fmt: skip
        if function not in REDUCTIONS:
            self.refuse(node, f"`{function}` does not reduce", helps=("`sum`, `max` and `min` do",))
        inner = dict(names)
        over: tuple[str, ...] = ()
        condition: Expression | None = None
        for part in node.generators:
            inner, added = self._loops(part.target, part.iter, inner, axes + over)
            over += added
            for test in part.ifs:
                condition = _both(condition, self._condition(test, self._expression(test, inner, axes + over)))
        count = len(self.statements)
        value = self._number(
            node.elt, self._expression(node.elt, inner, axes + over, inside=inside and condition is None)
        )
        if len(self.statements) != count:
            self.refuse(node, "a reduction in a reduction", helps=("give the inner one a name, in a loop around it",))
        if not name:
            name = next(text for n in range(1, 999) if (text := f"{function}_{n}") not in self.made)
            self.made[name] = axes
        self.statements.append(Reduce(axes, value, node.lineno, name, over, REDUCTIONS[function], condition))
        return Name(name)

    def _is_whole(self, array: str) -> bool:
        return array in self.arrays and self.arrays[array].element == "s32"

    def _are_inside(self, node: ast.AST, array: str, index: tuple[Linear, ...], inside: bool) -> bool:
        """Whether indices are in bounds for all iterations; with `inside`, they must be, and gathered ones are."""
        for one, extent in zip(index, self.arrays[array].extents, strict=True):
            if inside and one not in map(Linear.of, map(Gathered.of, gathered(one))):
                self._check_inside(node, array, one, extent)
        return inside or all(map(self._is_inside, index, self.arrays[array].extents))

    def _is_inside(self, index: Linear, extent: Linear) -> bool:
        if gathered(index):
            return False
        least = index.replaced({a: (e - 1 if index.coefficient(a) < 0 else Linear()) for a, e in self.axes.items()})
        most = index.replaced({a: (e - 1 if index.coefficient(a) > 0 else Linear()) for a, e in self.axes.items()})
        return least.is_never_negative and (extent - 1 - most).is_never_negative

    def _check_inside(self, node: ast.AST, array: str, index: Linear, extent: Linear) -> None:
        if not self._is_inside(index, extent):
            self.refuse(
                node,
                f"`{array}` may be accessed out of bounds: the index is {index}, the extent {extent}",
                helps=(f"choose: `{array}[...] if 0 <= {index} < {extent} else 0.0`, or declare a larger `{array}`",),
            )


def _both(first: Expression | None, second: Expression) -> Expression:
    return second if first is None else Applied("and", (first, second))


def _text(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def _apart(found: Algorithm, index: Linear) -> frozenset[str]:
    """The axes of an index of which no two iterations have the same: each step is more than all smaller ones reach."""
    reach = Linear()
    for axis, coefficient in sorted(index.terms, key=lambda term: abs(term[1])):
        if not reach.is_constant or abs(coefficient) <= reach.constant:
            return frozenset()
        reach += (found.axes[axis] - 1) * abs(coefficient)
    return index.names


def _check_stores(found: Algorithm) -> None:
    """Refuse an algorithm whose iterations depend on each other."""
    reduces = any(isinstance(one, Reduce) for one in found.statements)
    for number, one in enumerate(found.statements):
        if not isinstance(one, Store):
            continue
        # Where each thread has iterations of its own, it may read an element before it writes it.
        before = [] if reduces else [other for other in found.statements[:number] if other.axes == one.axes]
        apart = set().union(*(_apart(found, index.only(one.axes)) for index in one.index))
        for axis in one.axes:
            if axis not in apart:
                found.refuse(
                    "not-an-algorithm",
                    f"several iterations of `{axis}` write one element of `{one.array}`",
                    one.line,
                    "which of them is last?",
                    (f"reduce: `{one.array}[...] = sum(... for {axis} in range({found.axes[axis]}))`",),
                )
        for other in found.statements:
            if isinstance(other, Store) and other is not one and other.array == one.array:
                helps = (f"one store of a choice, `{one.array}[...] = a if ... else b`, or an array for each",)
                found.refuse("not-an-algorithm", f"`{one.array}` is written twice", other.line, "a second time", helps)
            for load in loads(other):
                is_own = other is one or other in before
                if load.array == one.array and not (is_own and load.index == one.index):
                    found.refuse(
                        "not-an-algorithm",
                        f"`{one.array}` is read here and written on line {one.line}: the loop carries a dependence",
                        other.line,
                        helps=("give the value a name, and read that",),
                    )
