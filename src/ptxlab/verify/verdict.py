"""What came of it: one verdict, its parts, and what is wrong with each, as values, as JSON and as one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptxlab.values import Json

VERSION = 1
PASSED, FAILED, OPEN = "passed", "failed", "open"
PARTS = {
    "assembles": "ptxas and the rules of PTX accept it, for every target",
    "safe": "addresses, alignment, initialization, descriptors: no finding at any size",
    "schedules": "no race, no hang, and the same results under every schedule that was tried",
    "equal": "the outputs are those of the reference, at sizes that the submission does not know",
    "memory": "it writes every element of the outputs, from its inputs, each time, and nothing else",
    "precision": "it computes in the types that were asked for",
    "estimate": "the time that it takes",
    "proof": "no race and no bad access, proved for sizes and grids that were not tried, too",
}


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, with what shows it."""

    code: str
    message: str
    sizes: Mapping[str, int] | None = None
    witness: str = ""
    """The element and its values, or the finding as the emulator reports it, with the lines."""
    line: int | None = None
    replay: str = ""
    """The command that shows it again."""

    def as_dict(self) -> Json:
        """As plain values, for JSON."""
        return {"code": self.code, "message": self.message, "sizes": None if self.sizes is None else dict(self.sizes),
                "witness": self.witness, "line": self.line, "replay": self.replay}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """One question about a submission, and its answer."""

    name: str
    status: str
    """`passed`, `failed`, or `open`: not decided, for the reason that `notes` give."""
    findings: Sequence[Finding] = ()
    notes: Sequence[str] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> Json:
        """As plain values, for JSON."""
        return {"name": self.name, "status": self.status, "findings": [one.as_dict() for one in self.findings],
                "notes": list(self.notes), "figures": dict(self.figures)}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """The answer about a submission."""

    task: str
    submission: str
    parts: Sequence[Part]
    seed: int
    """By which data was drawn: with it, everything happens again."""
    launches: int = 0
    seconds: float = 0.0
    sizes: Sequence[Mapping[str, int]] = ()
    """The hidden sizes that were tried."""

    @property
    def status(self) -> str:
        """`accepted`, `rejected`, or `undecided`."""
        if any(part.status == FAILED for part in self.parts):
            return "rejected"
        is_open = any(part.status == OPEN and part.findings for part in self.parts)
        return "undecided" if is_open or self["equal"].status != PASSED else "accepted"

    @property
    def accepted(self) -> bool:
        """Whether nothing is wrong, and the outputs were compared."""
        return self.status == "accepted"

    def __bool__(self) -> bool:
        return self.accepted

    def __getitem__(self, name: str) -> Part:
        return next((part for part in self.parts if part.name == name), Part(name, OPEN, notes=["not reached"]))

    @property
    def findings(self) -> list[Finding]:
        """All that is wrong."""
        return [one for part in self.parts for one in part.findings]

    @property
    def codes(self) -> list[str]:
        """The codes of all that is wrong, each once."""
        return list(dict.fromkeys(one.code for one in self.findings))

    @property
    def log_line(self) -> str:
        """One line for a log."""
        codes = f" [{', '.join(self.codes)}]" if self.codes else ""
        return (
            f"verify {self.task} {self.submission}: {self.status}{codes} "
            f"({self.launches} launches, {len(self.sizes)} hidden sizes, {self.seconds:.1f} s, seed {self.seed})"
        )

    def as_dict(self) -> Json:
        """As plain values, for JSON; `SCHEMA` describes them."""
        return {"version": VERSION, "task": self.task, "submission": self.submission, "status": self.status,
                "codes": self.codes, "seed": self.seed, "launches": self.launches, "seconds": round(self.seconds, 3),
                "sizes": [dict(one) for one in self.sizes],
                "parts": [part.as_dict() for part in self.parts]}  # fmt: skip

    def __str__(self) -> str:
        from ptxlab.verify.pages import text

        return text(self)

    def _repr_html_(self) -> str:
        from ptxlab.verify.pages import html

        return html(self)


def _object(**properties: object) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_SIZES = {"type": "object", "additionalProperties": {"type": "integer"}}
_FINDING = _object(code=_TEXT, message=_TEXT, sizes={"anyOf": [_SIZES, {"type": "null"}]}, witness=_TEXT,
                   line={"type": ["integer", "null"]}, replay=_TEXT)  # fmt: skip
_PART = _object(name={"enum": list(PARTS)}, status={"enum": [PASSED, FAILED, OPEN]},
                findings={"type": "array", "items": _FINDING}, notes={"type": "array", "items": _TEXT},
                figures={"type": "object"})  # fmt: skip
SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "The verdict of `ptxlab verify`",
    **_object(version={"const": VERSION}, task=_TEXT, submission=_TEXT,
              status={"enum": ["accepted", "rejected", "undecided"]}, codes={"type": "array", "items": _TEXT},
              seed=_COUNT, launches=_COUNT, seconds={"type": "number"}, sizes={"type": "array", "items": _SIZES},
              parts={"type": "array", "items": _PART}),
}  # fmt: skip
