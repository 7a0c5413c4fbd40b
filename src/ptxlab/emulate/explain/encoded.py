"""Numbers that describe matrices, MMAs and tensors, said in words: `ptxlab.explain(0x4000404000010040)`.

Each field is read by the functions that the emulator executes by, and each violated constraint is named.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxlab.values import Json

FORMS = {"instruction": 32, "descriptor": 64, "tensor-map": 1024}  # and their bits


@dataclass(frozen=True, slots=True)
class BitField:
    """Some bits, from the lowest to the highest, what they hold and what that means."""

    name: str
    lowest: int
    highest: int
    value: int
    says: str

    @property
    def bits(self) -> str:
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a number says. It prints as text; `violations` are the constraints that it violates."""

    form: str
    """What it is read as: one of `FORMS`."""
    title: str
    assumed: str
    """Why it is read this way, where that was not said."""
    fields: tuple[BitField, ...]
    violations: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """A line for each field, then what is violated; texts continue below each other where they are longer."""
        return "\n".join(_lines(self, width))

    def as_dict(self) -> Json:
        """The same for programs, of values that JSON has."""
        fields = [
            {"name": one.name, "bits": [one.lowest, one.highest], "value": one.value, "says": one.says}
            for one in self.fields
        ]
        return {
            "form": self.form,
            "title": self.title,
            "assumed": self.assumed,
            "fields": fields,
            "violations": list(self.violations),
            "notes": list(self.notes),
        }


def _lines(said: Explanation, width: int | None) -> Iterator[str]:
    yield from _wrapped(said.title, width)
    if said.assumed:
        yield from _wrapped(said.assumed, width)
    yield ""
    rows = [("bits", "field", "value", "what it says")]
    rows += [(one.bits, one.name, f"{one.value:#x}", one.says) for one in said.fields]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for bits, name, value, says in rows:
        start = f"{bits:>{widths[0]}}  {name:<{widths[1]}}  {value:>{widths[2]}}  "
        yield from _wrapped(says, width, start)
    yield ""
    for violation in said.violations:
        yield from _wrapped(violation, width, "violated: ")
    if not said.violations:
        yield "no constraint is violated"
    for note in said.notes:
        yield from _wrapped(note, width, "note: ")


def _wrapped(text: str, width: int | None, start: str = "") -> list[str]:
    if width is None:
        return [(start + text).rstrip()]
    return textwrap.wrap(
        text,
        max(width, len(start) + 20),
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def explain_encoded(
    encoded: int | bytes | bytearray,
    form: str | None = None,
    *,
    target: str | None = None,
    kind: str | None = None,
    cta_group: int | None = None,
    ws: bool = False,
) -> Explanation:
    """What a matrix descriptor, an instruction descriptor or a tensor map says, and which constraints it violates.

    `form` is `descriptor`, `instruction` or `tensor-map`; by default, bytes are a tensor map, a number of 32 bits is an
    instruction descriptor and a longer one a matrix descriptor: of `wgmma` (`target="sm_90a"`) or `tcgen05`
    (`sm_100a`). `kind`, `cta_group` and `ws` are those of the `tcgen05.mma` of an instruction descriptor.
    """
    if form is not None and form not in FORMS:
        raise ValueError(f"form {form!r}: expected one of {', '.join(FORMS)}")
    if isinstance(encoded, bytes | bytearray):
        if form not in (None, "tensor-map"):
            encoded = int.from_bytes(encoded, "little")
    elif form == "tensor-map":
        raise ValueError("a tensor map is 128 bytes, not a number")
    if isinstance(encoded, bytes | bytearray):
        from ptxlab.emulate.explain.encoded_maps import explain_map

        return explain_map(bytes(encoded))
    return _explain_number(encoded, form, target, kind, cta_group, ws)


def _explain_number(
    number: int, form: str | None, target: str | None, kind: str | None, cta_group: int | None, ws: bool
) -> Explanation:
    from ptxlab.emulate.explain.instruction_descriptors import explain_instruction
    from ptxlab.emulate.explain.matrix_descriptors import explain_matrix

    is_instruction = number >> 32 == 0 if form is None and target != "sm_90a" else form == "instruction"
    chosen = form or ("instruction" if is_instruction else "descriptor")
    if not 0 <= number < 1 << FORMS[chosen]:
        raise ValueError(f"{number:#x} is not {ARTICLES[chosen]}: that has {FORMS[chosen]} bits")
    if is_instruction:
        return explain_instruction(number, kind, cta_group, ws, is_guess=form is None)
    return explain_matrix(number, target)


ARTICLES = {"instruction": "an instruction descriptor", "descriptor": "a matrix descriptor"}
