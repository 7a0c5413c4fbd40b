"""The comparison of two sides: bits first, then the function, then numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab import author, ir
from ptxlab.check.program import Program
from ptxlab.check.rules import rules_by_code
from ptxlab.equal.codes import node_of
from ptxlab.equal.field import Field
from ptxlab.equal.nodes import Ids, Nodes, TooManyError, needed
from ptxlab.equal.numeric import Measured, measure
from ptxlab.equal.reals import Reals
from ptxlab.equal.reference import Expression
from ptxlab.equal.rules import COMPARISONS, rule_of
from ptxlab.equal.sides import Inputs, Kernels, NamedArray, slices
from ptxlab.equal.verdict import (
    DIFFERENT,
    NEAR,
    REFUSED,
    SAME_BITS,
    SAME_FUNCTION,
    Refusal,
    RefusedError,
    Verdict,
    Witness,
)  # fmt: skip
from ptxlab.equal.witness import Parting, find_opaque, find_parting
from ptxlab.measure import Launch

Side = ir.Function | author.Kernel | Launch | Sequence[Launch] | Callable[..., Any]
PROBABILITY = 1e-12
_MOST_ROUNDS = 8
_ROOM = 0.25  # of the largest element: for rounding, when a replay is checked


def equal(
    a: Side,
    b: Side,
    args: Sequence[object] = (),
    *,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    shared: int = 0,
    cluster: int | Sequence[int] | None = None,
    outputs: Sequence[str] | None = None,
    symbols: Sequence[str] | None = None,
    names: Mapping[str, object] | None = None,
    tolerance: float = 1e-5,
    assume_paths: bool = False,
    batch: tuple[int, int] | None = None,
    timeout: float | None = None,
) -> Verdict:
    """Whether two kernels are the same function.

    A side is a kernel, launched with `grid`, `block` and `args`; a `ptxlab.measure.Launch` with its own; several of
    these, one after the other; or, as `b`, a function of NumPy or torch that takes arrays by the names of parameters
    and returns the outputs by name. Arrays that are the same object on both sides are the same memory. All arrays of
    floats are symbols: the answer holds for all their values. Numbers and arrays of integers are as they are given,
    unless `symbols` names them. Where a branch depends on the value of a float, the comparison is refused, unless
    `assume_paths` says that all values are meant which take the branches that the given ones take. `outputs` are the
    arrays to compare, by default all that either side writes. `names` are those of arrays, if they are to have others
    than parameters. With `batch`, each side is a function that gives the launches for a batch of so many, on arrays
    such as `x[:batch]`: what both write is compared.

    Arrays are as before when it returns. A launch that fails, or takes more seconds than `timeout`, raises what
    `kernel.launch` raises; where following both takes more, the comparison is refused.
    """
    nodes = Nodes(timeout)
    inputs = Inputs(nodes, symbols, names)
    launched = {"grid": grid, "block": block, "args": args, "shared": shared, "cluster": cluster}
    options = {} if timeout is None else {"timeout": timeout}
    if batch is not None:
        a, b = a(batch[0]), b(batch[1])  # type: ignore[operator]
    is_function = callable(b) and not isinstance(b, (ir.Function, author.Kernel, Launch))
    sides = [_launches(one, launched) for one in ((a,) if is_function else (a, b))]
    inputs.expect([launch for one in sides for launch in one])
    first = Kernels(sides[0], inputs, 0, options, assumes_paths=assume_paths)
    second: Kernels | Expression
    if is_function:
        second = Expression(b, inputs, first)  # type: ignore[arg-type]
    else:
        second = Kernels(sides[1], inputs, 1, options, assumes_paths=assume_paths)
    return _Comparison(nodes, inputs, first, second, outputs, tolerance).verdict()


def _launches(side: Any, launched: Mapping[str, Any]) -> list[Launch]:
    if isinstance(side, Launch):
        return [side]
    if isinstance(side, (list, tuple)):
        return list(side)
    if not isinstance(side, (ir.Function, author.Kernel)):
        raise TypeError(f"equal: `{type(side).__name__}` is not a kernel, a launch or a list of launches")
    function = side.entry if isinstance(side, author.Kernel) else side
    block = launched["block"]
    if block is None:
        required = function.directive("reqntid")
        if required is None:
            raise TypeError("equal: say `block`: the kernel has no `.reqntid`")
        block = tuple(required.arguments)
    return [Launch(side, launched["grid"], block, launched["args"], launched["shared"], launched["cluster"])]


def _start(data: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The first elements of an array, of so many bytes; rows where they are whole."""
    row = data[0].nbytes
    return data[: size // row] if size % row == 0 else data.ravel()[: size // data.itemsize]


def _unlike(a: Any, b: Any) -> Any:
    """Where numbers that are finite on both sides are not near, with room for rounding."""
    known = np.isfinite(a) & np.isfinite(b)
    scale = max(float(np.abs(one[known]).max(initial=0)) for one in (a, b))
    return np.abs(np.where(known, a, 0) - np.where(known, b, 0)) > _ROOM * scale


class _Comparison:
    """One comparison, from the launches to the answer."""

    def __init__(
        self, nodes: Nodes, inputs: Inputs, a: Kernels, b: Kernels | Expression, outputs: Sequence[str] | None,
        tolerance: float,
    ) -> None:  # fmt: skip
        self.nodes, self.inputs, self.sides = nodes, inputs, (a, b)
        self.outputs, self.tolerance = outputs, tolerance
        self.arrays: list[NamedArray] = []
        """Those that are compared."""

    def verdict(self) -> Verdict:
        """The answer."""
        for side in self.sides:
            side.record()
        try:
            for side in self.sides:
                side.replay()
        except RefusedError as refused:
            return self._say(REFUSED, refusal=refused.refusal)
        except TooManyError as many:
            return self._say(REFUSED, refusal=Refusal(0, 0, "", f"{many}: compare smaller arrays"))
        a, b = self._roots()
        same = (self.nodes.hashes(a) == self.nodes.hashes(b)).all(0)
        results = self._results((a, b))
        if isinstance(results, Refusal):
            return self._say(REFUSED, refusal=results)
        atomic = self._atomic(np.concatenate([a, b]))
        if same.all() and atomic is None:
            return self._say(SAME_BITS, notes=[*self._open(), *self._unwritten()])
        fields, probability, alike = self._fields(a, b)
        apart = self._apart(*results) if alike.all() else None
        if apart is not None:
            witness = self._witness(apart, find_parting(self.nodes, None, int(a[apart]), int(b[apart])))
            words = ["as real numbers the two are the same; as floats they are not, for the arrays as they are given"]
            values = float(results[0][apart]), float(results[1][apart])
            return self._say(DIFFERENT, differing=int((~same).sum()),
                             witness=replace(witness, words=words, values=values, inputs=self._given()))  # fmt: skip
        if alike.all():
            index = int(np.flatnonzero(~same)[0]) if not same.all() else 0
            parting = None if same.all() else find_parting(self.nodes, None, int(a[index]), int(b[index]))
            witness = self._witness(index, parting)
            notes = [] if atomic is None else [f"the bits depend on the order of atomic operations: {atomic}"]
            notes += self._unwritten()
            return self._say(SAME_FUNCTION, probability=probability, witness=witness,
                             differing=int((~same).sum()), notes=notes)  # fmt: skip
        return self._different(a, b, fields[0], ~alike, np.isfinite(results[0]) | np.isfinite(results[1]))

    def _given(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that are symbols, as they are given."""
        return {one.name: one.data for key, one in self.inputs.arrays.items() if key in self.inputs.ids and one.format}

    def _results(self, roots: tuple[Ids, Ids]) -> tuple[Any, Any] | Refusal:
        """What both sides give for the arrays as they are given, or why their expressions are not what they compute.

        These are evaluated in float64 and compared with what the launch left, with room for any rounding.
        """
        given = {name: data.ravel().astype(np.float64) for name, data in self._given().items()}
        real = Reals(self.nodes, np.concatenate(roots), given)
        found = []
        for side, ids in zip(self.sides, roots, strict=True):
            results = real.values[ids]
            for array, own in slices(self.arrays):
                if not array.format:
                    results[own] = 0
                elif isinstance(side, Kernels):
                    got = side.results[array.key].ravel()[: array.data.size].astype(np.float64)
                    wrong = np.flatnonzero(_unlike(results[own], got))
                    if len(wrong):
                        name = array.element(int(wrong[0]))
                        why = f"the replay does not give {name} as the launch did: please report it"
                        return Refusal(side.side, 0, "", why)
                    results[own] = got
            found.append(results)
        return found[0], found[1]

    def _apart(self, a: Any, b: Any) -> int | None:
        """An element that is another number on the other side, more than rounding makes it; inputs are finite."""
        written = [array.name for array in self.arrays]
        inputs = [data.astype(np.float64) for name, data in self._given().items() if name not in written]
        if not all(np.isfinite(one).all() for one in inputs):
            return None
        wrong = np.isfinite(b) & ~np.isfinite(a)
        if isinstance(self.sides[1], Kernels):  # of a function, not all may be known
            wrong |= np.isfinite(a) & ~np.isfinite(b)
        for _, own in slices(self.arrays):
            wrong[own] |= _unlike(a[own], b[own])
        return int(np.argmax(wrong)) if wrong.any() else None

    def _fields(self, a: Ids, b: Ids) -> tuple[list[Field], float, Any]:
        """Values in fields, as many as it takes to be sure."""
        probability, assumed = 1.0, self._assumed()
        fields: list[Field] = []
        alike = np.ones(len(a), bool)
        while probability >= PROBABILITY and len(fields) < _MOST_ROUNDS and alike.all():
            field = Field(self.nodes, np.concatenate([a, b]), 0x9E37 + len(fields), assumed)
            fields.append(field)
            alike &= field.same(a, b)
            probability *= field.bound(np.concatenate([a, b]))
        if alike.all() and probability >= PROBABILITY:
            alike[:] = False
        return fields, probability, alike

    def _assumed(self) -> dict[int, bool]:
        """The comparisons that branches depend on, and how they come out for the arrays as they are given."""
        conditions = [one for side in self.sides if isinstance(side, Kernels) for one in side.conditions]
        if not conditions:
            return {}
        ids = needed(self.nodes, np.concatenate(conditions))
        words = [rule_of(one).word for one in self.nodes.operations]
        compares = ids[np.isin(self.nodes.operation_of[ids], [n for n, one in enumerate(words) if one in COMPARISONS])]
        given = {name: data.ravel().astype(np.float64) for name, data in self._given().items()}
        holds = Reals(self.nodes, compares, given).values[compares]
        return {int(node): bool(one) for node, one in zip(compares, holds, strict=True) if not np.isnan(one)}

    def _different(self, a: Ids, b: Ids, field: Field, unlike: Any, is_number: Any) -> Verdict:
        """They are not the same function, or there is no rule that says so."""
        measured = measure(self.nodes, self.inputs, self.sides, self.arrays, a, b)
        chosen = np.flatnonzero(unlike)
        if not measured.is_known and not is_number[chosen].any():
            array, at = self._element(int(chosen[0]))
            why = f"both give no number for {array.element(at)}: they read what nothing has written, or NaN or infinity"
            return self._say(REFUSED, refusal=Refusal(0, 0, "", why), differing=int(unlike.sum()))
        index = int(chosen[0])
        if measured.worst is not None and measured.worst in set(chosen.tolist()):
            index = measured.worst
        parting = find_parting(self.nodes, field, int(a[index]), int(b[index]))
        near = measured.is_known and measured.difference <= self.tolerance
        if not near and measured.apart <= self.tolerance:  # unless the kernels themselves give other numbers
            opaque = find_opaque(self.nodes, field, (int(a[index]), int(b[index])))
            if opaque is not None:
                witness = self._witness(index, parting)
                return self._say(REFUSED, refusal=self._refusal(opaque),
                                 differing=int(unlike.sum()), witness=witness)  # fmt: skip
        witness = self._witness(index, parting, None if near else measured)
        return self._say(NEAR if near else DIFFERENT, differing=int(unlike.sum()),
                         witness=witness, error=measured.errors)  # fmt: skip

    def _refusal(self, node: int) -> Refusal:
        origin = self.nodes.origin(node)
        why = "there is no rule for what it does with an input: integer operations on its bits, or the like"
        if self.nodes.kind(node).kind == "old":
            why = "what it reads depends on the order of threads"
        if origin is None:
            return Refusal(1, 0, self.nodes.kind(node).text, why)
        side = self.sides[origin.side]
        line, text, source = side.line(origin.launch, origin.instruction)
        return Refusal(origin.side, line, text, why, source)

    def _roots(self) -> tuple[Ids, Ids]:
        """The nodes of the elements of the arrays that are compared, on both sides."""
        shared = [array for key, array in self.inputs.arrays.items() if all(key in side.memory for side in self.sides)]
        roots = []
        self.nodes.set_origin(None)
        if self.outputs is None and isinstance(self.sides[1], Expression):
            self.outputs = self.sides[1].returned
        for array in shared:
            contents = [side.memory[array.key] for side in self.sides]
            given = self.inputs.codes(array)
            is_written = any(not np.array_equal(content, given) for content in contents)
            if array.name in self.outputs if self.outputs is not None else is_written:
                width, size = array.data.itemsize, min(side.sizes[array.key] for side in self.sides)
                type = array.format or f"b{8 * width}"
                ids = [node_of(self.nodes, content[:size].reshape(-1, width), type) for content in contents]
                whole = size == array.data.nbytes
                self.arrays.append(array if whole else NamedArray(array.name, _start(array.data, size)))
                roots.append(ids)
        unknown = set(self.outputs or ()) - {array.name for array in self.arrays}
        if unknown:
            known = ", ".join(array.name for array in shared)
            raise ValueError(
                f"equal: there is no output `{sorted(unknown)[0]}` that both sides have; there are {known}"
            )
        if not roots:
            raise ValueError("equal: neither side writes an array that both have")
        return np.concatenate([one[0] for one in roots]), np.concatenate([one[1] for one in roots])

    def _atomic(self, roots: Ids) -> str | None:
        """The line of an atomic operation whose order may matter."""
        kinds = {number for number, one in enumerate(self.nodes.operations) if one.kind == "atomic"}
        if not kinds:
            return None
        ids = needed(self.nodes, roots)
        found = ids[np.isin(self.nodes.operation_of[ids], list(kinds))]
        if not len(found):
            return None
        refusal = self._refusal(int(found[0]))
        return f"{'ab'[refusal.side]} line {refusal.line}"

    def _open(self) -> list[str]:
        """What PTX leaves open about bits."""
        open = any(one.kind == "arithmetic" and one.detail.detail[0] == "mul" for one in self.nodes.operations)
        sums = any(one.kind == "arithmetic" and one.detail.detail[0] in ("add", "sub") for one in self.nodes.operations)
        if open and sums:
            return ["as written: of `mul` and `add` without a rounding, ptxas may make one `fma`"]
        return []

    def _unwritten(self) -> list[str]:
        """Registers that kernels read and may not have written, so that the answer holds if they are 0."""
        sides = [(name, side) for name, side in zip("ab", self.sides, strict=True) if isinstance(side, Kernels)]
        modules = {id(launch.module): (name, launch.module) for name, side in sides for launch in side.launches}
        notes = []
        for name, module in modules.values():
            for found in rules_by_code()["unwritten-register"].check(Program(module)):
                span = found.labels[0].span
                notes.append(f"{name} line {span.source.position(span.start)[0]}: {found.message}")
        return notes

    def _element(self, index: int) -> tuple[NamedArray, int]:
        """An array, and which of its elements is one of all that are compared."""
        return next((one, index - own.start) for one, own in slices(self.arrays) if index < own.stop)

    def _witness(self, index: int, parting: Parting | None, measured: Measured | None = None) -> Any:
        if parting is None:
            return None
        array, at = self._element(index)
        places = [parting.place(self.nodes, self.sides, number) or
                  (side.last_store(array, at) if isinstance(side, Kernels) else None)
                  for number, side in enumerate(self.sides)]  # fmt: skip
        known = measured if measured is not None and measured.is_known else None
        values = known.values(index) if known else None
        return Witness(array.element(at), (places[0], places[1]), parting.words(self.nodes),
                       known.inputs if known else {}, values)  # fmt: skip

    def _say(self, level: str, **more: Any) -> Verdict:
        symbols = [array.name for key, array in self.inputs.arrays.items() if key in self.inputs.ids]
        which = {NEAR: "those values that were tried", DIFFERENT: "some values"}.get(level, "all values")
        holds = f"{which} of {', '.join(symbols)}" if symbols else "these values"
        holds += " at these shapes, integers and scalars"
        for name, side in zip("ab", self.sides, strict=True):
            if side.assumed:
                holds += (
                    f", where branches go as they did ({name} line {', '.join(map(str, sorted(set(side.assumed))))})"
                )
        if level == SAME_FUNCTION:
            holds += ", as real numbers that are finite"
        titles = self.sides[0].title(), self.sides[1].title()
        elements = sum(array.data.size for array in self.arrays)
        return Verdict(level, titles, [array.name for array in self.arrays], holds, elements=elements, **more)
