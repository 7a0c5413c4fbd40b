"""What ptxlab knows of a subject: the page of a diagnostic, the forms of an instruction, what a descriptor says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, overload

from ptxlab.explain.instructions import explain_forms, find_forms, form_as_dict, what_is_unknown
from ptxlab.explain.pages import page_of, pages, summary_of
from ptxlab.explain.words import explain_word, known_words
from ptxlab.report.diagnostic import current_code
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.explain.encoded import Explanation

__all__ = ["Page", "explain", "explain_forms", "page_of", "pages", "summary_of"]


@dataclass(frozen=True, slots=True)
class Page:
    """What there is to say of a subject. It prints as text, and is Markdown."""

    kind: Literal["diagnostic", "instruction", "word"]
    subject: str
    text: str
    details: Mapping[str, object] = field(default_factory=dict, compare=False)
    """More for programs, as JSON has it."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text if self.kind != "instruction" else f"```\n{self.text}\n```"

    def as_dict(self) -> dict[str, object]:
        """The same for programs, of values that JSON has."""
        return {"kind": self.kind, "subject": self.subject, **self.details, "text": self.text}


@overload
def explain(subject: str) -> Page: ...
@overload
def explain(
    subject: int | bytes | bytearray,
    form: str | None = None,
    *,
    target: str | None = None,
    kind: str | None = None,
    cta_group: int | None = None,
    ws: bool = False,
) -> Explanation: ...


def explain(subject: str | int | bytes | bytearray, form: str | None = None, **how: Any) -> Page | Explanation:
    """What ptxlab knows of a subject, as `ptxlab explain` prints it.

    A text is the code of a diagnostic (`"data-race"`) or an opcode with as many of its modifiers as you like
    (`"mma.sync"`), a special register (`"%tid"`), a directive or a term of the glossary; `LookupError` says what was
    probably meant. A number is a matrix descriptor or an instruction descriptor,
    128 bytes are a tensor map: `form` (`descriptor`, `instruction` or `tensor-map`), `target` (`sm_90a` or
    `sm_100a`) and, for the `tcgen05.mma` of an instruction descriptor, `kind`, `cta_group`, `ws` say how it is meant.

    >>> import ptxlab
    >>> print(ptxlab.explain("data-race").text.partition(".")[0])
    Two threads access the same bytes, at least one writes, and nothing orders them
    >>> ptxlab.explain(0x4000004000010040, target="sm_100a").violations
    ('bits 46 to 48 must be 1, the constant of descriptors of tcgen05: bit 46 is missing',)
    """
    if not isinstance(subject, str):
        from ptxlab.emulate.explain.encoded import explain_encoded

        return explain_encoded(subject, form, **how)
    if form is not None or any(how.values()):
        raise TypeError("`form`, `target`, `kind`, `cta_group` and `ws` are for numbers and tensor maps")
    page = page_of(subject)
    if page is not None:
        return Page("diagnostic", current_code(subject), page, {"summary": summary_of(page)})
    forms, word = find_forms(subject), explain_word(subject)
    if forms:  # `mbarrier` is an instruction and a thing
        details = {"forms": [form_as_dict(one) for one in forms]}
        return Page("instruction", subject, "\n".join([*([word, ""] if word else []), *explain_forms(forms)]), details)
    if word is not None:
        return Page("word", subject, word)
    meant = what_is_unknown(subject, [*pages(), *known_words()])
    raise LookupError(f"there is no rule, instruction or term `{subject}`{meant}")
