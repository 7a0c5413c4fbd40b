"""What a thread sees, as a tree of variables that a client opens branch by branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ptxlab.debug.debugger import Debugger
from ptxlab.debug.inspection import value_text
from ptxlab.debug.matrices import matrices
from ptxlab.debug.objects import Object, Operand, Result, UnknownError, resolve, text
from ptxlab.debug.types import CudaType
from ptxlab.debug.values import Scope, shown
from ptxlab.device.layout import shared_variables

Fields = dict[str, Any]
Branch = Callable[[], Iterator[Fields]]
PAGE = 256  # elements of an array in one branch


class Variables:
    """The variables at a position; their numbers hold until the debugger moves."""

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.style = ""
        """How numbers are shown: `x` in hexadecimal."""
        self.branches: list[Branch] = []
        self.expressions: dict[tuple[int, str], str] = {}

    def forget(self) -> None:
        """The debugger has moved: what was there is no longer so."""
        self.branches.clear()
        self.expressions.clear()

    def _open(self, branch: Branch) -> int:
        self.branches.append(branch)
        return len(self.branches)

    def scopes(self, scope: Scope | None = None) -> list[Fields]:
        """The roots of the tree, as a function of a thread sees them."""
        scope = self.debugger.scope if scope is None else scope
        roots: list[tuple[str, Branch, bool, str]] = [
            ("Registers", partial(self._registers, scope), False, "registers"),
            ("Thread", partial(self._special, scope), False, ""),
            ("Lanes", partial(self._lanes, scope), True, ""),
            ("Fragments", self._fragments, True, ""),
            ("Arguments", partial(self._arrays, scope), True, ""),
            ("Shared memory", partial(self._shared, scope), True, ""),
            ("Barriers", self._barriers, True, ""),
        ]
        if self.debugger.lines.has_sources and self.debugger.declarations.is_known:
            declared = [
                ("Locals", partial(self._declared, scope, is_parameter=False), False, "locals"),
                ("Parameters", partial(self._declared, scope, is_parameter=True), False, "arguments"),
                ("Globals", partial(self._globals, scope), True, ""),
            ]
            roots = [*declared, *roots]
        if self.debugger.trace.program.uses("tensor_memory"):
            roots.append(("Tensor memory", self._tensor_lanes, True, ""))
        return [
            {"name": name, "variablesReference": self._open(branch), "expensive": is_expensive,
             **({"presentationHint": hint} if hint else {})}
            for name, branch, is_expensive, hint in roots
        ]  # fmt: skip

    def children(self, reference: int) -> list[Fields]:
        """What a branch holds."""
        if not 1 <= reference <= len(self.branches):
            raise ValueError(f"there are no variables {reference}: the debugger has moved since")
        found = list(self.branches[reference - 1]())
        self.expressions.update(
            {(reference, one["name"]): one["evaluateName"] for one in found if "evaluateName" in one}
        )
        return found

    def expression(self, reference: int, name: str) -> str | None:
        """How a variable is named where it is watched; None if it cannot be."""
        return self.expressions.get((reference, name)) if reference else name

    def of(self, scope: Scope, expression: str, style: str = "") -> Fields:
        """The value of an expression, and a branch of what is in it."""
        return self._node(scope, expression, expression, scope.operand(expression), style)

    def _node(self, scope: Scope, name: str, expression: str, operand: Operand, style: str = "") -> Fields:
        style = style or self.style
        value = text(operand, scope, style)
        found: Fields = {"name": name, "value": value, "evaluateName": expression, "variablesReference": 0}
        if isinstance(operand, Result):
            return {**found, "type": str(operand.type)} if operand.type is not None else found
        operand = resolve(operand, scope)
        found["type"] = str(operand.type)
        if has_parts(operand.type):
            found["variablesReference"] = self._open(partial(self._parts, scope, expression, operand))
        if operand.data is None and operand.space in ("shared", "global", "local"):
            found["memoryReference"] = f"{operand.space}:{operand.address:#x}"
        return found

    def _parts(self, scope: Scope, expression: str, object: Object) -> Iterator[Fields]:
        """The elements of an array, the members of a structure, or what a pointer points to."""
        type = object.type
        if type.kind == "pointer":
            yield self._named(scope, f"*{expression}", f"*({expression})")
        elif type.kind == "structure":
            for one in type.members:
                if one.name:
                    yield self._named(scope, one.name, f"({expression}).{one.name}")
        else:
            count = type.count or 0
            for index in range(min(count, PAGE)):
                yield self._named(scope, f"[{index}]", f"{expression}[{index}]")
            if count > PAGE:
                yield {"name": "…", "value": f"{count - PAGE:,} more: ask for {expression}[i]", "variablesReference": 0}

    def _named(self, scope: Scope, name: str, expression: str) -> Fields:
        """A part of the tree by its expression; why it has no value, if it has none."""
        try:
            return self._node(scope, name, expression, scope.operand(expression))
        except UnknownError:
            return {"name": name, "value": value_text(scope, expression), "variablesReference": 0,
                    "presentationHint": {"attributes": ["failedEvaluation"]}}  # fmt: skip

    def _declared(self, scope: Scope, *, is_parameter: bool) -> Iterator[Fields]:
        for one in scope.variables():
            if one.is_parameter == is_parameter and not one.is_hidden:
                yield self._named(scope, one.name, one.name)

    def _globals(self, scope: Scope) -> Iterator[Fields]:
        for name, one in scope.declarations.globals.items():
            if name == one.name:
                yield self._named(scope, name, name)

    def _registers(self, scope: Scope) -> Iterator[Fields]:
        for name, value in scope.registers().items():
            yield _leaf(name, value)

    def _special(self, scope: Scope) -> Iterator[Fields]:
        for name, value in scope.special().items():
            yield _leaf(name, value)

    def _lanes(self, scope: Scope) -> Iterator[Fields]:
        known = [one.name for one in scope.variables() if not one.is_hidden and not one.is_static]
        for name in (*known, *scope.registers()):
            yield self._branch(name, "in each lane of the warp", partial(self._in_lanes, name))

    def _in_lanes(self, name: str) -> Iterator[Fields]:
        for scope in self.debugger.scopes_across_lanes().values():
            yield {"name": f"lane {scope.lane}", "value": value_text(scope, name), "variablesReference": 0}

    def _fragments(self) -> Iterator[Fields]:
        for one in matrices(self.debugger):
            yield self._branch(one.operand, one.title, partial(self._rows, one.values, ()))

    def _arrays(self, scope: Scope) -> Iterator[Fields]:
        for region in self.debugger.trace.accesses.regions:
            yield self._node(scope, region.short, f"::{region.short}", scope.array(region))

    def _shared(self, scope: Scope) -> Iterator[Fields]:
        for variable, _ in shared_variables(self.debugger.trace.program.variables):
            yield self._node(scope, variable.title, variable.title, scope.operand(variable.name))
        size = self.debugger.trace.accesses.shared_size
        if size:
            yield {"name": "bytes", "value": f"{size:,} bytes", "variablesReference": 0,
                   "memoryReference": "shared:0x0"}  # fmt: skip

    def _tensor_lanes(self) -> Iterator[Fields]:
        words = self.debugger.tensor_memory()
        for lane in np.flatnonzero(~words.mask.all(axis=1)).tolist():
            known = np.flatnonzero(~words.mask[lane])
            value = f"columns {known[0]} to {known[-1]}: {shown(words[lane, known[0]])} …"
            yield self._branch(f"lane {lane}", value, partial(self._tensor_columns, words[lane]))

    def _tensor_columns(self, words: Any) -> Iterator[Fields]:
        for column in np.flatnonzero(~words.mask).tolist():
            yield {"name": f"column {column}", "value": shown(words[column]), "variablesReference": 0}

    def _barriers(self) -> Iterator[Fields]:
        for number, barrier in enumerate(self.debugger.trace.barriers(step=self.debugger.position - 1)):
            yield {"name": str(number), "value": str(barrier), "variablesReference": 0}

    def _branch(self, name: str, value: str, branch: Branch) -> Fields:
        return {"name": name, "value": value, "variablesReference": self._open(branch)}

    def _rows(self, array: Any, index: tuple[int, ...]) -> Iterator[Fields]:
        for number, part in enumerate(array[:PAGE]):
            name = f"[{', '.join(map(str, (*index, number)))}]"
            if array.ndim == 1:
                yield {"name": name, "value": shown(part), "variablesReference": 0}
            else:
                value = np.array2string(part, threshold=8, edgeitems=3)
                yield self._branch(name, value, partial(self._rows, part, (*index, number)))


def has_parts(type: CudaType) -> bool:
    """Whether a value of a type is opened to see what is in it."""
    if type.kind == "pointer":
        return type.element.kind in ("number", "structure", "array", "pointer", "enumeration")
    return type.kind == "structure" or (type.kind == "array" and type.count is not None)


def _leaf(name: str, value: float) -> Fields:
    return {"name": name, "value": shown(value), "variablesReference": 0, "evaluateName": name}
