"""Instruction descriptors in words: the shape, the types and the details of a `tcgen05.mma`."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab.emulate.explain.encoded import BitField, Explanation
from ptxlab.emulate.explain.matrix_descriptors import name_bits
from ptxlab.isa.units.instruction_descriptor import (
    KINDS,
    PAIR,
    PLAIN,
    STATIONARY,
    VIOLATIONS,
    InstructionDescriptor,
    reserved_bits,
    violations_in,
)
from ptxlab.isa.units.zero_column_mask import most_shift

FORMS = {PLAIN: "cta_group::1", PAIR: "cta_group::2", STATIONARY: "ws"}


def explain_instruction(bits: int, kind: str | None, cta_group: int | None, ws: bool, *, is_guess: bool) -> Explanation:
    """What 32 bits say to `tcgen05.mma`; without a kind, the first whose constraints they satisfy is assumed."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind {kind!r}: expected one of {', '.join(KINDS)}")
    if cta_group not in (None, 1, 2) or (ws and cta_group == 2):
        raise ValueError("there are cta_group 1 and 2, and `.ws` only with 1")
    forms = [STATIONARY] if ws else [PAIR if cta_group == 2 else PLAIN] if cta_group else [PLAIN, PAIR, STATIONARY]
    choices = [(form, name) for form in forms for name in ([kind] if kind else KINDS)]
    fitting = [choice for choice in choices if not list(_violations(bits, choice[1], choice[0]))]
    form, name = fitting[0] if fitting else min(choices, key=lambda one: len(list(_violations(bits, one[1], one[0]))))
    said = InstructionDescriptor.decode(bits, name)
    return Explanation(
        "instruction",
        f"instruction descriptor of tcgen05.mma, kind::{name}: {bits:#010x}, {said}",
        _assumed(fitting, form, name, kind, cta_group is None and not ws, is_guess),
        tuple(_fields(bits, said)),
        tuple(_violations(bits, name, form)),
        tuple(_notes(said)),
    )


def _assumed(
    fitting: list[tuple[int, str]], form: int, name: str, kind: str | None, is_open: bool, is_guess: bool
) -> str:
    """What was not said, and what else it could be."""
    parts = ["read as an instruction descriptor, because it has 32 bits"] if is_guess else []
    guessed = [f"kind::{name}"] if kind is None else []
    guessed += [f".{FORMS[form]}"] if is_open and form != PLAIN else []
    if guessed:
        others = dict.fromkeys(f"kind::{other}" for _, other in fitting if other != name)
        more = f"; {', '.join(others)} would be legal, too" if others and kind is None else ""
        parts.append(f"{' and '.join(guessed)} {'is' if len(guessed) == 1 else 'are'} assumed{more}")
    return "; ".join(parts)


def _fields(bits: int, said: InstructionDescriptor) -> Iterator[BitField]:
    def field(name: str, lowest: int, highest: int, says: str) -> BitField:
        return BitField(name, lowest, highest, bits >> lowest & (1 << highest - lowest + 1) - 1, says)

    fp4 = said.kind.startswith("mxf4")
    selector = "not used by a dense A" if said.selector is None else f"column {said.selector} of the metadata"
    if not said.is_scaled:
        yield field("sparsity selector", 0, 1, selector)
    yield field("sparsity", 2, 2, "A is dense" if said.selector is None else "A is sparse")
    if said.is_scaled:
        yield field("scale factor id of B", 4, 5, f"byte {said.b_id} of a word of scale factors is the first")
    else:
        yield field("saturate", 3, 3, "integers are clamped" if said.saturate else "no")
        yield field("type of D", 4, 5, _type(said.dtype))
    yield field("type of A", 7, 9, _type(said.atype))
    yield field("type of B", 10, 11 if fp4 else 12, _type(said.btype))
    yield field("negate A", 13, 13, "yes" if said.negate_a else "no")
    yield field("negate B", 14, 14, "yes" if said.negate_b else "no")
    yield field("transpose A", 15, 15, "A is MN-major" if said.transpose_a else "A is K-major")
    yield field("transpose B", 16, 16, "B is MN-major" if said.transpose_b else "B is K-major")
    yield field("N", 17, 22, f"{said.columns} columns of B and D")
    if not said.is_scaled:
        yield field("M", 24, 28, f"{said.rows} rows of A and D")
        shift = int(most_shift(bits))
        yield field("maximum shift", 30, 31, f"B may be shifted by {shift} columns" if shift else "no shift of B")
        return
    yield field("scale factor type", 23, 23, said.scale)
    yield field("M", 27, 28, f"{said.rows} rows of A and D")
    yield field("scale factor id of A", 29, 30, f"byte {said.a_id} of a word of scale factors is the first")
    if fp4:
        yield field("K", 31, 31, "96, only of sm_103a" if said.long else f"{said.depth}")


def _type(name: str) -> str:
    return "this kind has no such type" if name == "?" else name


def _violations(bits: int, kind: str, form: int) -> Iterator[str]:
    for violation in violations_in(bits, KINDS.index(kind), form, bits >> 2 & 1):
        yield VIOLATIONS[violation]
    if reserved := bits & reserved_bits(kind):
        yield f"{name_bits(reserved)} must be 0: kind::{kind} has no field there"
    said = InstructionDescriptor.decode(bits, kind)
    if said.kind in ("mxf8f6f4", "mxf4") and said.scale != "ue8m0":
        yield f"scale factors of kind::{kind} are ue8m0: bit 23 must be 1"
    if said.kind.startswith("mxf4") and not said.long and (said.a_id | said.b_id) & 1:
        yield f"the scale factor ids of kind::{kind} are 0 or 2"
    if said.kind != "i8" and said.saturate:
        yield "bit 3, saturation, is only of kind::i8 and must be 0"


def _notes(said: InstructionDescriptor) -> Iterator[str]:
    if said.long:
        yield "a K of 96 needs sm_103a"
