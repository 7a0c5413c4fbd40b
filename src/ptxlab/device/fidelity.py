"""How faithful a run was: which of its instructions were measured on hardware, and what was contracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ptxlab.isa.evidence import MEASURED_ON, Evidence
from ptxlab.values import dataclass

SHOWN = 6  # instructions that are named


@dataclass(frozen=True)
class Fidelity:
    """Executed instructions by what is known of their results, each with how often; as text, one line.

    `gpu` is whose arithmetic it is, `on_hardware` whether that GPU itself ran the kernel. `pairs` are the sums that PTX
    lets a compiler contract with a product, in the text of the kernel, and `contracted` those that were.
    """

    gpu: str
    measured: Mapping[str, int] = field(default_factory=dict)
    defined: Mapping[str, int] = field(default_factory=dict)
    modelled: Mapping[str, int] = field(default_factory=dict)
    approximate: Mapping[str, int] = field(default_factory=dict)
    contract: str = "none"
    pairs: int = 0
    contracted: int = 0
    on_hardware: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether nothing that was executed is modelled or approximate."""
        return not self.modelled and not self.approximate

    def __str__(self) -> str:
        if self.on_hardware:
            return f"computed by {self.gpu} itself"
        known = sum(self.measured.values()) + sum(self.defined.values())
        parts = [f"{known:,} instruction{'s' * (known != 1)} measured on an {MEASURED_ON} or defined by the manual"]
        if self.modelled:
            parts.append(f"{sum(self.modelled.values()):,} modelled, not measured ({_names(self.modelled)})")
        if self.approximate:
            count = sum(self.approximate.values())
            parts.append(f"{count:,} approximate, with an {MEASURED_ON}'s results ({_names(self.approximate)})")
        return f"as on {_article(self.gpu)} {self.gpu}: {', '.join(parts)}{self._contraction()}"

    def _contraction(self) -> str:
        """What became of the pairs, if there are any."""
        if not self.pairs:
            return ""
        pairs = f"{self.pairs:,} pair{'s' * (self.pairs != 1)} of a product and a sum"
        if self.contract == "none":
            return f"; {pairs} that ptxas may contract {'was' if self.pairs == 1 else 'were'} not"
        by = "as ptxas does" if self.contract == "ptxas" else "all that may be"
        return f"; {self.contracted:,} of {pairs} contracted, {by}"

    def as_object(self) -> dict[str, Any]:
        """All of it, for programs."""
        kinds = {kind.value: dict(getattr(self, kind.value)) for kind in Evidence}
        contraction = {"contract": self.contract, "pairs": self.pairs, "contracted": self.contracted}
        return {"gpu": self.gpu, "on_hardware": self.on_hardware, **kinds, **contraction}


def _names(counts: Mapping[str, int]) -> str:
    names = [f"`{name}`" for name in sorted(counts, key=lambda name: (-counts[name], name))]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _article(name: str) -> str:
    """`an` before letters that are read as a vowel: an A100, an H200, an L4, an RTX 5090, an sm_86."""
    return "an" if name[0].upper() in "AEFHILMNORSX" else "a"
