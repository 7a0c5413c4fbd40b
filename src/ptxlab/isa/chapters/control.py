"""Control flow: branches, calls, returns (PTX ISA 9.7.12).

The operands of `call` are irregular and read by hand; whether they fit the function called is judged apart from the
table, so this file only has their kinds.
"""

from ..form import form

NAMED = {"function": "function", "values": "arguments"}
NAMED_RESULTS = {"results": "arguments", **NAMED}
POINTER = {"pointer": "u64 reg", "values": "arguments", "known": "prototype"}
POINTER_RESULTS = {"results": "arguments", **POINTER}
SHORT = {**POINTER, "pointer": "u32 reg"}
SHORT_RESULTS = {"results": "arguments", **SHORT}


@form("bra{.uni} target", types={"target": "label"}, effects="branch")
def bra() -> None:
    """Continue at a label; `.uni` promises that all threads of the warp that are here do the same."""


@form(  # the manual says 6.0
    "brx.idx{.uni} index, list",
    types={"index": "u32", "list": "targets"},
    since="5.1 sm_30",
    effects="indexed-branch",
)
def brx() -> None:
    """Continue at label number `index` of a `.branchtargets` list."""


@form("call{.uni} function{, values}", types=NAMED, effects="call")
@form("call{.uni} results, function{, values}", types=NAMED_RESULTS, effects="call")
@form("call{.uni} pointer{, values}, known", types=POINTER, since="2.1 sm_20", effects="call")
@form("call{.uni} results, pointer{, values}, known", types=POINTER_RESULTS, since="2.1 sm_20", effects="call")
@form("call{.uni} pointer{, values}, known", types=SHORT, since="2.1 sm_20", effects="call")
@form("call{.uni} results, pointer{, values}, known", types=SHORT_RESULTS, since="2.1 sm_20", effects="call")
def call() -> None:
    """Call a function by its name, or by its address and a `.callprototype` or `.calltargets` that says what it takes.

    `.uni` promises that all threads of the warp that are here call the same function.
    """


@form("ret{.uni}", effects="return")
def ret() -> None:
    """Return to the caller; in a kernel, end the thread."""


@form("exit", effects="exit")
def exit() -> None:
    """End the thread."""
