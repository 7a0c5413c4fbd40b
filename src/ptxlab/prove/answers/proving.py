"""`prove`: a kernel is executed for all threads, its obligations are shown one by one, then the answer is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import ArgumentError
from dataclasses import dataclass
from itertools import islice
from math import prod
from time import monotonic
from typing import Any

import numpy as np

from ptxlab import author, ir
from ptxlab.device.layout import Variables, size_of_variable
from ptxlab.device.limits import check_cluster, check_launch
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.flow import Facts
from ptxlab.flow.expressions import PARAMETER
from ptxlab.ir.origin import Origins, line_span
from ptxlab.launch.contexts import context_of, findings_of
from ptxlab.measure import Launch
from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.maps import MAP_BYTES, at_byte
from ptxlab.prove.execution.segments import UnsupportedError
from ptxlab.prove.obligations.handovers import mistaken
from ptxlab.prove.questions.intervals import parameter_name
from ptxlab.prove.questions.objects import Object
from ptxlab.prove.questions.questions import PATIENT, QUICK, Obligation
from ptxlab.prove.terms.terms import AXES, LARGEST, CopiedBox, Terms, atoms_of, is_integer, is_size, leaves
from ptxlab.prove.theories.solver import Clock, require_solver
from ptxlab.report import PtxError

from .contracts import (
    Example,
    Names,
    contents_of,
    grid_guesses,
    least_guesses,
    length_guesses,
    longer_guesses,
    multiple_guesses,
    one_block_guesses,
    ranges_of,
    room_guesses,
    vector_guesses,
)  # fmt: skip
from .possible import require_possible
from .proof import Proof
from .replay import UNORDERED, WRONG, replay, wrong_in
from .verdict import OPEN, PROVED, REFUTED, Counterexample, Gap, Verdict, count

SMALL_GRID, SMALL_NUMBER, SMALL_LENGTH = 3, 300, 1 << 16  # of a launch that is replayed
SCALES = (1, 64)  # of these; the second where assumptions leave none so small
MOST_REPLAYS = 6
MOST_GUESSES = 8
MOST_WORDS = 1 << 20  # bytes of an array or a variable that may have counters


def prove(
    kernel: ir.Function | author.Kernel | Launch,
    args: Sequence[object] | None = None,
    *,
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    shared: int = 0,
    cluster: int | Sequence[int] | None = None,
    assume: str | Iterable[str] = (),
    bounds: bool = True,
    once: str | Iterable[str] = (),
    initialized: bool = False,
    timeout: float = 120.0,
    replays: bool = True,
) -> Verdict:
    """Prove that a kernel has no data race, no access out of bounds or misaligned, and that its barriers are reached.

    The block is fixed; the grid, integer arguments, the contents of arrays and the turns of loops are arbitrary. What
    is known of lengths of arrays is said by `assume`, as `"n <= len(x)"`, or guessed from an example: a
    `ptxlab.measure.Launch`, or `args` and `grid`. An example is run first, on the emulator. `cluster` is the blocks of
    a cluster, if the kernel does not say it; `timeout` is in seconds, about. Without `bounds`, accesses are assumed to
    be in bounds of their array or variable. Of the arrays of `once` it is shown too that each element is written, by
    one store; with `initialized`, that shared memory is written before it is read.
    """
    require_solver()
    launch = kernel if isinstance(kernel, Launch) else None
    if launch is not None:
        kernel, args, grid, block, shared = launch.kernel, launch.args, launch.grid, launch.block, launch.shared
        cluster = launch.cluster
    function = kernel.entry if isinstance(kernel, author.Kernel) else kernel
    if not isinstance(function, ir.Function):
        raise TypeError(f"prove: `{type(kernel).__name__}` is not a kernel or a launch")
    if block is None:
        required = function.directive("reqntid")
        if required is None:
            raise TypeError("prove: say `block`: the kernel has no `.reqntid`")
        block = tuple(int(extent) for extent in required.arguments)
    if function.module is None:
        raise TypeError(f"prove: `{function.name}` is not in a module: take it from there, `module[{function.name!r}]`")
    texts = [assume] if isinstance(assume, str) else list(assume)
    extents = _extents(block)
    example = None if args is None else _example(function, args, _extents(grid or 1))
    blocks = _extents(cluster or function.required_cluster or 1)
    refuse(function, extents, shared, blocks)
    arrays = (once,) if isinstance(once, str) else tuple(once)
    asked = Asked(bounds, arrays, initialized)
    with interruptible():
        return Proving(function, extents, shared, blocks, texts, example, args, asked, timeout, replays).verdict()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be that while ctypes hands arguments to the solver, too, which makes an error of its own of it."""
    try:
        yield
    except ArgumentError as wrong:
        if "KeyboardInterrupt" in str(wrong):
            raise KeyboardInterrupt from None
        raise


@dataclass(frozen=True)
class Asked:
    """What is to be shown besides races and barriers."""

    bounds: bool
    once: tuple[str, ...]
    initialized: bool


class Proving:
    """One proof, from the kernel to the answer."""

    def __init__(
        self, kernel: ir.Function, block: tuple[int, int, int], shared: int, cluster: tuple[int, int, int],
        assume: list[str], example: Example | None, args: Sequence[object] | None, asked: Asked, timeout: float,
        replays: bool,
    ) -> None:  # fmt: skip
        self.kernel, self.block, self.shared, self.cluster, self.assume = kernel, block, shared, cluster, assume
        self.example, self.args, self.asked, self.replays = example, args, asked, replays
        self.clock = Clock(timeout)
        self.outline: list[str] = []
        self.guessed: list[str] = []
        self.rooms: list[str] = []
        self.flat: list[str] = []
        self.is_guess: Callable[[str], bool] = lambda _: True
        """Whether a condition that holds in the example may be assumed."""

    def verdict(self) -> Verdict:
        """The answer."""
        if self.example is not None and self.replays and self.args is not None:
            args = [np.array(one) if isinstance(one, np.ndarray) else one for one in self.args]
            finding = wrong_in(self.kernel, self.example.grid, self.block, args, self.shared, self.cluster,
                               self.clock.left)  # fmt: skip
            if finding is not None:
                return self._say(REFUTED, counterexample=Counterexample(
                    finding, self.example.grid, self.block, dict(self.example.numbers), dict(self.example.lengths)
                ))  # fmt: skip
        facts = Facts.of(self.kernel)
        lines = _lines(self.kernel, facts)
        try:
            terms = Terms(facts, self.block, self.shared, self._boxes(), ranges_of(self.assume), self.cluster)
            if max(self.cluster) > 1 and (self.asked.once or self.asked.initialized or prod(self.block) % 32):
                raise UnsupportedError(0, "`once`, `initialized` and parts of warps are not followed in clusters")
            if self.kernel.directive("blocksareclusters") is not None:
                raise UnsupportedError(0, "a launch that counts clusters is not followed")
            sizes = dict(self.example.sizes) if self.example else {}
            execution, proof = self._executed(facts, terms, lines, sizes)
            self.example = self.example and self.example.in_elements(sizes)
        except UnsupportedError as wrong:
            return self._say(OPEN, [_unsupported(wrong, lines)])
        self.proof = proof
        try:
            return self._shown(proof, execution)
        except UnsupportedError as wrong:
            return self._say(OPEN, [_unsupported(wrong, lines)])

    def _executed(
        self, facts: Facts, terms: Terms, lines: Sequence[int], sizes: dict[str, int]
    ) -> tuple[Execution, Proof]:  # fmt: skip
        """The kernel, executed until each load reads what it is taken to."""
        unknown: set[int] = set()
        while True:
            execution = Execution(facts, terms, lines, self.clock, unknown)
            proof = Proof(execution, self.shared, sizes, self.clock)
            wrong = mistaken(execution, proof.objects)
            if not wrong:
                return execution, proof
            unknown |= wrong

    def _shown(self, proof: Proof, execution: Execution) -> Verdict:
        """What comes of the obligations."""
        self._describe(execution)
        self._set_ranges(execution)
        pointers = {one.title for one in self.kernel.parameters if one.type.width == 64}  # also those that are not used
        integers = {one.title for one in self.kernel.parameters if is_integer(one)}
        scalars = frozenset(integers - proof.objects.sizes.keys())
        arrays = frozenset(proof.objects.sizes) | pointers
        self.names = Names(scalars, arrays, self.block, arrays | proof.tickets.counters)
        self.base = self._formulas(self.assume)
        require_possible(proof.questions, self.names, self.assume, self._formulas)
        for name, (least, most) in ranges_of(self.assume).items():
            low, high = proof.questions.ranges.get(name, (0, -1))
            if max(low, least) <= min(high, most):
                proof.questions.ranges[name] = max(low, least), min(high, most)
        for name in self.asked.once:
            self.names.known(name, arrays, "once")
        self.rooms = [*self._rooms(execution), *self._words()]
        proof.questions.contracts = self._contracts(self.rooms)
        proof.tickets.show(contents_of([*self.assume, *self.rooms]), QUICK)
        proof.show_known()
        proof.show_loops(QUICK)
        proof.obligations += self._bounds()
        proof.show_barriers(QUICK)
        proof.show_mbarriers(QUICK)
        proof.show_races(QUICK)
        proof.show_exits(QUICK)
        if self.asked.initialized:
            proof.show_initialized(QUICK)
        for name in self.asked.once:
            proof.show_once(name, QUICK)
        self._retry()
        open = [one for one in proof.obligations if one.status != PROVED]
        for one in proof.obligations:
            if one.status == PROVED:
                place = ", ".join(map(str, one.lines[:6])) + (" …" if len(one.lines) > 6 else "")
                self.outline.append(f"line {place}: {one.about}: {one.argument}")
        if not open:
            require_possible(proof.questions, self.names, [*self.assume, *self.guessed], self._formulas)
            return self._say(PROVED)
        counterexample = self._refuted(open) if self.replays else None
        if counterexample is not None:
            return self._say(REFUTED, counterexample=counterexample)
        return self._say(OPEN, _gaps(open))

    def _boxes(self) -> dict[str, CopiedBox]:
        """What copies by the tensor maps of the example move."""
        given = zip(self.kernel.parameters, self.args or (), strict=False)
        maps = [(one, value if isinstance(value, tuple) else (value,)) for one, value in given]
        return {
            at_byte(one.title, MAP_BYTES * number): CopiedBox(tuple(value.box), value.box_bytes)
            for one, values in maps
            for number, value in enumerate(values)
            if all(isinstance(each, TensorMap) for each in values)
        }

    def _describe(self, execution: Execution) -> None:
        barriers = sorted({execution.notes.lines[at] for at in execution.barriers})
        self.outline.append(f"barriers at lines {', '.join(map(str, barriers))}" if barriers else "no barriers")
        for loop in execution.notes.loops:
            kinds = ["uniform" if loop.is_uniform else "threads may leave in different turns"]
            kinds += ["with a barrier"] if loop.has_barrier else []
            self.outline.append(f"loop at line {loop.line}: in any turn; {', '.join(kinds)}")
        for one in (one for orders in self.proof.orders for one in orders.mbarriers):
            arrivals = sorted({visit.event.line for arriver in one.arrivers for visit in arriver.visits()})
            waits = sorted({visit.event.line for visit, _ in one.waits})
            places = [f"{what} at line {', '.join(map(str, lines))}"
                      for what, lines in (("arrivals", arrivals), ("waits", waits)) if lines]  # fmt: skip
            self.outline.append(f"mbarrier initialized at line {one.line} for {one.count}: {'; '.join(places)}")

    def _set_ranges(self, execution: Execution) -> None:
        """What integers are between, in all questions."""
        proof = self.proof
        values = [one for access in proof.objects.accesses for one in (access.address, *access.path)]
        values += [one.condition for one in execution.notes.decisions]
        values += [fact for loop in execution.notes.loops for fact in (*loop.limits, *loop.facts)]
        used = {str(atom.detail) for atom in leaves(values)}
        self.flat = []
        for axis, extent, blocks in zip(AXES, self.block, self.cluster, strict=True):
            most = LARGEST // extent if axis == "x" else 65535
            unsaid = 2 if axis == "x" else 1  # a grid of one block is said, or shown by the example
            given = unsaid if self.example is None else self.example.grid[AXES.index(axis)]
            names = (f"%ctaid.{axis}", f"%clusterid.{axis}", f"%nctaid.{axis}")
            is_said = any(f"grid.{axis}" in one or f"gridDim.{axis}" in one for one in self.assume)
            if given == blocks == 1 and used.isdisjoint(names) and not is_said:
                self.flat.append(axis)
                most = 1
            proof.questions.ranges[f"%nctaid.{axis}"] = (1, most)
        said = ranges_of(self.assume)
        for parameter in self.kernel.parameters:
            if parameter.title not in proof.objects.sizes and is_integer(parameter):
                proof.questions.ranges[parameter.title] = said.get(parameter.title, (0, LARGEST))
        for name in proof.objects.sizes:
            proof.questions.ranges[f"len({name})"] = (0, LARGEST)

    # Contracts that are guessed.

    def _rooms(self, execution: Execution) -> list[str]:
        """That loops over a share of the grid do not wrap around, of the sizes that are in their limits."""
        found: dict[str, None] = {}
        for room in (one for loop in execution.notes.loops for one in loop.rooms):
            known = [one for one in atoms_of([room]) if is_size(one)]
            sizes = {parameter_name(one) if one.kind == PARAMETER else str(one.detail) for one in known}
            found |= dict.fromkeys(room_guesses(self.example, self.block, sizes) if self.example else ())
        return self._guesses(found)

    def _words(self) -> list[str]:
        """That counters are 0 when the kernel starts, where decisions depend on it."""
        said = contents_of(self.assume)
        asked = [(word, size) for word, size in sorted(self.proof.tickets.asked().items()) if word not in said]
        return [] if self.example is None else self._guesses(
            f"{word} == 0" for word, size in asked if self.example.holds_word(word, 0, size))  # fmt: skip

    def _bounds(self) -> list[Obligation]:
        proof = self.proof
        if not self.asked.bounds:
            return proof.show_alignment(QUICK)
        unknown = [name for name in proof.objects.sizes if name not in self._said()]
        self.guessed = self.rooms
        if self.example is None or not unknown:
            return proof.show_bounds(lambda _: True, QUICK)
        found = proof.show_bounds(lambda one: one.name not in unknown, QUICK)
        ways: list[list[str]] = [[]]
        multiples, grids = self._guesses(multiple_guesses(self.example)), self._grids(self.example)
        vectors = self._guesses(vector_guesses(self.example))
        ways += [guess for guess in (multiples, grids, multiples + grids, vectors) if guess]
        ways += [[*multiples, least] for least in self._guesses(least_guesses(self.example))]
        best: tuple[list[str], list[Obligation]] | None = None
        for grid in ways:
            chosen, shown = [*self.rooms, *grid], list[Obligation]()
            for name in unknown:
                texts, obligations = self._guess(name, chosen)
                chosen, shown = texts, shown + obligations
            if best is None or all(one.status == PROVED for one in shown):
                best = chosen, shown
            if all(one.status == PROVED for one in shown):
                break
        assert best is not None
        self.guessed, shown = best
        proof.questions.contracts = self._contracts(self.guessed)
        proof.questions.forget()
        return found + shown

    def _guess(self, name: str, before: list[str]) -> tuple[list[str], list[Obligation]]:
        """Find a length of an array with which accesses to it are in bounds; the obligations of the last guess else."""
        assert self.example is not None
        proof = self.proof

        def concerns(object: Object) -> bool:
            return object.bytes is None and object.name == name

        if name not in self.example.lengths:
            return before, proof.show_bounds(concerns, QUICK)
        first: tuple[list[str], list[Obligation]] | None = None
        for guess in self._lengths(name, self.example):
            if first is not None and self.clock.is_over:
                break
            proof.questions.contracts = self._contracts([*before, guess])
            proof.questions.forget()
            shown = proof.show_bounds(concerns, QUICK)
            if first is None or all(one.status == PROVED for one in shown):
                first = [*before, guess], shown
            if all(one.status == PROVED for one in shown):
                break
        return first or (before, proof.show_bounds(concerns, QUICK))

    def _lengths(self, name: str, example: Example) -> list[str]:
        """What the length of an array may follow from."""
        known = list(islice(filter(self.is_guess, length_guesses(name, example, self.block)), MOST_GUESSES))
        known += self._guesses([f"len({name}) == {example.lengths[name]}"])
        longer = self._guesses(longer_guesses(name, example))
        if name not in example.allocated:
            return known + longer
        whole = [one for one in known if not one.partition("== ")[2][0].isdigit()]
        return [*whole, *longer, *(one for one in known if one not in whole)]

    def _grids(self, example: Example) -> list[str]:
        return self._guesses(grid_guesses(example, self.block))

    def _guesses(self, texts: Iterable[str]) -> list[str]:
        return list(filter(self.is_guess, texts))

    def _said(self) -> set[str]:
        """The arrays of whose length the user says something."""
        return {name for text in self.assume for name in re.findall(r"len\(\s*(\w+)\s*\)", text)}

    def _retry(self) -> None:
        """Try what is open once more, with what the example shows of the grid."""
        if self.example is None:
            return
        proof = self.proof
        ways = [self._grids(self.example), *([one] for one in one_block_guesses(self.example, self.block))]
        for guesses in (list(filter(self.is_guess, one)) for one in ways):
            is_open = any(one.status != PROVED and one.retry is not None for one in proof.obligations)
            if not is_open or set(guesses) <= set(self.guessed):
                continue
            proof.questions.contracts = self._contracts([*self.guessed, *guesses])
            proof.questions.forget()
            again = [one.retry() if one.status != PROVED and one.retry else one for one in proof.obligations]
            if [one.status for one in again] != [one.status for one in proof.obligations]:
                proof.obligations, self.guessed = again, [*self.guessed, *guesses]
        proof.questions.contracts = self._contracts(self.guessed)
        proof.questions.forget()

    def _formulas(self, texts: Iterable[str]) -> list[Any]:
        whole = [f"grid.{axis} % {extent} == 0" for axis, extent in zip(AXES, self.cluster, strict=True)]
        return [self.names.contract(text) for text in [*whole, *texts]]

    def _contracts(self, texts: Iterable[str]) -> list[Any]:
        return [*self.base, *(self.names.contract(text) for text in texts)]

    # Counterexamples.

    def _refuted(self, open: list[Obligation]) -> Counterexample | None:
        """A small launch that goes wrong, found again by the solver and run on the emulator."""
        proof = self.proof
        said, sizes = self._said(), proof.objects.sizes
        codes = WRONG if said >= set(sizes) else UNORDERED  # of an array of any length, an index is outside
        instructions = proof.execution.facts.instructions
        floats = {place[0].name for one in proof.objects.accesses if ".f" in instructions[one.at].opcode.text
                  and (place := proof.objects.located(one)) is not None} & sizes.keys()  # fmt: skip
        before = dict(proof.questions.ranges)
        try:
            for scale in SCALES:
                proof.questions.ranges = self._limited(before, scale)
                proof.questions.forget()
                asked = [one for one in open if one.again is not None][:MOST_REPLAYS]
                models = [one.again(PATIENT // 3) for one in asked if one.again is not None and not self.clock.is_over]
                for model in (one for one in models if one is not None):
                    found = replay(self.kernel, self.block, self.shared, self.cluster, model, sizes, floats, said,
                                   contents_of([*self.assume, *self.rooms]), codes, self.clock.left)  # fmt: skip
                    if found is not None:
                        return found
                if any(one is not None for one in models):
                    return None
        finally:
            proof.questions.ranges = before
        return None

    def _limited(self, ranges: Mapping[str, tuple[int, int]], scale: int) -> dict[str, tuple[int, int]]:
        """Ranges of numbers that a launch on the emulator may have, as far as assumptions leave them."""
        found = {}
        for name, (low, high) in ranges.items():
            is_grid, is_length = name.startswith("%"), name.startswith("len(")
            limit = SMALL_GRID * max(self.cluster) if is_grid else SMALL_LENGTH if is_length else SMALL_NUMBER
            found[name] = (low, max(low, min(high, scale * limit)))
        return found

    # Words.

    def _say(self, level: str, gaps: Sequence[Gap] = (), counterexample: Counterexample | None = None) -> Verdict:
        proof = getattr(self, "proof", None)
        kinds = [one.kind for one in proof.obligations if one.status == PROVED] if proof else []
        return Verdict(
            level, self.kernel.title, self._assumptions(), gaps, counterexample, self.outline, count(kinds),
            monotonic() - self.clock.start, self.asked.bounds, self.asked.once, self.asked.initialized,
        )  # fmt: skip

    def _assumptions(self) -> list[str]:
        extents, blocks = (" x ".join(map(str, one)) for one in (self.block, self.cluster))
        found = [
            f"the block is {extents}" + (f", with {self.shared} bytes of dynamic shared memory" if self.shared else "")
        ]
        if max(self.cluster) > 1:
            found.append(f"the cluster is {blocks} blocks, and the grid is made of whole clusters")
        elif any(_is_of_clusters(one) for one in Facts.of(self.kernel).instructions):
            found.append("it is launched without clusters, or each is one block")
        found += self.assume
        found += [f"{one} (from the example launch)" for one in self.guessed]
        proof: Proof | None = getattr(self, "proof", None)
        if proof is None:
            return found
        if self.flat:
            found.append(" and ".join(f"grid.{axis} == 1" for axis in self.flat))
        if "x" not in self.flat:
            found.append("grid.x * block.x is less than 2^31")
        if any(one.title not in proof.objects.sizes and is_integer(one) for one in self.kernel.parameters):
            found.append("integer arguments are from 0 to 2^31 - 1")
        if proof.objects.sizes:
            sizes = ", ".join(f"{name} of {size}" for name, size in sorted(proof.objects.sizes.items()))
            found.append("array arguments do not overlap, are aligned to 16 bytes and have fewer than 2^31 elements"
                         f" (bytes of an element: {sizes})")  # fmt: skip
        maps = {one.map for one in proof.execution.notes.tensors}
        found += proof.tickets.assumed
        if maps:
            boxes = proof.execution.terms.boxes
            sizes = ", ".join(f"{name}: {' x '.join(map(str, boxes[name].extents))}" for name in sorted(maps))
            found.append("tensors of tensor maps do not overlap each other or array arguments (boxes as in the example:"
                         f" {sizes})")  # fmt: skip
        if proof.execution.notes.elects:
            found.append("`elect.sync` elects the first lane of a warp")
        if proof.execution.notes.reads_textures:
            found.append("textures do not overlap arrays that are written")
        if not self.asked.bounds:
            found.append("accesses are in bounds of their array or variable")
        if proof.execution.notes.loops:
            found.append("loops end, and no loop makes 2^31 turns")
        return found


def _is_of_clusters(one: ir.Instruction) -> bool:
    """Whether what an instruction does depends on the cluster."""
    is_special = any(isinstance(part, ir.SpecialRegister) and "cluster" in part.name for part in one.operands)
    return is_special or any(part in one.opcode.text for part in ("mapa", "barrier.cluster", "multicast", "getctarank"))


def _unsupported(wrong: UnsupportedError, lines: Sequence[int]) -> Gap:
    return Gap("unsupported", (lines[wrong.at],), "this is not followed", wrong.reason, wrong.help)


def _gaps(open: Sequence[Obligation]) -> list[Gap]:
    """What was not shown, each thing once."""
    found: dict[tuple[Any, ...], Gap] = {}
    for one in open:
        gap = Gap(
            one.kind, one.lines, one.about, one.reason or "a value was found for which it does not hold", one.help
        )
        found.setdefault((gap.kind, gap.lines, gap.about), gap)
    return list(found.values())


def refuse(kernel: ir.Function, block: tuple[int, int, int], shared: int, cluster: tuple[int, int, int]) -> None:
    """Raise where the program is wrong, or no GPU would take such blocks: of launches that can't be, all is true."""
    assert kernel.module is not None
    wrong = [one for one in findings_of(kernel.module) if one.level == "error"]
    if wrong:
        raise PtxError(wrong)
    check_launch(kernel.module, kernel, cluster, block, shared, None)
    check_cluster(kernel.module, kernel, cluster, cluster, kernel.module.target)


def _extents(given: int | Sequence[int]) -> tuple[int, int, int]:
    extents = (given,) if isinstance(given, int) else tuple(given)
    x, y, z = (*extents, 1, 1)[:3]
    return int(x), int(y), int(z)


def _example(kernel: ir.Function, args: Sequence[object], grid: tuple[int, int, int]) -> Example:
    """What a launch shows of sizes: integers, and arrays with their lengths."""
    numbers: dict[str, int] = {}
    lengths: dict[str, int] = {}
    sizes: dict[str, int] = {}
    contents = _variables(kernel)
    for parameter, value in zip(kernel.parameters, args, strict=False):
        if isinstance(value, (bool, np.bool_)):
            continue
        if isinstance(value, bytes) and is_integer(parameter):  # a number of the command line
            numbers[parameter.title] = int.from_bytes(value, "little", signed=True)
        elif isinstance(value, (int, np.integer)):
            numbers[parameter.title] = int(value)
        elif hasattr(value, "shape") and hasattr(value, "dtype") and value.shape:
            array = np.asarray(value)
            lengths[parameter.title], sizes[parameter.title] = int(array.size), array.dtype.itemsize
            if array.nbytes <= MOST_WORDS:
                contents[parameter.title] = array.tobytes()
    return Example(numbers, lengths, sizes, grid, contents=contents)


def _variables(kernel: ir.Function) -> dict[str, bytes]:
    """What the variables of a module hold in global memory."""
    assert kernel.module is not None
    placed, memory = Variables(kernel.module, []), context_of(kernel.module).memory
    small = (
        one for one in kernel.module.variables if one.state_space == "global" and size_of_variable(one) <= MOST_WORDS
    )
    return {one.title: memory.of(placed, one).raw for one in small}


def _lines(kernel: ir.Function, facts: Facts) -> list[int]:
    """The line of each instruction: what it was compiled from, where that is known; of PTX its own."""
    module = kernel.module
    source = None if module is None else module.source
    if module is None or source is None:
        return [number + 1 for number, _ in enumerate(facts.instructions)]
    own = [1 if one.start is None else source.position(one.start)[0] for one in facts.instructions]
    if not module.origins:
        return own
    origins = Origins(module)
    spans = [origins.span(line_span(source, line)) for line in own]
    found = [None if one is None else one.source.position(one.start)[0] for one in spans]
    last = next((one for one in found if one is not None), own[0])
    lines = []
    for line in found:  # what has none, such as the reading of parameters, has that of what is before it
        last = last if line is None else line
        lines.append(last)
    return lines
