"""What of the instruction set the emulator refuses, form by form: with which modifiers, why, and from which PTX on.

The coverage page of the documentation and the lists that tests compare with are made of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxlab.emulate.translate.refuse import is_emulated, reason_of_word
from ptxlab.isa.form import Form
from ptxlab.isa.targets import TARGETS as FIRST
from ptxlab.isa.targets import VERSIONS, Since, target_named

READ = (9, 0)  # the newest PTX that ptxas of CUDA 13.0 reads; forms of later versions are listed apart
TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")


@dataclass(frozen=True)
class Refusal:
    """A form that is refused, or one of its modifiers."""

    modifier: str | None
    """The value of a modifier with which the form is refused; `None`: the form is refused with all."""
    reason: str
    since: Since
    """When what is refused is available."""

    @property
    def is_later(self) -> bool:
        """Whether it belongs to a PTX that ptxas of CUDA 13.0 does not read."""
        return all(version > READ for version, _ in self.since.alternatives)

    def __str__(self) -> str:
        what = "" if self.modifier is None else f"`.{self.modifier}`: "
        return f"{what}{self.reason}"


def refusals_of(form: Form) -> Iterator[Refusal]:
    """All that is refused of a form: nothing, the form itself, or some of its modifiers."""
    if not is_emulated(form):
        assert form.unknown is not None
        yield Refusal(None, form.unknown, form.since)
        return
    for slot in form.slots:
        for value, since in slot.values.items():
            if reason := reason_of_word(value):
                yield Refusal(value, reason, _later(form.since, since))


def _later(form: Since, value: Since) -> Since:
    """When a modifier of a form is available: of two conditions, the one that holds later."""
    first = min(version for version, _ in form.alternatives)
    return value if min(version for version, _ in value.alternatives) > first else form


def answer_of(form: Form, target: str) -> str:
    """What the emulator does with a form in modules for a target: `yes`, `partly`, `no`, or nothing to do."""
    if not _is_there(form.since, target):
        return ""
    refused = [refusal for refusal in refusals_of(form) if _is_there(refusal.since, target)]
    if any(refusal.modifier is None for refusal in refused):
        return "no"
    return "partly" if refused else "yes"


def _is_there(since: Since, target: str) -> bool:
    chip = target_named(target)
    return any(since.holds(version, chip) for version in VERSIONS if version >= FIRST[target])
