"""Names for wrong answers: which of the known ways to look right this is, found out by calling the submission again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ptxlab.verify.running import Called, Caller
from ptxlab.verify.task import Values
from ptxlab.verify.values import Difference

MEMORY_CODES = frozenset(
    "stale-memory unwritten-elements skipped-tail constant-output independent-output cached-result".split()
)
Off = Mapping[str, Difference]


def recognize(
    caller: Caller, calls: tuple[Called, Called], expected: Sequence[Mapping[str, Values]], off: Sequence[Off]
) -> tuple[str, str]:
    """The code of what is wrong in two calls with different data, and a sentence."""
    name = next(iter(off[0] or off[1]))
    unwritten = calls[0].unwritten(name) & calls[1].unwritten(name)
    if unwritten.all():
        return "stale-memory", f"no element of `{name}` is written: it holds what was in memory before"
    if unwritten.any():
        tail = _tail(unwritten)
        many = f"{int(unwritten.sum()):,} of {unwritten.size:,} elements"
        if tail:
            return "skipped-tail", f"the last elements of `{name}` are not written: {many}, {tail}"
        return "unwritten-elements", f"`{name}` is written in part: {many} hold what was in memory before"
    held = [one.after.arrays[name].view for one in calls]
    if _same(*held) and not _same(expected[0][name], expected[1][name]):
        if _is_constant(held[0]):
            return "constant-output", f"every element of `{name}` is {held[0].flat[0]}, whatever the inputs are"
        if _is_right_alone(caller, calls[1], expected[1]):
            return "cached-result", f"the second call leaves in `{name}` what the first one has computed"
        return "independent-output", f"`{name}` has the same elements for other inputs"
    if off[1] and _is_right_alone(caller, calls[1], expected[1]):
        return "cached-result", "a call is right if it is the first: what it does depends on calls before it"
    if off[0]:
        return "wrong-values", f"`{name}` is not what the reference gives"
    return "wrong-values", f"`{name}` is not what the reference gives for inputs that are {calls[1].kind}"


def _tail(unwritten: npt.NDArray[np.bool_]) -> str:
    """Where a tail is: the end of the array, or the end of each row; empty if it is not one."""
    flat = np.flatnonzero(unwritten)
    if flat[-1] == unwritten.size - 1 and flat[-1] - flat[0] + 1 == len(flat):
        return f"from {tuple(int(i) for i in np.unravel_index(flat[0], unwritten.shape))} on"
    written = ~unwritten
    indices = np.nonzero(written)
    extents = tuple(int(one.max()) + 1 for one in indices)  # the least box from the first element that has all of them
    if int(written.sum()) == np.prod(extents):
        beyond = [f"axis {axis} from {extent}" for axis, extent in enumerate(extents) if extent < written.shape[axis]]
        return f"{' and '.join(beyond)} on"
    return ""


def _same(one: Values, other: Values) -> bool:
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _is_constant(values: Values) -> bool:
    return bool((values == values.flat[0]).all())


def _is_right_alone(caller: Caller, called: Called, expected: Mapping[str, Values]) -> bool:
    """Whether the same call is right where no other was before it."""
    caller.submission.restart()
    again = caller.call(called.before, called.kind, called.seed)
    return not again.diagnostics and not caller.off(again, expected)
