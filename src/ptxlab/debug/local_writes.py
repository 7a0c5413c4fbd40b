"""What code that is not optimized writes to its copies of parameters, in local memory or in registers."""

import re

_ROW = re.compile(r"^\s*\.loc\s+(\d+\s+\d+)", re.MULTILINE)
_STORE = re.compile(r"\bst\.[\w.:]+\s+\[%SPL?(?:\+(\d+))?\]")
_POINTER = re.compile(r"(%rd\d+), %SPL?(?:, (\d+))?;")


def changes_local(text: str, start: int, size: int) -> bool:
    """Whether a function of PTX may write to bytes of its local memory after the prologue, or by a pointer."""
    lines = list(_ROW.finditer(text))
    after = next((row.end() for row in lines if row[1] != lines[0][1]), len(text))
    body = text[after:]
    written = (int(found[1] or 0) for found in _STORE.finditer(body))
    if any(start - 15 <= at < start + size for at in written):
        return True
    pointers = [found[1] for found in _POINTER.finditer(text) if start <= int(found[2] or 0) < start + max(size, 1)]
    uses = (re.findall(rf"^.*{re.escape(one)}\b.*$", body, re.MULTILINE) for one in pointers)
    return any(not re.search(r"\bld\.[\w.:]+\s+[^\[]*\[|%SP", use) for found in uses for use in found)


def changes_register(text: str, register: str) -> bool:
    """Whether a function of PTX writes a register otherwise than once, from a parameter."""
    name = re.escape(register)
    written = re.findall(rf"^\s*(?:@!?%\w+\s+)?([\w.:]+)\s+(?:\{{[^}}]*)?{name}\b", text, re.MULTILINE)
    return ["param" in one.split(".") for one in written] != [True]
