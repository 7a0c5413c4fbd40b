"""Functions that are declared by their arguments: each starts one kernel, whose parameters are the arrays.

How calls are kept and started is in `calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxlab.device.arrays import Array
from ptxlab.launch.launches import Launch
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import check_address, check_apart, check_dense, check_gpu, check_result, require
from ptxlab.ops.matrices import Matrix, empty, look
from ptxlab.ops.operators import Operator
from ptxlab.ops.ready import Workspace

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

Form = tuple[tuple[int, ...], str] | None
"""The extents and the type of a result; None if it is not computed."""


@dataclass(frozen=True)
class Argument:
    """What a kernel wants an array to be; `parameter` is its number there."""

    types: Sequence[str]
    parameter: int
    in_place: str = ""
    """What a result may be written over: each thread then reads what it writes over."""
    is_dense: bool = True
    """Whether it must be without gaps, the last dimension's elements after each other."""
    is_aligned: bool = False
    """Whether it must begin at a multiple of 16 bytes."""


@dataclass(frozen=True)
class CalledKernel:
    """A kernel to call: what it reads and writes, by name.

    `check` refuses arrays that do not go together, `results` gives the forms of what is written, and `make` makes the
    launch; all are given what is read, and `make` the results too, and then the options. `workspace` is given the first
    array as it was passed, its GPU, what is read, and the results. Where there is nothing to compute, `finish` fills
    the results.
    """

    read: Mapping[str, Argument]
    written: Mapping[str, Argument]
    check: Callable[..., None]
    results: Callable[..., Sequence[Form]]
    make: Callable[..., Launch]
    workspace: Callable[..., Workspace] | None = None
    finish: Callable[..., None] = lambda *results: None


Prepare = Callable[[Sequence[Any], Sequence[Any], tuple[Any, ...]], Call]


def calls_of(declared: CalledKernel, operator: Operator) -> Calls:
    """The function that starts it; options are a tuple."""
    return Calls(prepare_of(declared), operator)


def prepare_of(declared: CalledKernel) -> Prepare:
    """What checks a call of it and prepares its launch."""

    def prepare(read: Sequence[Array | str | None], written: Sequence[Array], how: tuple[object, ...]) -> Call:
        named = zip(declared.read.items(), read, strict=True)
        seen = [None if one is None else look(one, name, wanted.types) for (name, wanted), one in named]
        for (name, wanted), one in zip(declared.read.items(), seen, strict=True):
            if one is not None and wanted.is_dense:
                check_dense(name, one)
            if one is not None and wanted.is_aligned:
                check_address(name, one)
        declared.check(*seen, *how)
        forms = declared.results(*seen, *how)
        made = [_result(read[0], form, one) for form, one in zip(forms, written, strict=True)]
        targets = [
            None if one is None else _check_result(name, wanted, one, form)
            for (name, wanted), one, form in zip(declared.written.items(), made, forms, strict=True)
        ]
        in_place = _check_places(declared, seen, targets)
        arrays = [*seen, *targets]
        if any(0 in one.shape for one in arrays if one is not None):
            declared.finish(*made)
            return Call(made)
        first = next(one for one in seen if one is not None)
        views = [0 if one is None else one.view() for one in arrays]
        launch = declared.make(*views, *how)
        arguments = [*declared.read.values(), *declared.written.values()]
        changing = [(each.parameter, at) for at, (each, one) in enumerate(zip(arguments, arrays, strict=True)) if one]
        is_host = declared.workspace is None or first.gpu is None
        workspace = None if is_host else declared.workspace(read[0], first.gpu, *views)  # type: ignore[misc]
        return Call(made, [BoundLaunch(launch, changing)], arrays, workspace=workspace, in_place=in_place)

    return prepare


def _result(like: Array | str | None, form: Form, given: Array | None) -> Any:
    if form is None or given is not None:
        return given
    return empty(like, *form)


def _check_result(name: str, wanted: Argument, given: Array, form: Form) -> Matrix:
    """Where a result goes, which has the extents and the type that it must have."""
    one = look(given, name, wanted.types)
    if form is not None:
        require(name, one, *form)
    check_dense(name, one)
    check_result(name, one)
    if wanted.is_aligned:
        check_address(name, one)
    return one


def _check_places(
    declared: CalledKernel, seen: Sequence[Matrix | None], targets: Sequence[Matrix | None]
) -> list[tuple[int, int]]:
    """Refuse arrays on different devices, and results over what is read; which pairs may be the same array."""
    read = [(name, one) for name, one in zip(declared.read, seen, strict=True) if one is not None]
    written = [(name, one) for name, one in zip(declared.written, targets, strict=True) if one is not None]
    check_gpu(read[0], [*read[1:], *written])
    in_place = []
    for number, name in enumerate(declared.written):
        target, own = targets[number], declared.written[name].in_place
        if target is None:
            continue
        later = zip(list(declared.written)[number + 1 :], targets[number + 1 :], strict=True)
        others = [*read, *((other, one) for other, one in later if one is not None)]
        if own:
            base = list(declared.read).index(own)
            in_place.append((len(seen) + number, base))
            over = seen[base]
            if over is not None and (over.address, over.end) == (target.address, target.end):
                others = [(other, one) for other, one in others if other != own]
        check_apart(target, others, name)
    return in_place
