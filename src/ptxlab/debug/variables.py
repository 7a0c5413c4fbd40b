"""What a thread sees, as a tree of variables that a client opens branch by branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ptxlab.debug.debugger import Debugger
from ptxlab.debug.matrices import matrices
from ptxlab.debug.values import shown
from ptxlab.device.layout import shared_variables
from ptxlab.trace.tensor_view import TensorMemory

Fields = dict[str, Any]
Branch = Callable[[], Iterator[Fields]]
PAGE = 256  # elements of an array in one branch


class Variables:
    """The variables at a position; their numbers hold until the debugger moves."""

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.branches: list[tuple[str, Branch]] = []

    def forget(self) -> None:
        """The debugger has moved: what was there is no longer so."""
        self.branches.clear()

    def _open(self, kind: str, branch: Branch) -> int:
        self.branches.append((kind, branch))
        return len(self.branches)

    def scopes(self) -> list[Fields]:
        """The roots of the tree."""
        roots: list[tuple[str, str, Branch, bool]] = [
            ("Registers", "register", self._registers, False),
            ("Thread", "special", self._special, False),
            ("Lanes", "lanes", self._lanes, True),
            ("Fragments", "fragments", self._fragments, True),
            ("Arguments", "arrays", self._arrays, True),
            ("Shared memory", "shared", self._shared, True),
            ("Barriers", "barriers", self._barriers, True),
        ]
        if self._tensor_memory.is_used:
            roots.append(("Tensor memory", "tensor memory", self._tensor_lanes, True))
        return [
            {"name": name, "variablesReference": self._open(kind, branch), "expensive": is_expensive,
             **({"presentationHint": "registers"} if kind == "register" else {})}
            for name, kind, branch, is_expensive in roots
        ]  # fmt: skip

    def children(self, reference: int) -> list[Fields]:
        """What a branch holds."""
        if not 1 <= reference <= len(self.branches):
            raise ValueError(f"there are no variables {reference}: the debugger has moved since")
        return list(self.branches[reference - 1][1]())

    def expression(self, reference: int, name: str) -> str | None:
        """How a variable is named where it is watched; None if it cannot be."""
        kind = self.branches[reference - 1][0] if 1 <= reference <= len(self.branches) else ""
        if name.startswith("%") and kind in ("", "register"):
            return name
        if kind.startswith("elements of "):
            return kind.removeprefix("elements of ") + name
        return name if kind == "" and "[" in name else None

    def _registers(self) -> Iterator[Fields]:
        for name, value in self.debugger.scope.registers().items():
            yield _leaf(name, value)

    def _special(self) -> Iterator[Fields]:
        for name, value in self.debugger.scope.special().items():
            yield _leaf(name, value)

    def _lanes(self) -> Iterator[Fields]:
        for name in self.debugger.scope.registers():
            yield self._branch(name, "in each lane of the warp", "lanes", partial(self._in_lanes, name))

    def _in_lanes(self, name: str) -> Iterator[Fields]:
        size = self.debugger.trace.accesses.threads_in_block
        for thread, value in self.debugger.across_lanes(name).items():
            yield _leaf(f"lane {thread % size % 32}", value)

    def _fragments(self) -> Iterator[Fields]:
        for one in matrices(self.debugger):
            shape = partial(self._elements, one.operand, one.values, ())
            yield self._branch(one.operand, one.title, "fragments", shape)

    def _arrays(self) -> Iterator[Fields]:
        for name, array in self.debugger.scope.memory("global").items():
            yield self._array(name, array)

    def _shared(self) -> Iterator[Fields]:
        scope = self.debugger.scope
        for variable, _ in shared_variables(self.debugger.trace.program.variables):
            yield self._array(variable.title, scope.array(variable.name))
        memory = scope.memory("shared")
        if len(memory):
            yield {"name": "bytes", "value": f"{len(memory):,} bytes", "variablesReference": 0,
                   "memoryReference": "shared:0x0"}  # fmt: skip

    @property
    def _tensor_memory(self) -> TensorMemory:
        return self.debugger.trace.tensor_memory_of(self.debugger.scope.block)

    def _tensor_lanes(self) -> Iterator[Fields]:
        words = self.debugger.tensor_memory()
        for lane in np.flatnonzero(~words.mask.all(axis=1)).tolist():
            known = np.flatnonzero(~words.mask[lane])
            text = f"columns {known[0]} to {known[-1]}: {shown(words[lane, known[0]])} …"
            yield self._branch(f"lane {lane}", text, "tensor memory", partial(self._tensor_columns, words[lane]))

    def _tensor_columns(self, words: Any) -> Iterator[Fields]:
        for column in np.flatnonzero(~words.mask).tolist():
            yield {"name": f"column {column}", "value": shown(words[column]), "variablesReference": 0}

    def _barriers(self) -> Iterator[Fields]:
        for number, barrier in enumerate(self.debugger.trace.barriers(step=self.debugger.position - 1)):
            yield {"name": str(number), "value": str(barrier), "variablesReference": 0}

    def _branch(self, name: str, value: str, kind: str, branch: Branch) -> Fields:
        return {"name": name, "value": value, "variablesReference": self._open(kind, branch)}

    def _array(self, name: str, array: Any) -> Fields:
        shape = " × ".join(map(str, array.shape))
        return self._branch(
            name, f"{array.dtype} {shape}", f"elements of {name}", partial(self._elements, name, array, ())
        )

    def _elements(self, name: str, array: Any, index: tuple[int, ...]) -> Iterator[Fields]:
        if array.ndim == 1:
            for number, value in enumerate(array[:PAGE]):
                yield _leaf(f"[{', '.join(map(str, (*index, number)))}]", value)
            if len(array) > PAGE:
                yield {"name": "…", "value": f"{len(array) - PAGE:,} more: ask for {name}[i]", "variablesReference": 0}
            return
        for number in range(min(len(array), PAGE)):
            yield self._branch(
                f"[{', '.join(map(str, (*index, number)))}]", np.array2string(array[number], threshold=8, edgeitems=3),
                f"elements of {name}", partial(self._elements, name, array[number], (*index, number)),
            )  # fmt: skip


def _leaf(name: str, value: Any) -> Fields:
    return {"name": name, "value": shown(value), "variablesReference": 0, "evaluateName": name}
