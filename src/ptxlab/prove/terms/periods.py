"""After how many turns of a loop a term comes again."""

from __future__ import annotations

from math import gcd, lcm

from ptxlab.flow.expressions import Atom, Linear


def period(value: Linear, counter: Atom, modulus: int = 0) -> int | None:
    """After how many turns a term, or what it is modulo a number, comes again; None if that is not known."""
    found = 1
    is_exact = value.bounds[0] >= 0 and value.fits(value.type)
    if modulus & (modulus - 1) and not is_exact:
        modulus = 0  # it may wrap: its atoms themselves must come again
    for atom, factor in value.terms:
        turns = _period(atom, counter, modulus // gcd(modulus, factor) if modulus else 0)
        if turns is None:
            return None
        found = lcm(found, turns)
    return found


def _period(atom: Atom, counter: Atom, modulus: int) -> int | None:
    if atom is counter:
        return modulus or None
    if atom.step is None or not atom.parts:
        return 1
    first, *others = atom.parts
    number = others[0].constant if others and others[0].is_constant else 0
    if atom.kind in ("//", "%") and first.type.kind == "s" and first.bounds[0] < 0:
        number = 0
    if atom.kind == "%" and number > 0:
        return period(first, counter, number)
    if atom.kind == "&" and number > 0 and number & (number + 1) == 0:
        return period(first, counter, number + 1)
    if atom.kind == "//" and number > 0 and modulus:
        return period(first, counter, modulus * number)
    if atom.kind == ">>" and modulus:
        return period(first, counter, modulus << number) if others[0].is_constant else None
    if atom.kind == "cast" and modulus and modulus & (modulus - 1) == 0 and modulus <= 1 << first.type.width:
        return period(first, counter, modulus)
    found = 1
    for part in atom.parts:
        turns = period(part, counter)
        if turns is None:
            return None
        found = lcm(found, turns)
    return found
