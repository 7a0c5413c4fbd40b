"""One pass: weights relative to the maximum so far, and sums that are rescaled where it grows.

With `c` the factor times log2(e), a weight is `ex2((value + shift) * c)`, where `shift` is `-top`. Where tensor cores
compute values, it is `ex2(value * c + shift)` with `-top * c` instead, one `fma`: rounding that is an error as large
as those of the values. The maximum of no values is -inf; `LEAST` in its place makes weights of 0, and no NaN.
"""

from __future__ import annotations

from ptxlab.author import f32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Value
from ptxlab.schedule.expressions import LOG2_E, register
from ptxlab.schedule.operands import expression, key_of, number, statement_of
from ptxlab.schedule.state import Online
from ptxlab.schedule.statements import Name, Number, Reduce
from ptxlab.schedule.writing import Writing

LEAST = -1e30


def _online(w: Writing) -> Online:
    assert w.state.online is not None
    return w.state.online


def _scale(w: Writing) -> Value:
    """The factor of an exponent of 2."""
    match _online(w).factor:
        case None:
            return LOG2_E
        case Number(value):
            return value * LOG2_E
        case Name(name):
            if ("scale.", ()) not in w.made:
                w.made["scale.", ()] = emit("mul.rn.f32", [number(w, name), LOG2_E])
            return w.made["scale.", ()]
    raise AssertionError(_online(w).factor)


def _scaled(w: Writing, one: Value, is_early: bool) -> Value:
    """Times the factor of exponents: early for all values of tensor cores, of the others each difference."""
    return emit("mul.rn.f32", [register(one), _scale(w)]) if is_early is bool(w.state.tensors) else register(one)


def _of_row(w: Writing, what: str) -> tuple[str, tuple[int, ...]]:
    """The register of something that there is of each maximum."""
    name, numbers = key_of(w, statement_of(w, _online(w).top))
    return f"{name}.{what}", numbers


def start_online(w: Writing, top: Reduce) -> None:
    """Before the loop: no maximum yet."""
    w.comment(f"{top.name} so far, negative", _online(w).step)
    w.made[_of_row(w, "shift")] = _scaled(w, f32(-LEAST), is_early=True)


def write_factor(w: Writing, top: Reduce) -> None:
    """By how much weights become less, because the maximum has grown."""
    w.comment(f"{top.name} may have grown: by how much weights become less", _online(w).step)
    shift = w.made[_of_row(w, "shift")]
    clamped = emit("max.f32", [w.made[key_of(w, top)], LEAST])
    scaled = _scaled(w, clamped, is_early=True)
    less = _scaled(w, emit("neg.f32", [emit("add.rn.f32", [shift, scaled])]), is_early=False)
    w.made[_of_row(w, "factor")] = emit("ex2.approx.ftz.f32", [less])
    emit("neg.f32", [scaled], out=shift)


def write_rescale(w: Writing, sum: Reduce) -> None:
    """A sum of weights that have become less."""
    total = w.made[key_of(w, sum)]
    emit("mul.rn.f32", [total, w.made[_of_row(w, "factor")]], out=total)


def write_weight(w: Writing) -> Value:
    """`exp((value - top) * factor)`."""
    value, shift = register(expression(w, _online(w).value)), w.made[_of_row(w, "shift")]
    if w.state.tensors:
        return emit("ex2.approx.ftz.f32", [emit("fma.rn.f32", [value, _scale(w), shift])])
    return emit("ex2.approx.ftz.f32", [_scaled(w, emit("add.rn.f32", [value, shift]), is_early=False)])
