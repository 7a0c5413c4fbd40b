"""Messages, crashes and time-outs of ptxas as diagnostics on the PTX they are about."""

from __future__ import annotations

import re
from dataclasses import replace

from ptxlab.report import Diagnostic, Edit, Help, Source, Span, error, warning
from ptxlab.toolchain.advisories import Advisory, find_advisory
from ptxlab.toolchain.crashes import find_cause
from ptxlab.toolchain.header import unterminated_comment
from ptxlab.toolchain.messages import Message
from ptxlab.toolchain.placement import locate
from ptxlab.toolchain.process import Outcome
from ptxlab.toolchain.tools import Tool

INPUT = "input.ptx"  # the name of the module for ptxas
# The kinds of error a reader treats differently; whatever fits none is a plain `ptxas-error`.
CODES = (
    ("ptxas-syntax-error", r"Parsing error|syntax error|Unexpected EOF|Not a name of any known instruction"),
    ("ptxas-unknown-symbol", r"Unknown symbol"),
    ("ptxas-unresolved-symbol", r"Unresolved extern"),
    ("ptxas-unsupported-version", r"requires PTX ISA|Unsupported \.version"),
    (
        "ptxas-unsupported-target",
        r"not supported on \.target|requires \.target|Unsupported \.target|specified by \.target",
    ),
    ("ptxas-too-many-resources", r"uses too much"),
)
_HELPS = (
    (r"specified by \.target is higher", "assemble for the target the module states, or lower its `.target`"),
    (r"Unsupported \.version", "lower `.version` if the module needs nothing newer, or install a newer ptxas"),
    (r"Unresolved extern function", "define the function, or make a relocatable object with `-c`"),
    (
        r"uses too much shared data",
        "use dynamic shared memory (`.extern .shared`) beyond 48 KB, and ask for it at launch",
    ),
)


def diagnose(message: Message, source: Source, tool: Tool) -> Diagnostic:
    """One message of ptxas as a diagnostic."""
    message = replace(message, text=message.text.replace(f"'{INPUT}'", f"'{source.name}'"))
    advisory = find_advisory(message.text)
    if advisory:
        return _advise(advisory, message, source, tool)
    if source.text.startswith("\ufeff") and "non-ASCII character" in message.text:
        return _byte_order_mark(message, source, tool)
    first, *others = message.text.split("\n")
    notes = [line.strip() for line in others if line.strip()]
    span = locate(source, message.text, message.line)
    helps = [help for pattern, help in _HELPS if re.search(pattern, message.text)]
    if message.level == "error":
        code = next((code for code, pattern in CODES if re.search(pattern, first)), "ptxas-error")
        return error(code, _sentence(first), span, notes=notes, helps=helps)
    if message.level == "warning":
        return warning("ptxas-warning", _sentence(first), span, notes=notes, helps=helps)
    return Diagnostic("note", "ptxas-info", _sentence(first), warning("", "", span).labels, tuple(notes))


def diagnose_crash(outcome: Outcome, source: Source, tool: Tool) -> Diagnostic:
    """A ptxas that was killed by a signal, with the known cause where the text has it."""
    span, note = find_cause(source) or (None, f"this is a bug of ptxas {tool.version}; it gave no message")
    helps = ["try another release: `pip install 'ptxlab[toolchain]'` brings a recent one"]
    return error("ptxas-crash", f"ptxas was killed by {outcome.signal_name}", span, notes=[note], helps=helps)


def diagnose_timeout(seconds: float, source: Source, tool: Tool) -> Diagnostic:
    """A ptxas that was ended because its time was up."""
    notes = [f"ptxas {tool.version} was ended; it gave no result"]
    helps = ["allow more time, or find the expensive function by assembling fewer"]
    return error("ptxas-timeout", f"ptxas did not end within {seconds:g} seconds", None, notes=notes, helps=helps)


def diagnose_unterminated_comment(source: Source) -> Diagnostic | None:
    """The one text known to keep ptxas busy for ever, refused before it does."""
    start = unterminated_comment(source.text)
    if start is None:
        return None
    span = Span(source, start, start + 2)
    notes = ["ptxas would read on for ever"]
    return error("unterminated-comment", "this comment never ends", span, notes=notes, helps=["close it with `*/`"])


def _advise(advisory: Advisory, message: Message, source: Source, tool: Tool) -> Diagnostic:
    span = locate(source, message.text, message.line, advisory.instruction)
    say = error if message.level == "error" else warning
    number = f" ({message.number})" if message.number else ""
    notes = [advisory.explanation]
    if advisory.message:
        notes.append(f"ptxas {tool.version} says{number}: {message.text}")
    text = advisory.message or _sentence(message.text)
    return say(advisory.code, text, span, notes=notes, helps=[advisory.help])


def _byte_order_mark(message: Message, source: Source, tool: Tool) -> Diagnostic:
    span = Span(source, 0, 1)
    notes = [f"ptxas {tool.version} says: {message.text}"]
    help = Help("remove the byte order mark", (Edit(span, ""),))
    return error("non-ascii-character", f"PTX is ASCII, and this is {span.text!a}", span, notes=notes, helps=[help])


def _sentence(text: str) -> str:
    """A message in our form: code in backticks, no capital at the start, no full stop.

    >>> _sentence("Arguments mismatch for instruction 'add'")
    'arguments mismatch for instruction `add`'
    """
    quoted = re.sub(r"'([^']*)'", r"`\1`", text.strip().rstrip("."))
    plain = len(quoted) > 1 and quoted[0].isupper() and not quoted[1].isupper()
    return quoted[0].lower() + quoted[1:] if plain else quoted
