"""Statements of native functions, as LLVM IR."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from typing import Any

from .debug import mark
from .expressions import Expressions
from .functions import signature
from .inference import BOOLEAN, S64, U32, U64, Constant
from .modes import DEBUG
from .returning import find_own_memory
from .types import ArrayType, Boolean, Integer, StructType, TupleType, Type, s32, type_of


class Statements(Expressions):
    """The statements of one function, which is given as Python takes it apart."""

    def __init__(self, function: Any, node: ast.FunctionDef) -> None:
        super().__init__(signature(function), function.__code__.co_filename)
        self.node = node
        self._loops: list[tuple[str, str]] = []  # where `continue` and `break` go
        self._assigned: list[tuple[str, ast.expr]] = []  # variables, and what they are assigned
        self._returned: list[ast.expr] = []

    def translate(self) -> tuple[str, str]:
        """The head of the function's definition, after its linkage, and its body."""
        found = self.signature
        try:
            parameters, result = found.parameters, found.result
        except (TypeError, NameError, AttributeError) as error:
            raise self.error(self.node, f"`{self.node.name}`: {error}") from None
        if found.is_generic:
            raise self.error(self.node, f"`{self.node.name}` is generic: it is translated where it is called")
        if DEBUG:
            self.builder.suffix = mark(self.node.lineno)
        for name, type in parameters:
            self._declare(name, type)
            self.builder.emit(f"store {type.llvm} %{name}.in, ptr %{name}")
        self._block(self.node.body)
        self._check_returned()
        if not self.builder.is_closed:
            if result is None:
                self.guard.leave()
                self.builder.close("ret void")
            else:  # Python would return None
                self.builder.emit("call void @llvm.trap()")
                self.builder.close("unreachable")
        takes = ", ".join(f"{type.llvm} %{name}.in" for name, type in parameters)
        gives = "void" if result is None else f"zeroext {result.llvm}" if isinstance(result, Boolean) else result.llvm
        head = f'{gives} @"{found.symbol}"({takes}) nounwind{" alwaysinline" if found.inline else ""}'
        body = "\n".join(["entry:", *self.allocations, str(self.builder)])
        return head, body

    def _declare(self, name: str, type: Type) -> None:
        self.locals[name] = type
        self.allocations.append(f"  %{name} = alloca {type.llvm}")

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.builder.is_closed:
                return
            if DEBUG:
                self.builder.suffix = mark(statement.lineno)
            method = _STATEMENTS.get(type(statement))
            if method is None:
                raise self.error(statement, f"`{type(statement).__name__.lower()}` is not part of the native language")
            method(self, statement)

    # Assignments.

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error(node, "only a variable is annotated")
        try:
            annotated = type_of(ast.unparse(node.annotation), self.names)
        except (TypeError, NameError) as error:
            raise self.error(node, str(error)) from None
        name = node.target.id
        if annotated is None or self.locals.get(name, annotated) is not annotated:
            raise self.error(node, f"`{name}` is {self.locals.get(name)} already: a variable keeps its type")
        self._introduce(node.target, annotated)
        if node.value is not None:
            self._assigned.append((name, node.value))
            self._assign_to(node.target, self.value(node.value, annotated))

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "one assignment at a time")
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            self._unpack(node, target.elts)
            return
        type = self._type_for(target, node.value)
        text = self.value(node.value, type)
        if isinstance(target, ast.Name):
            self._assigned.append((target.id, node.value))
        self._introduce(target, type)
        self._assign_to(target, text)

    def _type_for(self, target: ast.expr, value: ast.expr) -> Type:
        """The type of a target, which a new variable takes from its first value."""
        if not isinstance(target, ast.Name):
            return self.type_of(target)
        found = self.locals.get(target.id)
        if found is not None:
            return found
        inferred = self.infer(value)
        if not isinstance(inferred, Type) or isinstance(inferred, TupleType):
            raise self.error(target, f"`{target.id}` has no type yet: write `{target.id}: u32 = …`, or another type")
        return inferred

    def _assign_to(self, target: ast.expr, text: str) -> None:
        if isinstance(target, ast.Name):
            self.builder.emit(f"store {self.locals[target.id].llvm} {text}, ptr %{target.id}")
            return
        pointer, type = self.address(target)
        if isinstance(type, StructType | ArrayType):
            raise self.error(
                target, f"`{ast.unparse(target)}` is a whole {type}: assign to its parts, or use `copy_bytes`"
            )
        self.guard.access("store", target, pointer, type)
        self.store(pointer, type, text)

    def _unpack(self, node: ast.Assign, targets: list[ast.expr]) -> None:
        if isinstance(node.value, ast.Tuple):
            if len(node.value.elts) != len(targets):
                raise self.error(node, f"{len(node.value.elts)} values for {len(targets)} targets")
            types = [self._type_for(target, value) for target, value in zip(targets, node.value.elts, strict=True)]
            texts = [self.value(value, type) for value, type in zip(node.value.elts, types, strict=True)]
            pairs = zip(targets, node.value.elts, strict=True)
            self._assigned += [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]
        else:
            found = self.infer(node.value)
            if not isinstance(found, TupleType) or len(found.elements) != len(targets):
                raise self.error(node, f"`{ast.unparse(node.value)}` does not give {len(targets)} values")
            whole = self.raw(node.value)
            types, texts = [], []
            for index, (target, element) in enumerate(zip(targets, found.elements, strict=True)):
                text = self.builder.value(f"extractvalue {found.llvm} {whole}, {index}")
                type = self.locals.get(target.id, element) if isinstance(target, ast.Name) else self.type_of(target)
                if type is not element and not _widens(element, type):
                    raise self.error(node, f"`{ast.unparse(target)}` is {type}, and the value is {element}")
                types.append(type)
                texts.append(self.convert(node, text, element, type))
        for target, type, text in zip(targets, types, texts, strict=True):
            self._introduce(target, type)
            self._assign_to(target, text)

    def _introduce(self, target: ast.expr, type: Type) -> None:
        if isinstance(target, ast.Name) and target.id not in self.locals:
            self._declare(target.id, type)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name) and target.id not in self.locals:
            raise self.error(node, f"`{target.id}` is read before it is assigned")
        whole = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        self._assign_to(target, self.value(whole, self.type_of(target)))

    # Control.

    def _if(self, node: ast.If) -> None:
        yes, after = self.builder.new_label("then"), self.builder.new_label("after")
        no = self.builder.new_label("else") if node.orelse else after
        self.branch_on(node.test, yes, no)
        reached = not node.orelse
        for label, statements in ((yes, node.body), (no, node.orelse)):
            if not statements:
                continue
            self.builder.label(label)
            self._block(statements)
            if not self.builder.is_closed:
                reached = True
                self.builder.jump(after)
        if reached:
            self.builder.label(after)

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise self.error(node, "a loop has no `else`")
        again, body, after = (self.builder.new_label(hint) for hint in ("while", "body", "after"))
        self.builder.jump(again)
        self.builder.label(again)
        self.branch_on(node.test, body, after)
        self.builder.label(body)
        self._loop(node.body, again, after)
        if not self.builder.is_closed:
            self.builder.jump(again)
        self.builder.label(after)

    def _loop(self, statements: Sequence[ast.stmt], again: str, after: str) -> None:
        self._loops.append((again, after))
        self._block(statements)
        self._loops.pop()

    def _for(self, node: ast.For) -> None:
        call, target = node.iter, node.target
        if not isinstance(call, ast.Call) or self.resolve(call.func) is not builtins.range or node.orelse:
            raise self.error(node, "`for` goes over `range(…)`, without `else`")
        if not isinstance(target, ast.Name) or not 1 <= len(call.args) <= 3:
            raise self.error(node, "`for` counts one variable, from one number to another, by a step")
        zero = ast.copy_location(ast.Constant(0), node)
        start, stop = (zero, call.args[0]) if len(call.args) == 1 else call.args[:2]
        by: ast.expr = call.args[2] if len(call.args) == 3 else ast.copy_location(ast.Constant(1), node)
        step = self._step(by)
        type = self._count_type(node, target, start, stop, step)
        self._introduce(target, type)
        # By 1 it cannot leave its type before it ends; otherwise there is a margin around it.
        counter: Integer = type if step == 1 or type.bits >= 64 else S64
        if step < 0 and not counter.signed:
            raise self.error(node, f"{type} cannot count down: count up, and subtract")
        pointer = self.temporary(counter.llvm)
        first = self._limit(start, type, counter)
        self.builder.emit(f"store {counter.llvm} {first}, ptr {pointer}")
        end, more = self._limit(stop, type, counter), self.cast(by, counter)
        again, body, further, after = (self.builder.new_label(hint) for hint in ("for", "body", "next", "after"))
        self.builder.jump(again)
        self.builder.label(again)
        count = self.builder.value(f"load {counter.llvm}, ptr {pointer}")
        how = ("s" if counter.signed else "u") + ("lt" if step > 0 else "gt")
        self.builder.branch(self.builder.value(f"icmp {how} {counter.llvm} {count}, {end}"), body, after)
        self.builder.label(body)
        variable = self.locals[target.id]
        count_there = self.convert(node, count, counter, type)
        self._assign_to(target, self.convert(node, count_there, type, variable))
        self._loop(node.body, further, after)
        if not self.builder.is_closed:
            self.builder.jump(further)
        self.builder.label(further)
        count = self.builder.value(f"load {counter.llvm}, ptr {pointer}")
        count = self.builder.value(f"add {counter.llvm} {count}, {more}")
        self.builder.emit(f"store {counter.llvm} {count}, ptr {pointer}")
        self.builder.jump(again)
        self.builder.label(after)

    def _limit(self, node: ast.expr, type: Integer, counter: Integer) -> str:
        """Where a loop starts or stops: computed in its type, then as wide as its counter."""
        if isinstance(self.infer(node), Constant):
            return self.cast(node, counter)
        return self.convert(node, self.cast(node, type), type, counter)

    def _step(self, node: ast.expr) -> int:
        """What a loop counts by; 2 if it is only known to be positive."""
        found = self.infer(node)
        if isinstance(found, Integer) and not found.signed:
            return 2
        if not isinstance(found, Constant) or not isinstance(found.value, int) or found.value == 0:
            raise self.error(
                node, f"`{ast.unparse(node)}` is not a step: a constant other than 0 is, or an unsigned number"
            )
        return found.value

    def _count_type(self, node: ast.For, target: ast.Name, start: ast.expr, stop: ast.expr, step: int) -> Integer:
        """The type that a loop counts in."""
        first, last = self.infer(start), self.infer(stop)
        known = self.locals.get(target.id)
        if isinstance(first, Constant) and isinstance(last, Constant):
            numbers = range(int(first.value), int(last.value), step)
            ends = (numbers[0], numbers[-1]) if numbers else (0,)
            for type in (known, U32, _S32, U64, S64):
                if isinstance(type, Integer) and all(
                    type.holds(end) for end in (*ends, numbers.stop if step > 0 else 0)
                ):
                    return type
            raise self.error(node, f"`{ast.unparse(node.iter)}` fits no type")
        if isinstance(last, Constant) and step < 0 and last.value == -1:  # down to 0
            found = first
        else:
            found = self.join(node.iter, first, last)
        if not isinstance(found, Integer):
            raise self.error(node, f"`{ast.unparse(node.iter)}` does not count in integers")
        if known is not None and known is not found and not _widens(found, known):
            raise self.error(node, f"`{target.id}` is {known}, and `{ast.unparse(node.iter)}` counts in {found}")
        return found

    def _break(self, node: ast.Break) -> None:
        self.builder.jump(self._loops[-1][1])

    def _continue(self, node: ast.Continue) -> None:
        self.builder.jump(self._loops[-1][0])

    def _return(self, node: ast.Return) -> None:
        result = self.signature.result
        if result is None or node.value is None:
            if node.value is not None or result is not None:
                raise self.error(
                    node, "the function has " + ("no result: annotate it, `-> u32`" if result is None else "a result")
                )
            self.guard.leave()
            self.builder.close("ret void")
            return
        text = self._tuple(node.value, result) if isinstance(result, TupleType) else self.value(node.value, result)
        self._returned += node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        self.guard.leave()
        self.builder.close(f"ret {result.llvm} {text}")

    def _check_returned(self) -> None:
        found = find_own_memory(self, self._assigned, self._returned)
        if found is not None:
            what = ast.unparse(found)
            raise self.error(
                found, f"`{what}` is memory of this function, gone when it returns: let the caller pass it"
            )

    def _tuple(self, node: ast.expr, result: TupleType) -> str:
        if not isinstance(node, ast.Tuple):
            found = self.infer(node)
            if not isinstance(found, TupleType) or found.llvm != result.llvm:
                raise self.error(node, f"`{ast.unparse(node)}` is not {result}")
            return self.raw(node)
        if len(node.elts) != len(result.elements):
            raise self.error(node, f"{len(node.elts)} values for {result}")
        whole = "poison"
        for index, (value, element) in enumerate(zip(node.elts, result.elements, strict=True)):
            text = self.value(value, element)
            whole = self.builder.value(f"insertvalue {result.llvm} {whole}, {element.llvm} {text}, {index}")
        return whole

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):  # a docstring
            return
        if not isinstance(node.value, ast.Call):
            raise self.error(node, f"`{ast.unparse(node.value)}` does nothing")
        self.infer(node.value)
        self.raw(node.value)

    def _nothing(self, node: ast.stmt) -> None:
        """`pass`; and `assert`, which is for plain Python."""


def _widens(source: Type, to: Type) -> bool:
    """Whether every value of one type is one of the other."""
    if isinstance(source, Integer) and isinstance(to, Integer):
        return source.bits < to.bits and (to.signed or not source.signed)
    return source is BOOLEAN and isinstance(to, Integer)


_S32: Integer = s32  # type: ignore[assignment]
_STATEMENTS: dict[type, Callable[[Statements, Any], None]] = {
    ast.AnnAssign: Statements._annotated,
    ast.Assign: Statements._assign,
    ast.AugAssign: Statements._augmented,
    ast.If: Statements._if,
    ast.While: Statements._while,
    ast.For: Statements._for,
    ast.Break: Statements._break,
    ast.Continue: Statements._continue,
    ast.Return: Statements._return,
    ast.Expr: Statements._expression,
    ast.Pass: Statements._nothing,
    ast.Assert: Statements._nothing,
}
