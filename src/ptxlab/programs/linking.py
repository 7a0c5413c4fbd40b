"""Linking of PTX: parts of a program that were compiled separately (`nvcc -rdc=true`) become one module.

As nvlink does: what one part declares as `.extern` and another defines is one thing, of several `.weak` definitions the
first remains, and what has no linkage is the part's own. Declarations come first, then functions; numbers of files and
debug sections are made to fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxlab import ir
from ptxlab.ir import dwarf
from ptxlab.programs.device_launches import runtime_for
from ptxlab.report import PtxError
from ptxlab.syntax import read

_WORD = re.compile(r"[\w$%]+")
_FILE = re.compile(r"(\.(?:file|loc)\s+|\binlined_at\s+)(\d+)")
_ABBREVIATIONS = re.compile(r"(\.b32\s+)\.debug_abbrev\b")
_DEFINING = ("visible", "weak", "common")
_SYSTEM_CALL = "__cuda_syscall_"  # which only NVIDIA's device runtime names: it asks a GPU for what it does
_Named = ir.Function | ir.Variable


def link(texts: Sequence[str], name: str) -> str:
    """One text of several. Raises `PtxError` where a part is wrong."""
    texts = [text for text in texts if _SYSTEM_CALL not in text]
    texts += runtime_for(texts)
    if len(texts) == 1:
        return texts[0]
    parts = [_read(text, name) for text in texts]
    defined = {one.name: one for part in reversed(parts) for one in _named(part) if _is_definition(one)}
    prototypes: dict[str, str] = {}
    variables: dict[str, str] = {}
    rest: list[str] = []
    taken: set[str] = set()
    files = abbreviations = 0
    for number, part in enumerate(parts):
        own = {one.name for one in _named(part) if one.linkage is None or _is_dynamic(one)}
        clashes, taken = own & taken, taken | own
        for item in part.items:
            assert part.source is not None
            text = _rename(part.source.text[item.start or 0 : item.end or 0], clashes, number)
            if isinstance(item, ir.Function) and item.body is None:
                linkage = defined[item.name].linkage if item.name in defined else "extern"
                name = _rename(item.name, clashes, number)
                prototypes.setdefault(name, text.replace(".extern", f".{linkage}", 1))
            elif isinstance(item, ir.Declaration):
                if any(one.linkage is None or defined.get(one.name, one) is one for one in item.variables):
                    variables.setdefault(_rename(item.variables[0].name, clashes, number), text)
            elif not isinstance(item, ir.Function) or item.linkage is None or defined[item.name] is item:
                text = _FILE.sub(lambda found, base=files: f"{found[1]}{int(found[2]) + base}", text)  # type: ignore[misc]
                rest.append(_ABBREVIATIONS.sub(rf"\1.debug_abbrev+{abbreviations}", text))
        files += max((item.index for item in part.items if isinstance(item, ir.File)), default=0)
        abbreviations += len(dwarf.section(part, ".debug_abbrev").content)
    version = ".".join(map(str, max(part.version for part in parts)))
    header = [f".version {version}", f".target {', '.join(parts[0].targets)}", ".address_size 64"]
    placed = sorted(variables.values(), key=lambda text: "generic(" in text)  # after what their values name
    return "\n".join([*header, *prototypes.values(), *placed, *rest, ""])


def _read(text: str, name: str) -> ir.Module:
    module, faults = read(text, name)
    if faults:
        raise PtxError(faults)
    return module


def _named(part: ir.Module) -> Iterator[_Named]:
    yield from part.functions
    yield from part.variables


def _is_definition(one: _Named) -> bool:
    return one.linkage in _DEFINING and (isinstance(one, ir.Variable) or one.body is not None)


def _is_dynamic(one: _Named) -> bool:
    """Whether it is shared memory whose size a launch gives: each part's own name for the same bytes."""
    return isinstance(one, ir.Variable) and one.state_space == "shared" and one.linkage == "extern"


def _rename(text: str, clashes: set[str], number: int) -> str:
    """Give names that earlier parts have, too, and labels that debug sections may name, an ending of this part's."""

    def named(found: re.Match[str]) -> str:
        return f"{found[0]}$part{number}" if found[0] in clashes or found[0].startswith("$L__") else found[0]

    return _WORD.sub(named, text) if number else text
