"""`online("j")`: one pass over a loop, where a maximum and sums of exponentials relative to it took two or three.

The maximum so far is taken for that of all iterations. Where it grows, sums are multiplied by what all their terms
have become less: with `p = exp((s - top) * f)`, each sum that is linear in `p` by `exp((old - new) * f)`.
"""

from __future__ import annotations

from dataclasses import replace

from ptxlab.schedule.state import Online, State
from ptxlab.schedule.statements import Applied, Expression, Let, Name, Number, Reduce, Statement, names, walk


def online(state: State, axis: str) -> State:
    """Rescale the sums over an axis as its maximum grows; what is left of the axis after `tile` is done at once."""
    if state.online is not None:
        state.illegal(f"`{state.online.axis}` is one pass already")
    part = state.part(state.named(axis)[0])
    axis = part.axis
    if axis not in state.algorithm.reduced:
        state.illegal(f"`{axis}` is not reduced over")
    if part.number or state.stages or state.tensors:
        state.illegal(f"the outer part of `{axis}` is mapped, or data is staged", "`online` before that")
    found = _found(state, axis)
    _check_rest(state, found)
    return replace(state, online=found, tiled=())


def _found(state: State, axis: str) -> Online:  # noqa: RET503 - `refuse` does not return
    """The maximum, and the exponential relative to it."""
    statements = state.algorithm.statements
    for top in statements:
        if not isinstance(top, Reduce) or top.operation != "max" or top.over != (axis,):
            continue
        for one in statements:
            if isinstance(one, Let) and axis in one.axes and top.name in names(one):
                matched = _exponent(state, one.value, top.name)
                if matched is None:
                    state.illegal(f"`{one.name}` is not an exponential relative to `{top.name}`", _HELP)
                value, factor = matched
                sums = tuple(s.name for s in statements if isinstance(s, Reduce) and one.name in names(s))
                return Online(axis, top.name, one.name, value, factor, sums, len(state.steps))
    state.illegal(f"no number is an exponential relative to a maximum over `{axis}`", _HELP)


_HELP = "`top = max(s for j in range(n))`, and in a loop over `j`: `p = exp(s - top)` or `p = exp((s - top) * scale)`"


def _exponent(state: State, value: Expression, top: str) -> tuple[Expression, Expression | None] | None:
    """`s` and `f` of `exp((s - top) * f)`, where `f` is a number or a parameter."""
    match value:
        case Applied("exp", (Applied("sub", (other, Name(name))),)) if name == top:
            factor: Expression | None = None
        case Applied("exp", (Applied("mul", (Applied("sub", (other, Name(name))), Number() | Name() as f)),)) if (
            name == top
        ):
            factor = f
        case Applied("exp", (Applied("mul", (Number() | Name() as f, Applied("sub", (other, Name(name))))),)) if (
            name == top
        ):
            factor = f
        case _:
            return None
    made = {one.name for one in state.algorithm.statements if isinstance(one, (Let, Reduce))}
    if isinstance(factor, Name) and factor.name in made:
        return None
    return None if Name(top) in walk(other) else (other, factor)


def _check_rest(state: State, found: Online) -> None:
    """Refuse what needs the maximum, or a sum, of all iterations in the loop."""
    made = {found.top, found.weight}
    for one in state.algorithm.statements:
        inside = found.axis in one.axes
        over = isinstance(one, Reduce) and found.axis in one.over
        used = names(one) & made
        if isinstance(one, Reduce) and over and used and not _is_scaled(one, found):
            said = f"a sum over `{found.axis}` is not linear in `{found.weight}`, or is of `{found.top}` too"
            _refuse(state, one, said)
        if inside and not over and used and getattr(one, "name", "") not in made:
            _refuse(state, one, f"`{found.top}` is not known in the loop over `{found.axis}`")
        later = {s.name for s in state.algorithm.statements if isinstance(s, Reduce) and found.axis in s.over}
        if inside and names(one) & (later - {found.top}):
            _refuse(state, one, f"a sum over `{found.axis}` is not known in the loop over it")


def _refuse(state: State, one: Statement, said: str) -> None:
    state.illegal(f"line {one.line} of `{state.algorithm.name}`: {said}", "this needs a second pass")


def _is_scaled(one: Reduce, found: Online) -> bool:
    """Whether a sum is multiplied by a number where each weight is."""
    condition = (
        frozenset() if one.condition is None else frozenset(e for e in walk(one.condition) if isinstance(e, Name))
    )
    return (
        one.operation == "add"
        and found.top not in names(one)
        and Name(found.weight) not in condition
        and _degree(one.value, found.weight) == 1
    )


def _degree(value: Expression, name: str) -> int | None:
    """How often a number is a factor of a product; None where an expression is not one."""
    match value:
        case Name(other):
            return int(other == name)
        case Applied("mul", (left, right)):
            degrees = _degree(left, name), _degree(right, name)
            return None if None in degrees else sum(degrees)  # type: ignore[arg-type]
        case Applied("div", (left, right)):
            return _degree(left, name) if _degree(right, name) == 0 else None
        case Applied("neg", (inner,)):
            return _degree(inner, name)
    return None if Name(name) in walk(value) else 0
